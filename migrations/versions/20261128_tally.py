"""How many issues each repository has, kept by those who store them; an index of how its syncs ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261128_tally"
down_revision = "20261127_browse"
branch_labels = None
depends_on = None

FILL = """
    INSERT INTO tally (repo_id, issues, pulls, from_cards, indexed)
    SELECT
        id,
        (SELECT count(*) FROM issue WHERE repo_id = repository.id AND NOT is_pull_request),
        (SELECT count(*) FROM issue WHERE repo_id = repository.id AND is_pull_request),
        (SELECT count(*) FROM issue WHERE repo_id = repository.id AND origin <> 'github'),
        (SELECT count(*) FROM profile WHERE repo_id = repository.id)
    FROM repository
"""


def upgrade() -> None:
    op.create_table(
        "tally",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("issues", sa.Integer(), nullable=False),
        sa.Column("pulls", sa.Integer(), nullable=False),
        sa.Column("from_cards", sa.Integer(), nullable=False),
        sa.Column("indexed", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_tally_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", name=op.f("pk_tally")),
    )
    op.execute(FILL)
    op.create_index("ix_sync_run_ended", "sync_run", ["repo_id", "outcome", "ended_at"])


def downgrade() -> None:
    op.drop_index("ix_sync_run_ended", table_name="sync_run")
    op.drop_table("tally")
