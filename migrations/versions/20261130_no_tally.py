"""Issues are counted when they are asked for: no counts kept beside them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261130_no_tally"
down_revision = "20261129_ties"
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
    op.drop_table("tally")


def downgrade() -> None:
    op.create_table(
        "tally",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        *(
            sa.Column(name, sa.Integer(), nullable=False)
            for name in ("issues", "pulls", "from_cards", "indexed")
        ),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_tally_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", name=op.f("pk_tally")),
    )
    op.execute(FILL)
