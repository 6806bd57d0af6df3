"""Facts extracted from issues, with evidence, signatures and links; and which issues are stale.

An issue is stale if it was never read, if it or one of its comments was stored (or a comment deleted) after
it was read, or if it was read by another rules version. So facts may be derived at any time after the raw
JSON is stored, and the next run finishes what a killed one left undone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Table, delete, exists, insert, select
from sqlalchemy.orm import Session

from app.extract.facts import Evidence, Facts, FailureKind
from app.store.engine.connect import delete_with, rows_with, sql_rows, upsert
from app.store.records import LinkRecord
from app.store.tables import FACT, LINK, OCCURRENCE, READING, SIGNATURE, TERM

VALUE_KEY_CHARS = 120

_NO_FACTS = frozenset({None, "null"})
"""Values of `facts` if reading the issue failed: SQL NULL or JSON null."""

EXTRACTED_LINK_KINDS = ("mentions", "fixes", "fixed_by", "introduced_by", "duplicate", "reverts", "relands")

_FACT, _LINK, _READING = FACT.c, LINK.c, READING.c
_LINK_COLUMNS = [_LINK[item.name] for item in fields(LinkRecord)]


@dataclass(frozen=True, slots=True)
class Reading:
    """One issue's facts (or None, with the class of the exception as `fault`) and extracted links."""

    number: int
    facts: Facts | None
    fault: str | None = None
    links: tuple[LinkRecord, ...] = ()


def value_key(value: str) -> str:
    """Return a fact's value in the normalized form that filters compare."""
    return value.lower()[:VALUE_KEY_CHARS]


def save_readings(session: Session, repo_id: int, readings: Sequence[Reading], *, rules_version: str) -> None:
    """Replace the facts, evidence, signatures and extracted links of these issues."""
    numbers = [reading.number for reading in readings]
    delete_with(session, repo_id, _FACT.number, numbers)
    delete_with(session, repo_id, OCCURRENCE.c.number, numbers)
    delete_with(session, repo_id, _LINK.number, numbers, _LINK.kind.in_(EXTRACTED_LINK_KINDS))
    rows = [_reading_row(repo_id, reading, rules_version) for reading in readings]
    upsert(session, READING, rows, keys=("repo_id", "number"))
    new: dict[Table, list[dict[str, Any]]] = {FACT: [], OCCURRENCE: [], LINK: []}
    signatures: dict[str, str] = {}
    for reading in readings:
        key = {"repo_id": repo_id, "number": reading.number}
        for position, item in enumerate(reading.facts.evidence if reading.facts else ()):
            value = {"position": position, "value_key": value_key(item.value)}
            new[FACT].append(key | value | item.model_dump())
        signed = reading.facts.signatures if reading.facts else ()
        signatures |= {item.id: item.text for item in signed}
        roles = {item.id: item.role for item in reversed(signed)}
        new[OCCURRENCE] += [{**key, "signature_id": name, "role": role} for name, role in roles.items()]
        own = {(link.target_repo, link.target_number, link.kind): link for link in reading.links}
        new[LINK] += [key | asdict(link) for link in own.values()]
    texts = [{"id": name, "text": signatures[name]} for name in sorted(signatures)]
    upsert(session, SIGNATURE, texts, keys=("id",))
    for table, added in new.items():
        if added:
            session.connection().execute(insert(table), added)


def _reading_row(repo_id: int, reading: Reading, rules_version: str) -> dict[str, Any]:
    facts = reading.facts
    kind = facts.error.type if facts and facts.error else None
    return {
        "repo_id": repo_id,
        "number": reading.number,
        "rules_version": rules_version,
        "facts": facts.model_dump(mode="json", exclude={"evidence"}) if facts else None,
        "fault": reading.fault,
        "read_at": datetime.now(UTC),
        "failure_kind": facts.failure_kind if facts else None,
        "error_type": kind[:VALUE_KEY_CHARS] if kind else None,
        "has_remedy": any(item.outcome != "fails" for item in facts.workarounds) if facts else None,
    }


