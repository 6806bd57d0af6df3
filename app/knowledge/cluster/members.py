"""The reports of a cluster with what ties each there, its dead chains of duplicates, clusters near it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlmodel import Session

from app.extract.redaction.redact import mask_secrets
from app.knowledge.cluster.shapes import ClusterMember, DuplicateChain, NearCluster
from app.knowledge.version.issues import ListedFailure
from app.match.clusters.agglomerate import follow_chain
from app.store.derived.cluster_queries import ClusterCounts
from app.store.derived.clusters import NearLink, ReportLink
from app.store.derived.readings import duplicates_of
from app.store.github.issues import find_heads
from app.store.people.judgements import Verdict
from app.store.records import Pair, pair_of

STEPS_MAX = 8
"""How far a chain is followed."""
_COPIED = "number url state state_reason created_at closed_at comments reactions"


def dead_ends(
    session: Session, repo_id: int, repo: str, numbers: Sequence[int]
) -> tuple[DuplicateChain, ...]:
    """The chains of duplicates from these reports that reach no living issue, the longest first."""
    repeats: dict[int, int] = {}
    asked = list(numbers)
    for _ in range(STEPS_MAX):
        found = duplicates_of(session, repo_id, repo, asked)
        repeats |= found
        asked = sorted(set(found.values()) - repeats.keys())
        if not asked:
            break
    if not repeats:
        return ()
    heads = find_heads(session, repo_id, sorted({*repeats, *repeats.values()}))
    alive = {head.number for head in heads if head.gone_at is None}
    chains: list[DuplicateChain] = []
    seen: set[int] = set()
    followed = (follow_chain(number, repeats, alive) for number in numbers if number in repeats)
    for chain, end in sorted(followed, key=lambda pair: (-len(pair[0]), pair[0])):
        if end != "alive" and chain[0] not in seen:
            seen.update(chain)
            chains.append(DuplicateChain(kind=end, numbers=chain, reason=_reason(chain, end)))
    return tuple(chains)


def _reason(numbers: Sequence[int], end: str) -> str:
    path = " → ".join(f"#{number}" for number in numbers)
    if end == "circular":
        return f"{path}: each is reported as a duplicate of the next, in a circle; none is the original."
    return f"{path}: reported as duplicates of an issue that is gone or not stored."


def members(
    canonical: int,
    reports: Sequence[ListedFailure],
    *,
    repo: str,
    signatures: Mapping[int, str],
    links: Sequence[ReportLink],
    verdicts: Mapping[Pair, Verdict],
) -> tuple[ClusterMember, ...]:
    """The reports in their order, each with what ties it to the cluster."""
    by_number: dict[int, list[ReportLink]] = {}
    for link in links:
        by_number.setdefault(link.number, []).append(link)
        if link.kind == "duplicate":
            turned = link._replace(number=link.target, target=link.number, kind="repeated")
            by_number.setdefault(link.target, []).append(turned)
    found = []
    for one in reports:
        issue, is_canonical = one.issue, one.issue.number == canonical
        tying = by_number.get(issue.number, [])
        found.append(
            ClusterMember(
                repo=repo,
                **{name: getattr(issue, name) for name in _COPIED.split()},
                title=mask_secrets(issue.title),
                vllm=one.facts.versions.get("vllm"),
                gpus=one.facts.gpus,
                models=one.facts.models,
                role="canonical" if is_canonical else "member",
                why=canonical_reason(one, len(reports))
                if is_canonical
                else _why(issue.number, canonical, signatures, tying, verdicts),
            )
        )
    return tuple(found)


def _why(
    number: int,
    canonical: int,
    signatures: Mapping[int, str],
    links: Sequence[ReportLink],
    verdicts: Mapping[Pair, Verdict],
) -> str:
    """What ties a report to the cluster, in one sentence; a person's word first."""
    for (one, two), verdict in verdicts.items():
        if verdict == "same" and number in (one, two):
            return f"A person judged it the same failure as #{two if number == one else one}."
    for kind, words in (("duplicate", "It is reported as a duplicate of"), ("repeated", "It is repeated by")):
        if target := next((link.target for link in links if link.kind == kind), None):
            return f"{words} #{target}."
    if key := signatures.get(number):
        holders = sorted(other for other, held in signatures.items() if held == key and other != number)
        if holders:
            return f"The same error signature as #{canonical if canonical in holders else holders[0]}."
    alike = [link for link in links if link.kind == "similar"]
    best = next((link for link in alike if link.target == canonical), alike[0] if alike else None)
    if best is None:
        return "Its error is of this family; no single report is linked with it."
    return f"Alike with #{best.target}: {best.reason}."


def canonical_reason(one: ListedFailure, size: int) -> str:
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
    listed = ", ".join(part for part in held if part)
    return f"Of the {size} reports it has the most evidence" + (f": {listed}." if listed else ".")


def near(
    found: Iterable[NearLink], counts: Mapping[str, ClusterCounts], verdicts: Mapping[Pair, Verdict]
) -> tuple[NearCluster, ...]:
    """The clusters that are alike, each with the reason why it stands apart, as far as it is known."""
    return tuple(
        NearCluster(
            id=link.cluster_id,
            text=mask_secrets(cluster.text),
            canonical=cluster.canonical,
            title=mask_secrets(cluster.title),
            size=cluster.size,
            score=link.score,
            pair=(link.number, link.target),
            reason="a person judged them different failures"
            if verdicts.get(pair_of(link.number, link.target)) == "different"
            else link.reason,
        )
        for link in found
        if (cluster := counts.get(link.cluster_id)) is not None
    )


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}" if number else ""
