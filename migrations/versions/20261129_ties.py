"""The ties of a failure are read from links and judgements: no copy of them beside its traits."""

from __future__ import annotations

from alembic import op

revision = "20261129_ties"
down_revision = "20261128_tally"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute("UPDATE cluster_member SET traits = json_remove(traits, '$.ties')")
    else:
        op.execute("UPDATE cluster_member SET traits = traits - 'ties'")


def downgrade() -> None:
    """The version before reads `ties` of every member: `triage reextract` fills them after this."""
    if op.get_context().dialect.name == "sqlite":
        op.execute("UPDATE cluster_member SET traits = json_set(traits, '$.ties', json('[]'), '$.rules', '')")
    else:
        op.execute("""UPDATE cluster_member SET traits = traits || '{"ties": [], "rules": ""}'""")
