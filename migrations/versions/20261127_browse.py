"""What lists filter by: told beside the facts, and indexed; the keys that a base makes for itself."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261127_browse"
down_revision = "20261126_clusters"
branch_labels = None
depends_on = None

FILL = {
    "sqlite": """
        UPDATE reading SET
            failure_kind = json_extract(facts, '$.failure_kind'),
            error_type = substr(json_extract(facts, '$.error.type'), 1, 120),
            has_remedy = EXISTS (
                SELECT 1 FROM json_each(reading.facts, '$.workarounds') AS told
                WHERE json_extract(told.value, '$.outcome') <> 'fails'
            )
        WHERE json_type(facts) = 'object'
    """,
    "postgresql": """
        UPDATE reading SET
            failure_kind = facts ->> 'failure_kind',
            error_type = left(facts #>> '{error,type}', 120),
            has_remedy = EXISTS (
                SELECT 1 FROM jsonb_array_elements(facts -> 'workarounds') AS told(value)
                WHERE told.value ->> 'outcome' <> 'fails'
            )
        WHERE jsonb_typeof(facts) = 'object'
    """,
}


def upgrade() -> None:
    op.add_column("reading", sa.Column("failure_kind", sa.String(length=20), nullable=True))
    op.add_column("reading", sa.Column("error_type", sa.String(length=120), nullable=True))
    op.add_column("reading", sa.Column("has_remedy", sa.Boolean(), nullable=True))
    op.execute(FILL[op.get_bind().dialect.name])
    op.create_index(
        "ix_reading_told", "reading", ["repo_id", "number", "failure_kind", "error_type", "has_remedy"]
    )
    op.create_index(
        "ix_issue_listed",
        "issue",
        ["repo_id", "is_pull_request", "gone_at", "state", "created_at", "number"],
    )
    op.drop_index("ix_fact_field_value", table_name="fact")
    op.create_index("ix_fact_told", "fact", ["field", "value_key", "repo_id", "number"])
    op.create_table(
        "secret",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secret")),
    )


def downgrade() -> None:
    op.drop_table("secret")
    op.drop_index("ix_fact_told", table_name="fact")
    op.create_index("ix_fact_field_value", "fact", ["field", "value_key"])
    op.drop_index("ix_issue_listed", table_name="issue")
    op.drop_index("ix_reading_told", table_name="reading")
    op.drop_column("reading", "has_remedy")
    op.drop_column("reading", "error_type")
    op.drop_column("reading", "failure_kind")
