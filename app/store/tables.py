"""The columns that all tables are made of: times in UTC, JSON on both engines, the key of an issue.

The tables. What comes from GitHub is keyed by repository and number.

`posting`, `term` and `profile` are the search index: plain indexed tables that work alike on both
engines, written in the same transaction as the facts, so an issue is searchable once it is stored.

The tables of clusters: which issues report one failure, and under which id.

All of it is derived from links, judgements and facts, and can be made again from them; only the ids that
once named a cluster cannot, so they are kept.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Text,
    TypeDecorator,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
JsonType = JSON().with_variant(JSONB(), "postgresql")


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


def json_column(*, nullable: bool = True) -> Any:
    """A column of JSON, binary on PostgreSQL."""
    return Column(JsonType, nullable=nullable)


def time_column(*, nullable: bool = True, index: bool = False) -> Any:
    """A column of aware times in UTC."""
    return Column(UtcDateTime(), nullable=nullable, index=index)


def text_column(*, nullable: bool = False) -> Any:
    """A column of text without a limit."""
    return Column(Text(), nullable=nullable)


def issue_key() -> ForeignKeyConstraint:
    """The columns `repo_id` and `number` point at an issue, and go when it goes."""
    return ForeignKeyConstraint(["repo_id", "number"], ["issue.repo_id", "issue.number"], ondelete="CASCADE")


SQLModel.metadata.naming_convention = NAMING
metadata = SQLModel.metadata


class RepositoryRow(SQLModel, table=True):
    __tablename__ = "repository"

    id: int | None = Field(default=None, primary_key=True)
    full_name: str = Field(unique=True, max_length=140)


class IssueRow(SQLModel, table=True):
    """An issue or pull request; `raw` is GitHub's own JSON, null while only a card is known."""

    __tablename__ = "issue"
    __table_args__ = (
        Index("ix_issue_repo_id_updated_at", "repo_id", "updated_at"),
        Index("ix_issue_kinds", "repo_id", "is_pull_request", "origin"),
        # All that a list is filtered by before anything is read: the rows themselves hold whole texts.
        Index("ix_issue_listed", "repo_id", "is_pull_request", "gone_at", "state", "created_at", "number"),
    )

    repo_id: int = Field(foreign_key="repository.id", primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    origin: str = Field(max_length=10, description="card | github")
    is_pull_request: bool = False
    title: str = Field(sa_column=text_column())
    body: str = Field(sa_column=text_column())
    state: str = Field(max_length=10)
    state_reason: str | None = Field(default=None, max_length=20)
    author: str | None = Field(default=None, max_length=100)
    author_association: str | None = Field(default=None, max_length=30)
    labels: list[str] = Field(default_factory=list, sa_column=json_column(nullable=False))
    comments: int = 0
    reactions: int = 0
    url: str = Field(sa_column=text_column())
    created_at: datetime | None = Field(default=None, sa_column=time_column())
    updated_at: datetime | None = Field(default=None, sa_column=time_column())
    closed_at: datetime | None = Field(default=None, sa_column=time_column())
    fetched_at: datetime = Field(sa_column=time_column(nullable=False), description="last changed here")
    seen_at: datetime | None = Field(default=None, sa_column=time_column(), description="last listed")
    gone_at: datetime | None = Field(default=None, sa_column=time_column())
    gone_reason: str | None = Field(default=None, max_length=20)
    raw: dict[str, Any] | None = Field(default=None, sa_column=json_column())


class CommentRow(SQLModel, table=True):
    __tablename__ = "comment"
    __table_args__ = (Index("ix_comment_repo_id_issue_number", "repo_id", "issue_number"),)

    repo_id: int = Field(foreign_key="repository.id", primary_key=True)
    id: int = Field(primary_key=True, sa_type=BigInteger)
    issue_number: int = Field(sa_type=BigInteger)
    author: str | None = Field(default=None, max_length=100)
    author_association: str | None = Field(default=None, max_length=30)
    body: str = Field(sa_column=text_column())
    created_at: datetime | None = Field(default=None, sa_column=time_column())
    updated_at: datetime | None = Field(default=None, sa_column=time_column())
    fetched_at: datetime = Field(sa_column=time_column(nullable=False))
    seen_at: datetime | None = Field(default=None, sa_column=time_column())
    gone_at: datetime | None = Field(default=None, sa_column=time_column())
    raw: dict[str, Any] | None = Field(default=None, sa_column=json_column())


class PullRequestRow(SQLModel, table=True):
    """What only pull requests have; title, body and state stand in `issue`."""

    __tablename__ = "pull_request"
    __table_args__ = (issue_key(), Index("ix_pull_request_repo_id_merged_at", "repo_id", "merged_at"))

    repo_id: int = Field(primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    merged_at: datetime | None = Field(default=None, sa_column=time_column())
    merge_commit_sha: str | None = Field(default=None, max_length=64)
    is_draft: bool = False


class ReleaseRow(SQLModel, table=True):
    __tablename__ = "release"

    repo_id: int = Field(foreign_key="repository.id", primary_key=True)
    tag: str = Field(primary_key=True, max_length=100)
    name: str | None = Field(default=None, sa_column=text_column(nullable=True))
    notes: str = Field(sa_column=text_column())
    is_prerelease: bool = False
    published_at: datetime | None = Field(default=None, sa_column=time_column())
    raw: dict[str, Any] | None = Field(default=None, sa_column=json_column())


class ReleasePullRow(SQLModel, table=True):
    """A release's notes name this pull request."""

    __tablename__ = "release_pull"
    __table_args__ = (
        ForeignKeyConstraint(["repo_id", "tag"], ["release.repo_id", "release.tag"], ondelete="CASCADE"),
        Index("ix_release_pull_repo_id_number", "repo_id", "number"),
    )

    repo_id: int = Field(primary_key=True)
    tag: str = Field(primary_key=True, max_length=100)
    number: int = Field(primary_key=True, sa_type=BigInteger)


class FixContainmentRow(SQLModel, table=True):
    """Whether a release holds a merged pull request; null where GitHub does not know the tag or commit.

    `tag` may be the commit of a build instead of a release's tag.
    """

    __tablename__ = "fix_containment"

    repo_id: int = Field(foreign_key="repository.id", primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    tag: str = Field(primary_key=True, max_length=100)
    contained: bool | None = None
    commit_sha: str | None = Field(default=None, max_length=64, description="of the merge")
    source: str = Field(max_length=20, description="what was asked: compare")
    asked_at: datetime = Field(sa_column=time_column(nullable=False))


class ReadingRow(SQLModel, table=True):
    """What the reading room made of an issue; `fault` is the exception's class when a rule threw.

    `failure_kind`, `error_type` and `has_remedy` repeat what stands in `facts`, for lists to filter by.
    """

    __tablename__ = "reading"
    __table_args__ = (
        issue_key(),
        Index("ix_reading_told", "repo_id", "number", "failure_kind", "error_type", "has_remedy"),
    )

    repo_id: int = Field(primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    rules_version: str = Field(max_length=40)
    facts: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    fault: str | None = Field(default=None, max_length=100)
    read_at: datetime = Field(sa_column=time_column(nullable=False))
    failure_kind: str | None = Field(default=None, max_length=20)
    error_type: str | None = Field(default=None, max_length=120)
    has_remedy: bool | None = Field(default=None, description="one that is not said to have failed")


class FactRow(SQLModel, table=True):
    """One extracted value with its evidence."""

    __tablename__ = "fact"
    __table_args__ = (
        issue_key(),
        Index("ix_fact_repo_id_number", "repo_id", "number"),
        Index("ix_fact_told", "field", "value_key", "repo_id", "number"),
    )

    id: int | None = Field(default=None, primary_key=True)
    repo_id: int
    number: int = Field(sa_type=BigInteger)
    position: int
    field: str = Field(max_length=60)
    value: str = Field(sa_column=text_column())
    value_key: str = Field(max_length=120, description="the value in lower case, cut, for filters")
    quote: str = Field(sa_column=text_column())
    source: str = Field(max_length=60)
    start: int
    end: int
    rule: str = Field(max_length=80)
    confidence: float


class SignatureRow(SQLModel, table=True):
    __tablename__ = "signature"

    id: str = Field(primary_key=True, max_length=20)
    text: str = Field(sa_column=text_column())


class OccurrenceRow(SQLModel, table=True):
    """A signature seen in an issue."""

    __tablename__ = "occurrence"
    __table_args__ = (issue_key(), Index("ix_occurrence_signature_id", "signature_id"))

    repo_id: int = Field(primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    signature_id: str = Field(primary_key=True, foreign_key="signature.id", max_length=20)
    role: str = Field(max_length=10)


class LinkRow(SQLModel, table=True):
    """One directed relation; the target need not be stored."""

    __tablename__ = "link"
    __table_args__ = (issue_key(), Index("ix_link_target", "target_repo", "target_number"))

    repo_id: int = Field(primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    target_repo: str = Field(primary_key=True, max_length=140)
    target_number: int = Field(primary_key=True, sa_type=BigInteger)
    kind: str = Field(primary_key=True, max_length=20)
    score: float | None = None
    channel: str | None = Field(default=None, max_length=10)
    reason: str = Field(sa_column=text_column())


class VoteRow(SQLModel, table=True):
    __tablename__ = "vote"
    __table_args__ = (issue_key(),)

    repo_id: int = Field(primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    signal: str = Field(primary_key=True, max_length=20)
    visitor: str = Field(primary_key=True, max_length=64, description="a keyed hash, never an address")
    value: int
    voted_at: datetime = Field(sa_column=time_column(nullable=False))


class SecretRow(SQLModel, table=True):
    """A random key that this base made for itself; it is never told to anybody."""

    __tablename__ = "secret"

    name: str = Field(primary_key=True, max_length=40)
    value: bytes = Field(sa_column=Column(LargeBinary(), nullable=False))


class JudgementRow(SQLModel, table=True):
    """A person's word on two issues, `a` < `b`; outlives every rebuild, so it has no key to `issue`.

    A row is never altered but to end it: what was undone stays as the audit trail.
    """

    __tablename__ = "judgement"
    __table_args__ = (
        Index(
            "ix_judgement_in_force",
            "repo_id",
            "a",
            "b",
            unique=True,
            sqlite_where=text("undone_at IS NULL"),
            postgresql_where=text("undone_at IS NULL"),
        ),
        Index("ix_judgement_repo_id_b", "repo_id", "b"),
    )

    id: int | None = Field(default=None, primary_key=True)
    repo_id: int = Field(foreign_key="repository.id")
    a: int = Field(sa_type=BigInteger)
    b: int = Field(sa_type=BigInteger)
    verdict: str = Field(max_length=10, description="same | different")
    note: str | None = Field(default=None, sa_column=text_column(nullable=True))
    judged_at: datetime = Field(sa_column=time_column(nullable=False))
    undone_at: datetime | None = Field(default=None, sa_column=time_column())
    undone_why: str | None = Field(default=None, max_length=10, description="undone | replaced")


class KeptLogRow(SQLModel, table=True):
    """A redacted log its owner chose to keep, and the answer it got."""

    __tablename__ = "kept_log"

    id: str = Field(primary_key=True, max_length=32)
    delete_key: str = Field(max_length=64, description="hash of the secret in the delete link")
    log: str = Field(sa_column=text_column())
    answer: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    kept_at: datetime = Field(sa_column=time_column(nullable=False))
    expires_at: datetime = Field(sa_column=time_column(nullable=False, index=True))


class SyncCursorRow(SQLModel, table=True):
    """How far one stream of one repository is stored."""

    __tablename__ = "sync_cursor"

    repo_id: int = Field(primary_key=True, foreign_key="repository.id")
    stream: str = Field(primary_key=True, max_length=20)
    position: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    moved_at: datetime = Field(sa_column=time_column(nullable=False))


class SyncRunRow(SQLModel, table=True):
    __tablename__ = "sync_run"
    __table_args__ = (Index("ix_sync_run_ended", "repo_id", "outcome", "ended_at"),)

    id: int | None = Field(default=None, primary_key=True)
    repo_id: int = Field(foreign_key="repository.id")
    started_at: datetime = Field(sa_column=time_column(nullable=False))
    ended_at: datetime | None = Field(default=None, sa_column=time_column())
    outcome: str = Field(max_length=20, description="running | complete | partial | failed | killed")
    requests: int = 0
    not_modified: int = 0
    remaining: int | None = None
    stored: int = 0
    fault: str | None = Field(default=None, sa_column=text_column(nullable=True))


class DeliveryRow(SQLModel, table=True):
    """A webhook delivery that was taken in; a second one of the same id is ignored."""

    __tablename__ = "delivery"

    id: str = Field(primary_key=True, max_length=64)
    event: str = Field(max_length=60)
    received_at: datetime = Field(sa_column=time_column(nullable=False, index=True))


class CardRow(SQLModel, table=True):
    """A starter card; stays when GitHub's own fields arrive, so its remedy does."""

    __tablename__ = "card"

    repo_id: int = Field(primary_key=True, foreign_key="repository.id")
    number: int = Field(primary_key=True, sa_type=BigInteger)
    text: str = Field(sa_column=text_column())


class TermRow(SQLModel, table=True):
    """A search term and in how many issues it stands; `id` is a hash of channel and text."""

    __tablename__ = "term"

    id: int = Field(primary_key=True, sa_type=BigInteger, sa_column_kwargs={"autoincrement": False})
    channel: int
    text: str = Field(sa_column=text_column())
    df: int


class PostingRow(SQLModel, table=True):
    """This term stands in this issue."""

    __tablename__ = "posting"
    __table_args__ = {"sqlite_with_rowid": False}

    term_id: int = Field(primary_key=True, sa_type=BigInteger)
    repo_id: int = Field(primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)


class ProfileRow(SQLModel, table=True):
    """All terms of an issue with their counts, packed (see `store/terms.py`)."""

    __tablename__ = "profile"
    __table_args__ = (issue_key(),)

    repo_id: int = Field(primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    terms: bytes = Field(sa_column=Column(LargeBinary(), nullable=False))


class PairViewRow(SQLModel, table=True):
    """What an issue is compared by with another one, packed (see `match/pairs/features.py`)."""

    __tablename__ = "pair_view"
    __table_args__ = (issue_key(),)

    repo_id: int = Field(primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    version: str = Field(max_length=40)
    packed: bytes = Field(sa_column=Column(LargeBinary(), nullable=False))


__all__ = ["ClusterAliasRow", "ClusterMemberRow", "ClusterRow", "metadata"]


class ClusterRow(SQLModel, table=True):
    """A cluster; `text` is the readable text of its id."""

    __tablename__ = "cluster"

    repo_id: int = Field(foreign_key="repository.id", primary_key=True)
    id: str = Field(primary_key=True, max_length=20)
    canonical: int = Field(sa_type=BigInteger)
    text: str = Field(sa_column=text_column())


class ClusterMemberRow(SQLModel, table=True):
    """An issue that reports a failure, the one cluster it is in, and its `FailureTraits`."""

    __tablename__ = "cluster_member"
    __table_args__ = (
        issue_key(),
        Index("ix_cluster_member_repo_id_cluster_id", "repo_id", "cluster_id"),
        Index("ix_cluster_member_first", "repo_id", "signature_id", "number"),
    )

    repo_id: int = Field(primary_key=True)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    cluster_id: str = Field(max_length=20)
    signature_id: str | None = Field(default=None, max_length=20, description="of its root cause")
    traits: dict[str, Any] = Field(sa_column=json_column(nullable=False))


class ClusterAliasRow(SQLModel, table=True):
    """An id that once named a cluster; it leads to the cluster in which the issue it was about is now."""

    __tablename__ = "cluster_alias"
    __table_args__ = (Index("ix_cluster_alias_repo_id_number", "repo_id", "number"),)

    repo_id: int = Field(foreign_key="repository.id", primary_key=True)
    old_id: str = Field(primary_key=True, max_length=20)
    number: int = Field(sa_type=BigInteger)
