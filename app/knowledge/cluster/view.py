"""The list of clusters and the details of one: the response models of the signatures routes."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field, computed_field
from sqlalchemy.orm import Session

from app.errors import NotFoundError
from app.extract.facts import FORMER, FailureKind, Frozen, Regression
from app.extract.redact import mask_secrets
from app.extract.versions import ordered, plain_version
from app.knowledge.cluster.members import (
    ClusterFix,
    ClusterMember,
    ClusterRemedy,
    NearCluster,
    canonical_reason,
    cluster_fix,
    cluster_remedies,
    comment_of,
    members,
    near,
)
from app.knowledge.cluster.spread import ArchitectureLift, RangeWitness, architecture_lifts, cluster_range
from app.knowledge.cluster.timeline import ClosedButAlive, Timeline, closed_but_alive, timeline
from app.knowledge.fix.shapes import FixView
from app.knowledge.issue.browse import Trend, trend_of
from app.knowledge.issue.votes import net_remedy_votes
from app.knowledge.remedies import action_key
from app.knowledge.version.issues import ListedFailure, load_failures, load_words
from app.match.search.agreement import model_line
from app.store.derived.cluster_queries import (
    ClusterCounts,
    ClusterFilter,
    Sort,
    clusters_holding,
    count_clusters,
    hardware_by_cluster,
    list_clusters,
    root_signatures,
    sum_thumbs,
)
from app.store.derived.clusters import cluster_of, find_clusters, links_within, members_of, near_clusters
from app.store.github.issues import find_repository
from app.store.memo import kept_until_written
from app.store.people import judged_pairs, sum_votes
from app.store.session import Store


class ClusterSummary(Frozen):
    """A cluster as a row of a list."""

    model_config = ConfigDict(extra="ignore")  # former field names are computed, not parsed

    id: str
    text: str = Field(
        description="the signature in readable form, secrets masked; empty where none is stored"
    )
    repo: str
    canonical: int = Field(description="number of the issue with the most evidence, not the oldest")
    title: str = Field(description="title of the canonical issue")
    size: int = Field(description="number of reports, including the canonical issue")
    open_count: int
    first_seen: datetime | None
    last_seen: datetime | None
    failure_kind: FailureKind = Field(description="most frequent failure kind of its reports")
    fix: ClusterFix | None = None
    workaround_count: int = Field(description="distinct actions that helped, at least in part")
    is_alive: bool = Field(False, description="whether new reports came after its issues were closed")
    recent: int = Field(0, description="reports of the newest 28 days of the stored data")
    trend: Trend | None = Field(None, description="reports over time; null for a single report")

    @computed_field(description="former name of `failure_kind`", json_schema_extra=FORMER)
    def kind(self) -> FailureKind:
        return self.failure_kind


class ValueReports(Frozen):
    """A value and the number of reports that name it."""

    value: str
    reports: int


class BackendReports(ValueReports):
    key: str = Field(description="the backend's role, such as `attention`")


class ClusterDetail(ClusterSummary):
    """A cluster with all details."""

    canonical_reason: str
    also: tuple[str, ...] = Field((), description="other clusters with the requested signature")
    signature_ids: tuple[str, ...] = Field((), description="signature ids of its reports' root causes")
    members: tuple[ClusterMember, ...] = Field(description="canonical issue first, then newest first")
    versions: tuple[ValueReports, ...] = ()
    gpus: tuple[ArchitectureLift, ...] = ()
    models: tuple[ValueReports, ...] = Field((), description="model families")
    backends: tuple[BackendReports, ...] = ()
    workarounds: tuple[ClusterRemedy, ...] = ()
    regression: Regression | None = Field(None, description="narrowest range its reports agree on")
    witnesses: tuple[RangeWitness, ...] = Field((), description="reports that state a regression range")
    disagreements: tuple[RangeWitness, ...] = ()
    not_merged: tuple[NearCluster, ...] = ()
    closed_but_alive: ClosedButAlive | None = None
    timeline: Timeline | None = None


class ClusterPage(Frozen):
    """A page of a list of clusters."""

    items: tuple[ClusterSummary, ...]
    total: int


WORDS_MAX = 8
"""Words of a search that are used."""
ALIVE_MAX = 2000
"""Candidate clusters that are checked for reports after closing."""
NEAR_MAX = 8
QUOTED_MAX = 60
"""Reports whose quotes are loaded."""
EARLIEST = 5
"""Reports from the earliest versions that are loaded because they may contradict a range."""


def clusters(
    store: Store,
    repo: str,
    *,
    q: str = "",
    min_size: int = 1,
    alive: bool = False,
    sort: Sort = "size",
    family: str = "",
    after: int = 0,
    limit: int = 50,
) -> ClusterPage:
    """Return up to `limit` clusters of a repository, starting at offset `after`.

    Args:
        q: words in the cluster's text or title, a cluster id, or an issue number.
        alive: only clusters with reports after their canonical issue was closed.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        named = _find_by_key(session, repo_id, q.strip())
        if named is not None:
            found = list(count_clusters(session, repo_id, [named]).values())
            return ClusterPage(items=_summaries(session, repo_id, repo, found), total=len(found))
        words = "".join(char if char.isprintable() else " " for char in q).split()
        chosen = ClusterFilter(tuple(words[:WORDS_MAX]), min_size, alive, sort, family)
        if alive:
            found, _ = list_clusters(session, repo_id, chosen, limit=ALIVE_MAX)
            ids = alive_ids(session, repo_id, repo)
            found = [one for one in found if one.id in ids]
            page = found[after : after + limit]
            return ClusterPage(items=_summaries(session, repo_id, repo, page), total=len(found))
        found, total = list_clusters(session, repo_id, chosen, after=after, limit=limit)
        return ClusterPage(items=_summaries(session, repo_id, repo, found), total=total)


