"""Which release holds which fix, as GitHub's comparison of its merge commit with the tag answered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261123_fix_containment"
down_revision = "20261122_seen_and_deliveries"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "fix_containment",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("tag", sa.String(length=100), nullable=False),
        sa.Column("contained", sa.Boolean(), nullable=True),
        sa.Column("commit_sha", sa.String(length=64), nullable=True),
        sa.Column("source", sa.String(length=20), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_fix_containment_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "number", "tag", name=op.f("pk_fix_containment")),
    )


def downgrade() -> None:
    op.drop_table("fix_containment")
