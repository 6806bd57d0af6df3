"""Diagnose a pasted log: root cause, verdict, matches with reasons, remedies, next steps.

This module stores nothing of the log and masks secrets in all quotes from it.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Required, TypedDict, Unpack

from sqlalchemy.orm import Session

from app.extract.facts import Facts, Signature
from app.extract.fields.launch import read_launch
from app.extract.log.lines import LogLine
from app.extract.log.process_stream import ErrorRecord
from app.extract.log.signature import make_signature
from app.extract.reader import LogReading, read_log, read_question
from app.extract.redact import Redacted, masked_all, redact
from app.knowledge.diagnosis.error_text import masked_part, quoted_line, whole_message, words_of_cause
from app.knowledge.diagnosis.excerpts import issue_excerpt, log_excerpt
from app.knowledge.diagnosis.explain import NOT_OF_VLLM, explain, is_informative, why_not_same
from app.knowledge.diagnosis.failures import (
    find_outcome,
    find_program,
    is_question,
    kinds_of,
    name_failure,
)
from app.knowledge.diagnosis.headline import describe_failure, describe_other, headline
from app.knowledge.diagnosis.log_input import clean_log
from app.knowledge.diagnosis.markdown import issue_draft
from app.knowledge.diagnosis.next_steps import next_steps, untried
from app.knowledge.diagnosis.other_reports import find_common, helps, remedies_of_others
from app.knowledge.diagnosis.quoted_advice import option_step, quoted_steps
from app.knowledge.diagnosis.shapes import (
    MAX_QUOTE_CHARS,
    OPEN,
    Band,
    CommonError,
    Diagnosis,
    IndexState,
    LogEnvironment,
    Match,
    MatchLine,
    OtherError,
    Redaction,
    RemedySource,
    RootCause,
    Why,
)
from app.knowledge.fix.state import fix_states, is_vllm
from app.knowledge.launch import LEFT_OUT, compose_all
from app.knowledge.possible_versions import check_possible
from app.knowledge.remedies import Remedy, for_version, rank_remedies, remedies_of
from app.knowledge.stack.stack import stack_of_log, write_stack
from app.match.search.agreement import find_agreements
from app.match.search.log_query import LogQuery, make_log_query
from app.match.search.log_search import find_candidates
from app.match.search.question_search import find_answers
from app.match.search.ranking import (
    REFINED,
    Scored,
    load_weights,
    order_candidates,
    rank_candidates,
    rank_prose,
)
from app.match.search.ranking import Band as MatchBand
from app.match.search.terms import question_heading
from app.store.derived.model_outputs import TextVector
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.search_index import Key, numbers_by_repository
from app.store.github.issues import StoredRepositories, find_heads, find_repository, find_stored_repositories
from app.store.session import Store

MAX_REMEDIES = 12
MAX_STEPS = 6
SCORE_STEP = 0.0001
"""Resolution of the scores in an answer."""


@dataclass(frozen=True, slots=True)
class DiagnosedLog:
    """A diagnosis, the log lines shown on its page, and the whole log, masked."""

    diagnosis: Diagnosis
    excerpt: tuple[MatchLine, ...]
    masked_log: str


Embed = Callable[[str], TextVector | None]


class LogQuestion(TypedDict, total=False):
    """The keyword arguments of `diagnose_log`."""

    repos: Required[tuple[str, ...]]
    vllm_version: str | None
    gpu: str | None
    model: str | None
    limit: int
    exclude: frozenset[int]
    embed: Embed | None


def diagnose(store: Store, log: str, **question: Unpack[LogQuestion]) -> Diagnosis:
    """Diagnose a log against stored issues; arguments and errors are those of `diagnose_log`."""
    return diagnose_log(store, log, **question).diagnosis


def diagnose_log(
    store: Store,
    log: str,
    *,
    repos: tuple[str, ...],
    vllm_version: str | None = None,
    gpu: str | None = None,
    model: str | None = None,
    limit: int = 10,
    exclude: frozenset[int] = frozenset(),
    embed: Embed | None = None,
) -> DiagnosedLog:
    """Diagnose a log against the stored issues of `repos`.

    Args:
        repos: the first is the default: fixes are compared with the caller's version only there.
        vllm_version: the caller's version; like `gpu` and `model`, it overrides the log's.
        limit: the maximum number of matches, 1 to 50.
        exclude: issue numbers of the first repository to leave out of the search.
        embed: returns a question's vector, or None if it takes too long; never called with a log.

    Raises:
        EmptyInputError: the log is blank.
        TooLargeError: over 10 MiB of UTF-8.
        UnknownVersionError: `vllm_version` is no version, or older than the newest release and none itself.
    """
    began = time.perf_counter()
    asked = _read(clean_log(log), vllm_version, gpu, model, embed)
    with store.reading() as session:
        # A log's version is vLLM's; a version given by the caller is that of the default repository.
        versions_of = repos[0] if vllm_version or is_vllm(repos[0]) else ""
        if is_vllm(repos[0]):
            repo_id = find_repository(session, repos[0])
            check_possible(session, repo_id, "vllm_version", vllm_version, may_be_newer=True)
        found = _search(session, asked, repos, exclude, limit, versions_of=versions_of)
    answer = _describe(asked, found, repos[0])
    took_ms = round((time.perf_counter() - began) * 1000, 1)
    masked_log = asked.redacted.text
    excerpt = log_excerpt(asked.reading, masked_log)
    return DiagnosedLog(answer.model_copy(update={"took_ms": took_ms}), excerpt, masked_log)


@dataclass(frozen=True, slots=True)
class _Input:
    """A parsed and masked log or question; a question has no `query`, a log has no `vector`."""

    reading: LogReading
    redacted: Redacted
    query: LogQuery | None
    vector: TextVector | None

    @property
    def in_words(self) -> bool:
        """True if it is a question in words, without a log."""
        return self.query is None


@dataclass(frozen=True, slots=True)
class _SearchResult:
    """The result of searching the store."""

    stored: StoredRepositories
    verdict: Band
    matches: tuple[Match, ...]
    remedies: tuple[Remedy, ...]
    remedies_from: RemedySource
    common: CommonError | None

    @property
    def is_open(self) -> bool:
        """True if no issue is known to report this failure."""
        return self.verdict in OPEN


def _read(text: str, version: str | None, gpu: str | None, model: str | None, embed: Embed | None) -> _Input:
    """Parse a log or a question and apply the caller's hints."""
    reading = read_log(text)
    query, vector = None, None
    if is_question(reading):
        reading = replace(reading, surroundings=read_question(reading.log))
        vector = embed(reading.log) if embed is not None else None
    else:
        query = make_log_query(reading)
    hinted = _apply_hints(reading, version, gpu, model)
    return _Input(hinted, redact(reading.log, private=True), query, vector)