def find_facts(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, Facts]:
    """Return the facts of these issues with evidence; issues whose reading failed are left out."""
    evidence = find_evidence(session, repo_id, numbers)
    return {
        number: facts.model_copy(update={"evidence": tuple(evidence.get(number, ()))})
        for number, facts in find_facts_without_evidence(session, repo_id, numbers).items()
    }


def find_evidence(
    session: Session, repo_id: int, numbers: Sequence[int], among: Sequence[str] = ()
) -> dict[int, list[Evidence]]:
    """Return the evidence of these issues in the order of extraction, of all fields or `among` some."""
    bound = {"fields": list(among)} if among else {}
    query = f"""
        SELECT number, {", ".join(f'"{name}"' for name in Evidence.model_fields)} FROM fact
        WHERE repo_id = :repo_id AND number IN :numbers {"AND field IN :fields" if among else ""}
        ORDER BY number, position
    """
    found: dict[int, list[Evidence]] = {}
    for number, *values in sql_rows(session, query, repo_id=repo_id, numbers=list(numbers), **bound):
        item = Evidence.model_construct(**dict(zip(Evidence.model_fields, values, strict=True)))
        found.setdefault(number, []).append(item)
    return found


def find_facts_without_evidence(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, Facts]:
    """Like `find_facts`, but with empty `evidence`, which is cheaper."""
    # Selected as text: pydantic parses JSON text faster than it validates decoded objects.
    query = "SELECT number, CAST(facts AS text) FROM reading WHERE repo_id = :repo_id AND number IN :numbers"
    rows = sql_rows(session, query, repo_id=repo_id, numbers=list(numbers))
    return {number: Facts.model_validate_json(facts) for number, facts in rows if facts not in _NO_FACTS}


FailureTitle = tuple[int, str, list[str], str, FailureKind]
"""Number, title, labels, state and kind of an issue that is a failure."""


def find_failure_titles(session: Session, repo_id: int, numbers: Sequence[int]) -> list[FailureTitle]:
    """Return those that are failures and still exist on GitHub."""
    query = """
        SELECT number, title, CAST(labels AS text), state, failure_kind
        FROM issue JOIN reading USING (repo_id, number)
        WHERE repo_id = :repo_id AND number IN :numbers AND failure_kind <> 'none'
        AND is_pull_request = false AND gone_at IS NULL ORDER BY number
    """
    rows = sql_rows(session, query, repo_id=repo_id, numbers=list(numbers))
    return [(number, title, json.loads(labels), *rest) for number, title, labels, *rest in rows]


@dataclass(frozen=True, slots=True)
class KeptReading:
    """One issue's stored reading; `facts` is None if a rule raised, and `fault` then names the exception."""

    rules_version: str
    facts: Mapping[str, Any] | None
    fault: str | None
    links: tuple[LinkRecord, ...]


def read_since(
    session: Session, repo_id: int, after: tuple[datetime, int], until: datetime, limit: int
) -> list[tuple[int, datetime]]:
    """Return (number, time) of issues and pull requests, in the order in which they were last read.

    Args:
        after: time and number of the last one already seen.
    """
    query = (
        select(_READING.number, _READING.read_at)
        .where(_READING.repo_id == repo_id, _READING.read_at >= after[0], _READING.read_at < until)
        .where((_READING.read_at > after[0]) | (_READING.number > after[1]))
        .order_by(_READING.read_at, _READING.number)
        .limit(limit)
    )
    return [(number, read_at) for number, read_at in session.connection().execute(query)]


def find_kept_readings(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, KeptReading]:
    """Return the stored readings of these issues; issues that were never read are left out."""
    links: dict[int, list[LinkRecord]] = {}
    for number, *values in rows_with(session, repo_id, _LINK.number, numbers, *_LINK_COLUMNS):
        if (link := LinkRecord(*values)).kind in EXTRACTED_LINK_KINDS:
            links.setdefault(number, []).append(link)
    rows = rows_with(session, repo_id, _READING.number, numbers, *_READING["rules_version", "facts", "fault"])
    return {
        number: KeptReading(rules, facts, fault, tuple(links.get(number, ())))
        for number, rules, facts, fault in rows
    }


