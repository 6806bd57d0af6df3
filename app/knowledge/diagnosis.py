"""The answer to a pasted log: root cause, verdict, matches with reasons, remedies, next steps.

In: an archive and a log. Out: a `Diagnosis`. Nothing of the log is kept, and what is quoted from it is
masked; the same function serves the page, the JSON route and the command.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from sqlmodel import Session

from app.extract.facts import Facts, Signature
from app.extract.loglines import LogLine
from app.extract.reader import LogReading, Surroundings, read_log
from app.extract.redact import redact
from app.extract.rootcause import Cause
from app.extract.signature import make_signature
from app.knowledge.answers import (
    Band,
    Diagnosis,
    Environment,
    IndexState,
    Match,
    MatchBand,
    OtherError,
    Redaction,
    RootCause,
    Why,
)
from app.knowledge.caution import why_not_same
from app.knowledge.fixstate import fix_states
from app.knowledge.headline import headline
from app.knowledge.issue_draft import issue_draft
from app.knowledge.logtext import clean_log
from app.knowledge.masking import masked
from app.knowledge.next_steps import next_steps
from app.knowledge.question import is_question
from app.knowledge.remedies import rank_remedies, remedies_of
from app.knowledge.their_lines import their_lines
from app.knowledge.why import explain
from app.match.candidates import find_candidates
from app.match.likeness import Scored, load_weights, rank_candidates, rank_prose
from app.match.terms import terms_of, texts_of_log
from app.store.issues import count_issues, find_heads, find_repository
from app.store.readings import find_facts_without_evidence
from app.store.session import Store
from app.store.sync_state import as_of

MAX_QUOTE_CHARS = 400
MAX_REMEDIES = 12
SCORE_STEP = 0.0001
"""The smallest difference of two scores as they are told."""


def diagnose(
    store: Store,
    log: str,
    *,
    repos: tuple[str, ...],
    vllm_version: str | None = None,
    gpu: str | None = None,
    model: str | None = None,
    limit: int = 10,
    exclude: frozenset[int] = frozenset(),
) -> Diagnosis:
    """Diagnose a log against the stored issues of `repos`.

    Args:
        vllm_version: what the caller runs; wins over what the log says. So do `gpu` and `model`.
        limit: matches at most, 1 to 50.
        exclude: issue numbers that are no answer.

    Raises:
        EmptyInputError: nothing but blanks.
        TooLargeError: over 10 MiB of UTF-8.
        StoreError: the archive cannot be read.
    """
    began = time.perf_counter()
    reading = _told(read_log(clean_log(log)), vllm_version, gpu, model)
    with store.reading() as session:
        repo_ids = {key: repo for repo in repos if (key := find_repository(session, repo)) is not None}
        scored = _matches(session, reading, list(repo_ids), exclude)[:limit]
        matches = _as_matches(session, reading, scored, repo_ids)
        matches = _with_their_lines(session, reading, matches, repo_ids)
        index = IndexState(
            issues=sum(count_issues(session, key)["issues"] for key in repo_ids), as_of=as_of(session)
        )
    return _answer(reading, matches, index, began)


def _told(reading: LogReading, version: str | None, gpu: str | None, model: str | None) -> LogReading:
    """The reading with what the caller says of the run."""
    around = reading.surroundings
    versions = {**around.versions, "vllm": version.removeprefix("v")} if version else around.versions
    told = replace(
        around, versions=versions, gpus=(gpu,) if gpu else around.gpus,
        models=tuple(map(_shown, (model,) if model else around.models)),
    )  # fmt: skip
    return replace(reading, surroundings=told)


def _matches(
    session: Session, reading: LogReading, repo_ids: Sequence[int], exclude: frozenset[int]
) -> list[Scored]:
    terms = terms_of(texts_of_log(reading.lines, reading.errors), reading.errors)
    found = find_candidates(session, terms, repo_ids, exclude=exclude)
    scored = rank_prose(found) if is_question(reading) else rank_candidates(found)
    floor = load_weights().floor
    return [item for item in scored if item.probability >= floor]


def _as_matches(
    session: Session, reading: LogReading, scored: Sequence[Scored], repo_ids: dict[int, str]
) -> list[Match]:
    version = reading.surroundings.versions.get("vllm")
    found: dict[tuple[int, int], Match] = {}
    for repo_id, repo in repo_ids.items():
        mine = {item.candidate.key[1]: item for item in scored if item.candidate.key[0] == repo_id}
        issues = find_heads(session, repo_id, list(mine))
        facts = find_facts_without_evidence(session, repo_id, list(mine))
        fixes = fix_states(session, repo_id, repo, issues, facts, vllm_version=version)
        for issue in issues:
            known = facts.get(issue.number)
            item = mine[issue.number]
            band, score, why = _judged(reading, known, item)
            match = Match(
                number=issue.number, repo=repo, title=issue.title, url=issue.url,
                state=issue.state, score=score, band=band, why=why,
                workarounds=remedies_of(known, repo=repo, url=issue.url) if known else (),
                fix=fixes[issue.number],
                regression=known.regression if known else None,
                signature_id=_signature_id(known),
            )  # fmt: skip
            found[repo_id, issue.number] = masked(match)
    return [found[item.candidate.key] for item in scored if item.candidate.key in found]


def _with_their_lines(
    session: Session, reading: LogReading, matches: list[Match], repo_ids: dict[int, str]
) -> list[Match]:
    """The matches, the first with its telling lines; where nothing is known they would only mislead."""
    if _verdict(matches, in_words=is_question(reading)) == "unknown":
        return matches
    best = matches[0]
    repo_id = next(key for key, repo in repo_ids.items() if repo == best.repo)
    lines = their_lines(session, repo_id, best.number)
    return [best.model_copy(update={"excerpt": lines}), *matches[1:]]


def _judged(reading: LogReading, facts: Facts | None, item: Scored) -> tuple[MatchBand, float, Why]:
    """Band, score, reasons; `same` is taken back where the error names no cause and nothing else agrees."""
    why = explain(reading, facts, item.candidate)
    doubt = why_not_same(reading, facts, item.candidate) if item.band == "same" else None
    if doubt is None:
        return item.band, round(item.probability, 4), why
    score = round(load_weights().same_from - SCORE_STEP, 4)
    return "likely", score, why.model_copy(update={"differs": (doubt, *why.differs)})


def _signature_id(facts: Facts | None) -> str | None:
    return facts.signatures[0].id if facts and facts.signatures else None


def _answer(reading: LogReading, matches: Sequence[Match], index: IndexState, began: float) -> Diagnosis:
    in_words = is_question(reading)
    verdict = _verdict(matches, in_words=in_words)
    is_open = verdict in {"unknown", "related"}
    redacted = redact(reading.log, private=True)
    cause = reading.errors.cause
    useful = [match for match in matches if match.band != "related"] or matches[:3]
    root = _root_cause(cause, redacted.text) if cause else None
    answer = Diagnosis(
        verdict=verdict,
        root_cause=root,
        wrappers=tuple(_said(text, line, redacted.text) for text, line in reading.errors.wrappers),
        other_errors=tuple(
            OtherError(
                type=item.type, message=_said(item.message, item.line, redacted.text), line=item.line.number
            )
            for item in reading.errors.other
        ),
        environment=_environment(reading.surroundings),
        signature=_signature(reading, redacted.text),
        redactions=tuple(Redaction(kind=kind, count=count) for kind, count in redacted.counts),
        matches=tuple(matches),
        workarounds=rank_remedies(r for match in useful for r in match.workarounds)[:MAX_REMEDIES],
        next_steps=next_steps(reading) if is_open else (),
        index=index,
        took_ms=0.0,
        headline=headline(verdict, matches, root, is_question=in_words),
        is_question=in_words,
    )
    if is_open:
        answer = answer.model_copy(update={"issue_draft": issue_draft(reading, redacted.text, answer)})
    return answer.model_copy(update={"took_ms": round((time.perf_counter() - began) * 1000, 1)})


def _verdict(matches: Sequence[Match], *, in_words: bool) -> Band:
    if not matches:
        return "unknown"
    weights = load_weights()
    related_from = weights.prose.related_from if in_words else weights.related_from
    best = matches[0]
    return best.band if best.band != "related" or best.score >= related_from else "unknown"


def _root_cause(cause: Cause, log: str) -> RootCause:
    return RootCause(
        type=cause.type, message=_said(cause.message, cause.line, log), frame=cause.frame,
        process=cause.line.process or None, line=cause.line.number,
        quote=_said(cause.line.raw.strip(), cause.line, log),
    )  # fmt: skip


def _signature(reading: LogReading, log: str) -> Signature | None:
    """The cause's signature; its id is that of the text as it was read.

    A message that holds a secret is made into a text anew, from its masked words: the signature's own
    masks take away what a secret is known by.
    """
    cause = reading.errors.cause
    if cause is None or not reading.signatures:
        return None
    root = reading.signatures[0]
    said = _said(cause.message, cause.line, log)
    is_open = cause.message[:MAX_QUOTE_CHARS] == said
    text = root.text if is_open else make_signature(replace(cause, message=said)).text
    return root.model_copy(update={"text": _shown(text)})


def _said(text: str, line: LogLine, masked_log: str) -> str:
    """Words of a line as they stand in the masked log: what makes a word a secret may stand before them."""
    at = line.raw.find(text)
    if at < 0:
        return _shown(text)
    return masked_log[line.start + at : line.start + at + len(text)][:MAX_QUOTE_CHARS]


def _shown(text: str) -> str:
    return redact(text, private=True).text[:MAX_QUOTE_CHARS]


def _environment(around: Surroundings) -> Environment:
    return Environment(
        gpus=around.gpus, models=around.models, backends=around.backends, versions=around.versions
    )
