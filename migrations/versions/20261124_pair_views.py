"""What each issue is compared by with others, packed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261124_pair_views"
down_revision = "20261123_fix_containment"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pair_view",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.String(length=40), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name=op.f("fk_pair_view_repo_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repo_id", "number", name=op.f("pk_pair_view")),
    )


def downgrade() -> None:
    op.drop_table("pair_view")
