"""Whether what is derived agrees with what it is derived from: index, pair features, clusters.

All of it can be derived again from the raw rows, so a fault here loses nothing. Of the index a sample is
checked; term ids are hashes, so any range of them is a fair one.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.orm import Session

from app.store.engine.connect import sql_rows
from app.store.engine.health import Finding, a_fault, an_advice

TERMS = 400
AGAIN = "`triage reextract` derives it again"
LATER = "the next `triage sync` does it, or `triage reextract` now"

_TERMS = f"(SELECT id, df FROM term WHERE id > 0 ORDER BY id LIMIT {TERMS}) AS term"
_WRONG_COUNT = f"""
    SELECT count(*) FROM {_TERMS} WHERE df <> (SELECT count(*) FROM posting WHERE term_id = term.id)
"""
_NO_ISSUE = f"""
    SELECT count(*) FROM {_TERMS} JOIN posting p ON p.term_id = term.id
    WHERE NOT EXISTS (SELECT 1 FROM issue WHERE issue.repo_id = p.repo_id AND issue.number = p.number)
"""
_NO_CLUSTER = """
    SELECT count(*) FROM cluster_member m WHERE NOT EXISTS (
        SELECT 1 FROM cluster WHERE cluster.repo_id = m.repo_id AND cluster.id = m.cluster_id)
"""
_READ_WITHOUT = """
    SELECT count(*) FROM reading r JOIN issue i ON i.repo_id = r.repo_id AND i.number = r.number
    WHERE r.repo_id = :repo_id AND NOT i.is_pull_request AND NOT EXISTS (
        SELECT 1 FROM {table} t WHERE t.repo_id = r.repo_id AND t.number = r.number)
"""
_NO_FEATURES = _READ_WITHOUT.format(table="pair_view") + "AND r.fault IS NULL"
_IN_NO_CLUSTER = _READ_WITHOUT.format(table="cluster_member") + (
    "AND i.gone_at IS NULL AND CAST(r.facts ->> 'is_failure' AS text) IN ('1', 'true')"
)


def check_base(session: Session) -> Iterator[Finding]:
    """What of all that is derived does not agree with its sources."""
    for thing, query, fault in (
        ("search index", _WRONG_COUNT, f"of {TERMS} terms have a wrong number of issues"),
        ("search index", _NO_ISSUE, "entries lead to no issue"),
        ("clusters", _NO_CLUSTER, "issues are in a cluster that is not there"),
    ):
        if count := sql_rows(session, query)[0][0]:
            yield a_fault(thing, f"{count:,} {fault}", AGAIN)


def check_repository(session: Session, repo_id: int, repo: str) -> Iterator[Finding]:
    """What was not derived yet of a repository."""
    for query, fault in (
        (_NO_FEATURES, "issues cannot be compared with others"),
        (_IN_NO_CLUSTER, "issues report a failure and are in no cluster"),
    ):
        if count := sql_rows(session, query, repo_id=repo_id)[0][0]:
            yield an_advice(repo, f"{count:,} {fault}", LATER)
