"""One judgement in force for each pair, why one ended; merges found by their time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261125_judgements"
down_revision = "20261124_pair_views"
branch_labels = None
depends_on = None

IN_FORCE = sa.text("undone_at IS NULL")


def upgrade() -> None:
    op.add_column("judgement", sa.Column("undone_why", sa.String(length=10), nullable=True))
    op.create_index(
        "ix_judgement_in_force",
        "judgement",
        ["repo_id", "a", "b"],
        unique=True,
        sqlite_where=IN_FORCE,
        postgresql_where=IN_FORCE,
    )
    op.create_index("ix_judgement_repo_id_b", "judgement", ["repo_id", "b"], unique=False)
    op.create_index(
        "ix_pull_request_repo_id_merged_at", "pull_request", ["repo_id", "merged_at"], unique=False
    )


def downgrade() -> None:
    op.drop_index("ix_pull_request_repo_id_merged_at", table_name="pull_request")
    op.drop_index("ix_judgement_repo_id_b", table_name="judgement")
    op.drop_index("ix_judgement_in_force", table_name="judgement")
    op.drop_column("judgement", "undone_why")
