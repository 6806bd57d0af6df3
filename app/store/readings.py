"""What the reading room made of an issue: its facts with their evidence, its signatures, its links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import String, bindparam, cast, delete, insert, literal
from sqlmodel import Session, col, select

from app.extract.facts import Evidence, Facts
from app.store.dialect import upsert
from app.store.records import LinkRecord
from app.store.tables import CommentRow, FactRow, LinkRow, OccurrenceRow, ReadingRow, SignatureRow, metadata

VALUE_KEY_CHARS = 120

EXTRACTED_LINK_KINDS = (
    "mentions", "fixes", "fixed_by", "introduced_by", "duplicate", "reverts", "relands"
)  # fmt: skip

# Asked with every diagnosis, so built once: putting a statement together costs more than running it.
_FACTS = select(ReadingRow.number, ReadingRow.facts).where(
    col(ReadingRow.repo_id) == bindparam("repo_id"),
    col(ReadingRow.number).in_(bindparam("numbers", expanding=True)),
)
_LINKS_TO = select(LinkRow.repo_id, LinkRow.number, LinkRow.target_number).where(
    col(LinkRow.target_repo) == bindparam("repo"),
    col(LinkRow.target_number).in_(bindparam("numbers", expanding=True)),
    col(LinkRow.kind) == bindparam("kind"),
)
_DUPLICATES = select(LinkRow.number, LinkRow.target_number).where(
    col(LinkRow.repo_id) == bindparam("repo_id"),
    col(LinkRow.number).in_(bindparam("numbers", expanding=True)),
    col(LinkRow.target_repo) == bindparam("repo"),
    col(LinkRow.kind) == "duplicate",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One issue's facts, or the fault that kept them from being read; and its links."""

    number: int
    facts: Facts | None
    fault: str | None = None
    links: tuple[LinkRecord, ...] = ()


def value_key(value: str) -> str:
    """A fact's value as filters compare it."""
    return value.lower()[:VALUE_KEY_CHARS]


def save_readings(
    session: Session, repo_id: int, readings: Sequence[Reading], *, rules_version: str
) -> None:
    """Replace what is known of these issues."""
    numbers = [reading.number for reading in readings]
    for table in (FactRow, OccurrenceRow):
        session.connection().execute(
            delete(table).where(col(table.repo_id) == repo_id, col(table.number).in_(numbers))
        )
    session.connection().execute(
        delete(LinkRow).where(
            col(LinkRow.repo_id) == repo_id,
            col(LinkRow.number).in_(numbers),
            col(LinkRow.kind).in_(EXTRACTED_LINK_KINDS),
        )
    )
    now = datetime.now(UTC)
    upsert(
        session,
        metadata.tables["reading"],
        [_reading_row(repo_id, reading, rules_version, now) for reading in readings],
        keys=("repo_id", "number"),
    )
    _insert(session, "fact", [row for reading in readings for row in _fact_rows(repo_id, reading)])
    signatures = {item.id: item.text for r in readings if r.facts for item in r.facts.signatures}
    upsert(
        session,
        metadata.tables["signature"],
        [{"id": key, "text": signatures[key]} for key in sorted(signatures)],
        keys=("id",),
    )
    _insert(session, "occurrence", list(_occurrence_rows(repo_id, readings)))
    _insert(session, "link", list(_link_rows(repo_id, readings)))


