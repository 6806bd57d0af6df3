"""The issues and pull requests related to an issue, in any repository, as a list and as a graph.

The list has one entry per target with its strongest relation: stated ones first, then by similarity. The
graph has every relation, with the quote that states it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field
from sqlalchemy.orm import Session

from app.errors import NotFoundError
from app.extract.facts import Evidence, Facts, Frozen
from app.extract.redact import mask_secrets
from app.knowledge import labels
from app.knowledge.issue.stored import LinkEnds, Quote, Sources, StoredIssue, load_links, passage
from app.match.pairs.features import load_features
from app.match.pairs.score import band_of_score, score_pair
from app.match.search.ranking import Band as MatchBand
from app.store.derived.links import SIMILAR, find_repositories
from app.store.derived.readings import find_evidence
from app.store.github.issues import find_heads, find_issues, get_issue
from app.store.github.releases import first_releases_of
from app.store.people import Verdict, judged_pairs
from app.store.records import IssueRecord, LinkRecord
from app.store.session import Store

EdgeKind = Literal[
    "duplicate", "same", "introduced_by", "fixed_by", "fixes", "similar", "mentions", "moved_to"
]
"""Read from `source` to `target`: #1 `introduced_by` #2."""


Basis = Literal["said", "timeline", "likeness"]


NodeKind = Literal["issue", "pull_request", "unknown"]


class GraphNode(Frozen):
    """An issue or pull request of the graph; `unknown` if it is not stored."""

    key: str = Field(description="owner/name#number")
    repo: str
    number: int
    kind: NodeKind
    title: str
    state: str = Field(description="open, closed, merged, draft, gone or unknown")
    url: str
    released_in: str | None = Field(None, description="first release whose notes name the pull request")


class GraphEdge(Frozen):
    """One relation and its source; only similarity has `band` and `score`."""

    source: str
    target: str
    kind: EdgeKind
    basis: Basis
    reason: str
    quote: Quote | None = None
    band: MatchBand | None = None
    score: float | None = None


