"""What issues are about, as vectors of an embedding model."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261205_issue_vectors"
down_revision = "20261204_model_replies"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "issue_vector",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name="fk_issue_vector_repo_id_number",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repo_id", "number", name="pk_issue_vector"),
    )


def downgrade() -> None:
    op.drop_table("issue_vector")
