"""Read stored issues and store facts, signatures, links and search terms, in the caller's unit of work.

If a rule raises on an issue, the exception's class name is stored and the run continues. Similar issues are
linked as they are read, across repositories only by similar errors. An issue whose features did not change
keeps its links, so a rebuild under the same rules changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy.orm import Session

from app.extract.facts import Evidence, Facts, Workaround, summarise
from app.extract.log.lines import is_usual, read_lines
from app.extract.log.root_cause import read_errors
from app.extract.prose.mentions import closed_elsewhere, closed_issues, relanded_pull, reverted_pull
from app.extract.reader import RULES_VERSION, IssueReading, read_issue
from app.extract.text.document import CommentText, IssueText
from app.knowledge.cluster.update import DUPLICATE, Change, traits_of, update_clusters
from app.match.pairs.candidates import Seeds, choose_seeds, find_neighbours
from app.match.pairs.features import PairFeatures, build_features, load_features, own_text, save_features
from app.match.pairs.score import PairScore, are_alike, links_version, load_pair_weights, score_pair
from app.match.search.terms import HEADING, Terms, line_texts, read_heading, terms_of
from app.model_reader.merge import with_reply
from app.starter.card import Card, card_facts, parse_card
from app.store.derived.clusters import FailureTraits
from app.store.derived.links import SIMILAR, Links, find_repositories, replace_similar
from app.store.derived.model_outputs import KeptReply, find_replies
from app.store.derived.readings import Reading, save_readings
from app.store.derived.search_index import NO_TERMS, Key, Profile, hash_terms, index_terms
from app.store.engine.connect import lock_writers
from app.store.github.issues import find_cards, find_comments, find_issues
from app.store.records import CARD, CommentRecord, IssueRecord, LinkRecord, Pair

log = structlog.get_logger(__name__)

STATED_DUPLICATE = "related.duplicate"
"""Rule id of a mention that states a duplicate."""
CLOSED_AS_DUPLICATE = "closed as a duplicate, and it names no other issue"


@dataclass(frozen=True, slots=True)
class DeriveResult:
    """How many issues were read, and on how many of them a rule raised."""

    read: int = 0
    faults: int = 0

    def __add__(self, other: DeriveResult) -> DeriveResult:
        return DeriveResult(self.read + other.read, self.faults + other.faults)


@dataclass(frozen=True, slots=True)
class StoredReading:
    """A stored issue's reading with what is derived from it for search, linking and clustering.

    `terms`: its search index entries; `seeds`: the terms used to find similar issues; `features`, `traits`:
    inputs of linking and clustering.
    """

    reading: Reading
    terms: Profile = NO_TERMS
    seeds: Seeds | None = None
    features: PairFeatures | None = None
    traits: FailureTraits | None = None


COMMENTS_CHARS = 400_000
"""Limit for an issue's comments together; above it each is cut to an equal share. No vLLM issue has more."""


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that an issue's reading depends on, except the rules."""

    repo: str
    issue: IssueRecord
    comments: tuple[CommentRecord, ...] = ()
    card: Card | None = None
    reply: KeptReply | None = None


Read = Callable[[Sequence[Source]], Sequence[StoredReading]]
"""A function that reads issues and keeps their order."""


def read_sources(sources: Sequence[Source]) -> list[StoredReading]:
    """Apply the rules to these texts; a pure function."""
    return [_derive(source) for source in sources]


def derive_issues(
    session: Session, repo_id: int, repo: str, numbers: Sequence[int], read: Read = read_sources
) -> DeriveResult:
    """Read these issues again and replace everything derived from them."""
    # Serialize with other writers: texts they store now must be seen here or mark the issue stale later, and
    # of two processes that derive the same issues the second must see what the first stored.
    lock_writers(session)
    found = read_stored(session, repo_id, repo, numbers, read)
    readings = [item.reading for item in found]
    save_readings(session, repo_id, readings, rules_version=RULES_VERSION)
    index_terms(session, repo_id, {item.reading.number: item.terms for item in found})
    linked = link_issues(session, repo_id, repo, found)
    unread = [item.reading.number for item in found if item.features is None]
    linked |= forget_links(session, repo_id, repo, unread)
    failures = [item.traits for item in found if item.traits]
    left = {r.number for r in readings} - {item.number for item in failures}
    update_clusters(session, repo_id, repo, Change(failures, left, linked))
    return DeriveResult(len(readings), sum(reading.fault is not None for reading in readings))


def read_stored(
    session: Session, repo_id: int, repo: str, numbers: Sequence[int], read: Read = read_sources
) -> Sequence[StoredReading]:
    """Read the stored texts of these issues without storing the result."""
    found = read(find_sources(session, repo_id, repo, numbers))
    for reading in (item.reading for item in found):
        if reading.fault is not None:
            log.warning("an issue could not be read", number=reading.number, fault=reading.fault)
    return found


