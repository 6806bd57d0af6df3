"""The graph of one issue: what its people name, what names it, what GitHub's timeline tells, what is alike.

In: a stored issue with facts. Out: a `Graph` of depth one, over all stored repositories. Each edge says its
kind and how it is known; a relation that somebody said carries the words. The rule of the evidence tells what
was said of a number.

The words with which a text names an issue's number, where no rule's evidence tells them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlmodel import Session

from app.extract.facts import Evidence, Facts
from app.extract.redaction.redact import mask_secrets
from app.knowledge.issue.quotes import Sources, passage
from app.knowledge.issue.relations import Relation
from app.knowledge.issue.shapes import EdgeKind, Graph, GraphEdge, GraphNode, Quote
from app.knowledge.issue.stored import LinkEnds, StoredIssue
from app.store.derived.links import find_repositories
from app.store.derived.versions import evidence_of
from app.store.github.issues import find_heads, find_issues
from app.store.github.releases import first_releases_of
from app.store.records import IssueRecord, LinkRecord

SAID: dict[str, EdgeKind] = {
    "related.duplicate": "duplicate",
    "related.same": "same",
    "related.similar": "similar",
    "related.culprit": "introduced_by",
    "related.fix": "fixed_by",
    "related.mention": "mentions",
}
LINKED: dict[str, EdgeKind] = {
    "duplicate": "duplicate",
    "introduced_by": "introduced_by",
    "fixed_by": "fixed_by",
    "fixes": "fixes",
    "mentions": "mentions",
}
RANK: dict[EdgeKind, int] = {
    "moved_to": 0,
    "introduced_by": 1,
    "fixed_by": 2,
    "fixes": 2,
    "duplicate": 3,
    "same": 4,
    "similar": 5,
    "mentions": 6,
}
_NAMES = ("related", "related_elsewhere")
"""Fields whose evidence names an issue."""
REFERENCED_BY = "referenced_by"
TRANSFERRED_TO = "transferred_to"
SOURCE_WORDS = {"title": "the title", "body": "the issue's text", "card": "the starter card"}
NAMED_BY_MAX = 60
"""Texts that name the issue and are looked at for the words."""


def graph_of(
    session: Session, stored: StoredIssue, links: LinkEnds, sources: Sources, alike: Sequence[Relation]
) -> Graph:
    """The issue, what belongs to it, and how each relation is known."""
    me = key_of(stored.repo, stored.issue.number)
    edges = [*_said(me, stored.repo, stored.facts, sources), *_timeline(me, links.out)]
    known = {(edge.source, edge.target, edge.kind) for edge in edges}
    edges += [
        edge
        for edge in _incoming(session, stored, links)
        if (edge.source, edge.target, edge.kind) not in known
    ]
    edges = [edge for edge in edges if not _is_outdone(edge, edges)]
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
        for item in alike
    ]
    edges.sort(key=lambda edge: (RANK[edge.kind], edge.basis == "likeness", -(edge.score or 0)))
    keys = dict.fromkeys([me, *(end for edge in edges for end in (edge.source, edge.target))])
    return Graph(nodes=_nodes(session, tuple(keys)), edges=tuple(edges))


def key_of(repo: str, number: int) -> str:
    """`owner/name#number`."""
    return f"{repo}#{number}"


def _said(me: str, repo: str, facts: Facts | None, sources: Sources) -> list[GraphEdge]:
    """What the issue's own people name, with what they say of it."""
    if facts is None:
        return []
    found: dict[tuple[str, EdgeKind], GraphEdge] = {}
    for item in facts.evidence:
        told = _target(item, repo)
        if told is None or told[0] == me:
            continue
        quote = sources.quote(item)
        reason = f"said in {SOURCE_WORDS.get(item.source, 'a comment')}"
        edge = GraphEdge(source=me, target=told[0], kind=told[1], basis="said", reason=reason, quote=quote)
        found.setdefault((edge.target, edge.kind), edge)
    return list(found.values())


def _target(item: Evidence, repo: str) -> tuple[str, EdgeKind] | None:
    """The other end that a piece of evidence names, and the relation."""
    number = item.value.removeprefix("#")
    if item.field == "fix" and "/" in item.value:
        return item.value, "fixed_by"
    if item.field in {"related", "regression.culprit", "fix"} and number.isdigit():
        kinds: dict[str, EdgeKind] = {"regression.culprit": "introduced_by", "fix": "fixed_by"}
        return key_of(repo, int(number)), kinds.get(item.field) or SAID.get(item.rule, "mentions")
    if item.field == "related_elsewhere":
        return item.value, SAID.get(item.rule, "mentions")
    return None


