"""Load the failures that versions have, and judge each for a stack."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.extract.versions import is_before
from app.knowledge.stack.candidates import find_candidates
from app.knowledge.stack.cases import StoredCase, load_cases, relate_texts
from app.knowledge.stack.relation import relate
from app.knowledge.stack.shapes import Affects, Relation, Standing, affects_of
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.standing import Line, standing
from app.store.derived.cluster_queries import cluster_sizes
from app.store.derived.clusters import cluster_of


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
    """The failures that one of the versions has. `reported`: all that were asked, by minor line."""

    known: Sequence[KnownFailure]
    reported: Mapping[Line | None, Collection[int]]


def load_failures(
    session: Session, repo_id: int, repo: str, versions: Sequence[str], stack: Stack | None
) -> Failures:
    """Load the failures that one of these versions may have, oldest version first."""
    goal = versions[min(1, len(versions) - 1)]
    numbers, reported = find_candidates(session, repo_id, repo, versions, stack)
    cases = load_cases(session, repo_id, repo, numbers, for_stack=stack is not None)
    relations: dict[int, Relation] = {}
    if stack:
        relations = {number: relate(stack, stored.case) for number, stored in cases.items()}
        cases = {number: stored for number, stored in cases.items() if relations[number].is_near}
    standings = {n: {one: standing(one, stored.case) for one in versions} for n, stored in cases.items()}
    failing = {
        number: cases[number]
        for number, found in standings.items()
        if any(one.answer == "yes" for one in found.values()) or (stack and found[goal].is_near)
    }
    if stack:
        relations |= relate_texts(session, repo_id, stack, failing, relations)
    groups, sizes = cluster_of(session, repo_id, failing), cluster_sizes(session, repo_id, list(failing))
    known = [
        KnownFailure(stored, standings[n], relations.get(n), groups.get(n, str(n)), sizes.get(n, 1))
        for n, stored in failing.items()
    ]
    return Failures(known, reported)
