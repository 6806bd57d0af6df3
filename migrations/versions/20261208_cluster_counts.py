"""What lists of clusters order and filter by stands in the clusters; it follows from their issues."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261208_cluster_counts"
down_revision = "20261207_reply_differences"
branch_labels = None
depends_on = None

COUNTS = ("size", "open_count")
TIMES = ("first_seen", "last_seen", "closed_at")
ORDERS = {"size": ["size", "last_seen"], "last_seen": ["last_seen", "size"]}
FILL = """
    UPDATE cluster SET (size, open_count, first_seen, last_seen) = (
        SELECT count(*), count(*) FILTER (WHERE i.state = 'open'), min(i.created_at), max(i.created_at)
        FROM cluster_member m CROSS JOIN issue i
        WHERE m.repo_id = cluster.repo_id AND m.cluster_id = cluster.id
        AND i.repo_id = m.repo_id AND i.number = m.number AND i.gone_at IS NULL
    ), (title, closed_at) = (
        SELECT k.title, CASE WHEN k.state = 'closed' THEN k.closed_at END FROM issue k
        WHERE k.repo_id = cluster.repo_id AND k.number = cluster.canonical
    )
"""


def upgrade() -> None:
    op.add_column("cluster", sa.Column("title", sa.Text, nullable=False, server_default=""))
    for name in COUNTS:
        op.add_column("cluster", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    for name in TIMES:
        op.add_column("cluster", sa.Column(name, sa.DateTime(timezone=True)))
    op.execute(FILL)
    for name, columns in ORDERS.items():
        op.create_index(f"ix_cluster_{name}", "cluster", ["repo_id", *columns, "id"])


def downgrade() -> None:
    for name in ORDERS:
        op.drop_index(f"ix_cluster_{name}", "cluster")
    for name in ("title", *COUNTS, *TIMES):
        op.drop_column("cluster", name)
