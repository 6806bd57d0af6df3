"""The tables, made once for both engines. What comes from GitHub is keyed by repository and number.

`posting`, `term` and `profile` are the search index, written in the same transaction as the facts, so an
issue is searchable once it is stored. The tables of clusters are derived from links, judgements and facts and
can be made again from them; only `cluster_alias`, the ids that once named a cluster, cannot.
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
    """JSON as the engine keeps it best: JSONB on PostgreSQL."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name != "postgresql":
            return dialect.type_descriptor(JSON())
        from sqlalchemy.dialects.postgresql import JSONB

        return dialect.type_descriptor(JSONB())


class UtcDateTime(TypeDecorator[datetime]):
    """Times are aware and in UTC on both engines; SQLite keeps no zone of its own."""

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


def _known(name: str, kind: Any, **options: Any) -> Column[Any]:
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
    """The columns `repo_id` and `number` name an issue, and go when it goes."""
    return ForeignKeyConstraint(["repo_id", "number"], ["issue.repo_id", "issue.number"], ondelete="CASCADE")


def _issue_key() -> tuple[Any, ...]:
    return _key("repo_id", Integer), _number(), _of_issue()


REPOSITORY = Table("repository", metadata, _id(), _known("full_name", String(140), unique=True))

# `raw` is GitHub's own JSON, null while only a card is known.
ISSUE = Table(
    "issue",
    metadata,
    _repo(),
    _number(),
    _known("origin", String(10)),  # card | github
    _known("is_pull_request", Boolean, default=False),
    _known("title", Text),
    _known("body", Text),
    _known("state", String(10)),
    Column("state_reason", String(20)),
    Column("author", String(100)),
    Column("author_association", String(30)),
    _known("labels", JsonType, default=list),
    _known("comments", Integer, default=0),
    _known("reactions", Integer, default=0),
    _known("url", Text),
    Column("created_at", UtcDateTime),
    Column("updated_at", UtcDateTime),
    Column("closed_at", UtcDateTime),
    _known("fetched_at", UtcDateTime),  # last changed here
    Column("seen_at", UtcDateTime),  # last listed
    Column("gone_at", UtcDateTime),
    Column("gone_reason", String(20)),
    Column("raw", JsonType),
    *(
        Index(f"ix_issue_repo_id_{name}_number", "repo_id", name, "number")
        for name in ("updated_at", "comments", "reactions")  # what a list is ordered by
    ),
    Index("ix_issue_kinds", "repo_id", "is_pull_request", "origin"),
    # All that a list is filtered by before anything is read: the rows themselves hold whole texts.
    Index("ix_issue_listed", "repo_id", "is_pull_request", "gone_at", "state", "created_at", "number"),
    Index("ix_issue_times", "repo_id", "number", "gone_at", "state", "created_at"),
)

COMMENT = Table(
    "comment",
    metadata,
    _repo(),
    _key("id", BigInteger),
    _known("issue_number", BigInteger),
    Column("author", String(100)),
    Column("author_association", String(30)),
    _known("body", Text),
    Column("created_at", UtcDateTime),
    Column("updated_at", UtcDateTime),
    _known("fetched_at", UtcDateTime),
    Column("seen_at", UtcDateTime),
    Column("gone_at", UtcDateTime),
    Column("raw", JsonType),
    Index("ix_comment_repo_id_issue_number", "repo_id", "issue_number"),
)

# What only pull requests have; title, body and state stand in `issue`.
PULL_REQUEST = Table(
    "pull_request",
    metadata,
    *_issue_key(),
    Column("merged_at", UtcDateTime),
    Column("merge_commit_sha", String(64)),
    _known("is_draft", Boolean, default=False),
    Index("ix_pull_request_repo_id_merged_at", "repo_id", "merged_at"),
)

RELEASE = Table(
    "release",
    metadata,
    _repo(),
    _key("tag", String(100)),
    Column("name", Text),
    _known("notes", Text),
    _known("is_prerelease", Boolean, default=False),
    Column("published_at", UtcDateTime),
    Column("raw", JsonType),
)

# A release's notes name this pull request.
RELEASE_PULL = Table(
    "release_pull",
    metadata,
    _key("repo_id", Integer),
    _key("tag", String(100)),
    _number(),
    ForeignKeyConstraint(["repo_id", "tag"], ["release.repo_id", "release.tag"], ondelete="CASCADE"),
    Index("ix_release_pull_repo_id_number", "repo_id", "number"),
)

