"""Indexes along which lists count readings and order issues, without the rows that hold the texts."""

from __future__ import annotations

from alembic import op

revision = "20261206_lists"
down_revision = "20261205_issue_vectors"
branch_labels = None
depends_on = None

READ = ["repo_id", "failure_kind", "error_type", "has_remedy", "number"]
ORDERS = ("updated_at", "comments", "reactions")


def upgrade() -> None:
    op.create_index("ix_reading_grouped", "reading", READ)
    op.drop_index("ix_issue_repo_id_updated_at", table_name="issue")
    for name in ORDERS:
        op.create_index(f"ix_issue_repo_id_{name}_number", "issue", ["repo_id", name, "number"])


def downgrade() -> None:
    for name in ORDERS:
        op.drop_index(f"ix_issue_repo_id_{name}_number", table_name="issue")
    op.create_index("ix_issue_repo_id_updated_at", "issue", ["repo_id", "updated_at"])
    op.drop_index("ix_reading_grouped", table_name="reading")
