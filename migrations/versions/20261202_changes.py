"""Readings in the order in which they were made: what a mirror asks for."""

from __future__ import annotations

from alembic import op

revision = "20261202_changes"
down_revision = "20261201_kept_log_shares"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_reading_read_at", "reading", ["repo_id", "read_at", "number"])


def downgrade() -> None:
    op.drop_index("ix_reading_read_at", "reading")