# Whether a release, or the build of a commit, holds a merged pull request; null where GitHub does not know.
FIX_CONTAINMENT = Table(
    "fix_containment",
    metadata,
    _repo(),
    _number(),
    _key("tag", String(100)),
    Column("contained", Boolean),
    Column("commit_sha", String(64)),  # of the merge
    _known(
        "source", String(20)
    ),  # compare, table (of the starter set), or revert: `tag` is then #N, who did it
    _known("asked_at", UtcDateTime),  # for a table its day, for a revert that of its merge
)

# What was extracted from an issue; `fault` is the exception's class when a rule threw. The last three repeat
# what stands in `facts`, for lists to filter by.
READING = Table(
    "reading",
    metadata,
    *_issue_key(),
    _known("rules_version", String(40)),
    Column("facts", JsonType),
    Column("fault", String(100)),
    _known("read_at", UtcDateTime),
    Column("failure_kind", String(20)),
    Column("error_type", String(120)),
    Column("has_remedy", Boolean),  # one that is not stated to have failed
    Index("ix_reading_told", "repo_id", "number", "failure_kind", "error_type", "has_remedy"),
    Index("ix_reading_grouped", "repo_id", "failure_kind", "error_type", "has_remedy", "number"),
    Index("ix_reading_read_at", "repo_id", "read_at", "number"),
)

# What a language model answered about an issue, as it came (`reply`), and what came of it. `digest` is that
# of the text it was asked, with at most `chars_max` signs; `kept` counts its proven values, `dropped` the
# others, by their `reasons`. `checked_at`: when the text was last seen to be the same.
MODEL_REPLY = Table(
    "model_reply",
    metadata,
    *_issue_key(),
    _key("digest", String(64)),
    _key("model", String(200)),
    _key("prompt_version", String(20)),
    _known("outcome", String(10)),  # complete | cut | invalid | refused | failed
    _known("reply", Text),
    _known("chars_max", Integer),
    _known("prompt_tokens", Integer),
    _known("reply_tokens", Integer),
    _known("kept", Integer),
    _known("dropped", Integer),
    _known("reasons", JsonType),
    _known("replied_at", UtcDateTime),
    _known("checked_at", UtcDateTime),
    Index("ix_model_reply_replied_at", "replied_at"),
)

# What an issue is about, its title and root cause, as a vector of an embedding model: one signed byte for
# each of its values. `digest` is that of the text it was made of, last seen to be so at `checked_at`.
ISSUE_VECTOR = Table(
    "issue_vector",
    metadata,
    *_issue_key(),
    _known("model", String(200)),
    _known("digest", String(64)),
    _known("vector", LargeBinary),
    _known("checked_at", UtcDateTime),
)

# One extracted value with its evidence; `value_key` is the value in lower case, cut, for filters.
FACT = Table(
    "fact",
    metadata,
    _id(),
    _known("repo_id", Integer),
    _known("number", BigInteger),
    _known("position", Integer),
    _known("field", String(60)),
    _known("value", Text),
    _known("value_key", String(120)),
    _known("quote", Text),
    _known("source", String(60)),
    _known("start", Integer),
    _known("end", Integer),
    _known("rule", String(80)),
    _known("confidence", Float),
    _of_issue(),
    Index("ix_fact_repo_id_number", "repo_id", "number"),
    Index("ix_fact_told", "field", "value_key", "repo_id", "number"),
)

SIGNATURE = Table("signature", metadata, _key("id", String(20)), _known("text", Text))

# A signature seen in an issue.
OCCURRENCE = Table(
    "occurrence",
    metadata,
    *_issue_key(),
    Column("signature_id", String(20), ForeignKey("signature.id"), primary_key=True),
    _known("role", String(10)),
    Index("ix_occurrence_signature_id", "signature_id"),
)

# One directed relation; the target need not be stored.
LINK = Table(
    "link",
    metadata,
    *_issue_key(),
    _key("target_repo", String(140)),
    _key("target_number", BigInteger),
    _key("kind", String(20)),
    Column("score", Float),
    Column("channel", String(10)),
    _known("reason", Text),
    Index("ix_link_target", "target_repo", "target_number", "kind", "repo_id", "number"),
)

# `visitor` is a keyed hash, never an address.
VOTE = Table(
    "vote",
    metadata,
    *_issue_key(),
    _key("signal", String(20)),
    _key("visitor", String(64)),
    _known("value", Integer),
    _known("voted_at", UtcDateTime),
)

# Whether a remedy helped a visitor; `remedy` is the hash of what to do, `visitor` a keyed hash of the signed
# cookie, `origin` one of the network address. Derived facts come and go, votes stay.
REMEDY_VOTE = Table(
    "remedy_vote",
    metadata,
    *_issue_key(),
    _key("remedy", String(16)),
    _key("visitor", String(64)),
    _known("origin", String(64)),
    _known("value", Integer),
    _known("voted_at", UtcDateTime),
)

