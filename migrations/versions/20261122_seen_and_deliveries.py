"""When GitHub last listed a row, which comments are gone, which webhook deliveries were taken in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261122_seen_and_deliveries"
down_revision = "20261121_first_tables"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("issue", sa.Column("seen_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("comment", sa.Column("seen_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("comment", sa.Column("gone_at", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "delivery",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("event", sa.String(length=60), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery")),
    )
    op.create_index(op.f("ix_delivery_received_at"), "delivery", ["received_at"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_delivery_received_at"), table_name="delivery")
    op.drop_table("delivery")
    op.drop_column("comment", "gone_at")
    op.drop_column("comment", "seen_at")
    op.drop_column("issue", "seen_at")
