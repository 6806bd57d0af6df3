"""Which issues report one failure: clusters, their members, the ids that once named one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "20261126_clusters"
down_revision = "20261125_judgements"
branch_labels = None
depends_on = None

JSON_TYPE = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "cluster",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=20), nullable=False),
        sa.Column("canonical", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_cluster_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "id", name=op.f("pk_cluster")),
    )
    op.create_table(
        "cluster_member",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("cluster_id", sa.String(length=20), nullable=False),
        sa.Column("signature_id", sa.String(length=20), nullable=True),
        sa.Column("traits", JSON_TYPE, nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name=op.f("fk_cluster_member_repo_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repo_id", "number", name=op.f("pk_cluster_member")),
    )
    op.create_index("ix_cluster_member_repo_id_cluster_id", "cluster_member", ["repo_id", "cluster_id"])
    op.create_index("ix_cluster_member_first", "cluster_member", ["repo_id", "signature_id", "number"])
    op.create_table(
        "cluster_alias",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("old_id", sa.String(length=20), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_cluster_alias_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "old_id", name=op.f("pk_cluster_alias")),
    )
    op.create_index("ix_cluster_alias_repo_id_number", "cluster_alias", ["repo_id", "number"])


def downgrade() -> None:
    op.drop_table("cluster_alias")
    op.drop_table("cluster_member")
    op.drop_table("cluster")