class Graph(Frozen):
    """The issue (the first node) and its relations, most important first."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...] = ()

    def node(self, key: str) -> GraphNode:
        return next(node for node in self.nodes if node.key == key)

    def other_end(self, edge: GraphEdge) -> GraphNode:
        """Return the end of an edge that is not the issue itself."""
        return self.node(edge.target if edge.source == self.nodes[0].key else edge.source)

    def words(self, edge: GraphEdge) -> str:
        """Return the label of the relation as seen from the issue itself."""
        if edge.basis == "likeness":
            return labels.LIKENESS[edge.band or "related"]
        return (labels.OUTGOING if edge.source == self.nodes[0].key else labels.INCOMING)[edge.kind]


Name = tuple[str, int]
"""Repository and number."""
Channel = Literal["log", "prose", "both"]
Kind = Literal["duplicate", "similar", "fixes", "fixed_by", "introduced_by", "mentions"]


class Rank(NamedTuple):
    """Sort position of a relation kind in the graph and in the list of related issues; 0 is first."""

    in_graph: int
    in_list: int = 9


RANKS: dict[EdgeKind, Rank] = {
    "moved_to": Rank(0),
    "introduced_by": Rank(1, 2),
    "fixed_by": Rank(2, 1),
    "fixes": Rank(2, 1),
    "duplicate": Rank(3, 0),
    "same": Rank(4),
    "similar": Rank(5, 4),
    "mentions": Rank(6, 3),
}
_STATED_KINDS: tuple[Kind, ...] = ("duplicate", "fixed_by", "fixes", "introduced_by", "mentions")
STATED: dict[str, Kind] = {kind: kind for kind in _STATED_KINDS}
"""Kinds of stored links that are stated in a text."""
REFERENCED_BY = "referenced_by"
TRANSFERRED_TO = "transferred_to"
_LISTED: dict[str, Kind] = STATED | dict.fromkeys(
    (REFERENCED_BY, TRANSFERRED_TO, "reverts", "relands"), "mentions"
)
_REVERSED: dict[str, Kind] = {"fixes": "fixed_by", "fixed_by": "fixes", "duplicate": "duplicate"}
"""Kind of a link as seen from its target; all other kinds are mentions."""
_SAME_FAILURE = frozenset({"duplicate", "similar"})
"""Kinds that mean both issues report the same failure; a judgement replaces them."""


class RelatedItem(Frozen):
    """One relation; only similarity has `band`, `score` and `channel`, stated relations have none."""

    number: int
    repo: str
    title: str
    state: str
    url: str
    kind: Kind
    band: MatchBand | None = None
    score: float | None = None
    channel: Channel | None = None
    reason: str

    @property
    def name(self) -> Name:
        """Repository and number of the related issue."""
        return self.repo, self.number


def related(store: Store, repo: str, number: int, *, limit: int = 20) -> tuple[RelatedItem, ...]:
    """Return the relations of an issue: stated ones first, then the most similar.

    Raises:
        NotFoundError: the issue is not stored.
    """
    with store.reading() as session:
        repo_id = get_issue(session, repo, number)[0]
        links = load_links(session, repo_id, repo, number)
        return tuple(relations(session, repo_id, repo, number, links)[:limit])


def relations(session: Session, repo_id: int, repo: str, number: int, links: LinkEnds) -> list[RelatedItem]:
    """Return the relations of a stored issue, as `related` does, from its loaded links."""
    names = find_repositories(session)
    stated, alike = _stated(names, repo, number, links), _similar(repo, links)
    verdicts = _verdicts(session, repo_id, number)
    same = [
        _judged((repo, other), "same") for other, verdict in sorted(verdicts.items()) if verdict == "same"
    ]
    stored = find_stored(session, {one.name for one in (*stated, *alike, *same)})
    named = {one.name for one in stated}
    alike = [one for one in alike if one.name in stored and (one.band != "related" or one.name not in named)]
    judged = {(repo, other) for other in verdicts}
    found = [one for one in (*stated, *alike) if one.name not in judged or one.kind not in _SAME_FAILURE]
    found.sort(key=lambda one: RANKS[one.kind].in_list)
    found = [*(one for one in same if one.name in stored), *found]
    return [_with_issue(one, stored.get(one.name)) for one in found]


def likeness_of(store: Store, repo: str, number: int, other: int) -> tuple[RelatedItem, ...]:
    """Return the similarity of two issues, linked or not, and the relations stated between them.

    Raises:
        NotFoundError: one of the two is not stored.
    """
    with store.reading() as session:
        repo_id = get_issue(session, repo, number)[0]
        target = next(iter(find_heads(session, repo_id, [other])), None)
        if target is None:
            raise NotFoundError(f"{repo}#{other} is not stored")
        links = load_links(session, repo_id, repo, number)
        stated = _stated(find_repositories(session), repo, number, links)
        found = [one for one in stated if one.name == (repo, other)]
        verdict = _verdicts(session, repo_id, number).get(other)
        if verdict is not None:
            found = [one for one in found if verdict == "same" or one.kind not in _SAME_FAILURE]
            found.append(_judged((repo, other), verdict))
        elif len(kept := load_features(session, repo_id, {number, other})) == 2:
            pair = score_pair(kept[number], kept[other])
            found.append(RelatedItem.based_on(pair, **_unknown_issue((repo, other)), kind="similar"))
        return tuple(_with_issue(one, target) for one in found)


def _verdicts(session: Session, repo_id: int, number: int) -> dict[int, Verdict]:
    """Return the judgements that involve this issue, by the other issue; they override all links."""
    return {
        two if one == number else one: verdict
        for (one, two), verdict in judged_pairs(session, repo_id, [number]).items()
    }


def _unknown_issue(name: Name) -> dict[str, Any]:
    """Return the fields of a relation to an issue that is not stored."""
    repo, number = name
    url = f"https://github.com/{repo}/issues/{number}"
    return {"repo": repo, "number": number, "title": "", "state": "unknown", "url": url}


def _with_issue(relation: RelatedItem, issue: IssueRecord | None) -> RelatedItem:
    if issue is None:
        return relation
    known = {"title": mask_secrets(issue.title), "state": issue.state, "url": issue.url}
    return relation.model_copy(update=known)


def _judged(name: Name, verdict: Verdict) -> RelatedItem:
    judged: dict[str, Any] = {"reason": "judged another failure", "band": "related", "score": 0.0}
    if verdict == "same":
        judged = {"reason": "judged the same failure", "band": "same", "score": 1.0}
    return RelatedItem(**_unknown_issue(name), kind="similar", channel="both", **judged)


def _stated(names: Mapping[int, str], repo: str, number: int, links: LinkEnds) -> list[RelatedItem]:
    """Return the stated links from and to the issue, each other end once with its strongest kind."""
    kinds: dict[Name, tuple[Kind, str]] = {}
    for link in links.out:
        _keep_strongest(kinds, (link.target_repo, link.target_number), link.kind, link.reason)
    for source_repo, source, kind, reason in links.into:
        if kind in _LISTED and source_repo in names:
            target = names[source_repo], source
            _keep_strongest(kinds, target, _REVERSED.get(kind, "mentions"), f"stated there: {reason}")
    kinds.pop((repo, number), None)
    return [
        RelatedItem(**_unknown_issue(name), kind=kind, reason=reason)
        for name, (kind, reason) in sorted(kinds.items(), key=lambda item: (item[0][0] != repo, item[0]))
    ]


def _similar(repo: str, links: LinkEnds) -> list[RelatedItem]:
    """Return the stored similarity links, highest score first; ties within the repository first."""
    found = [
        RelatedItem.based_on(
            link,
            **_unknown_issue((link.target_repo, link.target_number)),
            kind="similar",
            band=band_of_score(link.score or 0.0),
        )
        for link in links.out
        if link.kind == SIMILAR
    ]
    return sorted(found, key=lambda one: (-(one.score or 0.0), one.repo != repo, one.name))


def find_stored(session: Session, wanted: Iterable[Name]) -> dict[Name, IssueRecord]:
    """Return those of these issues that are stored, without their texts."""
    asked = list(wanted)
    found: dict[Name, IssueRecord] = {}
    for key, name in find_repositories(session).items():
        numbers = [number for repo, number in asked if repo == name]
        found |= {(name, issue.number): issue for issue in find_heads(session, key, numbers)}
    return found


def _keep_strongest(kinds: dict[Name, tuple[Kind, str]], target: Name, kind: str, reason: str) -> None:
    known = _LISTED.get(kind)
    strongest = kinds.get(target)
    if known and (strongest is None or RANKS[known].in_list < RANKS[strongest[0]].in_list):
        kinds[target] = (known, reason)


_RULES: dict[str, EdgeKind] = {
    "related.duplicate": "duplicate",
    "related.same": "same",
    "related.similar": "similar",
    "related.culprit": "introduced_by",
    "related.fix": "fixed_by",
    "related.mention": "mentions",
}
"""Relation kind by the rule id of its evidence."""
_REFERENCE_FIELDS = ("related", "related_elsewhere")
"""Fields whose evidence names an issue."""
_SOURCES = {"title": "the title", "body": "the issue's text", "card": "the starter card"}
NAMED_BY_MAX = 60
"""Referencing issues whose texts are searched for a quote."""


def issue_graph(session: Session, stored: StoredIssue, sources: Sources, *, alike_max: int) -> Graph:
    """Return the graph of an issue and its relations, at most `alike_max` of them by similarity."""
    repo, number = stored.repo, stored.issue.number
    me = key_of(repo, number)
    links = load_links(session, stored.repo_id, repo, number)
    edges = [*_named_in_text(me, repo, stored.facts, sources), *_timeline(me, links.out)]
    known = {(edge.source, edge.target, edge.kind) for edge in edges}
    incoming = _incoming(session, stored, links)
    edges += [edge for edge in incoming if (edge.source, edge.target, edge.kind) not in known]
    edges = [edge for edge in edges if not _is_redundant(edge, edges)]
    found = relations(session, stored.repo_id, repo, number, links)
    edges += [
        GraphEdge.based_on(item, source=me, target=key_of(*item.name), basis="likeness")
        for item in [one for one in found if one.kind == "similar"][:alike_max]
    ]
    edges.sort(key=lambda edge: (RANKS[edge.kind].in_graph, edge.basis == "likeness", -(edge.score or 0)))
    keys = dict.fromkeys([me, *(end for edge in edges for end in (edge.source, edge.target))])
    return Graph(nodes=_nodes(session, tuple(keys)), edges=tuple(edges))


def key_of(repo: str, number: int) -> str:
    """Return `owner/name#number`."""
    return f"{repo}#{number}"


def _named_in_text(me: str, repo: str, facts: Facts | None, sources: Sources) -> list[GraphEdge]:
    """Return the relations stated in the issue's own texts."""
    found: dict[tuple[str, EdgeKind], GraphEdge] = {}
    for item in facts.evidence if facts else ():
        target, kind = _target(item, repo)
        if not target or target == me or (target, kind) in found:
            continue
        reason = f"stated in {_SOURCES.get(item.source, 'a comment')}"
        quote = sources.quote(item)
        edge = GraphEdge(source=me, target=target, kind=kind, basis="said", reason=reason, quote=quote)
        found[target, kind] = edge
    return list(found.values())


