"""A known kind of error: what many issues report of the message that a log died of.

An answer of its own where no single issue is the same failure: how many reports, what they name as cause and
what helped most of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy.orm import Session

from app.extract.reader import LogReading
from app.knowledge.diagnosis.shapes import CommonCause, CommonError, CommonIssue, Match
from app.knowledge.remedies import rank_actions, remedies_of
from app.knowledge.text.masking import masked
from app.match.search.common_error import find_holders
from app.match.search.log_query import names_in
from app.store.derived.clusters import cluster_of
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.search_index import Key
from app.store.github.issues import find_heads

ISSUES_MAX, READ_MAX = 10, 30
"""Issues that are named, and those whose remedies and causes are read."""
WORKAROUNDS_MAX, CAUSES_MAX = 3, 3
CAUSE_CHARS = 300


def find_common(
    session: Session,
    reading: LogReading,
    text: str,
    matches: Sequence[Match],
    repos: Mapping[int, str],
    *,
    exclude: Collection[Key] = frozenset(),
) -> CommonError | None:
    """The kind of error that a log's cause is; None where few issues share its message.

    Args:
        text: the message as it may be shown; nothing is asked for an empty one.
        matches: the candidates for the same failure, likest first: these issues are named first.
        repos: names of the repositories that are searched, by key.
    """
    cause = reading.errors.cause or reading.errors.apparent
    if cause is None or not text:
        return None
    names = names_in(cause.message)
    found = find_holders(session, cause.message, names, list(repos), exclude=exclude)
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
                CommonCause.based_on(item, text=item.text[:CAUSE_CHARS], repo=repo, number=head.number)
                for item in own.cause
            ]
    if not issues:
        return None
    places_of = {key: at for at, key in enumerate(chosen)}
    keys = {repo: key for key, repo in repos.items()}
    issues.sort(key=lambda one: places_of[keys[one.repo], one.number])
    causes.sort(key=lambda one: (one.certainty != "stated", places_of[keys[one.repo], one.number]))
    actions = [one for one in rank_actions(remedies) if one.best.command or len(one.issues(fails=False)) > 1]
    actions.sort(key=lambda action: -len(action.issues(fails=False)))
    return masked(
        CommonError(
            reports=len(found),
            text=text,
            issues=tuple(issues[:ISSUES_MAX]),
            causes=tuple(causes[:CAUSES_MAX]),
            workarounds=tuple(action.best for action in actions[:WORKAROUNDS_MAX]),
            signature_id=next((key for key, _ in clusters.most_common(1)), None),
        )
    )
