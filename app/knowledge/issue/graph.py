"""The graph of one issue: what its texts name, what names it, GitHub's timeline, and what is alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from sqlmodel import Session

from app.extract.facts import Evidence, Facts
from app.extract.redaction.redact import mask_secrets
from app.knowledge.issue.relations import RANKS, REFERENCED_BY, STATED, TRANSFERRED_TO, find_stored, relations
from app.knowledge.issue.shapes import EdgeKind, Graph, GraphEdge, GraphNode, Quote
from app.knowledge.issue.stored import LinkEnds, Sources, StoredIssue, load_links, passage
from app.store.derived.links import find_repositories
from app.store.derived.readings import find_evidence
from app.store.github.issues import find_issues
from app.store.github.releases import first_releases_of
from app.store.records import IssueRecord, LinkRecord

_RULES: dict[str, EdgeKind] = {
    "related.duplicate": "duplicate",
    "related.same": "same",
    "related.similar": "similar",
    "related.culprit": "introduced_by",
    "related.fix": "fixed_by",
    "related.mention": "mentions",
}
"""The relation that the rule of a piece of evidence states."""
_NAMES = ("related", "related_elsewhere")
"""Fields whose evidence names an issue."""
_SOURCES = {"title": "the title", "body": "the issue's text", "card": "the starter card"}
NAMED_BY_MAX = 60
"""Texts that name the issue and are looked at for the words."""


def issue_graph(session: Session, stored: StoredIssue, sources: Sources, *, alike_max: int) -> Graph:
    """The issue, what belongs to it, and how each relation is known; at most `alike_max` by likeness."""
    repo, number = stored.repo, stored.issue.number
    me = key_of(repo, number)
    links = load_links(session, stored.repo_id, repo, number)
    edges = [*_stated(me, repo, stored.facts, sources), *_timeline(me, links.out)]
    known = {(edge.source, edge.target, edge.kind) for edge in edges}
    incoming = _incoming(session, stored, links)
    edges += [edge for edge in incoming if (edge.source, edge.target, edge.kind) not in known]
    edges = [edge for edge in edges if not _is_outdone(edge, edges)]
    found = relations(session, stored.repo_id, repo, number, links)
    edges += [
        GraphEdge(
            source=me,
            target=key_of(*item.name),
            kind="similar",
            basis="likeness",
            reason=item.reason,
            band=item.band,
            score=item.score,
        )
        for item in [one for one in found if one.kind == "similar"][:alike_max]
    ]
    edges.sort(key=lambda edge: (RANKS[edge.kind].in_graph, edge.basis == "likeness", -(edge.score or 0)))
    keys = dict.fromkeys([me, *(end for edge in edges for end in (edge.source, edge.target))])
    return Graph(nodes=_nodes(session, tuple(keys)), edges=tuple(edges))


def key_of(repo: str, number: int) -> str:
    """`owner/name#number`."""
    return f"{repo}#{number}"


def _stated(me: str, repo: str, facts: Facts | None, sources: Sources) -> list[GraphEdge]:
    """The issues that the issue's own texts name, and as what."""
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
    """The other end that a piece of evidence names, and the relation; an empty name for none."""
    number = item.value.removeprefix("#")
    if item.field == "fix" and "/" in item.value:
        return item.value, "fixed_by"
    if item.field in {"related", "regression.culprit", "fix"} and number.isdigit():
        kinds: dict[str, EdgeKind] = {"regression.culprit": "introduced_by", "fix": "fixed_by"}
        return key_of(repo, int(number)), kinds.get(item.field) or _RULES.get(item.rule, "mentions")
    return item.value if item.field == "related_elsewhere" else "", _RULES.get(item.rule, "mentions")


def _timeline(me: str, links: Iterable[LinkRecord]) -> Iterator[GraphEdge]:
    """What GitHub's timeline holds: who refers to the issue, where it went."""
    for link in links:
        other = key_of(link.target_repo, link.target_number)
        if link.kind == REFERENCED_BY and other != me:
            yield GraphEdge(source=other, target=me, kind="mentions", basis="timeline", reason=link.reason)
        elif link.kind == TRANSFERRED_TO:
            yield GraphEdge(source=me, target=other, kind="moved_to", basis="timeline", reason=link.reason)


def _incoming(session: Session, stored: StoredIssue, ends: LinkEnds) -> list[GraphEdge]:
    """What other stored texts say of this issue, with their words where they are found."""
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
        looked_at = [source for from_repo, source, _, _ in links[:NAMED_BY_MAX] if from_repo == key]
        texts |= {(key, issue.number): issue for issue in find_issues(session, key, looked_at)}
        naming = find_evidence(session, key, looked_at, _NAMES)
        named |= {(key, number): evidence for number, evidence in naming.items()}
    edges = []
    for from_repo, source, kind, reason in links:
        mine = str(root.number) if from_repo == repo_id else key_of(repo, root.number)
        naming_it = next((item for item in named.get((from_repo, source), ()) if item.value == mine), None)
        relation = _RULES.get(naming_it.rule, kind) if naming_it else kind
        name = f"#{source}" if from_repo == repo_id else key_of(names[from_repo], source)
        edges.append(
            GraphEdge(
                source=key_of(names[from_repo], source),
                target=key_of(repo, root.number),
                kind=min(kind, relation, key=lambda one: RANKS[one].in_graph),
                basis="said",
                reason=f"stated in {name}" if naming_it else f"{reason}, {name}",
                quote=_words_of(texts.get((from_repo, source)), naming_it, root.number, name),
            )
        )
    return edges


def _words_of(other: IssueRecord | None, naming: Evidence | None, number: int, name: str) -> Quote | None:
    """The words with which another text names this issue."""
    if other is None:
        return None
    sources = Sources(other.url, {"title": other.title, "body": other.body})
    quote = sources.quote(naming) if naming else None
    text = quote.text if quote else mention(mask_secrets(f"{other.title}\n{other.body}"), number)
    if not text:
        return None
    return Quote(text=text, source=name, url=quote.url if quote else other.url)


def _is_outdone(edge: GraphEdge, edges: Iterable[GraphEdge]) -> bool:
    """Whether a bare mention only repeats what another edge between the two says better."""
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
    return GraphNode(
        key=key_of(repo, number),
        repo=repo,
        number=number,
        kind="unknown" if issue is None else "pull_request" if issue.is_pull_request else "issue",
        title=mask_secrets(issue.title) if issue else "",
        state=_state(issue) if issue else "unknown",
        url=issue.url if issue else f"https://github.com/{repo}/issues/{number}",
        released_in=release.removeprefix("v") if release else None,
    )


def _state(issue: IssueRecord) -> str:
    if issue.gone_at is not None:
        return "gone"
    if issue.merged_at is not None:
        return "merged"
    return "draft" if issue.is_draft and issue.state == "open" else issue.state


def mention(text: str, number: int) -> str:
    """The passage that names the number, as `#1` or by its address; empty if none does."""
    found = re.search(rf"(?:#|/(?:issues|pull)/){number}(?!\d)", text)
    return passage(text, found.start(), found.end()) if found else ""