def _search(
    session: Session,
    asked: _Input,
    repos: Sequence[str],
    exclude: Collection[int],
    limit: int,
    *,
    versions_of: str,
) -> _SearchResult:
    """Find matches, verdict and remedies; also the common error if no issue is known to report it."""
    reading, in_words = asked.reading, asked.in_words
    stored = find_stored_repositories(session, repos)
    repo_ids = stored.repositories
    hidden = {(key, number) for key in repo_ids if repo_ids[key] == repos[0] for number in exclude}
    scored, facts = _find_matches(session, asked, list(repo_ids), hidden, limit)
    matches = _as_matches(session, reading, scored, facts, repo_ids, versions_of=versions_of)
    verdict = _verdict(matches, in_words=in_words)
    is_common = asked.query is not None and asked.query.is_common
    if reading.printer.is_vllm is False and (verdict == "unknown" or is_common):
        return _SearchResult(stored, "unknown", (), (), "matches", None)
    is_open = verdict in OPEN
    text = _cause_message(reading, asked.redacted.text) if is_open and not in_words else ""
    common = find_common(session, reading, text, matches, repo_ids, is_common=is_common, exclude=hidden)
    # Remedies are left out if unrelated failures share the message: one's remedy may not help another.
    useful = [] if text and is_common else _helpful_matches(matches, in_words=in_words)
    remedies = _rank_for_version(reading, (remedy for match in useful for remedy in match.workarounds))
    remedies_from: RemedySource = "matches"
    if verdict != "unknown":
        best = matches[0]
        repo_id = next(key for key, repo in repo_ids.items() if repo == best.repo)
        said = reading.errors.cause.message if reading.errors.cause else ""
        matches[0] = best.model_copy(update={"excerpt": issue_excerpt(session, repo_id, best.number, said)})
        if not is_open and not helps(remedies):
            frame = reading.errors.cause.frame if reading.errors.cause else None
            others, remedies_from = remedies_of_others(
                session, best.repo, (repo_id, best.number), frame, hidden
            )
            remedies = _rank_for_version(reading, [*others, *remedies])
    shown = [
        match
        if verdict != "unknown" and _is_related(match, in_words=in_words)
        else match.model_copy(update={"workarounds": ()})
        for match in matches
    ]
    return _SearchResult(stored, verdict, tuple(shown), remedies, remedies_from, common)


