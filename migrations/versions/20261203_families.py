"""Families of failures, and votes on remedies. `triage reextract` puts stored failures into families."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261203_families"
down_revision = "20261202_changes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("cluster_member", sa.Column("family", sa.String(120)))
    op.create_index("ix_cluster_member_family", "cluster_member", ["repo_id", "family", "number"])
    op.create_table(
        "remedy_vote",
        sa.Column("repo_id", sa.Integer, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("remedy", sa.String(16), primary_key=True),
        sa.Column("visitor", sa.String(64), primary_key=True),
        sa.Column("origin", sa.String(64), nullable=False),
        sa.Column("value", sa.Integer, nullable=False),
        sa.Column("voted_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["repo_id", "number"], ["issue.repo_id", "issue.number"], ondelete="CASCADE"),
    )


def downgrade() -> None:
    op.drop_table("remedy_vote")
    op.drop_index("ix_cluster_member_family", "cluster_member")
    op.drop_column("cluster_member", "family")
