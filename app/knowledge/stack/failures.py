"""Load the failures that versions have, and judge each for a stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.extract.facts import Facts
from app.extract.versions import is_before, ordered
from app.knowledge.possible_versions import REPORTED
from app.knowledge.stack.affects import fit
from app.knowledge.stack.cases import StoredCase, cases_of, refine_fits
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.standing import OPEN_MINORS, Affects, Fit, combine_answers, line_of, standing
from app.store.derived.cluster_queries import cluster_sizes
from app.store.derived.clusters import cluster_of
from app.store.derived.facts import REGRESSION_FIELDS, known_values
from app.store.derived.readings import find_facts_without_evidence, find_failures_with
from app.store.derived.weeks import opened_between, release_dates


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A failure of one of the compared versions. `standings`: by version, whether it has the failure."""

    stored: StoredCase
    standings: Mapping[str, Fit]
    of_the_stack: Fit | None
    group: str
    reports: int

    def affects(self, version: str) -> Affects:
        return combine_answers(self.standings[version], self.of_the_stack)

    def may_affect(self, version: str, since: str | None = None) -> bool:
        """True if the version has the failure and it may apply to the stack.

        With `since`: also if it was reported after that version and it is unknown what fixed it.
        """
        mine, found = self.of_the_stack, self.standings[version]
        reported = self.stored.case.facts.versions.get("vllm")
        is_open = found.answer == "unknown" and found.is_near and is_before(since, reported)
        return (found.answer == "yes" or is_open) and bool(mine and (mine.answer == "yes" or mine.is_near))


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
    fits: dict[int, Fit] = {}
    if stack:  # asked first: most failures are of other stacks
        fits = {number: fit(stack, stored.case) for number, stored in cases.items()}
        cases = {n: stored for n, stored in cases.items() if fits[n].answer == "yes" or fits[n].is_near}
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
        # If it only may apply to the stack, its text is read only if the target version may fail.
        read = {
            number: stored
            for number, stored in failing.items()
            if fits[number].answer == "yes"
            or standings[number][goal].answer == "yes"
            or standings[number][goal].is_near
        }
        fits |= refine_fits(session, repo_id, stack, read, fits)
    groups, sizes = cluster_of(session, repo_id, failing), cluster_sizes(session, repo_id, list(failing))
    known = [
        KnownFailure(
            stored,
            standings[number],
            fits.get(number),
            groups.get(number, str(number)),
            sizes.get(number, 1),
        )
        for number, stored in failing.items()
    ]
    return Failures(facts, known)


def _cases(
    session: Session, repo_id: int, repo: str, versions: Sequence[str], stack: Stack | None
) -> dict[int, StoredCase]:
    """Load the failures reported on these versions or before; for a stack also reports without one."""
    # A report on a later version says nothing about these, unless it states a range.
    floor, top = _oldest_line(versions[0]), max(line_of(version) or (0, 0) for version in versions)
    reported = known_values(session, REPORTED)
    values = [value for value in reported if (line := line_of(value)) and floor <= line <= top]
    facts = find_failures_with(session, repo_id, REPORTED, values, stating=REGRESSION_FIELDS)
    cases = cases_of(session, repo_id, repo, facts)
    if stack:
        recent = _reported_before(session, repo_id, floor, versions[0])
        undated = find_facts_without_evidence(session, repo_id, [one for one in recent if one not in facts])
        placed = cases_of(session, repo_id, repo, undated)
        cases |= {
            n: stored for n, stored in placed.items() if standing(versions[0], stored.case).answer == "yes"
        }
    return cases


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
