"""Which failures are tied: by likeness, by a person who calls them duplicates, by a judgement.

Ties are not stored: they follow from the links, the judgements and the traits of the two failures.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlmodel import Session

from app.extract.facts import Facts
from app.extract.log.signature import mask
from app.extract.rules.rules import load_rule_set
from app.match.clusters.agglomerate import BY_PEOPLE, evidence_points
from app.match.clusters.ties import Member, is_tied
from app.match.pairs.features import PairFeatures, load_features, message_key
from app.match.pairs.score import load_pair_weights
from app.match.search.terms import bare_title
from app.store.derived.clusters import FailureTraits, MemberRecord, find_members
from app.store.derived.links import find_likeness
from app.store.derived.readings import links_to
from app.store.people.judgements import JudgementRecord, Verdict, judgements_among
from app.store.records import IssueRecord, Pair, pair_of

CLUSTER_RULES = "c1"
"""Raised with every change of how clusters are made: what was clustered under others is clustered again."""
TEXT_CHARS = 300
DUPLICATE = "duplicate"
LIKENESS_MOST = 0.9999
"""Likeness never weighs as much as a person's word."""


class TieGraph:
    """The ties between the failures of a repository as they are now, each read once.

    Attributes:
        members: the failures that were read, and those linked or judged with them.
        ties: the strength of each tie of the failures that were read.
    """

    def __init__(self, session: Session, repo_id: int, repo: str) -> None:
        self._session, self._repo_id, self._repo = session, repo_id, repo
        self._read: set[int] = set()
        self._features: dict[int, PairFeatures] = {}
        self._judgements: dict[int, JudgementRecord] = {}
        self.members: dict[int, MemberRecord] = {}
        self.ties: dict[Pair, float] = {}

    def read(self, numbers: Collection[int]) -> set[int]:
        """Read the ties of these issues; returns all that are linked or judged with them, tied or not."""
        new = sorted(set(numbers) - self._read)
        self._read.update(new)
        least = load_pair_weights().likely_from
        likeness = find_likeness(self._session, self._repo_id, self._repo, new, least=least)
        judged = judgements_among(self._session, self._repo_id, new)
        self._judgements |= {item.id: item for item in judged}
        verdicts = {(item.a, item.b): item.verdict for item in judged}
        self._load(new)
        repeats = {
            pair_of(n, other) for n in new if n in self.members for other in self.members[n].traits.repeats
        }
        repeats |= {
            pair_of(number, target)
            for repo_id, number, target in links_to(self._session, self._repo, new, DUPLICATE)
            if repo_id == self._repo_id
        }
        candidates = {*likeness, *repeats, *verdicts}
        others = {number for pair in candidates for number in pair}
        self._load(others)
        open_pairs = {pair for pair in candidates if self.members.keys() >= {*pair}}
        people = {pair for pair in open_pairs if pair in verdicts or pair in repeats}
        self.ties |= dict.fromkeys((p for p in people if verdicts.get(p) != "different"), BY_PEOPLE)
        alike = sorted(open_pairs - people - self.ties.keys())
        found = self.with_features({number for pair in alike for number in pair})
        for a, b in alike:
            if is_tied(found[a], found[b], likeness[a, b]):
                self.ties[a, b] = min(likeness[a, b], LIKENESS_MOST)
        return others

    def with_features(self, numbers: Collection[int]) -> dict[int, Member]:
        """These failures, of those that were read, with what pairs are scored by."""
        missing = sorted(set(numbers) - self._features.keys())
        self._features |= load_features(self._session, self._repo_id, missing)
        return {n: Member(self.members[n].traits, self._features[n]) for n in numbers}

    def judged(self, verdict: Verdict) -> list[Pair]:
        """The pairs that were read and judged so, the newest judgement first."""
        ordered = sorted(self._judgements.items(), reverse=True)
        return [(item.a, item.b) for _, item in ordered if item.verdict == verdict]

    def _load(self, numbers: Collection[int]) -> None:
        missing = set(numbers) - self.members.keys()
        self.members |= find_members(self._session, self._repo_id, missing)


def traits_of(issue: IssueRecord, facts: Facts, repeats: Sequence[int]) -> FailureTraits | None:
    """The traits of an issue that is said to be a duplicate of `repeats`; None if it reports no failure."""
    if issue.is_pull_request or not facts.is_failure:
        return None
    message = facts.error.message if facts.error else ""
    is_mute = "mute" in _axes(message)
    title = bare_title(issue.title)
    axes = _axes(title if is_mute else message)
    signature = next((item for item in facts.signatures if item.role == "root"), None)
    return FailureTraits(
        number=issue.number,
        signature_id=signature.id if signature else None,
        rules=CLUSTER_RULES,
        text=(signature.text if signature else mask(title))[:TEXT_CHARS],
        message="" if is_mute else message_key(message),
        frame=facts.error.frame if facts.error else None,
        generic=bool(axes & {"generic", "late"}),
        late="late" in axes,
        names_test="test" in _axes(issue.title),
        in_error=tuple(sorted(rule.id for rule in load_rule_set("conditions").meeting(message))),
        evidence=evidence_points(facts, issue.comments, issue.reactions),
        closed=issue.state == "closed",
        gone=issue.gone_at is not None,
        repeats=tuple(sorted(set(repeats) - {issue.number})),
    )


def _axes(text: str) -> set[str]:
    """In which ways a line is one that many unlike failures share."""
    return {rule["axis"] for rule in load_rule_set("generic").meeting(text)}