def _target(item: Evidence, repo: str) -> tuple[str, EdgeKind]:
    """Return the issue that a piece of evidence names ("" if none), and the relation."""
    number = item.value.removeprefix("#")
    if item.field == "fix" and "/" in item.value:
        return item.value, "fixed_by"
    if item.field in {"related", "regression.culprit", "fix"} and number.isdigit():
        kinds: dict[str, EdgeKind] = {"regression.culprit": "introduced_by", "fix": "fixed_by"}
        return key_of(repo, int(number)), kinds.get(item.field) or _RULES.get(item.rule, "mentions")
    return item.value if item.field == "related_elsewhere" else "", _RULES.get(item.rule, "mentions")


def _timeline(me: str, links: Iterable[LinkRecord]) -> Iterator[GraphEdge]:
    """Yield the relations in GitHub's timeline: references to the issue, and transfers."""
    for link in links:
        other = key_of(link.target_repo, link.target_number)
        if link.kind == REFERENCED_BY and other != me:
            yield GraphEdge(source=other, target=me, kind="mentions", basis="timeline", reason=link.reason)
        elif link.kind == TRANSFERRED_TO:
            yield GraphEdge(source=me, target=other, kind="moved_to", basis="timeline", reason=link.reason)


def _incoming(session: Session, stored: StoredIssue, ends: LinkEnds) -> list[GraphEdge]:
    """Return the relations stated in other stored issues, with quotes where found."""
    repo, repo_id, root = stored.repo, stored.repo_id, stored.issue
    names = find_repositories(session)
    links = [
        (from_repo, source, STATED[kind], reason)
        for from_repo, source, kind, reason in ends.into
        if (from_repo, source) != (repo_id, root.number) and kind in STATED and from_repo in names
    ]
    links.sort(key=lambda link: (RANKS[link[2]].in_graph, link[0] != repo_id, link[:2]))
    texts: dict[tuple[int, int], IssueRecord] = {}
    named: dict[tuple[int, int], Sequence[Evidence]] = {}
    for key in {link[0] for link in links[:NAMED_BY_MAX]}:
        searched = [source for from_repo, source, _, _ in links[:NAMED_BY_MAX] if from_repo == key]
        texts |= {(key, issue.number): issue for issue in find_issues(session, key, searched)}
        naming = find_evidence(session, key, searched, _REFERENCE_FIELDS)
        named |= {(key, number): evidence for number, evidence in naming.items()}
    edges = []
    for from_repo, source, kind, reason in links:
        mine = str(root.number) if from_repo == repo_id else key_of(repo, root.number)
        reference = next((item for item in named.get((from_repo, source), ()) if item.value == mine), None)
        relation = _RULES.get(reference.rule, kind) if reference else kind
        name = f"#{source}" if from_repo == repo_id else key_of(names[from_repo], source)
        edges.append(
            GraphEdge(
                source=key_of(names[from_repo], source),
                target=key_of(repo, root.number),
                kind=min(kind, relation, key=lambda one: RANKS[one].in_graph),
                basis="said",
                reason=f"stated in {name}" if reference else f"{reason}, {name}",
                quote=_quote_in(texts.get((from_repo, source)), reference, root.number, name),
            )
        )
    return edges