# Random keys that this base made for itself; none leaves it.
SECRET = Table("secret", metadata, _key("name", String(40)), _known("value", LargeBinary))

# A person's verdict on two issues, `a` < `b`: same | different. It outlives every rebuild, so it has no key
# to `issue`. A row is altered only to end it (undone | replaced): what has ended stays as the audit trail.
JUDGEMENT = Table(
    "judgement",
    metadata,
    _id(),
    _repo(key=False),
    _known("a", BigInteger),
    _known("b", BigInteger),
    _known("verdict", String(10)),
    Column("note", Text),
    _known("judged_at", UtcDateTime),
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
    _known("delete_key", String(64)),
    _known("log", Text),
    _known("answer", JsonType),
    _known("kept_at", UtcDateTime),
    _known("expires_at", UtcDateTime, index=True),
    Column("owner", String(64)),
    Column("size", Integer),
    Index("ix_kept_log_owner", "owner", "size"),
)

# How far one stream of one repository is stored.
SYNC_CURSOR = Table(
    "sync_cursor",
    metadata,
    _repo(),
    _key("stream", String(20)),
    _known("position", JsonType),
    _known("moved_at", UtcDateTime),
)

SYNC_RUN = Table(
    "sync_run",
    metadata,
    _id(),
    _repo(key=False),
    _known("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    _known("outcome", String(20)),  # running | complete | partial | failed | killed
    _known("requests", Integer, default=0),
    _known("not_modified", Integer, default=0),
    Column("remaining", Integer),
    _known("stored", Integer, default=0),
    Column("fault", Text),
    Index("ix_sync_run_ended", "repo_id", "outcome", "ended_at"),
)

# A webhook delivery that was taken in; a second one of the same id is ignored.
DELIVERY = Table(
    "delivery",
    metadata,
    _key("id", String(64)),
    _known("event", String(60)),
    _known("received_at", UtcDateTime, index=True),
)

# A starter card; stays when GitHub's own fields arrive, so its remedy does.
CARD_TEXT = Table("card", metadata, _repo(), _number(), _known("text", Text))

# A search term and in how many issues it stands; `id` is a hash of channel and text.
TERM = Table(
    "term",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    _known("df", Integer),
    sqlite_with_rowid=False,
)

# This term stands in this issue.
POSTING = Table(
    "posting",
    metadata,
    _key("term_id", BigInteger),
    _key("repo_id", Integer),
    _number(),
    sqlite_with_rowid=False,
)

# All terms of an issue with their counts, packed (see `derived/search_index.py`).
PROFILE = Table("profile", metadata, *_issue_key(), _known("terms", LargeBinary))

# What an issue is compared by with another one, packed (see `match/pairs/features.py`).
PAIR_VIEW = Table(
    "pair_view", metadata, *_issue_key(), _known("version", String(40)), _known("packed", LargeBinary)
)

# `text` is the signature in words; empty where the canonical issue's text holds no error. What follows it
# repeats what its issues say, for lists (see `count_reports`): `title` and `closed_at` are the canonical
# one's, the counts are of the reports that GitHub still has.
CLUSTER = Table(
    "cluster",
    metadata,
    _repo(),
    _key("id", String(20)),
    _known("canonical", BigInteger),
    _known("text", Text),
    _known("title", Text, server_default=""),
    _known("size", Integer, server_default="0"),
    _known("open_count", Integer, server_default="0"),
    Column("first_seen", UtcDateTime),
    Column("last_seen", UtcDateTime),
    Column("closed_at", UtcDateTime),
    *(
        Index(f"ix_cluster_{name}", "repo_id", *columns, "id")  # what a list is ordered by
        for name, columns in {"size": ("size", "last_seen"), "last_seen": ("last_seen", "size")}.items()
    ),
)

# An issue that reports a failure, its cluster, its root cause's signature, its family, its `FailureTraits`.
CLUSTER_MEMBER = Table(
    "cluster_member",
    metadata,
    *_issue_key(),
    _known("cluster_id", String(20)),
    Column("signature_id", String(20)),
    Column("family", String(120)),
    _known("traits", JsonType),
    Index("ix_cluster_member_repo_id_cluster_id", "repo_id", "cluster_id"),
    Index("ix_cluster_member_first", "repo_id", "signature_id", "number"),
    Index("ix_cluster_member_family", "repo_id", "family", "number"),
)

# An id that once named a cluster; it leads to the cluster in which the issue it was about is now.
CLUSTER_ALIAS = Table(
    "cluster_alias",
    metadata,
    _repo(),
    _key("old_id", String(20)),
    _known("number", BigInteger),
    Index("ix_cluster_alias_repo_id_number", "repo_id", "number"),
)
