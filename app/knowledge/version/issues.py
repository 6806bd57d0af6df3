"""Issues for lists by version: all candidates loaded without texts, then one page with its quotes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field, computed_field
from sqlalchemy.orm import Session

from app.extract.facts import FORMER, ErrorLine, Evidence, Facts, Regression
from app.extract.redact import listed_error, mask_secrets, masked
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states, is_vllm
from app.knowledge.issue.stored import QUOTES_MAX, IssueHead, Quote, Sources
from app.knowledge.possible_versions import REPORTED
from app.knowledge.remedies import Remedy, SourcedRemedy, remedies_of
from app.store.derived.cluster_queries import cluster_sizes
from app.store.derived.facts import REGRESSION_FIELDS, count_duplicates
from app.store.derived.readings import find_evidence, find_facts_without_evidence
from app.store.github.issues import find_comments, find_heads, find_issues
from app.store.records import IssueRecord


class StatedValue(Quote):
    """A value and the quote that states it."""

    field: str
    value: str
    at: datetime | None = Field(description="time at which it was written")


class StatedRemedy(SourcedRemedy):
    """A remedy and the quote that states it."""

    quote: StatedValue


class VersionIssue(IssueHead):
    """An issue as a row of lists by version."""

    model_config = ConfigDict(extra="ignore")  # former field names are computed, not parsed

    state_reason: str | None
    created_at: datetime | None
    updated_at: datetime | None
    error: ErrorLine | None = None
    weight: int = Field(
        description="1, plus 4 for each other report of the failure, 2 for each reaction, 1 for each comment"
    )
    duplicates: int
    reports: int = Field(1, description="number of reports in its cluster, including this one")
    comments: int
    reactions: int
    fix: FixView
    regression: Regression | None = None
    remedy: StatedRemedy | None = Field(
        None, description="former name of `workarounds[0]`", json_schema_extra=FORMER
    )
    quotes: tuple[StatedValue, ...] = Field((), description="evidence that the version has the failure")
    newest: StatedValue | None = Field(None, description="newest on version, range, workaround and fix")

    @computed_field(description="best-ranked workaround; empty if none is known")
    def workarounds(self) -> tuple[Remedy, ...]:
        """The remedy as the type used in all answers."""
        return (Remedy.based_on(self.remedy, quote=self.remedy.quote.text),) if self.remedy else ()


STATED_FIELDS = (REPORTED, *REGRESSION_FIELDS, "workarounds", "fix")
"""Fields whose newest quote is shown in lists."""


@dataclass(frozen=True, slots=True)
class ListedFailure:
    """A stored failure that is a candidate for a list."""

    repo: str
    issue: IssueRecord
    facts: Facts
    fix: FixView
    duplicates: int
    reports: int = 1
    """Size of its cluster."""

    @property
    def weight(self) -> int:
        """Other reports count 4 each, reactions 2 (one person each), comments 1 (maybe all one person's)."""
        others = max(self.duplicates, self.reports - 1)
        return 1 + 4 * others + 2 * self.issue.reactions + self.issue.comments

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """Its workarounds, best first."""
        return remedies_of(self.facts, repo=self.repo, url=self.issue.url)


def load_failures(
    session: Session, repo_id: int, repo: str, numbers: Iterable[int], version: str | None = None
) -> list[ListedFailure]:
    """Load the failures among these, without pull requests and issues gone from GitHub."""
    facts = find_facts_without_evidence(session, repo_id, sorted(numbers))
    found = find_heads(session, repo_id, sorted(number for number, one in facts.items() if one.is_failure))
    listed = [head for head in found if not head.is_pull_request and head.gone_at is None]
    numbers = [head.number for head in listed]
    own = repo if is_vllm(repo) else ""  # `version` is a vLLM version
    fixes = fix_states(session, repo_id, repo, listed, facts, vllm_version=version, versions_of=own)
    repeats = count_duplicates(session, repo, repo_id, numbers)
    sizes = cluster_sizes(session, repo_id, numbers)
    return [
        ListedFailure(repo, head, facts[n], fixes[n], repeats.get(n, 0), sizes.get(n, 1))
        for n, head in zip(numbers, listed, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class IssueWords:
    """Evidence and texts of the issues on one page, for quotes."""

    evidence: dict[int, list[Evidence]]
    sources: dict[int, Sources]
    times: dict[tuple[int, str], datetime | None]

    def stated(self, number: int, fields: Iterable[str]) -> tuple[StatedValue, ...]:
        """Return the quotes that state these fields, newest first, without repetitions."""
        wanted = tuple(fields)
        found: dict[tuple[str, str], StatedValue] = {}
        for item in self.evidence.get(number, ()):
            if item.field in wanted:
                stated = self._stated(number, item)
                found.setdefault((stated.source, stated.text), stated)
        return tuple(
            sorted(found.values(), key=lambda one: one.at.timestamp() if one.at else 0.0, reverse=True)
        )

    def remedies(self, one: ListedFailure) -> Iterator[StatedRemedy]:
        """Yield the remedies with a known quote, best first."""
        number = one.issue.number
        places = reversed(self.evidence.get(number, ()))
        stated = {item.value: item for item in places if item.field == "workarounds"}
        for remedy in one.remedies:
            if remedy.action in stated:
                yield masked(StatedRemedy.based_on(remedy, quote=self._stated(number, stated[remedy.action])))

    def _stated(self, number: int, item: Evidence) -> StatedValue:
        quote, at = self.sources[number].quote(item), self.times.get((number, item.source))
        return StatedValue(**dict(quote), field=item.field, value=mask_secrets(item.value), at=at)


def load_words(session: Session, repo_id: int, failures: Sequence[ListedFailure]) -> IssueWords:
    """Load the evidence for version, range, remedy and fix, with its texts and their dates."""
    numbers = [one.issue.number for one in failures]
    evidence = find_evidence(session, repo_id, numbers, STATED_FIELDS)
    wanted = {(number, item.source) for number, items in evidence.items() for item in items}
    texts: dict[int, dict[str, str]] = {number: {} for number in numbers}
    times: dict[tuple[int, str], datetime | None] = {}
    for number, name, text, at in _texts(session, repo_id, numbers):
        times[number, name] = at
        if (number, name) in wanted:
            texts[number][name] = text
    sources = {one.issue.number: Sources(one.issue.url, texts[one.issue.number]) for one in failures}
    return IssueWords(evidence, sources, times)


def _texts(
    session: Session, repo_id: int, numbers: Sequence[int]
) -> Iterable[tuple[int, str, str, datetime | None]]:
    """Yield (number, source name, text, date) for every text of these issues."""
    for issue in find_issues(session, repo_id, numbers):
        yield issue.number, "title", issue.title, issue.created_at
        yield issue.number, "body", issue.body, issue.created_at
    for number, comments in find_comments(session, repo_id, numbers).items():
        for comment in comments:
            yield number, f"comment:{comment.id}", comment.body, comment.created_at


def listed_fields(one: ListedFailure, words: IssueWords, fields: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a `VersionIssue` besides GitHub's; `fields`: those that put it on the list."""
    issue = one.issue
    newest = words.stated(issue.number, STATED_FIELDS)
    return {
        "repo": one.repo,
        "title": mask_secrets(issue.title),
        "fix": one.fix,
        "regression": one.facts.regression,
        "error": listed_error(one.facts.error),
        "weight": one.weight,
        "duplicates": one.duplicates,
        "reports": one.reports,
        "remedy": next((item for item in words.remedies(one) if item.outcome != "fails"), None),
        "quotes": words.stated(issue.number, fields)[:QUOTES_MAX],
        "newest": newest[0] if newest else None,
    }