def _quote_in(other: IssueRecord | None, naming: Evidence | None, number: int, name: str) -> Quote | None:
    """Return the passage of another issue that names this one, if found."""
    if other is None:
        return None
    sources = Sources(other.url, {"title": other.title, "body": other.body})
    quote = sources.quote(naming) if naming else None
    text = quote.text if quote else mention(mask_secrets(f"{other.title}\n{other.body}"), number)
    if not text:
        return None
    return Quote(text=text, source=name, url=quote.url if quote else other.url)


def _is_redundant(edge: GraphEdge, edges: Iterable[GraphEdge]) -> bool:
    """True for a mention if another edge between the same issues says more."""
    ends = {edge.source, edge.target}
    return edge.kind == "mentions" and any(
        ends == {other.source, other.target}
        and (other.kind != "mentions" or (edge.basis == "timeline" and other.basis == "said"))
        for other in edges
        if other is not edge
    )


def _nodes(session: Session, keys: Sequence[str]) -> tuple[GraphNode, ...]:
    names = [(name, int(number)) for name, _, number in (key.rpartition("#") for key in keys)]
    stored = find_stored(session, names)
    releases: dict[tuple[str, int], str] = {}
    for repo_id, repo in find_repositories(session).items():
        pulls = [number for (name, number), issue in stored.items() if name == repo and issue.is_pull_request]
        first = first_releases_of(session, repo_id, pulls) if pulls else {}
        releases |= {(repo, number): tag for number, tag in first.items()}
    return tuple(_node(*name, stored.get(name), releases.get(name)) for name in names)


def _node(repo: str, number: int, issue: IssueRecord | None, release: str | None) -> GraphNode:
    fields = {**_unknown_issue((repo, number)), "key": key_of(repo, number), "kind": "unknown"}
    if issue is not None:
        state = "draft" if issue.is_draft and issue.state == "open" else issue.state
        state = "gone" if issue.gone_at else "merged" if issue.merged_at else state
        fields |= {"title": mask_secrets(issue.title), "url": issue.url, "state": state}
        fields["kind"] = "pull_request" if issue.is_pull_request else "issue"
    return GraphNode(**fields, released_in=release.removeprefix("v") if release else None)


def mention(text: str, number: int) -> str:
    """Return the first passage that names the issue as `#1` or by URL; "" if none does."""
    found = re.search(rf"(?:#|/(?:issues|pull)/){number}(?!\d)", text)
    return passage(text, found.start(), found.end()) if found else ""
