"""Issues for a list by version: loaded by the hundred without texts, then the page's with their words.

In: numbers. Out: `Candidate`s that report a failure, and for the ones shown what all lists tell of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session

from app.extract.facts import Evidence, Facts
from app.extract.redaction.redact import mask_secrets
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states, is_vllm
from app.knowledge.issue.quotes import QUOTES_MAX, Sources
from app.knowledge.remedies import remedies_of
from app.knowledge.text.masking import masked
from app.knowledge.version.shapes import Said, SaidRemedy
from app.store.derived.cluster_queries import cluster_sizes
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.versions import REGRESSION_FIELDS, count_duplicates, evidence_of
from app.store.github.comments import find_comments
from app.store.github.issues import find_heads, find_issues
from app.store.records import IssueRecord

REPORTED = "versions.vllm"
TELLING = (REPORTED, *REGRESSION_FIELDS, "workarounds", "fix")
"""Fields whose newest words a list shows."""
_ERROR_CHARS = 160


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored failure that may be listed."""

    issue: IssueRecord
    facts: Facts
    fix: FixView
    duplicates: int
    reports: int = 1
    """Of its cluster."""

    @property
    def weight(self) -> int:
        """Each other report of the failure counts; a reaction is a person; comments may be one person's."""
        others = max(self.duplicates, self.reports - 1)
        return 1 + 4 * others + 2 * self.issue.reactions + self.issue.comments


def load_candidates(
    session: Session, repo_id: int, repo: str, numbers: Iterable[int], version: str | None = None
) -> list[Candidate]:
    """The failures among these, without pull requests and what GitHub has no more."""
    heads = [
        head
        for head in find_heads(session, repo_id, sorted(numbers))
        if not head.is_pull_request and head.gone_at is None
    ]
    facts = find_facts_without_evidence(session, repo_id, [head.number for head in heads])
    heads = [head for head in heads if head.number in facts and facts[head.number].is_failure]
    own = repo if is_vllm(repo) else ""  # what is asked for is a version of vLLM
    fixes = fix_states(session, repo_id, repo, heads, facts, vllm_version=version, versions_of=own)
    repeats = count_duplicates(session, repo, repo_id, [head.number for head in heads])
    sizes = cluster_sizes(session, repo_id, [head.number for head in heads])
    return [
        Candidate(
            head,
            facts[head.number],
            fixes[head.number],
            repeats.get(head.number, 0),
            sizes.get(head.number, 1),
        )
        for head in heads
    ]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of the issues on one page."""

    evidence: dict[int, list[Evidence]]
    sources: dict[int, Sources]
    times: dict[tuple[int, str], datetime | None]

    def said(self, number: int, fields: Iterable[str]) -> tuple[Said, ...]:
        """What says these fields, the newest first, each sentence once."""
        wanted = tuple(fields)
        found: dict[tuple[str, str], Said] = {}
        for item in self.evidence.get(number, ()):
            if item.field in wanted:
                said = self._said(number, item)
                found.setdefault((said.source, said.text), said)
        return tuple(sorted(found.values(), key=lambda said: -_second(said.at)))

    def remedy(self, candidate: Candidate, repo: str) -> SaidRemedy | None:
        """The first remedy to try of which the words are known."""
        return next((item for item in self.remedies(candidate, repo) if item.outcome != "fails"), None)

    def remedies(self, candidate: Candidate, repo: str) -> Iterator[SaidRemedy]:
        """The remedies of which the words are known, in the order in which to try them."""
        number = candidate.issue.number
        told = {item.value: item for item in self.evidence.get(number, ()) if item.field == "workarounds"}
        for remedy in remedies_of(candidate.facts, repo=repo, url=candidate.issue.url):
            if remedy.action in told:
                yield masked(SaidRemedy(**dict(remedy), quote=self._said(number, told[remedy.action])))

    def _said(self, number: int, item: Evidence) -> Said:
        quote = self.sources[number].quote(item)
        return Said(
            **dict(quote),
            field=item.field,
            value=mask_secrets(item.value),
            at=self.times.get((number, item.source)),
        )


def load_words(session: Session, repo_id: int, candidates: Sequence[Candidate]) -> Words:
    """The words that tell of version, range, remedy and fix, and when they were written."""
    numbers = [candidate.issue.number for candidate in candidates]
    evidence = evidence_of(session, repo_id, numbers, TELLING)
    wanted = {(number, item.source) for number, items in evidence.items() for item in items}
    texts: dict[int, dict[str, str]] = {number: {} for number in numbers}
    times: dict[tuple[int, str], datetime | None] = {}
    for number, name, text, at in _texts(session, repo_id, numbers):
        times[number, name] = at
        if (number, name) in wanted:
            texts[number][name] = text
    sources = {one.issue.number: Sources(one.issue.url, texts[one.issue.number]) for one in candidates}
    return Words(evidence, sources, times)


def _texts(
    session: Session, repo_id: int, numbers: Sequence[int]
) -> Iterable[tuple[int, str, str, datetime | None]]:
    """Every text of these issues under the name that evidence calls it by, and when it was written."""
    for issue in find_issues(session, repo_id, numbers):
        yield issue.number, "title", issue.title, issue.created_at
        yield issue.number, "body", issue.body, issue.created_at
    for number, comments in find_comments(session, repo_id, numbers).items():
        for comment in comments:
            yield number, f"comment:{comment.id}", comment.body, comment.created_at


def shown(candidate: Candidate, words: Words, repo: str, fields: Iterable[str]) -> dict[str, Any]:
    """What every list tells of an issue; `fields` are those that put it there."""
    issue, facts = candidate.issue, candidate.facts
    newest = words.said(issue.number, TELLING)
    told = (facts.error.type, facts.error.message) if facts.error else ()
    return {
        "repo": repo,
        "number": issue.number,
        "title": mask_secrets(issue.title),
        "url": issue.url,
        "state": issue.state,
        "state_reason": issue.state_reason,
        "created_at": issue.created_at,
        "updated_at": issue.updated_at,
        "fix": candidate.fix,
        "regression": facts.regression,
        "error": mask_secrets(": ".join(part for part in told if part))[:_ERROR_CHARS],
        "weight": candidate.weight,
        "duplicates": candidate.duplicates,
        "reports": candidate.reports,
        "comments": issue.comments,
        "reactions": issue.reactions,
        "remedy": words.remedy(candidate, repo),
        "quotes": words.said(issue.number, fields)[:QUOTES_MAX],
        "newest": newest[0] if newest else None,
    }


def _second(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0