def _timeline(me: str, links: Iterable[LinkRecord]) -> list[GraphEdge]:
    """What GitHub tells of the issue: who refers to it, where it went."""
    edges = []
    for link in links:
        other = key_of(link.target_repo, link.target_number)
        if link.kind == REFERENCED_BY and other != me:
            edges.append(
                GraphEdge(source=other, target=me, kind="mentions", basis="timeline", reason=link.reason)
            )
        elif link.kind == TRANSFERRED_TO:
            edges.append(
                GraphEdge(source=me, target=other, kind="moved_to", basis="timeline", reason=link.reason)
            )
    return edges


def _incoming(session: Session, stored: StoredIssue, ends: LinkEnds) -> list[GraphEdge]:
    """What other stored texts say of this issue, with their words where they are found."""
    repo, repo_id, root = stored.repo, stored.repo_id, stored.issue
    names = find_repositories(session)
    links = [
        (from_repo, source, LINKED[kind], reason)
        for from_repo, source, kind, reason in ends.into
        if (from_repo, source) != (repo_id, root.number) and kind in LINKED and from_repo in names
    ]
    links.sort(key=lambda link: (RANK[link[2]], link[0] != repo_id, link[:2]))
    texts: dict[tuple[int, int], IssueRecord] = {}
    told: dict[tuple[int, int], Sequence[Evidence]] = {}
    for key in {link[0] for link in links[:NAMED_BY_MAX]}:
        looked_at = [source for from_repo, source, _, _ in links[:NAMED_BY_MAX] if from_repo == key]
        texts |= {(key, issue.number): issue for issue in find_issues(session, key, looked_at)}
        naming = evidence_of(session, key, looked_at, _NAMES)
        told |= {(key, number): evidence for number, evidence in naming.items()}
    edges = []
    for from_repo, source, kind, reason in links:
        mine = str(root.number) if from_repo == repo_id else key_of(repo, root.number)
        said = next((item for item in told.get((from_repo, source), ()) if item.value == mine), None)
        relation = SAID.get(said.rule, kind) if said else kind
        name = f"#{source}" if from_repo == repo_id else key_of(names[from_repo], source)
        edges.append(
            GraphEdge(
                source=key_of(names[from_repo], source),
                target=key_of(repo, root.number),
                kind=min(kind, relation, key=RANK.__getitem__),
                basis="said",
                reason=f"said in {name}" if said else f"{reason}, {name}",
                quote=_words_of(texts.get((from_repo, source)), said, root.number, name),
            )
        )
    return edges


def _words_of(other: IssueRecord | None, said: Evidence | None, number: int, name: str) -> Quote | None:
    """The words with which another text names this issue."""
    if other is None:
        return None
    sources = Sources(other.url, {"title": other.title, "body": other.body})
    quote = sources.quote(said) if said else None
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
    stored: dict[tuple[str, int], IssueRecord] = {}
    releases: dict[tuple[str, int], str] = {}
    for repo_id, repo in find_repositories(session).items():
        here = [number for name, number in names if name == repo]
        heads = find_heads(session, repo_id, here)
        stored |= {(repo, issue.number): issue for issue in heads}
        pulls = [issue.number for issue in heads if issue.is_pull_request]
        first = first_releases_of(session, repo_id, pulls) if pulls else {}
        releases |= {(repo, number): tag for number, tag in first.items()}
    return tuple(_node(*name, stored.get(name), releases.get(name)) for name in names)


def _node(repo: str, number: int, issue: IssueRecord | None, release: str | None) -> GraphNode:
    if issue is None:
        return GraphNode(
            key=key_of(repo, number),
            repo=repo,
            number=number,
            kind="unknown",
            title="",
            state="unknown",
            url=f"https://github.com/{repo}/issues/{number}",
        )
    return GraphNode(
        key=key_of(repo, number),
        repo=repo,
        number=number,
        kind="pull_request" if issue.is_pull_request else "issue",
        title=mask_secrets(issue.title),
        state=_state(issue),
        url=issue.url,
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
