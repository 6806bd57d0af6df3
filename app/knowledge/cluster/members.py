"""The reports of a cluster: why each is a member, and similar clusters.

Also what they say together: the fix, and the remedies, merged and ranked.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field

from app.extract.facts import FixState, Frozen
from app.extract.redact import mask_secrets
from app.extract.remedies.sentences import cost_of
from app.extract.versions import is_before, ordered
from app.knowledge.fix.shapes import FixView
from app.knowledge.issue.stored import IssueHead
from app.knowledge.issue.votes import remedy_id
from app.knowledge.remedies import RankedAction, SourcedRemedy, rank_actions
from app.knowledge.version.issues import IssueWords, ListedFailure, StatedRemedy, StatedValue
from app.store.derived.cluster_queries import ClusterCounts
from app.store.derived.clusters import ReportLink
from app.store.people import Verdict
from app.store.records import Pair, pair_of

Role = Literal["canonical", "member"]


class ClusterFix(FixView):
    """The fix of the cluster, taken from the member with the most certain fix state."""

    number: int = Field(description="number of the issue that the fix belongs to")
    also: tuple[str, ...] = Field((), description="how other members differ, one sentence each")


class ClusterMember(IssueHead):
    """A report in the cluster and why it is a member."""

    state_reason: str | None
    created_at: datetime | None
    closed_at: datetime | None
    comments: int
    reactions: int
    vllm: str | None = None
    gpus: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    role: Role
    why: str = Field(description="why it is a member, in one sentence")


class ClusterRemedy(SourcedRemedy):
    """An action merged over the reports that name it; other fields come from the best-ranked one."""

    quote: StatedValue
    told_in: tuple[int, ...] = Field(description="numbers of the issues that report it, best-ranked first")
    works_in: tuple[int, ...] = ()
    fails_in: tuple[int, ...] = ()
    cost: str | None = Field(None, description="stated drawback, quoted; null if none is stated")
    votes: int = Field(0, description="visitors it helped minus visitors it did not help")
    reactions: int = Field(0, description="thumbs up minus thumbs down on the comment that reports it")
    superseded_by: str | None = Field(None, description="released fix that makes it unnecessary")


class NearCluster(Frozen):
    """A similar cluster that was not merged with this one."""

    id: str
    text: str
    canonical: int
    title: str
    size: int
    score: float | None = Field(description="of the most similar pair of issues")
    pair: tuple[int, int] = Field(description="that pair's issue numbers, this cluster's first")
    reason: str


def members(
    canonical: int,
    reports: Sequence[ListedFailure],
    *,
    signatures: Mapping[int, str],
    links: Sequence[ReportLink],
    verdicts: Mapping[Pair, Verdict],
) -> tuple[ClusterMember, ...]:
    """Return the reports in the given order, each with the reason why it is a member."""
    by_number: dict[int, list[ReportLink]] = {}
    for link in links:
        by_number.setdefault(link.number, []).append(link)
        if link.kind == "duplicate":
            reverse = link._replace(number=link.target, target=link.number, kind="repeated")
            by_number.setdefault(link.target, []).append(reverse)
    found = []
    for one in reports:
        issue, is_canonical = one.issue, one.issue.number == canonical
        own_links = by_number.get(issue.number, [])
        found.append(
            ClusterMember.based_on(
                issue,
                repo=one.repo,
                title=mask_secrets(issue.title),
                vllm=one.facts.versions.get("vllm"),
                gpus=one.facts.gpus,
                models=one.facts.models,
                role="canonical" if is_canonical else "member",
                why=canonical_reason(one, len(reports))
                if is_canonical
                else _member_reason(issue.number, canonical, signatures, own_links, verdicts),
            )
        )
    return tuple(found)


def _member_reason(
    number: int,
    canonical: int,
    signatures: Mapping[int, str],
    links: Sequence[ReportLink],
    verdicts: Mapping[Pair, Verdict],
) -> str:
    """Explain in one sentence why a report is a member; a person's judgement comes first."""
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
    """Describe the evidence of the canonical issue in one sentence."""
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
    found: Iterable[ReportLink], counts: Mapping[str, ClusterCounts], verdicts: Mapping[Pair, Verdict]
) -> tuple[NearCluster, ...]:
    """Return the linked clusters, each with the reason why it is separate, or how the two are alike."""
    return tuple(
        NearCluster.based_on(
            cluster,
            text=mask_secrets(cluster.text),
            title=mask_secrets(cluster.title),
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


_FIX_RANK: dict[FixState, int] = {"fixed": 0, "merged_unreleased": 1, "in_progress": 2}
"""Fix states that name a change, most certain first. If no report has one, the canonical issue's counts."""
NAMED_MAX = 5


def cluster_fix(canonical: int, reports: Sequence[ListedFailure]) -> ClusterFix | None:
    """Return the most certain fix among the reports; None without reports.

    Ties go to the canonical issue, then to the newest.
    """
    if not reports:
        return None

    def order(one: ListedFailure) -> tuple[int, bool, bool, int]:
        rank = _FIX_RANK.get(one.fix.state, len(_FIX_RANK))
        unreleased = one.fix.state == "fixed" and one.fix.released_in is None
        return rank, unreleased, one.issue.number != canonical, -one.issue.number

    chosen = min(reports, key=order)
    return ClusterFix.based_on(
        chosen.fix, number=chosen.issue.number, also=tuple(_differing_reports(chosen, reports))
    )


def _differing_reports(chosen: ListedFailure, reports: Sequence[ListedFailure]) -> list[str]:
    """List in sentences: reports from versions with the fix, open issues, other fixes; newest first."""
    others = sorted((one for one in reports if one is not chosen), key=lambda one: -one.issue.number)
    fix = chosen.fix
    found: list[str] = []
    if fix.state == "fixed" and fix.released_in:
        again = [
            f"#{one.issue.number} ({one.facts.versions['vllm']})"
            for one in others
            if (version := ordered(one.facts.versions.get("vllm"))) is not None
            and not is_before(str(version), fix.released_in)
        ]
        found += [f"Reported from a version that has it: {_first_names(again)}."] if again else []
    if fix.state in ("fixed", "merged_unreleased"):
        still = [f"#{one.issue.number}" for one in others if one.issue.state == "open"]
        found += [f"Still open: {_first_names(still)}."] if still else []
    found += [
        f"#{one.issue.number} names another change: {one.fix.reason or one.fix.pr}"
        for one in others
        if one.fix.state in _FIX_RANK and one.fix.pr and one.fix.pr != fix.pr
    ]
    return found[:NAMED_MAX]


def _first_names(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


REMEDIES_MAX = 30


def cluster_remedies(
    reports: Sequence[ListedFailure],
    words: IssueWords,
    *,
    votes: Mapping[int, int],
    remedy_votes: Mapping[tuple[int, str], int],
    thumbs: Mapping[int, int],
    fix: FixView | None,
) -> tuple[ClusterRemedy, ...]:
    """Return the ranked remedies of these reports, each action once, at most `REMEDIES_MAX`.

    Args:
        reports: in order of precedence, canonical issue first.
        votes: "it works" minus "it does not", by issue; counted for the issue's first remedy.
        remedy_votes: the same for single remedies, by issue and remedy id.
        thumbs: thumbs up minus thumbs down, by comment id.
        fix: the cluster's fix; once released, it supersedes the remedies.
    """
    found: list[StatedRemedy] = []
    voted: dict[tuple[int, str], int] = {}
    liked: dict[tuple[int, str], int] = {}
    slow = {one.issue.number for one in reports if one.facts.failure_kind == "slowdown"}
    for one in reports:
        for place, remedy in enumerate(words.remedies(one)):
            found.append(remedy)
            key = remedy.number, remedy.action
            net = remedy_votes.get((remedy.number, remedy_id(remedy.action)), 0)
            net += votes.get(remedy.number, 0) if place == 0 else 0
            if net:
                voted[key] = net
            if (up := thumbs.get(comment_of(remedy.quote.source) or 0)) is not None:
                liked[key] = up
    backing = {key: voted.get(key, 0) + liked.get(key, 0) for key in voted.keys() | liked.keys()}
    ranked = rank_actions(found, backing)[:REMEDIES_MAX]
    return tuple(_merged(action, voted, liked, slow, fix) for action in ranked)


def comment_of(source: str) -> int | None:
    """Return the comment id in a source such as `comment:123`, if it is one."""
    kind, _, key = source.partition(":")
    return int(key) if kind == "comment" and key.isdigit() else None


def _merged(
    action: RankedAction[StatedRemedy],
    voted: Mapping[tuple[int, str], int],
    liked: Mapping[tuple[int, str], int],
    slow: set[int],
    fix: FixView | None,
) -> ClusterRemedy:
    best = action.best
    keys = [(item.number, item.action) for item in action.remedies]
    needless = fix.released_in if fix is not None and fix.state == "fixed" else None
    if needless and fix is not None and fix.pr:
        needless = f"{fix.pr} in {needless}"
    # In a report of a slowdown, "slower" describes the failure, not the cost of a remedy.
    costs = (cost_of(item.quote.text) for item in action.remedies if item.number not in slow)
    return ClusterRemedy.based_on(
        best,
        confirmed_by=sum(item.confirmed_by for item in action.remedies),
        refuted_by=sum(item.refuted_by for item in action.remedies),
        told_in=tuple(dict.fromkeys(item.number for item in action.remedies)),
        works_in=action.issues(fails=False),
        fails_in=action.issues(fails=True),
        cost=next((cost for cost in costs if cost), None),
        votes=sum(voted.get(key, 0) for key in keys),
        reactions=sum(liked.get(key, 0) for key in keys),
        superseded_by=needless,
    )
