"""Remedies for a known failure whose matches have none: from its other reports, else from a nearby failure.

A nearby failure was raised at the same place in the code; answers say that it is a different failure.
If no single issue is the same failure, a common error is reported instead: how many issues contain its
message, their causes, and the remedies that helped most.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy.orm import Session

from app.extract.reader import LogReading
from app.extract.redact import masked, masked_all
from app.knowledge.diagnosis.error_text import words_of_cause
from app.knowledge.diagnosis.shapes import CommonCause, CommonError, CommonIssue, Match, RemedySource
from app.knowledge.remedies import Remedy, for_version, rank_actions, rank_remedies, remedies_of
from app.match.search.common_error import find_reports_of
from app.match.search.terms import FRAME
from app.store.derived.clusters import cluster_of, find_members, members_of
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.search_index import Key, find_postings, term_id
from app.store.github.issues import find_heads

NEARBY_MAX = 5
"""A frame with more clusters is shared by unrelated errors and is ignored."""


def helps(remedies: Iterable[Remedy]) -> bool:
    """True if a remedy did not fail and is still available."""
    return any(item.outcome != "fails" and item.gone is None for item in remedies)


def remedies_of_others(
    session: Session, repo: str, key: Key, frame: str | None, hidden: Collection[Key]
) -> tuple[tuple[Remedy, ...], RemedySource]:
    """Return remedies from the issue's cluster, else from the largest cluster with the same frame.

    Args:
        key: the issue, which has no remedies itself.
        frame: where the error was raised, `file.py:function`.
        hidden: issues to leave out.
    """
    repo_id, number = key
    own = cluster_of(session, repo_id, [number]).get(number, "")

    def first_helping(clusters: Sequence[str]) -> tuple[Remedy, ...]:
        members = members_of(session, repo_id, clusters)
        for cluster in sorted(members, key=lambda one: (-len(members[one]), one)):
            numbers = [one for one in members[cluster] if one != number and (repo_id, one) not in hidden]
            facts = find_facts_without_evidence(session, repo_id, numbers)
            with_remedy = [one for one in numbers if one in facts and facts[one].workarounds]
            found = rank_remedies(
                remedy
                for head in find_heads(session, repo_id, with_remedy)
                if head.gone_at is None
                for remedy in remedies_of(facts[head.number], repo=repo, url=head.url)
            )
            if helps(found):
                return tuple(masked_all(found))
        return ()

    if found := first_helping([own]):
        return found, "cluster"
    near = [one for one in _clusters_at(session, repo_id, frame) if one != own] if frame else []
    if found := first_helping(near if len(near) <= NEARBY_MAX else []):
        return found, "same_frame"
    return (), "matches"


def _clusters_at(session: Session, repo_id: int, frame: str) -> list[str]:
    """Return the clusters with a report whose error was raised in this frame."""
    places = find_postings(session, [term_id(FRAME, frame)])
    members = find_members(session, repo_id, places[places[:, 1] == repo_id, 2].tolist())
    return sorted({item.cluster_id for item in members.values() if item.traits.frame == frame})


ISSUES_MAX, READ_MAX = 10, 30
"""Issues listed, and issues whose remedies and causes are read."""
WORKAROUNDS_MAX, CAUSES_MAX = 3, 3
CAUSE_CHARS = 300


def find_common(
    session: Session,
    reading: LogReading,
    text: str,
    matches: Sequence[Match],
    repos: Mapping[int, str],
    *,
    is_common: bool = False,
    exclude: Collection[Key] = frozenset(),
) -> CommonError | None:
    """Return the common error behind a log's cause; None if few issues share its message.

    Args:
        is_common: unrelated failures share the message, so causes and most remedies are left out.
        text: the masked message; if empty, nothing is searched.
        matches: candidates for the same failure, most similar first; ties between issues follow this order.
        repos: names of the repositories to search, by key.
    """
    words = words_of_cause(reading)
    if words is None or not text:
        return None
    keys = {repo: key for key, repo in repos.items()}
    likeliest = next(((keys[match.repo], match.number) for match in matches if not is_common), None)
    cause = reading.errors.cause
    found = find_reports_of(
        session,
        words[0],
        list(repos),
        exclude=exclude,
        likeliest=likeliest,
        frame=cause.frame if cause else None,
    )
    places = {(match.repo, match.number): at for at, match in enumerate(matches)}

    def order(key: Key) -> tuple[float, int, int]:
        return -round(found[key], 1), places.get((repos[key[0]], key[1]), len(places)), -key[1]

    chosen = sorted(found, key=order)[:READ_MAX]
    issues, remedies, causes = [], [], list[CommonCause]()
    clusters: Counter[str] = Counter()
    for repo_id, repo in repos.items():
        numbers = [number for key, number in chosen if key == repo_id]
        facts = find_facts_without_evidence(session, repo_id, numbers)
        clusters.update(cluster_of(session, repo_id, numbers).values())
        for head in find_heads(session, repo_id, numbers):
            if head.is_pull_request or head.gone_at is not None or head.number not in facts:
                continue
            own = facts[head.number]
            issues.append(CommonIssue.based_on(head, repo=repo))
            remedies += [one for one in remedies_of(own, repo=repo, url=head.url) if one.outcome != "fails"]
            causes += [
                CommonCause.based_on(
                    item, text=item.text[:CAUSE_CHARS], repo=repo, number=head.number, url=head.url
                )
                for item in own.cause
            ]
    if not issues:
        return None
    places_of = {key: at for at, key in enumerate(chosen)}
    issues.sort(key=lambda one: places_of[keys[one.repo], one.number])
    causes.sort(key=lambda one: (one.certainty != "stated", places_of[keys[one.repo], one.number]))
    actions = [
        one
        for one in rank_actions(remedies)
        if len(one.issues(fails=False)) > 1 or (one.best.command and not is_common)
    ]
    actions.sort(key=lambda action: -len(action.issues(fails=False)))
    return masked(
        CommonError(
            reports=len(found),
            text=text,
            issues=tuple(issues[:ISSUES_MAX]),
            causes=() if is_common else tuple(causes[:CAUSES_MAX]),
            workarounds=for_version(
                (action.best for action in actions), reading.surroundings.versions.get("vllm")
            )[:WORKAROUNDS_MAX],
            signature_id=next((key for key, _ in clusters.most_common(1)), None),
        )
    )