def find_sources(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> list[Source]:
    """Load the stored texts of these issues."""
    issues = find_issues(session, repo_id, numbers)
    comments = find_comments(session, repo_id, numbers)
    cards = {n: parse_card(text) for n, text in find_cards(session, repo_id, numbers).items()}
    replies = find_replies(session, repo_id, numbers)
    return [
        Source(
            repo,
            issue,
            tuple(comments.get(issue.number, ())),
            cards.get(issue.number),
            replies.get(issue.number),
        )
        for issue in issues
    ]


def _derive(source: Source) -> StoredReading:
    """Read one issue; a pull request yields only the links its text states."""
    issue, repo, card = source.issue, source.repo, source.card
    if issue.is_pull_request:
        links = _pull_links(issue, repo)
        return StoredReading(Reading(issue.number, Facts(number=issue.number), links=links))
    try:
        reading = read_issue(issue_text_of(source))
        facts = _with_card(with_reply(reading, source.reply), card, issue)
        terms = _terms(issue, reading, card)
        features = build_features(issue.title, own_text(reading.document), facts, issue.created_at)
        links = _links(issue, facts, repo)
        repeats = [link.target_number for link in links if (link.kind, link.target_repo) == (DUPLICATE, repo)]
        version, kind = facts.versions.get("vllm"), facts.failure_kind
        heading = read_heading(issue.title, gpus=facts.gpus, version=version, kind=kind)
        # Heading terms count 0, so they do not add to the text length.
        indexed = {**terms, **{(HEADING, term): 0 for term in heading.terms}}
        return StoredReading(
            Reading(issue.number, facts, links=links),
            hash_terms(indexed),
            choose_seeds(issue.title, terms),
            features,
            traits_of(issue, facts, repeats),
        )
    except Exception as error:  # a failing rule must not stop the run; it is stored and counted
        return StoredReading(Reading(issue.number, None, fault=type(error).__name__))


def issue_text_of(source: Source) -> IssueText:
    """Return the texts of an issue as input for the rules; for a starter card, its log as the body."""
    issue, comments, card = source.issue, source.comments, source.card
    body = card.log if card is not None and issue.origin == CARD else issue.body
    is_long = sum(len(item.body) for item in comments) > COMMENTS_CHARS
    most = COMMENTS_CHARS // len(comments) if is_long else COMMENTS_CHARS
    return IssueText(
        number=issue.number,
        title=issue.title,
        body=body,
        repo=source.repo,
        labels=issue.labels,
        state=issue.state,
        user=issue.author,
        comments=tuple(
            CommentText(
                item.body[:most],
                item.id,
                item.author,
                item.author_association or "NONE",
                item.created_at.isoformat() if item.created_at else None,
            )
            for item in comments
        ),
    )


def _with_card(facts: Facts, card: Card | None, issue: IssueRecord) -> Facts:
    """Merge a card's facts: all of them until GitHub is synced, later its remedies, fix and regression."""
    if card is None:
        return facts
    known = card_facts(card)
    if issue.origin == CARD:
        return known.model_copy(update={"signatures": facts.signatures})
    merged = facts.model_copy(
        update={
            "workarounds": _merge(facts.workarounds, known.workarounds),
            "fix": facts.fix or known.fix,
            "regression": facts.regression or known.regression,
            "evidence": (*facts.evidence, *_card_evidence(facts, known)),
        }
    )
    return merged.model_copy(update={"summary": summarise(merged)})


def _merge(found: Sequence[Workaround], known: Sequence[Workaround]) -> tuple[Workaround, ...]:
    actions = {item.action.strip("`").lower() for item in known}
    return (*known, *(item for item in found if item.action.strip("`").lower() not in actions))


def _card_evidence(facts: Facts, known: Facts) -> Iterable[Evidence]:
    fields = {"workarounds"}
    fields |= {"fix"} if facts.fix is None else set()
    fields |= {"regression"} if facts.regression is None else set()
    return (item for item in known.evidence if item.field.partition(".")[0] in fields)


def _links(issue: IssueRecord, facts: Facts, repo: str) -> tuple[LinkRecord, ...]:
    culprit = facts.regression.culprit if facts.regression else None
    blamed = int(culprit[1:]) if culprit and culprit.startswith("#") and culprit[1:].isdigit() else None
    fixed_by = facts.fix.pr if facts.fix and facts.fix.pr else ""
    duplicates = {item.value for item in facts.evidence if item.rule == STATED_DUPLICATE}
    is_implied = issue.state_reason == DUPLICATE and not duplicates and len(facts.related) == 1
    links = []
    for number in facts.related:
        kind = DUPLICATE if str(number) in duplicates or is_implied else "mentions"
        kind = "introduced_by" if number == blamed else kind
        kind = "fixed_by" if fixed_by == f"#{number}" else kind
        reason = CLOSED_AS_DUPLICATE if is_implied and kind == DUPLICATE else "the text names it"
        links.append(LinkRecord(repo, number, kind, reason))
    for name in facts.related_elsewhere:
        other, _, digits = name.partition("#")
        if digits.isdigit():
            kind = "fixed_by" if fixed_by.lower() == name.lower() else "mentions"
            links.append(LinkRecord(other, int(digits), kind, "the text names it"))
    return tuple(links)


def _pull_links(issue: IssueRecord, repo: str) -> tuple[LinkRecord, ...]:
    text, closes = f"{issue.title}\n{issue.body}", "a closing keyword in the pull request"
    closed = [(number, "fixes", closes) for number in closed_issues(text, repo)]
    elsewhere = [LinkRecord(name, number, "fixes", closes) for name, number in closed_elsewhere(text, repo)]
    undone = [
        (reverted_pull(issue.title, issue.body, repo), "reverts", "the pull request reverts it"),
        (relanded_pull(issue.title, issue.body, repo), "relands", "the pull request brings it back"),
    ]
    here = [
        LinkRecord(repo, number, kind, reason)
        for number, kind, reason in (*closed, *undone)
        if number is not None and number != issue.number
    ]
    return (*here, *elsewhere)


def _terms(issue: IssueRecord, reading: IssueReading, card: Card | None) -> Terms:
    """Return the search terms of title, body and card, with the errors found by the reading.

    Lines that successful runs print are left out: a start-up warning may name errors that never happened.
    """
    body = read_lines(line for block in reading.document.of_source("body") for line in block.lines)
    found = terms_of([issue.title, *line_texts(line for line in body if not is_usual(line))], reading.errors)
    if card is None or issue.origin == CARD:
        return found
    lines, errors = read_errors(card.log)
    return Counter(found) | Counter(terms_of(line_texts(lines), errors))


SIMILAR_MAX = 20
"""Limit of similarity links per issue."""
RELATED_MAX = 5
"""Limit of those in band `related`, of older and of newer ones, that are added when an issue is linked."""
SURE = frozenset({"same", "likely"})
ACROSS_MAX = 5
"""Limit of similarity links per issue with other repositories."""


def link_issues(session: Session, repo_id: int, repo: str, issues: Iterable[StoredReading]) -> set[Pair]:
    """Link these issues, whose search terms are already indexed, with similar stored ones.

    Returns the pairs within the repository with a written or removed link strong enough to affect clusters.
    """
    read = {item.reading.number: item for item in issues}
    features = {number: item.features for number, item in read.items() if item.features is not None}
    wanted: dict[int, list[Key]] = {}
    changed = sorted(save_features(session, repo_id, features, version=links_version()))
    asked_by = {number: seeds for number in changed if (seeds := read[number].seeds) is not None}
    for number, near in find_neighbours(session, repo_id, asked_by).items():
        facts = read[number].reading.facts
        related = facts.related if facts else ()
        named = ((repo_id, other) for other in related if other != number)
        wanted[number] = list(dict.fromkeys([*near.here, *named, *near.across]))
    if not wanted:
        return set()
    # Issues of one batch share neighbours: fetch and unpack each once.
    asked: dict[int, set[int]] = {}
    for key, number in (key for keys in wanted.values() for key in keys):
        asked.setdefault(key, set()).add(number)
    known = {
        (key, number): found
        for key, numbers in asked.items()
        for number, found in load_features(session, key, numbers).items()
    }
    names = find_repositories(session)
    here: dict[int, list[LinkRecord]] = {}
    across: dict[int, list[LinkRecord]] = {}
    for number, keys in wanted.items():
        mine = features[number]
        alike = [key for key in keys if key in known and are_alike(mine, known[key])]
        ranked = sorted(
            ((key, score_pair(mine, known[key])) for key in alike),
            key=lambda pair: (-pair[1].score, names[pair[0][0]], pair[0][1]),
        )
        own = [pair for pair in ranked if pair[0][0] == repo_id]
        firm = [pair for pair in own if pair[1].band in SURE]
        loose = [pair for pair in own if pair[1].band == "related"]
        # Every issue has its own older ones: linking a newer issue again must not take these links away.
        older = [pair for pair in loose if pair[0][1] < number][:RELATED_MAX]
        newer = [pair for pair in loose if pair[0][1] > number][:RELATED_MAX]
        others = [
            pair
            for pair in ranked
            if pair[0][0] != repo_id and pair[1].band in SURE and pair[1].channel != "prose"
        ]
        here[number] = _records(names, [*firm, *older, *newer][:SIMILAR_MAX])
        across[number] = _records(names, others[:ACROSS_MAX])
    return _replace_links(session, repo_id, repo, here, across)


def forget_links(session: Session, repo_id: int, repo: str, numbers: Collection[int]) -> set[Pair]:
    """Remove the similarity links of issues without features; return pairs as `link_issues` does."""
    none: dict[int, Sequence[LinkRecord]] = dict.fromkeys(numbers, ())
    return _replace_links(session, repo_id, repo, none, none) if none else set()


def _records(names: dict[int, str], scores: Sequence[tuple[Key, PairScore]]) -> list[LinkRecord]:
    return [
        LinkRecord(names[repo_id], number, SIMILAR, item.reason, item.score, item.channel)
        for (repo_id, number), item in scores
    ]


def _replace_links(session: Session, repo_id: int, repo: str, here: Links, across: Links) -> set[Pair]:
    replace_similar(session, repo_id, repo, across, most=ACROSS_MAX, across=True)
    changed = replace_similar(session, repo_id, repo, here, most=SIMILAR_MAX)
    least = load_pair_weights().likely_from
    return {pair for pair, score in changed if score >= least}
