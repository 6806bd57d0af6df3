"""The tables of clusters: which issues report one failure, and under which id.

All of it is derived from links, judgements and facts, and can be made again from them; only the ids that
once named a cluster cannot, so they are kept.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Index
from sqlmodel import Field, SQLModel

from app.store.columns import issue_key, json_column, text_column
from app.store.tables import metadata  # the tables that these point at, and how constraints are named

__all__ = ["ClusterAliasRow", "ClusterMemberRow", "ClusterRow", "metadata"]


class ClusterRow(SQLModel, table=True):
    """A cluster; `text` is the readable text of its id."""

    __tablename__ = "cluster"

    repo_id: int = Field(foreign_key="repository.id", primary_key=True)
    id: str = Field(primary_key=True, max_length=20)
    canonical: int = Field(sa_type=BigInteger)
    text: str = Field(sa_column=text_column())


class ClusterMemberRow(SQLModel, table=True):
    """An issue that reports a failure, the one cluster it is in, and what clusters are told apart by."""

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
