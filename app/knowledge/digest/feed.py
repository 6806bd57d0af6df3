"""Feed entries: weekly digests, new failures reported twice, growing clusters, fixes; newest first.

Times come from the data, so the same database gives the same feed, and the key of an entry is stable.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from app.extract.facts import Frozen
from app.knowledge.cluster.timeline import WEEKS_BEFORE, describe_growing, growths, weeks_covered
from app.knowledge.digest.digest import count_weeks
from app.knowledge.digest.week import fixed_in, one_line, whole_week
from app.knowledge.iso_week import IsoWeek
from app.knowledge.labels import plural
from app.knowledge.markdown import inert
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.upgrade import affecting
from app.store.derived.clusters import find_clusters, members_of
from app.store.derived.weeks import Opened, opened_between, opened_span
from app.store.github.issues import find_repository
from app.store.github.sync_state import fresh_as_of
from app.store.session import Store

DIGESTS_LISTED = 8
CHANGE_WEEKS = 4
"""Weeks for which single failures and fixes get entries."""
ENTRIES_MAX = 60
TITLE_CHARS = 140


class FeedEntry(Frozen):
    """A feed entry. `key` is a stable id of its subject, `path` the path of its page on this server."""

    key: str
    title: str
    summary: str
    path: str
    updated: datetime

    @property
    def kind(self) -> str:
        """The key's first part: digest, cluster, growing or fixed."""
        return self.key.partition("/")[0]


def feed_entries(store: Store, repo: str) -> tuple[FeedEntry, ...]:
    """Return a repository's newest entries, newest first; none if no dated issue is stored."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        span = opened_span(session, repo_id)
        if span.last is None:
            return ()
        last = IsoWeek.of(span.last)
        week = whole_week(span, fresh_as_of(session, repo_id)) or last
        opened = opened_between(
            session, repo_id, week.shifted(-max(DIGESTS_LISTED, WEEKS_BEFORE)).start, last.end
        )
        begin = last.shifted(1 - CHANGE_WEEKS).start
        entries = [
            *_digests(opened, week),
            *_new_clusters(session, repo_id, [one for one in opened if one.created_at >= begin]),
            *_fixes(session, repo_id, repo, begin, last.end),
        ]
        if weeks_covered(span.first, week) == WEEKS_BEFORE:
            entries += _growing(session, repo_id, opened, week)
    return tuple(sorted(entries, key=lambda one: (-one.updated.timestamp(), one.key))[:ENTRIES_MAX])


def stack_entries(store: Store, repo: str, stack: Stack) -> tuple[FeedEntry, ...]:
    """Return entries for the failures that affect a stack or are fixed in a later release, newest first."""
    entries = []
    for line in affecting(store, repo, stack).lines:
        if line.opened_at is None:
            continue
        is_fixed = line.fix.for_you == "upgrade"
        what = f"Fixed for you in {line.fix.released_in}" if is_fixed else "Affects your stack"
        helps = f" Helps: {_line(line.remedy.words)}." if line.remedy else ""
        entries.append(
            FeedEntry(
                key=f"{'fixed-for-you' if is_fixed else 'affects'}/{line.number}",
                path=f"/issues/{line.number}",
                updated=line.opened_at,
                title=f"{what}: #{line.number} {_line(line.title)}",
                summary=f"{_line(line.reason)}{helps}",
            )
        )
    return tuple(sorted(entries, key=lambda one: (-one.updated.timestamp(), one.key))[:ENTRIES_MAX])


def _digests(opened: Sequence[Opened], newest: IsoWeek) -> Iterator[FeedEntry]:
    """Yield the newest completely stored weeks, so that an entry does not change afterwards."""
    weeks = [newest.shifted(-back) for back in range(DIGESTS_LISTED + 1)]
    counts = count_weeks(opened, weeks)
    for week, count, before in zip(weeks, counts, counts[1:], strict=False):
        if count.issues:
            words = f"{plural(count.failures, 'new failure')} among {plural(count.issues, 'new issue')}"
            earlier = f"{before.failures:,} among {before.issues:,}"
            yield FeedEntry(
                key=f"digest/{week}",
                path=f"/digest/{week}",
                updated=week.end,
                title=f"Week {week}: {words}",
                summary=f"{week.days}: {words}. The week before: {earlier}.",
            )


def _new_clusters(session: Session, repo_id: int, opened: Sequence[Opened]) -> Iterator[FeedEntry]:
    """Yield failures first reported in these issues that have at least two reports."""
    times: dict[str, list[datetime]] = defaultdict(list)
    for one in opened:
        if one.is_failure and one.cluster_id:
            times[one.cluster_id].append(one.created_at)
    repeated = [key for key, moments in times.items() if len(moments) > 1]
    records, members = find_clusters(session, repo_id, repeated), members_of(session, repo_id, repeated)
    for key, record in records.items():
        numbers = members.get(key, ())
        if len(numbers) == len(times[key]):
            named = ", ".join(f"#{number}" for number in numbers[:8])
            yield FeedEntry(
                key=f"cluster/{key}",
                path=f"/signatures/{key}",
                updated=max(times[key]),
                title=f"New failure: {_line(record.text)}",
                summary=f"{plural(len(numbers), 'report')} so far: {named}.",
            )


def _growing(session: Session, repo_id: int, opened: Sequence[Opened], week: IsoWeek) -> Iterator[FeedEntry]:
    for item in describe_growing(session, repo_id, growths(opened, week)):
        yield FeedEntry(
            key=f"growing/{week}/{item.id}",
            path=f"/signatures/{item.id}",
            updated=week.end,
            title=f"Growing: {_line(item.text or f'#{item.canonical} {item.title}')}",
            summary=(
                f"{plural(item.reports, 'report')} in {week}, {item.before:,} in the {WEEKS_BEFORE} weeks "
                f"before; {item.size:,} in all."
            ),
        )


def _fixes(session: Session, repo_id: int, repo: str, start: datetime, end: datetime) -> Iterator[FeedEntry]:
    for item in fixed_in(session, repo_id, repo, start, end)[0]:
        at = item.released_at if item.how == "released" else item.merged_at
        if at is None:
            continue
        by = f" by {item.fix.pr}" if item.fix.pr else ""
        how = f"Fixed in {item.fix.released_in}" if item.how == "released" else "Fix merged"
        yield FeedEntry(
            key=f"fixed/{item.number}/{item.fix.released_in or item.fix.pr}",
            updated=at,
            path=f"/issues/{item.number}",
            title=f"{how}: #{item.number} {_line(item.title)}",
            summary=f"{how}{by}. {_line(item.fix.reason)}",
        )


def _line(text: str) -> str:
    """Put text from an issue on one line, masked and without invisible characters."""
    return one_line(inert(text), TITLE_CHARS)
