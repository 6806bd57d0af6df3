"""Whether what is derived agrees with what it is derived from: index, pair features, clusters.

All of it can be derived again from the raw rows, so a fault here loses nothing. Of the index a sample is
checked; term ids are hashes, so any range of them is a fair one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from sqlalchemy import text
from sqlmodel import Session

from app.store.engine.health import Finding

TERMS = 400
AGAIN = "`triage reextract` derives it again"
LATER = "the next `triage sync` does it, or `triage reextract` now"


class Check(NamedTuple):
    """A query that counts what is wrong, and the finding if there is any; no `thing`: the repository."""

    level: Literal["fault", "advice"]
    thing: str
    query: str
    fault: str
    do: str


_TERMS = f"(SELECT id, df FROM term WHERE id > 0 ORDER BY id LIMIT {TERMS}) AS term"  # noqa: S608
_READ_ISSUES = """
    FROM reading JOIN issue ON issue.repo_id = reading.repo_id AND issue.number = reading.number
    WHERE reading.repo_id = :repo_id AND NOT issue.is_pull_request AND NOT EXISTS (
        SELECT 1 FROM {table} t WHERE t.repo_id = reading.repo_id AND t.number = reading.number)
"""
BASE_CHECKS = (
    Check(
        "fault",
        "search index",
        f"SELECT count(*) FROM {_TERMS} WHERE df <> (SELECT count(*) FROM posting WHERE term_id = term.id)",  # noqa: S608
        f"{{count}} of {TERMS} terms have a wrong number of issues",
        AGAIN,
    ),
    Check(
        "fault",
        "search index",
        f"SELECT count(*) FROM {_TERMS} JOIN posting p ON p.term_id = term.id WHERE NOT EXISTS ("  # noqa: S608
        "SELECT 1 FROM issue WHERE issue.repo_id = p.repo_id AND issue.number = p.number)",
        "{count} entries lead to no issue",
        AGAIN,
    ),
    Check(
        "fault",
        "clusters",
        "SELECT count(*) FROM cluster_member m WHERE NOT EXISTS ("
        "SELECT 1 FROM cluster WHERE cluster.repo_id = m.repo_id AND cluster.id = m.cluster_id)",
        "{count} issues are in a cluster that is not there",
        AGAIN,
    ),
)
REPOSITORY_CHECKS = (
    Check(
        "advice",
        "",
        "SELECT count(*)" + _READ_ISSUES.format(table="pair_view") + "AND reading.fault IS NULL",
        "{count} issues cannot be compared with others",
        LATER,
    ),
    Check(
        "advice",
        "",
        "SELECT count(*)"
        + _READ_ISSUES.format(table="cluster_member")
        + "AND issue.gone_at IS NULL AND CAST(reading.facts ->> 'is_failure' AS text) IN ('1', 'true')",
        "{count} issues report a failure and are in no cluster",
        LATER,
    ),
)


def run_checks(
    session: Session, checks: Sequence[Check], repo_id: int = 0, repo: str = ""
) -> Iterator[Finding]:
    """The findings of these checks, of a repository where they ask for one."""
    for check in checks:
        count = session.connection().execute(text(check.query), {"repo_id": repo_id}).scalar_one()
        if count:
            fault = check.fault.format(count=f"{count:,}")
            yield Finding(level=check.level, thing=check.thing or repo, fault=fault, do=check.do)
