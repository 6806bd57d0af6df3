"""Each kept log has the client that it counts for, as a keyed hash, and its bytes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261201_kept_log_shares"
down_revision = "20261130_no_tally"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("kept_log", sa.Column("owner", sa.String(length=64), nullable=True))
    op.add_column("kept_log", sa.Column("size", sa.Integer(), nullable=True))
    op.execute("UPDATE kept_log SET size = length(log)")
    op.create_index("ix_kept_log_owner", "kept_log", ["owner", "size"])


def downgrade() -> None:
    op.drop_index("ix_kept_log_owner", "kept_log")
    op.drop_column("kept_log", "size")
    op.drop_column("kept_log", "owner")
