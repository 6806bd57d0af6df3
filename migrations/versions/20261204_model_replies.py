"""What a language model answered about an issue, as it came."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "20261204_model_replies"
down_revision = "20261203_families"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "model_reply",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("prompt_version", sa.String(length=20), nullable=False),
        sa.Column("outcome", sa.String(length=10), nullable=False),
        sa.Column("reply", sa.Text(), nullable=False),
        sa.Column("chars_max", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("reply_tokens", sa.Integer(), nullable=False),
        sa.Column("kept", sa.Integer(), nullable=False),
        sa.Column("dropped", sa.Integer(), nullable=False),
        sa.Column("reasons", JSON, nullable=False),
        sa.Column("differing", JSON, nullable=False),
        sa.Column("replied_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name="fk_model_reply_repo_id_number",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "repo_id", "number", "digest", "model", "prompt_version", name="pk_model_reply"
        ),
    )
    op.create_index("ix_model_reply_replied_at", "model_reply", ["replied_at"])


def downgrade() -> None:
    op.drop_index("ix_model_reply_replied_at", "model_reply")
    op.drop_table("model_reply")