def links_to(session: Session, repo: str, numbers: Sequence[int], kind: str) -> list[tuple[int, int, int]]:
    """Return links of one kind to these issues, as (source repo_id, source number, target number)."""
    query = """
        SELECT repo_id, number, target_number FROM link
        WHERE target_repo = :repo AND target_number IN :numbers AND kind = :kind
    """
    return sql_rows(session, query, repo=repo, numbers=list(numbers), kind=kind)


def links_from(session: Session, repo_id: int, number: int) -> list[LinkRecord]:
    rows = rows_with(session, repo_id, _LINK.number, [number], *_LINK_COLUMNS)
    return [LinkRecord(*values) for _, *values in rows]


def all_links_to(session: Session, repo: str, number: int) -> list[tuple[int, int, str, str]]:
    """Return links to an issue, as (source repo_id, source number, kind, reason)."""
    query = (
        "SELECT repo_id, number, kind, reason FROM link WHERE target_repo = :repo AND target_number = :number"
    )
    return sql_rows(session, query, repo=repo, number=number)


def quotes_on_fixes(
    session: Session, repo_id: int, numbers: Sequence[int]
) -> dict[int, tuple[str, str | None]]:
    """Return the quote that states each issue's fix, and the commenter's association if in a comment."""
    query = """
        SELECT fact.number, fact.quote, comment.author_association FROM fact
        LEFT JOIN comment ON comment.repo_id = fact.repo_id AND comment.issue_number = fact.number
        AND fact.source = 'comment:' || CAST(comment.id AS text)
        WHERE fact.repo_id = :repo_id AND fact.number IN :numbers AND fact.field = 'fix'
    """
    rows = sql_rows(session, query, repo_id=repo_id, numbers=list(numbers))
    return {number: (quote, association) for number, quote, association in rows}


def duplicates_of(
    session: Session, repo_id: int, repo: str, numbers: Sequence[int], *, deep: int = 1
) -> dict[int, int]:
    """Return the issue of the same repository that each of these is stated to duplicate.

    Args:
        deep: number of steps to follow chains of duplicates; 1 for direct ones only.
    """
    query = """
        WITH RECURSIVE chain (number, target, step) AS (
            SELECT number, target_number, 1 FROM link
            WHERE repo_id = :repo_id AND number IN :numbers AND target_repo = :repo AND kind = 'duplicate'
            UNION
            SELECT link.number, link.target_number, step + 1 FROM chain
            JOIN link ON link.repo_id = :repo_id AND link.number = chain.target
            AND link.target_repo = :repo AND link.kind = 'duplicate'
            WHERE step < :deep
        )
        SELECT DISTINCT number, target FROM chain ORDER BY number, target
    """
    return dict(sql_rows(session, query, repo_id=repo_id, repo=repo, numbers=list(numbers), deep=deep))


def purge_orphans(session: Session) -> None:
    """Delete search terms and signatures that no issue has any more, as they contain issue text."""
    session.connection().execute(delete(TERM).where(TERM.c.df <= 0))
    is_used = exists().where(OCCURRENCE.c.signature_id == SIGNATURE.c.id)
    session.connection().execute(delete(SIGNATURE).where(~is_used))


def stale_numbers(
    session: Session, repo_id: int, rules_version: str, *, among: Sequence[int] | None = None
) -> list[int]:
    """Return the numbers of stale issues, ascending; limited to `among` unless it is None."""
    query = f"""
        SELECT i.number FROM issue i
        LEFT JOIN reading r ON r.repo_id = i.repo_id AND r.number = i.number
        WHERE i.repo_id = :repo_id {"AND i.number IN :among" if among is not None else ""}
        AND (r.number IS NULL OR r.rules_version <> :rules)
        ORDER BY i.number
    """
    bound: dict[str, Any] = {} if among is None else {"among": list(among)}
    rows = sql_rows(session, query, repo_id=repo_id, rules=rules_version, **bound)
    return [number for (number,) in rows]
