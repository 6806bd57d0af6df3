"""Chains of duplicates among a cluster's reports that lead nowhere: in a circle, or to what is gone.

The reports of a cluster, each with what ties it there; why the canonical one stands for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlmodel import Session

from app.extract.redaction.redact import mask_secrets
from app.knowledge.cluster.shapes import ClusterMember, DuplicateChain, NearCluster
from app.knowledge.version.issues import Candidate
from app.match.clusters.canonical import follow_chain
from app.store.derived.cluster_queries import ClusterCounts
from app.store.derived.clusters import NearLink, ReportLink
from app.store.derived.readings import duplicates_of
from app.store.github.issues import find_heads
from app.store.people.judgements import Verdict
from app.store.records import Pair

STEPS_MAX = 8
"""How far a chain is followed."""


def dead_ends(
    session: Session, repo_id: int, repo: str, numbers: Sequence[int]
) -> tuple[DuplicateChain, ...]:
    """The chains from these reports that reach no living issue, each told once, the longest first."""
    repeats: dict[int, int] = {}
    asked = list(numbers)
    for _ in range(STEPS_MAX):
        told = duplicates_of(session, repo_id, repo, asked)
        repeats |= told
        asked = sorted({target for target in told.values() if target not in repeats})
        if not asked:
            break
    if not repeats:
        return ()
    ends = sorted({*repeats, *repeats.values()})
    alive = {head.number for head in find_heads(session, repo_id, ends) if head.gone_at is None}
    found: list[DuplicateChain] = []
    told_of: set[int] = set()
    chains = (follow_chain(number, repeats, alive) for number in numbers if number in repeats)
    for chain, end in sorted(chains, key=lambda pair: (-len(pair[0]), pair[0])):
        if end != "alive" and chain[0] not in told_of:
            told_of.update(chain)
            found.append(DuplicateChain(kind=end, numbers=chain, reason=_reason(chain, end)))
    return tuple(found)


def _reason(numbers: Sequence[int], end: str) -> str:
    path = " → ".join(f"#{number}" for number in numbers)
    if end == "circular":
        return f"{path}: each is said to repeat the next, in a circle; none of them is the original."
    return f"{path}: said to be duplicates of an issue that is gone or not stored."


def members(
    canonical: int,
    reports: Sequence[Candidate],
    *,
    repo: str,
    signatures: Mapping[int, str],
    ties: Sequence[ReportLink],
    verdicts: Mapping[Pair, Verdict],
) -> tuple[ClusterMember, ...]:
    """The reports, the canonical one first, then the newest first."""
    reasons = _Reasons(canonical, signatures, ties, verdicts)
    ordered = sorted(reports, key=lambda one: (one.issue.number != canonical, -one.issue.number))
    return tuple(
        ClusterMember(
            repo=repo,
            number=one.issue.number,
            title=mask_secrets(one.issue.title),
            url=one.issue.url,
            state=one.issue.state,
            state_reason=one.issue.state_reason,
            created_at=one.issue.created_at,
            closed_at=one.issue.closed_at,
            comments=one.issue.comments,
            reactions=one.issue.reactions,
            vllm=one.facts.versions.get("vllm"),
            gpus=one.facts.gpus,
            models=one.facts.models,
            role="canonical" if one.issue.number == canonical else "member",
            why=canonical_reason(one, len(reports))
            if one.issue.number == canonical
            else reasons.of(one.issue.number),
        )
        for one in ordered
    )


def canonical_reason(one: Candidate, size: int) -> str:
    """What the canonical issue holds for evidence, in one sentence."""
    if size == 1:
        return "It is the only report."
    facts, issue = one.facts, one.issue
    works = sum(item.outcome != "fails" for item in facts.workarounds)
    held = [
        _counted(issue.comments, "comment"),
        _counted(issue.reactions, "reaction"),
        _counted(one.duplicates, "duplicate"),
        _counted(works, "remedy", "remedies"),
        "an error with its place in the code" if facts.error and facts.error.frame else "",
        "the vLLM version" if facts.versions.get("vllm") else "",
        "the hardware" if facts.gpus else "",
        "a regression range" if facts.regression else "",
        "a known fix" if facts.fix else "",
    ]
    told = [part for part in held if part]
    return f"Of the {size} reports it has the most evidence" + (f": {', '.join(told)}." if told else ".")


def near(
    found: Iterable[NearLink], counts: Mapping[str, ClusterCounts], verdicts: Mapping[Pair, Verdict]
) -> tuple[NearCluster, ...]:
    """The clusters that are alike, each with the reason why it stands apart, as far as it is known."""
    return tuple(
        NearCluster(
            id=tie.cluster_id,
            text=mask_secrets(counts[tie.cluster_id].text),
            canonical=counts[tie.cluster_id].canonical,
            title=mask_secrets(counts[tie.cluster_id].title),
            size=counts[tie.cluster_id].size,
            score=tie.score,
            pair=(tie.number, tie.target),
            reason=_apart(tie, verdicts),
        )
        for tie in found
        if tie.cluster_id in counts
    )


def _apart(tie: NearLink, verdicts: Mapping[Pair, Verdict]) -> str:
    if verdicts.get(_pair(tie.number, tie.target)) == "different":
        return "a person judged them different failures"
    return tie.reason


class _Reasons:
    """What ties each report to the cluster, a person's word first."""

    def __init__(
        self,
        canonical: int,
        signatures: Mapping[int, str],
        ties: Sequence[ReportLink],
        verdicts: Mapping[Pair, Verdict],
    ) -> None:
        self._canonical = canonical
        self._signatures = signatures
        self._holders: dict[str, list[int]] = {}
        for number, key in sorted(signatures.items()):
            self._holders.setdefault(key, []).append(number)
        self._judged: dict[int, int] = {}
        for (one, two), verdict in verdicts.items():
            if verdict == "same":
                self._judged.setdefault(one, two)
                self._judged.setdefault(two, one)
        self._ties: dict[int, list[ReportLink]] = {}
        for tie in ties:
            self._ties.setdefault(tie.number, []).append(tie)
            if tie.kind == "duplicate":
                turned = tie._replace(number=tie.target, target=tie.number, kind="repeated")
                self._ties.setdefault(tie.target, []).append(turned)

    def of(self, number: int) -> str:
        """One sentence."""
        if number in self._judged:
            return f"A person judged it the same failure as #{self._judged[number]}."
        ties = self._ties.get(number, [])
        for kind, words in (("duplicate", "It is said to repeat"), ("repeated", "It is repeated by")):
            if found := next((tie for tie in ties if tie.kind == kind), None):
                return f"{words} #{found.target}."
        return self._by_error(number) or _by_likeness(ties, self._canonical)

    def _by_error(self, number: int) -> str | None:
        key = self._signatures.get(number)
        if key is None:
            return None
        if self._signatures.get(self._canonical) == key:
            return f"The same error signature as #{self._canonical}."
        others = [other for other in self._holders[key] if other != number]
        return f"The same error signature as #{others[0]}." if others else None


def _by_likeness(ties: Sequence[ReportLink], canonical: int) -> str:
    alike = [tie for tie in ties if tie.kind == "similar"]
    best = next((tie for tie in alike if tie.target == canonical), alike[0] if alike else None)
    if best is None:
        return "Its error is of this family; no single report is linked with it."
    return f"Alike with #{best.target}: {best.reason}."


def _pair(one: int, two: int) -> Pair:
    return min(one, two), max(one, two)


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}" if number else ""