def _describe(asked: _Input, found: _SearchResult, repo: str) -> Diagnosis:
    """Return the diagnosis, without `took_ms`."""
    reading, in_words, masked_log = asked.reading, asked.in_words, asked.redacted.text
    cause, around = reading.errors.cause, reading.surroundings
    kinds = kinds_of(reading)
    outcome = "none" if in_words else find_outcome(reading, kinds)
    failure = name_failure(kinds) if cause or reading.errors.apparent else None
    line, message, named = "", "", cause or reading.errors.apparent
    if named:
        message = _cause_message(reading, masked_log) or _masked(named.message, named.line, masked_log)
        message = whole_message(reading, named, message, masked_log)
        line = describe_failure(find_program(reading), outcome, failure, named.type, message)
    if is_other := reading.printer.is_vllm is False:
        line = describe_other(reading.printer.name, named.type if named else None, message)
    launch = None if in_words else read_launch(masked_log, around.versions.get("vllm"))
    quoted = quoted_steps(reading, masked_log, launch)
    is_own = any(kind.is_own for kind in kinds[:1])
    is_helped = found.remedies_from != "same_frame" and helps(found.remedies)
    needs_steps = found.is_open or is_own or not is_helped
    proven = next_steps(reading, kinds, particular=True)
    ours = next_steps(reading, kinds) if needs_steps or quoted.is_risky else proven
    steps = quoted.joined(ours, proven)
    if launch is not None and named and outcome == "not_started" and needs_steps:
        words = _masked(named.message, named.line, masked_log)
        option = option_step(launch, words, steps, (*proven, *quoted.steps))
        if option and option.command:
            gone = option.command.removeprefix(LEFT_OUT)
            steps = (option, *(step for step in steps if gone not in step.command))
        elif option:
            at = steps.index(proven[0]) + 1 if proven and proven[0] in steps else 0
            steps = (*steps[:at], option, *steps[at:])
    steps = tuple(untried(steps, launch, found.remedies))[:MAX_STEPS]
    answer = Diagnosis(
        verdict=found.verdict,
        root_cause=_root_cause(reading, masked_log),
        wrappers=tuple(_masked(text, line, masked_log) for text, line in reading.errors.wrappers),
        other_errors=_other_errors(reading.errors.other, masked_log),
        environment=LogEnvironment.based_on(around),
        signature=_signature(reading, masked_log),
        redactions=tuple(Redaction(kind=kind, count=count) for kind, count in asked.redacted.counts),
        matches=found.matches,
        workarounds=found.remedies[:MAX_REMEDIES],
        remedies_from=found.remedies_from,
        next_steps=steps,
        stack="" if in_words else write_stack(stack_of_log(around, launch)),
        composed=compose_all(launch, found.remedies, [step.command for step in steps]),
        index=IndexState.based_on(found.stored),
        took_ms=0.0,
        headline=headline(
            found.verdict,
            found.matches,
            line,
            is_question=in_words,
            is_other=is_other,
            repo=repo,
            stored=found.stored.issues,
            reports=found.common.reports if found.common else 0,
        ),
        common=found.common,
        outcome=outcome,
        failure=failure,
        is_vllm=None if in_words else reading.printer.is_vllm,
        chain=_other_errors(reading.errors.chain, masked_log),
        advice=quoted.advice,
        repo=repo,
        is_question=in_words,
    )
    to_correct = (steps and not in_words and is_own) or is_other
    draft = issue_draft(reading, masked_log, launch, answer) if found.is_open and not to_correct else ""
    return answer.model_copy(update={"issue_draft": draft})


