"""In which releases a fix is: reverts and re-landings, then what is known of each release. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from app.extract.versions import Version, ordered
from app.knowledge.fix.shapes import Held
from app.store.github.fix_containment import History, Landed, PullHistory, ReleaseDay


def landing_of(history: History, pull: Landed, seen: frozenset[int] = frozenset()) -> Landed | None:
    """The pull request by which a change is in now: itself or what brought it back; None if it is out."""
    if pull.number in seen:
        return pull
    seen |= {pull.number}
    known = history.pulls.get(pull.number, PullHistory())
    reverts = [item for item in known.reverted_by if _follows(item, pull)]
    active: list[Landed] = []
    again = list(known.relanded_by)
    for revert in reverts:
        after = history.pulls.get(revert.number, PullHistory())
        again += after.relanded_by
        if (holds := landing_of(history, revert, seen)) is not None:
            active.append(holds)
        else:
            again += [item for item in after.reverted_by if _follows(item, revert)]
    last = max((item.merged_at for item in active if item.merged_at), default=None)
    back = [
        item
        for candidate in again
        if (item := landing_of(history, candidate, seen)) is not None
        and (last is None or (item.merged_at is not None and item.merged_at > last))
    ]
    if back:
        return min(back, key=lambda item: (item.merged_at is None, item.merged_at, item.number))
    return None if active else pull


def _follows(later: Landed, earlier: Landed) -> bool:
    return earlier.merged_at is None or later.merged_at is None or later.merged_at >= earlier.merged_at


def first_possible(history: History, pull: Landed, held: Held) -> str | None:
    """The first full release after the merge that is not known to lack the fix."""
    merged_at = pull.merged_at
    if merged_at is None:
        return None
    after = [
        item
        for item in history.releases
        if _is_full(item)
        and item.published_at is not None
        and item.published_at >= merged_at
        and ordered(item.tag) not in held.lacking
    ]
    first = min(after, key=lambda item: (item.published_at, item.tag), default=None)
    return _plain(first.tag) if first else None


@dataclass(frozen=True, slots=True)
class Calendar:
    """Releases put in order: version by tag, which of them are full, and the full ones ascending."""

    versions: Mapping[str, Version]
    full_tags: frozenset[str]
    full: tuple[Version, ...]


@lru_cache(maxsize=64)
def calendar_of(releases: tuple[ReleaseDay, ...]) -> Calendar:
    """The order of releases. A tag that is no version cannot be ordered and is left out of the versions."""
    versions = {item.tag: version for item in releases if (version := ordered(item.tag)) is not None}
    full_tags = frozenset(item.tag for item in releases if _is_full(item))
    return Calendar(
        versions, full_tags, tuple(sorted({versions[tag] for tag in full_tags if tag in versions}))
    )


def held_by(history: History, pull: Landed) -> Held:
    """What is known of the releases that hold a pull request."""
    known, calendar = history.pulls.get(pull.number, PullHistory()), calendar_of(history.releases)
    versions = calendar.versions
    holding = {tag for tag, contained in known.answers.items() if contained} | set(known.named_in)
    lacking = {tag for tag, contained in known.answers.items() if not contained}
    if pull.merged_at is not None:
        lacking |= {item.tag for item in history.releases if _is_before(item, pull.merged_at)}
    all_tags = {item.tag for item in history.releases} if known.answers else set()
    commits = {tag: contained for tag, contained in known.answers.items() if tag not in all_tags}
    return Held(
        full=_ascending(versions, holding & calendar.full_tags),
        pre=_ascending(versions, holding - calendar.full_tags),
        lacking=frozenset(versions[tag] for tag in lacking - holding if tag in versions),
        released=calendar.full,
        commits=commits | ({known.commit_sha: True} if known.commit_sha else {}),
    )


def _ascending(versions: Mapping[str, Version], tags: Iterable[str]) -> tuple[Version, ...]:
    return tuple(sorted({versions[tag] for tag in tags if tag in versions}))


def _is_full(release: ReleaseDay) -> bool:
    version = ordered(release.tag)
    return not release.is_prerelease and not (version is not None and version.is_prerelease)


def _is_before(release: ReleaseDay, merged_at: datetime) -> bool:
    return release.published_at is not None and release.published_at < merged_at


def _plain(tag: str) -> str:
    version = ordered(tag)
    return str(version) if version is not None else tag
