"""Load stored failures in batches and decide which of them affect a stack."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TypeVar

from sqlalchemy.orm import Session

from app.extract.fields.gpu_names import find_mentions
from app.extract.redact import mask_secrets
from app.extract.versions import Version, ordered
from app.knowledge.fix.state import fix_truths, is_vllm
from app.knowledge.stack.models import last_part
from app.knowledge.stack.relation import relate, relate_text
from app.knowledge.stack.shapes import Affects, FailureCase, Relation, affects_of
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.standing import standing
from app.store.derived.clusters import find_clusters, members_of
from app.store.derived.facts import values_in_titles
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.weeks import release_dates
from app.store.github.issues import find_heads, find_issues, find_repository
from app.store.records import IssueRecord
from app.store.session import Store

Key = TypeVar("Key", datetime, Version)
Value = TypeVar("Value")

STALE_AFTER = timedelta(days=120)
"""vLLM's robot marks an issue as stale after 90 days without a word, and closes it 30 days later."""
ROBOTS_COMMENTS = 2
"""The robot's own comments on an issue that it closes."""
PATCHED_WITHIN = timedelta(days=7)
"""A release that comes this soon after another of its minor line has its failures, but for known fixes."""
CLUSTER_MEMBERS_MAX = 40
"""Maximum number of reports examined per failure, newest first."""
_BESIDE_NAMES = re.compile(r"[,`'\"()\[\]]")
_RANK = {"affects": 0, "unknown": 1, "not": 2}
NOT_OF_VLLM = Affects(state="unknown", reason="its versions are not those of vLLM")
NO_FAILURE = Affects(state="not", reason="it reports no failure")


@dataclass(frozen=True, slots=True)
class StoredCase:
    """A case with its issue."""

    issue: IssueRecord
    case: FailureCase


def load_cases(
    session: Session, repo_id: int, repo: str, numbers: Collection[int], *, for_stack: bool
) -> dict[int, StoredCase]:
    """Return those of these failures that still exist on GitHub. `for_stack`: with what titles name."""
    facts = find_facts_without_evidence(session, repo_id, sorted(numbers))
    heads = find_heads(session, repo_id, [number for number, one in facts.items() if one.is_failure])
    failures = [head for head in heads if not head.is_pull_request and head.gone_at is None]
    truths = fix_truths(session, repo_id, repo, failures, facts)
    tags = ((one.published_at, ordered(one.tag)) for one in release_dates(session, repo_id, full=True))
    dated = sorted((at, found) for at, found in tags if found)
    releases = [(at, str(found)) for at, found in dated]
    by_version = sorted((found, at) for at, found in dated)
    versions = {head.number: facts[head.number].versions.get("vllm") for head in failures}
    patches = {str(found): _patches_of(found, at, dated) for at, found in dated}
    titled: dict[tuple[int, str], list[str]] = defaultdict(list)
    titles = {head.number: head.title for head in failures if for_stack}
    for number, field, value in values_in_titles(session, repo_id, [*titles], ("gpus", "models")):
        titled[number, field].append(value)
    for number, title in titles.items():
        titled[number, "gpus"] += (one.name for one in find_mentions(title))
    return {
        head.number: StoredCase(
            head,
            FailureCase(
                facts=facts[head.number],
                truth=truths[head.number],
                state=head.state,
                title=head.title,
                labels=head.labels,
                titled_gpus=tuple(dict.fromkeys(titled[head.number, "gpus"])),
                titled_models=_named(head.title, titled[head.number, "models"], facts[head.number].models),
                unresolved_until=_unresolved_until(head, versions[head.number], releases, by_version),
                patches=patches.get(versions[head.number] or "", ()),
            ),
        )
        for head in failures
    }