def _insert(session: Session, table: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        session.connection().execute(insert(metadata.tables[table]), rows)


def _reading_row(repo_id: int, reading: Reading, rules_version: str, now: datetime) -> dict[str, Any]:
    facts = reading.facts.model_dump(mode="json", exclude={"evidence"}) if reading.facts else None
    return {
        "repo_id": repo_id, "number": reading.number, "rules_version": rules_version,
        "facts": facts, "fault": reading.fault, "read_at": now, **_told(reading.facts),
    }  # fmt: skip


def _told(facts: Facts | None) -> dict[str, Any]:
    """What lists filter by, beside the facts."""
    kind = facts.error.type if facts and facts.error else None
    return {
        "failure_kind": facts.failure_kind if facts else None,
        "error_type": kind[:VALUE_KEY_CHARS] if kind else None,
        "has_remedy": any(item.outcome != "fails" for item in facts.workarounds) if facts else None,
    }


def _fact_rows(repo_id: int, reading: Reading) -> Iterable[dict[str, Any]]:
    for position, item in enumerate(reading.facts.evidence if reading.facts else ()):
        yield {
            "repo_id": repo_id, "number": reading.number, "position": position,
            "value_key": value_key(item.value), **item.model_dump(),
        }  # fmt: skip


def _occurrence_rows(repo_id: int, readings: Iterable[Reading]) -> Iterable[dict[str, Any]]:
    for reading in readings:
        roles = {item.id: item.role for item in reversed(reading.facts.signatures if reading.facts else ())}
        for signature_id, role in roles.items():
            yield {
                "repo_id": repo_id, "number": reading.number, "signature_id": signature_id, "role": role
            }  # fmt: skip


def _link_rows(repo_id: int, readings: Iterable[Reading]) -> Iterable[dict[str, Any]]:
    for reading in readings:
        links = {(link.target_repo, link.target_number, link.kind): link for link in reading.links}
        for link in links.values():
            yield {
                "repo_id": repo_id, "number": reading.number, "target_repo": link.target_repo,
                "target_number": link.target_number, "kind": link.kind, "score": link.score,
                "channel": link.channel, "reason": link.reason,
            }  # fmt: skip


def find_facts(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, Facts]:
    """The facts of these issues with their evidence; an issue that could not be read is left out."""
    return {
        number: facts.model_copy(update={"evidence": evidence})
        for number, facts, evidence in _with_evidence(session, repo_id, numbers)
    }


def find_facts_without_evidence(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, Facts]:
    """The facts of these issues, cheaper: `evidence` is empty."""
    rows = session.connection().execute(_FACTS, {"repo_id": repo_id, "numbers": list(numbers)})
    return {number: Facts.model_validate(facts) for number, facts in rows if facts}


def _with_evidence(
    session: Session, repo_id: int, numbers: Sequence[int]
) -> Iterable[tuple[int, Facts, tuple[Evidence, ...]]]:
    query = (
        select(FactRow)
        .where(FactRow.repo_id == repo_id, col(FactRow.number).in_(list(numbers)))
        .order_by(col(FactRow.number), col(FactRow.position))
    )
    evidence: dict[int, list[Evidence]] = {}
    for row in session.exec(query):
        item = Evidence(
            field=row.field, value=row.value, quote=row.quote, source=row.source,
            start=row.start, end=row.end, rule=row.rule, confidence=row.confidence,
        )  # fmt: skip
        evidence.setdefault(row.number, []).append(item)
    for number, facts in find_facts_without_evidence(session, repo_id, numbers).items():
        yield number, facts, tuple(evidence.get(number, ()))


def links_to(session: Session, repo: str, numbers: Sequence[int], kind: str) -> list[tuple[int, int, int]]:
    """Links of one kind that point at these issues: (repo_id and number they come from, target)."""
    asked = {"repo": repo, "numbers": list(numbers), "kind": kind}
    rows = session.connection().execute(_LINKS_TO, asked)
    return [(repo_id, number, target) for repo_id, number, target in rows]


def links_from(session: Session, repo_id: int, number: int) -> list[LinkRecord]:
    """All links of one issue."""
    query = select(LinkRow).where(LinkRow.repo_id == repo_id, LinkRow.number == number)
    return [
        LinkRecord(row.target_repo, row.target_number, row.kind, row.reason, row.score, row.channel)
        for row in session.exec(query)
    ]


def all_links_to(session: Session, repo: str, number: int) -> list[tuple[int, int, str, str]]:
    """Links that point at an issue: (repo_id and number they come from, kind, reason)."""
    query = select(LinkRow.repo_id, LinkRow.number, LinkRow.kind, LinkRow.reason).where(
        LinkRow.target_repo == repo, LinkRow.target_number == number
    )
    return [(repo_id, source, kind, reason) for repo_id, source, kind, reason in session.exec(query)]


def occurrences_of(session: Session, signature_ids: Sequence[str]) -> list[tuple[int, int, str, str]]:
    """Where signatures were seen: (repo_id, number, signature id, role)."""
    query = select(
        OccurrenceRow.repo_id, OccurrenceRow.number, OccurrenceRow.signature_id, OccurrenceRow.role
    ).where(col(OccurrenceRow.signature_id).in_(list(signature_ids)))
    return [(repo_id, number, key, role) for repo_id, number, key, role in session.exec(query)]


def count_faults(session: Session, repo_id: int) -> int:
    """How many issues no rule could read."""
    query = select(ReadingRow.number).where(ReadingRow.repo_id == repo_id, col(ReadingRow.fault).is_not(None))
    return len(session.exec(query).all())


def signature_text(session: Session, signature_id: str) -> str | None:
    """A signature's readable text, or None if it was never seen."""
    return session.exec(select(SignatureRow.text).where(SignatureRow.id == signature_id)).first()


def words_on_fixes(
    session: Session, repo_id: int, numbers: Sequence[int]
) -> dict[int, tuple[str, str | None]]:
    """What is said of the fix of these issues, word for word, and who a commenter is."""
    query = (
        select(FactRow.number, FactRow.quote, CommentRow.author_association)
        .join(
            CommentRow,
            (col(CommentRow.repo_id) == col(FactRow.repo_id))
            & (col(CommentRow.issue_number) == col(FactRow.number))
            & (col(FactRow.source) == literal("comment:").concat(cast(col(CommentRow.id), String))),
            isouter=True,
        )
        .where(FactRow.repo_id == repo_id, col(FactRow.number).in_(list(numbers)), FactRow.field == "fix")
    )
    return {number: (quote, association) for number, quote, association in session.exec(query)}


def duplicates_of(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> dict[int, int]:
    """Which issue of the same repository each of these is said to repeat, where that is said."""
    asked = {"repo_id": repo_id, "repo": repo, "numbers": list(numbers)}
    rows = session.connection().execute(_DUPLICATES, asked)
    return {number: target for number, target in rows}  # noqa: C416 - a row is no pair to mypy
