"""An index by which what counts the issues of a list's rows needs none of the rows that hold the texts."""

from __future__ import annotations

from alembic import op

revision = "20261209_issue_times"
down_revision = "20261208_cluster_counts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_issue_times", "issue", ["repo_id", "number", "gone_at", "state", "created_at"])


def downgrade() -> None:
    op.drop_index("ix_issue_times", table_name="issue")