def _unresolved_until(
    head: IssueRecord,
    version: str | None,
    by_date: Sequence[tuple[datetime, str]],
    by_version: Sequence[tuple[Version, datetime]],
) -> str | None:
    """Return the newest release before a report was closed as stale, counted from the release that it is of.

    None if nobody answered it: what nobody confirmed may be the reporter's alone.
    """
    found = ordered(version)
    start = _last_until(by_version, found and ordered(found.base_version)) or head.created_at
    is_answered = head.comments > ROBOTS_COMMENTS
    return _last_until(by_date, start + STALE_AFTER) if start and is_answered else None


def _patches_of(
    release: Version, published_at: datetime, dated: Sequence[tuple[datetime, Version]]
) -> tuple[str, ...]:
    """Return the releases of the same minor line that came out soon after, which only mend a few things."""
    return tuple(
        str(found)
        for at, found in dated
        if found > release
        and found.release[:2] == release.release[:2]
        and at <= published_at + PATCHED_WITHIN
    )


def _last_until(ascending: Sequence[tuple[Key, Value]], limit: Key | None) -> Value | None:
    """Return the value of the last key that is not above a limit, or None."""
    place = bisect_right(ascending, limit, key=itemgetter(0)) if limit is not None else 0
    return ascending[place - 1][1] if place else None


def _named(title: str, titled: Sequence[str], read: Sequence[str]) -> tuple[str, ...]:
    """Return the models named in a title, including known names from the rest of the report."""
    words = frozenset(_BESIDE_NAMES.sub(" ", title.lower()).split())
    return (
        *titled,
        *(name for name in read if name not in titled and words.issuperset(last_part(name).split())),
    )


def relate_texts(
    session: Session,
    repo_id: int,
    stack: Stack,
    cases: Mapping[int, StoredCase],
    found: Mapping[int, Relation],
) -> dict[int, Relation]:
    """Return the relations in `found` with what the texts of those reports tell that may be the stack's."""
    near = [number for number in cases if found[number].is_near]
    return {
        issue.number: relate_text(stack, cases[issue.number].case, issue.body, found[issue.number])
        for issue in find_issues(session, repo_id, near)
    }


def affects_issues(store: Store, repo: str, stack: Stack, numbers: tuple[int, ...]) -> Mapping[int, Affects]:
    """Return for each issue whether it affects a stack."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if not repo_id:
            return {}
        if not is_vllm(repo):
            return dict.fromkeys(numbers, NOT_OF_VLLM)
        cases = load_cases(session, repo_id, repo, numbers, for_stack=True)
        relations = {number: relate(stack, stored.case) for number, stored in cases.items()}
        relations |= relate_texts(session, repo_id, stack, cases, relations)
    answers = dict.fromkeys(numbers, NO_FAILURE)
    for number, stored in cases.items():
        answer = affects_of(standing(stack.vllm, stored.case), relations[number])
        answers[number] = Affects(state=answer.state, reason=mask_secrets(answer.reason))
    return answers


def affects_clusters(store: Store, repo: str, stack: Stack, ids: tuple[str, ...]) -> Mapping[str, Affects]:
    """Return for each cluster whether it affects a stack, decided by the report with the strongest answer."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if not repo_id:
            return {}
        members = members_of(session, repo_id, ids)
        canonical = {key: record.canonical for key, record in find_clusters(session, repo_id, ids).items()}
        chosen = {
            key: ({canonical.get(key, 0)} & set(found)) | set(sorted(found)[-CLUSTER_MEMBERS_MAX:])
            for key, found in members.items()
        }
    numbers = tuple(sorted({number for found in chosen.values() for number in found}))
    answers = affects_issues(store, repo, stack, numbers)
    verdicts: dict[str, Affects] = {}
    for key, group in chosen.items():
        first = canonical.get(key)
        best = min((_RANK[answers[n].state], n != first, -n, n) for n in group)[-1]
        reason = answers[best].reason
        is_own = best == first
        verdicts[key] = Affects(state=answers[best].state, reason=reason if is_own else f"#{best}: {reason}")
    return verdicts
