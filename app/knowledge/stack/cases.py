"""Failures as the decisions on a stack need them, loaded by the hundred; the answers for those of a list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.extract.redaction.redact import mask_secrets
from app.knowledge.fix.state import fix_truths, is_vllm
from app.knowledge.stack.affects import Affects, FailureCase, Fit, fit, fit_of_run, judged, standing
from app.knowledge.stack.stack import Stack
from app.store.derived.clusters import find_clusters, members_of
from app.store.derived.facts import values_in_titles
from app.store.derived.readings import find_facts_without_evidence
from app.store.github.issues import find_heads, find_issues, find_repository
from app.store.records import IssueRecord
from app.store.session import Store

CLUSTER_MEMBERS_MAX = 40
"""Reports of one failure that are looked at, the newest first."""
_RANK = {"affects": 0, "unknown": 1, "not": 2}
NOT_OF_VLLM = Affects(state="unknown", reason="its versions are not those of vLLM")
NO_FAILURE = Affects(state="not", reason="it reports no failure")


@dataclass(frozen=True, slots=True)
class StoredCase:
    """A case with its issue."""

    issue: IssueRecord
    case: FailureCase


def load_cases(session: Session, repo_id: int, repo: str, numbers: Collection[int]) -> dict[int, StoredCase]:
    """The failures among these issues that GitHub still has."""
    heads = find_heads(session, repo_id, sorted(numbers))
    heads = [head for head in heads if not head.is_pull_request and head.gone_at is None]
    facts = find_facts_without_evidence(session, repo_id, [head.number for head in heads])
    failures = [head for head in heads if head.number in facts and facts[head.number].is_failure]
    truths = fix_truths(session, repo_id, repo, failures, facts)
    titled: dict[tuple[int, str], list[str]] = defaultdict(list)
    for number, field, value in values_in_titles(
        session, repo_id, [head.number for head in failures], ("gpus", "models")
    ):
        titled[number, field].append(value)
    return {
        head.number: StoredCase(
            head,
            FailureCase(
                facts=facts[head.number],
                truth=truths[head.number],
                state=head.state,
                title=mask_secrets(head.title),
                labels=head.labels,
                titled_gpus=tuple(titled[head.number, "gpus"]),
                titled_models=tuple(titled[head.number, "models"]),
            ),
        )
        for head in failures
    }


def fits(session: Session, repo_id: int, stack: Stack, cases: Mapping[int, StoredCase]) -> dict[int, Fit]:
    """Whether each failure is of a stack; the texts are read of those that seem to be."""
    found = {number: fit(stack, stored.case) for number, stored in cases.items()}
    seeming = [number for number, one in found.items() if one.answer == "yes"]
    for issue in find_issues(session, repo_id, seeming):
        if other := fit_of_run(stack, cases[issue.number].case, issue.body):
            found[issue.number] = other
    return found


def affects_issues(store: Store, repo: str, stack: Stack, numbers: tuple[int, ...]) -> Mapping[int, Affects]:
    """Whether each of these issues affects a stack."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            return {}
        if not is_vllm(repo):
            return dict.fromkeys(numbers, NOT_OF_VLLM)
        cases = load_cases(session, repo_id, repo, numbers)
        found = fits(session, repo_id, stack, cases)
    return {
        number: judged(standing(stack.vllm, cases[number].case), found[number])
        if number in cases
        else NO_FAILURE
        for number in numbers
    }


def affects_clusters(store: Store, repo: str, stack: Stack, ids: tuple[str, ...]) -> Mapping[str, Affects]:
    """Whether each of these failures affects a stack: by the report that says most of it."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
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
