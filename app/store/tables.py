"""Table definitions for both engines. GitHub data is keyed by repository and number.

`posting`, `term` and `profile` are the search index, written in the same transaction as the facts, so an
issue is searchable as soon as it is stored. Cluster tables can be rebuilt from links, judgements and facts,
except `cluster_alias`, the former ids of clusters.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    text,
)
from sqlalchemy.types import TypeEngine

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)


class JsonType(TypeDecorator[Any]):
    """JSONB on PostgreSQL, JSON on SQLite."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name != "postgresql":
            return dialect.type_descriptor(JSON())
        from sqlalchemy.dialects.postgresql import JSONB

        return dialect.type_descriptor(JSONB())


class UtcDateTime(TypeDecorator[datetime]):
    """Timezone-aware UTC datetimes on both engines; SQLite itself stores no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Any) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Any) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _required(name: str, kind: Any, **options: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, **options)


def _key(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, primary_key=True)


def _id() -> Column[Any]:
    return Column("id", Integer, primary_key=True)


def _repo(*, key: bool = True) -> Column[Any]:
    return Column("repo_id", ForeignKey("repository.id"), primary_key=key, nullable=False)


def _number() -> Column[Any]:
    return _key("number", BigInteger)


def _of_issue() -> ForeignKeyConstraint:
    """Foreign key from `repo_id` and `number` to `issue`, with cascading delete."""
    return ForeignKeyConstraint(["repo_id", "number"], ["issue.repo_id", "issue.number"], ondelete="CASCADE")


def _issue_key() -> tuple[Any, ...]:
    return _key("repo_id", Integer), _number(), _of_issue()


REPOSITORY = Table("repository", metadata, _id(), _required("full_name", String(140), unique=True))

# `raw` is GitHub's JSON; null if only a starter card is stored.
ISSUE = Table(
    "issue",
    metadata,
    _repo(),
    _number(),
    _required("origin", String(10)),  # card | github
    _required("is_pull_request", Boolean, default=False),
    _required("title", Text),
    _required("body", Text),
    _required("state", String(10)),
    Column("state_reason", String(20)),
    Column("author", String(100)),
    Column("author_association", String(30)),
    _required("labels", JsonType, default=list),
    _required("comments", Integer, default=0),
    _required("reactions", Integer, default=0),
    _required("url", Text),
    Column("created_at", UtcDateTime),
    Column("updated_at", UtcDateTime),
    Column("closed_at", UtcDateTime),
    _required("fetched_at", UtcDateTime),  # last changed here
    Column("seen_at", UtcDateTime),  # last listed
    Column("gone_at", UtcDateTime),
    Column("gone_reason", String(20)),
    Column("raw", JsonType),
    *(
        Index(f"ix_issue_repo_id_{name}_number", "repo_id", name, "number")
        for name in ("updated_at", "comments", "reactions")  # sort orders of lists
    ),
    Index("ix_issue_kinds", "repo_id", "is_pull_request", "origin"),
    # Covers the filters of lists, so that rows, which hold whole texts, need not be read.
    Index("ix_issue_listed", "repo_id", "is_pull_request", "gone_at", "state", "created_at", "number"),
    Index("ix_issue_times", "repo_id", "number", "gone_at", "state", "created_at"),
)

COMMENT = Table(
    "comment",
    metadata,
    _repo(),
    _key("id", BigInteger),
    _required("issue_number", BigInteger),
    Column("author", String(100)),
    Column("author_association", String(30)),
    _required("body", Text),
    Column("created_at", UtcDateTime),
    Column("updated_at", UtcDateTime),
    _required("fetched_at", UtcDateTime),
    Column("seen_at", UtcDateTime),
    Column("gone_at", UtcDateTime),
    Column("raw", JsonType),
    Index("ix_comment_repo_id_issue_number", "repo_id", "issue_number"),
)

# Columns that only pull requests have; title, body and state are in `issue`.
PULL_REQUEST = Table(
    "pull_request",
    metadata,
    *_issue_key(),
    Column("merged_at", UtcDateTime),
    Column("merge_commit_sha", String(64)),
    _required("is_draft", Boolean, default=False),
    Index("ix_pull_request_repo_id_merged_at", "repo_id", "merged_at"),
)

RELEASE = Table(
    "release",
    metadata,
    _repo(),
    _key("tag", String(100)),
    Column("name", Text),
    _required("notes", Text),
    _required("is_prerelease", Boolean, default=False),
    Column("published_at", UtcDateTime),
    Column("raw", JsonType),
)

# Pull requests mentioned in a release's notes.
RELEASE_PULL = Table(
    "release_pull",
    metadata,
    _key("repo_id", Integer),
    _key("tag", String(100)),
    _number(),
    ForeignKeyConstraint(["repo_id", "tag"], ["release.repo_id", "release.tag"], ondelete="CASCADE"),
    Index("ix_release_pull_repo_id_number", "repo_id", "number"),
)

# Whether a release or a commit's build contains a merged pull request; null if GitHub does not know.
FIX_CONTAINMENT = Table(
    "fix_containment",
    metadata,
    _repo(),
    _number(),
    _key("tag", String(100)),
    Column("contained", Boolean),
    Column("commit_sha", String(64)),  # of the merge
    _required(
        "source", String(20)
    ),  # compare, table (of the starter set), or revert: `tag` is then #N, the reverting pull request
    _required("asked_at", UtcDateTime),  # for a table its date, for a revert its merge time
)

# Facts extracted from an issue; `fault` is the exception's class if a rule raised. The last three columns
# repeat parts of `facts`, so that lists can filter by them.
READING = Table(
    "reading",
    metadata,
    *_issue_key(),
    _required("rules_version", String(40)),
    Column("facts", JsonType),
    Column("fault", String(100)),
    _required("read_at", UtcDateTime),
    Column("failure_kind", String(20)),
    Column("error_type", String(120)),
    Column("has_remedy", Boolean),  # not counting remedies reported to have failed
    Index("ix_reading_told", "repo_id", "number", "failure_kind", "error_type", "has_remedy"),
    Index("ix_reading_grouped", "repo_id", "failure_kind", "error_type", "has_remedy", "number"),
    Index("ix_reading_read_at", "repo_id", "read_at", "number"),
)

# A language model's raw reply on an issue and its outcome. `digest` is the hash of the prompted text, of at
# most `chars_max` characters; `kept` counts the proven values, `dropped` the others, by their `reasons`.
# `checked_at`: when the text was last found unchanged.
MODEL_REPLY = Table(
    "model_reply",
    metadata,
    *_issue_key(),
    _key("digest", String(64)),
    _key("model", String(200)),
    _key("prompt_version", String(20)),
    _required("outcome", String(10)),  # complete | cut | invalid | refused | failed
    _required("reply", Text),
    _required("chars_max", Integer),
    _required("prompt_tokens", Integer),
    _required("reply_tokens", Integer),
    _required("kept", Integer),
    _required("dropped", Integer),
    _required("reasons", JsonType),
    _required("replied_at", UtcDateTime),
    _required("checked_at", UtcDateTime),
    Index("ix_model_reply_replied_at", "replied_at"),
)

# Embedding of an issue's title and root cause, quantized to one signed byte per dimension. `digest` is the
# hash of the embedded text, last found unchanged at `checked_at`.
ISSUE_VECTOR = Table(
    "issue_vector",
    metadata,
    *_issue_key(),
    _required("model", String(200)),
    _required("digest", String(64)),
    _required("vector", LargeBinary),
    _required("checked_at", UtcDateTime),
)

# One extracted value with its evidence; `value_key` is the value lowercased and truncated, for filters.
FACT = Table(
    "fact",
    metadata,
    _id(),
    _required("repo_id", Integer),
    _required("number", BigInteger),
    _required("position", Integer),
    _required("field", String(60)),
    _required("value", Text),
    _required("value_key", String(120)),
    _required("quote", Text),
    _required("source", String(60)),
    _required("start", Integer),
    _required("end", Integer),
    _required("rule", String(80)),
    _required("confidence", Float),
    _of_issue(),
    Index("ix_fact_repo_id_number", "repo_id", "number"),
    Index("ix_fact_told", "field", "value_key", "repo_id", "number"),
)

SIGNATURE = Table("signature", metadata, _key("id", String(20)), _required("text", Text))

# The signatures found in each issue.
OCCURRENCE = Table(
    "occurrence",
    metadata,
    *_issue_key(),
    Column("signature_id", String(20), ForeignKey("signature.id"), primary_key=True),
    _required("role", String(10)),
    Index("ix_occurrence_signature_id", "signature_id"),
)

# A directed link from a stored issue; the target need not be stored.
LINK = Table(
    "link",
    metadata,
    *_issue_key(),
    _key("target_repo", String(140)),
    _key("target_number", BigInteger),
    _key("kind", String(20)),
    Column("score", Float),
    Column("channel", String(10)),
    _required("reason", Text),
    Index("ix_link_target", "target_repo", "target_number", "kind", "repo_id", "number"),
)

# `visitor` is a keyed hash, never an address.
VOTE = Table(
    "vote",
    metadata,
    *_issue_key(),
    _key("signal", String(20)),
    _key("visitor", String(64)),
    _required("value", Integer),
    _required("voted_at", UtcDateTime),
)

# Whether a remedy helped a visitor; `remedy` is the hash of its action, `visitor` a keyed hash of the signed
# cookie, `origin` one of the network address. Votes persist when facts are derived again.
REMEDY_VOTE = Table(
    "remedy_vote",
    metadata,
    *_issue_key(),
    _key("remedy", String(16)),
    _key("visitor", String(64)),
    _required("origin", String(64)),
    _required("value", Integer),
    _required("voted_at", UtcDateTime),
)

# Random keys generated by this database; never exported.
SECRET = Table("secret", metadata, _key("name", String(40)), _required("value", LargeBinary))

# A person's verdict on two issues, `a` < `b`: same | different. It outlives every rebuild, so it has no
# foreign key to `issue`. A row changes only when it ends (undone | replaced), then stays as the audit trail.
JUDGEMENT = Table(
    "judgement",
    metadata,
    _id(),
    _repo(key=False),
    _required("a", BigInteger),
    _required("b", BigInteger),
    _required("verdict", String(10)),
    Column("note", Text),
    _required("judged_at", UtcDateTime),
    Column("undone_at", UtcDateTime),
    Column("undone_why", String(10)),
    Index(
        "ix_judgement_in_force",
        *("repo_id", "a", "b"),
        unique=True,
        sqlite_where=text("undone_at IS NULL"),
        postgresql_where=text("undone_at IS NULL"),
    ),
    Index("ix_judgement_repo_id_b", "repo_id", "b"),
)

# A redacted log its owner chose to keep; `delete_key` is the hash of the delete link's secret, `owner` a
# keyed hash of the client's address, `size` the bytes of log and answer.
KEPT_LOG = Table(
    "kept_log",
    metadata,
    _key("id", String(32)),
    _required("delete_key", String(64)),
    _required("log", Text),
    _required("answer", JsonType),
    _required("kept_at", UtcDateTime),
    _required("expires_at", UtcDateTime, index=True),
    Column("owner", String(64)),
    Column("size", Integer),
    Index("ix_kept_log_owner", "owner", "size"),
)

# Sync position of one stream of one repository.
SYNC_CURSOR = Table(
    "sync_cursor",
    metadata,
    _repo(),
    _key("stream", String(20)),
    _required("position", JsonType),
    _required("moved_at", UtcDateTime),
)

SYNC_RUN = Table(
    "sync_run",
    metadata,
    _id(),
    _repo(key=False),
    _required("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    _required("outcome", String(20)),  # running | complete | partial | failed | killed
    _required("requests", Integer, default=0),
    _required("not_modified", Integer, default=0),
    Column("remaining", Integer),
    _required("stored", Integer, default=0),
    Column("fault", Text),
    Index("ix_sync_run_ended", "repo_id", "outcome", "ended_at"),
)

# A webhook delivery that was processed; another one with the same id is ignored.
DELIVERY = Table(
    "delivery",
    metadata,
    _key("id", String(64)),
    _required("event", String(60)),
    _required("received_at", UtcDateTime, index=True),
)

# A starter card; kept when GitHub's own fields arrive, so that its remedy is not lost.
CARD_TEXT = Table("card", metadata, _repo(), _number(), _required("text", Text))

# A search term and its document frequency; `id` is a hash of channel and text.
TERM = Table(
    "term",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    _required("df", Integer),
    sqlite_with_rowid=False,
)

# The issues that contain each term.
POSTING = Table(
    "posting",
    metadata,
    _key("term_id", BigInteger),
    _key("repo_id", Integer),
    _number(),
    sqlite_with_rowid=False,
)

# All terms of an issue with their counts, packed (see `derived/search_index.py`).
PROFILE = Table("profile", metadata, *_issue_key(), _required("terms", LargeBinary))

# An issue's features for pairwise comparison, packed (see `match/pairs/features.py`).
PAIR_VIEW = Table(
    "pair_view", metadata, *_issue_key(), _required("version", String(40)), _required("packed", LargeBinary)
)

# `text` is the readable signature; empty if the canonical issue contains no error. The columns after it are
# denormalized from `issue` for lists (see `count_reports`): `title` and `closed_at` of the canonical issue,
# counts of the reports that still exist on GitHub.
CLUSTER = Table(
    "cluster",
    metadata,
    _repo(),
    _key("id", String(20)),
    _required("canonical", BigInteger),
    _required("text", Text),
    _required("title", Text, server_default=""),
    _required("size", Integer, server_default="0"),
    _required("open_count", Integer, server_default="0"),
    Column("first_seen", UtcDateTime),
    Column("last_seen", UtcDateTime),
    Column("closed_at", UtcDateTime),
    *(
        Index(f"ix_cluster_{name}", "repo_id", *columns, "id")  # sort orders of lists
        for name, columns in {"size": ("size", "last_seen"), "last_seen": ("last_seen", "size")}.items()
    ),
)

# A failure report: its cluster, the signature of its root cause, its family and its `FailureTraits`.
CLUSTER_MEMBER = Table(
    "cluster_member",
    metadata,
    *_issue_key(),
    _required("cluster_id", String(20)),
    Column("signature_id", String(20)),
    Column("family", String(120)),
    _required("traits", JsonType),
    Index("ix_cluster_member_repo_id_cluster_id", "repo_id", "cluster_id"),
    Index("ix_cluster_member_first", "repo_id", "signature_id", "number"),
    Index("ix_cluster_member_family", "repo_id", "family", "number"),
)

# A former cluster id; it resolves to the cluster that now contains issue `number`.
CLUSTER_ALIAS = Table(
    "cluster_alias",
    metadata,
    _repo(),
    _key("old_id", String(20)),
    _required("number", BigInteger),
    Index("ix_cluster_alias_repo_id_number", "repo_id", "number"),
)
