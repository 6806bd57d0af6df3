"""Where a model read otherwise than the rules is computed when it is asked for, and kept no more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "20261207_reply_differences"
down_revision = "20261206_lists"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("model_reply", "differing")


def downgrade() -> None:
    kept = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
    op.add_column("model_reply", sa.Column("differing", kept, nullable=False, server_default="[]"))
