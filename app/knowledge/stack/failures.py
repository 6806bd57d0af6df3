"""Load the failures that versions have, and judge each for a stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.extract.facts import Facts
from app.extract.versions import is_before, ordered
from app.knowledge.possible_versions import REPORTED
from app.knowledge.stack.cases import StoredCase, cases_of, relate_texts
from app.knowledge.stack.relation import relate
from app.knowledge.stack.shapes import Affects, Relation, Standing, affects_of
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.standing import OPEN_MINORS, line_of, standing
from app.store.derived.cluster_queries import cluster_sizes
from app.store.derived.clusters import cluster_of
from app.store.derived.facts import REGRESSION_FIELDS, known_values
from app.store.derived.readings import find_facts_without_evidence, find_failures_with
from app.store.derived.weeks import opened_between, release_dates


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A failure of one of the compared versions. `standings`: by version, whether it has the failure."""

    stored: StoredCase
    standings: Mapping[str, Standing]
    relation: Relation | None
    group: str
    reports: int

    def affects(self, version: str) -> Affects:
        return affects_of(self.standings[version], self.relation)

    def may_affect(self, version: str, since: str | None = None) -> bool:
        """True if the version has the failure and it may be the stack's.

        With `since`: also if it was reported after that version and it is unknown what fixed it.
        """
        found = self.standings[version]
        reported = self.stored.case.facts.versions.get("vllm")
        is_open = found.answer == "unknown" and found.is_near and is_before(since, reported)
        return (found.answer == "yes" or is_open) and self.relation is not None and self.relation.is_near


@dataclass(frozen=True, slots=True)
class Failures:
    """The facts of all failures examined, and the failures that one of the versions has."""

    facts: Sequence[Facts]
    known: Sequence[KnownFailure]


def load_failures(
    session: Session, repo_id: int, repo: str, versions: Sequence[str], stack: Stack | None
) -> Failures:
    """Load the failures that one of these versions may have, oldest version first."""
    goal = versions[min(1, len(versions) - 1)]
    cases = _cases(session, repo_id, repo, versions, stack)
    facts = [stored.case.facts for stored in cases.values()]
    relations: dict[int, Relation] = {}
    if stack:  # asked first: most failures are of other stacks
        relations = {number: relate(stack, stored.case) for number, stored in cases.items()}
        cases = {
            number: stored
            for number, stored in cases.items()
            if relations[number].is_near or relations[number].is_general
        }
    standings = {
        number: {version: standing(version, stored.case) for version in versions}
        for number, stored in cases.items()
    }
    failing = {
        number: cases[number]
        for number, found in standings.items()
        if any(one.answer == "yes" for one in found.values()) or (stack and found[goal].is_near)
    }
    if stack:
        failing = {
            n: one
            for n, one in failing.items()
            if relations[n].is_near or _is_bounded(standings[n], versions)
        }
        relations |= relate_texts(session, repo_id, stack, failing, relations)
    groups, sizes = cluster_of(session, repo_id, failing), cluster_sizes(session, repo_id, list(failing))
    known = [
        KnownFailure(
            stored,
            standings[number],
            relations.get(number),
            groups.get(number, str(number)),
            sizes.get(number, 1),
        )
        for number, stored in failing.items()
    ]
    return Failures(facts, known)


def _is_bounded(found: Mapping[str, Standing], versions: Sequence[str]) -> bool:
    """True if the first version has a failure and a later one has not, or the reverse."""
    first = found[versions[0]].answer
    return any({first, found[later].answer} == {"yes", "no"} for later in versions[1:])


def _cases(
    session: Session, repo_id: int, repo: str, versions: Sequence[str], stack: Stack | None
) -> dict[int, StoredCase]:
    """Load the failures reported on these versions or before; for a stack also reports without one."""
    # A report on a later version says nothing about these, unless it states a range.
    floor, top = _oldest_line(versions[0]), max(line_of(version) or (0, 0) for version in versions)
    reported = known_values(session, REPORTED)
    values = [value for value in reported if (line := line_of(value)) and floor <= line <= top]
    facts = find_failures_with(session, repo_id, REPORTED, values, stating=REGRESSION_FIELDS)
    if not stack:
        return cases_of(session, repo_id, repo, facts)
    goal = versions[min(1, len(versions) - 1)]
    recent = _reported_before(session, repo_id, floor, goal)
    undated = find_facts_without_evidence(session, repo_id, [one for one in recent if one not in facts])
    return {
        number: stored
        for number, stored in cases_of(session, repo_id, repo, {**facts, **undated}).items()
        if number not in undated or standing(goal, stored.case).answer != "unknown"
    }


def _reported_before(session: Session, repo_id: int, floor: tuple[int, int], version: str) -> list[int]:
    """Return the failures reported from the first release of the line `floor` until this version's."""
    dated = [
        (found, item.published_at)
        for item in release_dates(session, repo_id, full=True)
        if (found := ordered(item.tag))
    ]
    start = min((at for found, at in dated if (found.major, found.minor) >= floor), default=None)
    end = next((at for found, at in dated if found == ordered(version)), None)
    if start is None or end is None:
        return []
    return [one.number for one in opened_between(session, repo_id, start, end) if one.is_failure]


def _oldest_line(start: str) -> tuple[int, int]:
    """Return the oldest (major, minor) whose reports may still apply to `start`."""
    major, minor = line_of(start) or (0, 0)
    return major, max(0, minor - OPEN_MINORS)