@kept_until_written
def alive_ids(session: Session, repo_id: int, repo: str) -> frozenset[str]:
    """Return the clusters with reports after their canonical issue was closed."""
    # The query finds candidates; fix and versions decide.
    found, _ = list_clusters(session, repo_id, ClusterFilter(alive=True), limit=ALIVE_MAX)
    reports = _reports(session, repo_id, repo, found)
    return frozenset(
        one.id
        for one in found
        if _is_alive(one, reports[one.id], cluster_fix(one.canonical, reports[one.id]))
    )


def current_id(store: Store, repo: str, key: str) -> str:
    """Resolve an id to a current cluster: its own, the one it was merged into, or the biggest containing it.

    Raises:
        NotFoundError: no cluster and no report has that id.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        found = _find_current(session, repo_id, key)
    if found is None:
        raise NotFoundError(f"{repo} has no signature {key[:40]}: no stored report of a failure holds it")
    return found


def view_cluster(store: Store, repo: str, key: str, *, via: str | None = None) -> ClusterDetail:
    """Return the details of a current cluster.

    Args:
        via: the requested signature that led here; other clusters that contain it are listed.

    Raises:
        NotFoundError: there is no such current cluster (see `current_id`).
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        counts = count_clusters(session, repo_id, [key]).get(key)
        if counts is None:
            raise NotFoundError(f"{repo} has no cluster {key[:40]}")
        numbers = members_of(session, repo_id, [key]).get(key, ())
        reports = load_failures(session, repo_id, repo, numbers)
        return _detail(session, repo_id, repo, counts, reports, via or key)


def _find_by_key(session: Session, repo_id: int, q: str) -> str | None:
    """Return the cluster of a search by issue number or id, "" if it has none; None for other searches."""
    number = q.removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) <= 12:
        return cluster_of(session, repo_id, [int(number)]).get(int(number), "")
    return (_find_current(session, repo_id, q) or "") if q.startswith("s1-") and " " not in q else None


def _find_current(session: Session, repo_id: int, key: str) -> str | None:
    if not key.isprintable():  # databases reject NUL
        return None
    record = find_clusters(session, repo_id, [key]).get(key)
    if record is not None:
        return record.id
    return next(iter(clusters_holding(session, repo_id, key)), None)


def _summaries(
    session: Session, repo_id: int, repo: str, found: Sequence[ClusterCounts]
) -> tuple[ClusterSummary, ...]:
    reports = _reports(session, repo_id, repo, found)
    return tuple(_summary(item, repo, reports[item.id]) for item in found)


def _reports(
    session: Session, repo_id: int, repo: str, found: Sequence[ClusterCounts]
) -> dict[str, list[ListedFailure]]:
    """Load the reports of clusters, by cluster id."""
    numbers = members_of(session, repo_id, [item.id for item in found])
    wanted = [number for members in numbers.values() for number in members]
    known = {one.issue.number: one for one in load_failures(session, repo_id, repo, wanted)}
    return {item.id: [known[n] for n in numbers.get(item.id, ()) if n in known] for item in found}


def _is_alive(counts: ClusterCounts, reports: Sequence[ListedFailure], fix: FixView | None) -> bool:
    """True if the failure was reported again after its canonical issue was closed."""
    return closed_but_alive(_canonical(counts, reports), reports, fix) is not None


def _canonical(counts: ClusterCounts, reports: Sequence[ListedFailure]) -> ListedFailure | None:
    return next((one for one in reports if one.issue.number == counts.canonical), None)


def _summary(counts: ClusterCounts, repo: str, reports: Sequence[ListedFailure]) -> ClusterSummary:
    kinds = Counter(one.facts.failure_kind for one in reports)
    fix = cluster_fix(counts.canonical, reports)
    actions = {
        action_key(item.action)
        for one in reports
        for item in one.facts.workarounds
        if item.outcome != "fails"
    }
    return ClusterSummary.based_on(
        counts,
        text=mask_secrets(counts.text),
        repo=repo,
        title=mask_secrets(counts.title),
        failure_kind=next((kind for kind, _ in kinds.most_common(1)), "other"),
        fix=fix,
        workaround_count=len(actions),
        is_alive=_is_alive(counts, reports, fix),
        trend=trend_of((one.issue.created_at, one.facts.versions.get("vllm")) for one in reports),
    )


