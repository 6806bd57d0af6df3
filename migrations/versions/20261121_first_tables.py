"""The first tables: everything that comes from GitHub, what is read out of it, the search index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "20261121_first_tables"
down_revision = None
branch_labels = None
depends_on = None

JSON_TYPE = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "kept_log",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("delete_key", sa.String(length=64), nullable=False),
        sa.Column("log", sa.Text(), nullable=False),
        sa.Column("answer", JSON_TYPE, nullable=False),
        sa.Column("kept_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kept_log")),
    )
    op.create_index(op.f("ix_kept_log_expires_at"), "kept_log", ["expires_at"], unique=False)
    op.create_table(
        "posting",
        sa.Column("term_id", sa.BigInteger(), nullable=False),
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("term_id", "repo_id", "number", name=op.f("pk_posting")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "repository",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("full_name", sa.String(length=140), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_repository")),
        sa.UniqueConstraint("full_name", name=op.f("uq_repository_full_name")),
    )
    op.create_table(
        "signature",
        sa.Column("id", sa.String(length=20), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_signature")),
    )
    op.create_table(
        "term",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("channel", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("df", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_term")),
    )
    op.create_table(
        "card",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_card_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "number", name=op.f("pk_card")),
    )
    op.create_table(
        "comment",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("issue_number", sa.BigInteger(), nullable=False),
        sa.Column("author", sa.String(length=100), nullable=True),
        sa.Column("author_association", sa.String(length=30), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fetched_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("raw", JSON_TYPE, nullable=True),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_comment_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "id", name=op.f("pk_comment")),
    )
    op.create_index("ix_comment_repo_id_issue_number", "comment", ["repo_id", "issue_number"], unique=False)
    op.create_table(
        "issue",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("origin", sa.String(length=10), nullable=False),
        sa.Column("is_pull_request", sa.Boolean(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("state_reason", sa.String(length=20), nullable=True),
        sa.Column("author", sa.String(length=100), nullable=True),
        sa.Column("author_association", sa.String(length=30), nullable=True),
        sa.Column("labels", JSON_TYPE, nullable=False),
        sa.Column("comments", sa.Integer(), nullable=False),
        sa.Column("reactions", sa.Integer(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fetched_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("gone_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("gone_reason", sa.String(length=20), nullable=True),
        sa.Column("raw", JSON_TYPE, nullable=True),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_issue_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "number", name=op.f("pk_issue")),
    )
    op.create_index("ix_issue_kinds", "issue", ["repo_id", "is_pull_request", "origin"], unique=False)
    op.create_index("ix_issue_repo_id_updated_at", "issue", ["repo_id", "updated_at"], unique=False)
    op.create_table(
        "judgement",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("a", sa.BigInteger(), nullable=False),
        sa.Column("b", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.String(length=10), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("judged_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("undone_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_judgement_repo_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgement")),
    )
    op.create_table(
        "release",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("tag", sa.String(length=100), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("is_prerelease", sa.Boolean(), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("raw", JSON_TYPE, nullable=True),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_release_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "tag", name=op.f("pk_release")),
    )
    op.create_table(
        "sync_cursor",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("stream", sa.String(length=20), nullable=False),
        sa.Column("position", JSON_TYPE, nullable=False),
        sa.Column("moved_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_sync_cursor_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "stream", name=op.f("pk_sync_cursor")),
    )
    op.create_table(
        "sync_run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("not_modified", sa.Integer(), nullable=False),
        sa.Column("remaining", sa.Integer(), nullable=True),
        sa.Column("stored", sa.Integer(), nullable=False),
        sa.Column("fault", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["repo_id"], ["repository.id"], name=op.f("fk_sync_run_repo_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sync_run")),
    )
    op.create_table(
        "fact",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("field", sa.String(length=60), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("value_key", sa.String(length=120), nullable=False),
        sa.Column("quote", sa.Text(), nullable=False),
        sa.Column("source", sa.String(length=60), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(length=80), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name=op.f("fk_fact_repo_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fact")),
    )
    op.create_index("ix_fact_field_value", "fact", ["field", "value_key"], unique=False)
    op.create_index("ix_fact_repo_id_number", "fact", ["repo_id", "number"], unique=False)
    op.create_table(
        "link",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("target_repo", sa.String(length=140), nullable=False),
        sa.Column("target_number", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("channel", sa.String(length=10), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name=op.f("fk_link_repo_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "repo_id", "number", "target_repo", "target_number", "kind", name=op.f("pk_link")
        ),
    )
    op.create_index("ix_link_target", "link", ["target_repo", "target_number"], unique=False)
    op.create_table(
        "occurrence",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("signature_id", sa.String(length=20), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name=op.f("fk_occurrence_repo_id_number"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["signature_id"], ["signature.id"], name=op.f("fk_occurrence_signature_id")),
        sa.PrimaryKeyConstraint("repo_id", "number", "signature_id", name=op.f("pk_occurrence")),
    )
    op.create_index("ix_occurrence_signature_id", "occurrence", ["signature_id"], unique=False)
    op.create_table(
        "profile",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name=op.f("fk_profile_repo_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repo_id", "number", name=op.f("pk_profile")),
    )
    op.create_table(
        "pull_request",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("merged_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("merge_commit_sha", sa.String(length=64), nullable=True),
        sa.Column("is_draft", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name=op.f("fk_pull_request_repo_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repo_id", "number", name=op.f("pk_pull_request")),
    )
    op.create_table(
        "reading",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("rules_version", sa.String(length=40), nullable=False),
        sa.Column("facts", JSON_TYPE, nullable=True),
        sa.Column("fault", sa.String(length=100), nullable=True),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name=op.f("fk_reading_repo_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repo_id", "number", name=op.f("pk_reading")),
    )
    op.create_table(
        "release_pull",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("tag", sa.String(length=100), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "tag"],
            ["release.repo_id", "release.tag"],
            name=op.f("fk_release_pull_repo_id_tag"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repo_id", "tag", "number", name=op.f("pk_release_pull")),
    )
    op.create_index("ix_release_pull_repo_id_number", "release_pull", ["repo_id", "number"], unique=False)
    op.create_table(
        "vote",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("signal", sa.String(length=20), nullable=False),
        sa.Column("visitor", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.Column("voted_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_id", "number"],
            ["issue.repo_id", "issue.number"],
            name=op.f("fk_vote_repo_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repo_id", "number", "signal", "visitor", name=op.f("pk_vote")),
    )


def downgrade() -> None:
    op.drop_table("vote")
    op.drop_index("ix_release_pull_repo_id_number", table_name="release_pull")
    op.drop_table("release_pull")
    op.drop_table("reading")
    op.drop_table("pull_request")
    op.drop_table("profile")
    op.drop_index("ix_occurrence_signature_id", table_name="occurrence")
    op.drop_table("occurrence")
    op.drop_index("ix_link_target", table_name="link")
    op.drop_table("link")
    op.drop_index("ix_fact_repo_id_number", table_name="fact")
    op.drop_index("ix_fact_field_value", table_name="fact")
    op.drop_table("fact")
    op.drop_table("sync_run")
    op.drop_table("sync_cursor")
    op.drop_table("release")
    op.drop_table("judgement")
    op.drop_index("ix_issue_repo_id_updated_at", table_name="issue")
    op.drop_index("ix_issue_kinds", table_name="issue")
    op.drop_table("issue")
    op.drop_index("ix_comment_repo_id_issue_number", table_name="comment")
    op.drop_table("comment")
    op.drop_table("card")
    op.drop_table("term")
    op.drop_table("signature")
    op.drop_table("repository")
    op.drop_table("posting")
    op.drop_index(op.f("ix_kept_log_expires_at"), table_name="kept_log")
    op.drop_table("kept_log")