def _rank_for_version(reading: LogReading, remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Rank remedies for the log's version of vLLM."""
    return for_version(rank_remedies(remedies), reading.surroundings.versions.get("vllm"))


def _apply_hints(reading: LogReading, version: str | None, gpu: str | None, model: str | None) -> LogReading:
    """Return the reading with version, GPU and model replaced by the caller's, if given."""
    around = reading.surroundings
    versions = {**around.versions, "vllm": version.removeprefix("v")} if version else around.versions
    models = (model,) if model else around.models
    gpus = (gpu,) if gpu else around.gpus
    hinted = around.model_copy(
        update={"versions": versions, "gpus": gpus, "models": tuple(map(_redact_quote, models))}
    )
    return replace(reading, surroundings=hinted)


def _find_matches(
    session: Session, asked: _Input, repo_ids: Sequence[int], exclude: Collection[Key], limit: int
) -> tuple[list[Scored], dict[Key, Facts]]:
    """Return the matches, best first, and the facts of their issues."""
    reading, query = asked.reading, asked.query
    if not is_informative(reading.log):
        return [], {}
    if query is None:
        heading = question_heading(reading.log, reading.surroundings)
        found = find_answers(session, reading.log, heading, repo_ids, exclude=exclude, vector=asked.vector)
        scored = rank_prose(found)[:limit]
        facts = _facts_of(session, [item.candidate.key for item in scored])
    else:
        sharing = find_candidates(session, query, repo_ids, exclude=exclude)
        first = order_candidates(sharing)[: max(limit, REFINED)]
        facts = _facts_of(session, [item.key for item in first])
        scored = rank_candidates(first, find_agreements(session, reading, facts), query)
    floor = load_weights().floor
    return [item for item in scored[:limit] if item.probability >= floor], facts


def _facts_of(session: Session, keys: Sequence[Key]) -> dict[Key, Facts]:
    return {
        (repo_id, number): facts
        for repo_id, numbers in numbers_by_repository(keys).items()
        for number, facts in find_facts_without_evidence(session, repo_id, numbers).items()
    }


def _as_matches(
    session: Session,
    reading: LogReading,
    scored: Sequence[Scored],
    known: Mapping[Key, Facts],
    repo_ids: Mapping[int, str],
    *,
    versions_of: str,
) -> list[Match]:
    version = reading.surroundings.versions.get("vllm")
    found: dict[tuple[int, int], Match] = {}
    for repo_id, repo in repo_ids.items():
        mine = {item.candidate.key[1]: item for item in scored if item.candidate.key[0] == repo_id}
        issues = find_heads(session, repo_id, list(mine))
        facts = {number: known[repo_id, number] for number in mine if (repo_id, number) in known}
        fixes = fix_states(
            session, repo_id, repo, issues, facts, vllm_version=version, versions_of=versions_of
        )
        for issue in issues:
            own = facts.get(issue.number)
            band, score, why = _score_match(reading, own, mine[issue.number])
            found[repo_id, issue.number] = Match(
                number=issue.number,
                repo=repo,
                title=issue.title,
                url=issue.url,
                state=issue.state,
                score=score,
                band=band,
                why=why,
                workarounds=for_version(remedies_of(own, repo=repo, url=issue.url), version) if own else (),
                fix=fixes[issue.number],
                regression=own.regression if own else None,
                signature_id=own.signatures[0].id if own and own.signatures else None,
            )
    return masked_all([found[item.candidate.key] for item in scored if item.candidate.key in found])


def _score_match(reading: LogReading, facts: Facts | None, item: Scored) -> tuple[MatchBand, float, Why]:
    """Return band, score and reasons; `why_not_same` may downgrade `same` to `likely`.

    What another program than vLLM printed is `related` at best.
    """
    why = explain(reading, facts, item.candidate)
    if reading.printer.is_vllm is False and item.band != "related":
        score = round(load_weights().likely_from - SCORE_STEP, 4)
        return "related", score, why.model_copy(update={"differs": (NOT_OF_VLLM, *why.differs)})
    doubt = why_not_same(reading, facts, item.candidate) if item.band == "same" else None
    if doubt is None:
        return item.band, round(item.probability, 4), why
    score = round(load_weights().same_from - SCORE_STEP, 4)
    others = (reason for reason in why.differs if reason != doubt)
    return "likely", score, why.model_copy(update={"differs": (doubt, *others)})


def _verdict(matches: Sequence[Match], *, in_words: bool) -> Band:
    return matches[0].band if matches and _is_related(matches[0], in_words=in_words) else "unknown"


def _is_related(match: Match, *, in_words: bool) -> bool:
    """True if a match is more than a weak candidate."""
    weights = load_weights()
    return match.band != "related" or match.score >= (weights.prose if in_words else weights).related_from


def _helpful_matches(matches: Sequence[Match], *, in_words: bool) -> list[Match]:
    """Return the matches whose remedies may help."""
    likeliest = [match for match in matches if match.band != "related"] or matches[:3]
    return [match for match in likeliest if _is_related(match, in_words=in_words)]


def _root_cause(reading: LogReading, masked_log: str) -> RootCause | None:
    cause = reading.errors.cause or reading.errors.apparent
    if cause is None:
        return None
    return RootCause(
        type=cause.type,
        message=_masked(cause.message, cause.line, masked_log),
        frame=cause.frame,
        process=cause.line.process or None,
        line=cause.line.number,
        quote=quoted_line(reading, cause, masked_log)[:MAX_QUOTE_CHARS],
        is_wrapper=reading.errors.cause is None,
    )


def _cause_message(reading: LogReading, masked_log: str) -> str:
    """Return the cause's message, masked; "" if there is none."""
    words = words_of_cause(reading)
    return _masked(*words, masked_log) if words else ""


def _other_errors(records: Sequence[ErrorRecord], masked_log: str) -> tuple[OtherError, ...]:
    return tuple(
        OtherError(
            type=item.type, message=_masked(item.message, item.line, masked_log), line=item.line.number
        )
        for item in records
    )


def _signature(reading: LogReading, masked_log: str) -> Signature | None:
    """Return the cause's signature; its id is that of the unmasked text.

    If the message holds a secret, the text is rebuilt from the masked message: the signature's own
    placeholders replace the characters by which a secret is recognised.
    """
    cause = reading.errors.cause
    if cause is None or not reading.signatures:
        return None
    signature = reading.signatures[0]
    message = _masked(cause.message, cause.line, masked_log)
    is_masked = cause.message[:MAX_QUOTE_CHARS] != message
    text = make_signature(replace(cause, message=message)).text if is_masked else signature.text
    return signature.model_copy(update={"text": _redact_quote(text)})


def _masked(text: str, line: LogLine, masked_log: str) -> str:
    return masked_part(text, line, masked_log)[:MAX_QUOTE_CHARS]


def _redact_quote(text: str) -> str:
    return redact(text, private=True).text[:MAX_QUOTE_CHARS]