def _detail(
    session: Session,
    repo_id: int,
    repo: str,
    counts: ClusterCounts,
    reports: Sequence[ListedFailure],
    asked: str,
) -> ClusterDetail:
    numbers = [one.issue.number for one in reports]
    canonical = _canonical(counts, reports)
    summary = _summary(counts, repo, reports)
    signatures = root_signatures(session, repo_id, counts.id)
    verdicts = judged_pairs(session, repo_id, numbers)
    alike = near_clusters(session, repo_id, repo, counts.id, limit=NEAR_MAX)
    words = load_words(session, repo_id, _to_quote(reports))
    span, witnesses = cluster_range(counts.canonical, reports, words)
    first = sorted(reports, key=lambda one: (one.issue.number != counts.canonical, -one.issue.number))
    sources = {
        key
        for items in words.evidence.values()
        for item in items
        if item.field == "workarounds" and (key := comment_of(item.source)) is not None
    }
    return ClusterDetail.based_on(
        summary,
        canonical_reason=canonical_reason(canonical, len(reports)) if canonical else "",
        also=tuple(key for key in clusters_holding(session, repo_id, asked) if key != counts.id),
        signature_ids=tuple(key for key, _ in Counter(signatures.values()).most_common()),
        members=members(
            counts.canonical,
            first,
            signatures=signatures,
            links=links_within(session, repo_id, repo, counts.id),
            verdicts={pair: verdict for pair, verdict in verdicts.items() if set(pair) <= set(numbers)},
        ),
        versions=_versions(reports),
        gpus=architecture_lifts(hardware_by_cluster(session, repo_id), counts.id),
        models=_model_families(reports),
        backends=_backends(reports),
        workarounds=cluster_remedies(
            first,
            words,
            votes=sum_votes(session, repo_id, list(words.evidence), "works"),
            remedy_votes=net_remedy_votes(session, repo_id, list(words.evidence)),
            thumbs=sum_thumbs(session, repo_id, sorted(sources)),
            fix=summary.fix,
        ),
        regression=span,
        witnesses=tuple(witnesses),
        disagreements=tuple(witness for witness in witnesses if not witness.agrees),
        not_merged=near(
            alike, count_clusters(session, repo_id, [link.cluster_id for link in alike]), verdicts
        ),
        closed_but_alive=closed_but_alive(canonical, reports, summary.fix),
        timeline=timeline(one.issue.created_at for one in reports),
    )


def _to_quote(reports: Sequence[ListedFailure]) -> list[ListedFailure]:
    """Return the reports to quote: those with a remedy or a range; if any has a range, the earliest too."""
    found = {
        one.issue.number: one for one in reports if one.facts.workarounds or one.facts.regression is not None
    }
    if any(one.facts.regression for one in reports):
        placed = [(version, one) for one in reports if (version := ordered(one.facts.versions.get("vllm")))]
        placed.sort(key=lambda pair: (pair[0], pair[1].issue.number))
        found |= {one.issue.number: one for _, one in placed[:EARLIEST]}
    newest = sorted(found.values(), key=lambda one: -one.issue.number)
    return newest[:QUOTED_MAX]


def _versions(reports: Sequence[ListedFailure]) -> tuple[ValueReports, ...]:
    """Count reports by vLLM version in release order; unparsable versions last."""
    named = (plain_version(text) for one in reports if (text := one.facts.versions.get("vllm")))
    counts = Counter(str(ordered(text) or text) for text in named)
    placed = sorted((key for key in counts if ordered(key) is not None), key=lambda key: ordered(key) or key)
    apart = sorted((key for key in counts if ordered(key) is None), key=lambda key: (-counts[key], key))
    return tuple(ValueReports(value=mask_secrets(key), reports=counts[key]) for key in (*placed, *apart))


def _model_families(reports: Sequence[ListedFailure]) -> tuple[ValueReports, ...]:
    counts = Counter(
        family for one in reports for family in {model_line(name) for name in one.facts.models} if family
    )
    return tuple(ValueReports(value=mask_secrets(key), reports=count) for key, count in _most_common(counts))


def _backends(reports: Sequence[ListedFailure]) -> tuple[BackendReports, ...]:
    """Count reports by backend role and name, in its newest spelling; CUDA, the default, is left out."""
    spelled: dict[tuple[str, str], str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for one in reports:
        named = {
            (key, value.lower()): value for key, values in one.facts.backends.items() for value in values
        }
        spelled |= named
        counts.update(place for place in named if place[1] != "cuda")
    return tuple(
        BackendReports(key=place[0], value=mask_secrets(spelled[place]), reports=count)
        for place, count in _most_common(counts)
    )


def _most_common(counts: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
