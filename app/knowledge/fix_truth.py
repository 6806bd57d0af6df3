"""Whether an issue is fixed, decided from frozen facts alone: no database, no network, no guess.

In: a `FixCase`. Out: a `FixTruth`: the `FixView` and what tells which versions hold the fix. `fixed` always
has a pull request and a release: named by the release's notes, or found in it by GitHub's comparison, or in
a maintainer's or starter card's words. A revert takes a fix back; a re-landing brings it back with the
re-landing's own release. "Closed" alone is not "fixed".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Literal

from packaging.version import InvalidVersion, Version

from app.extract.facts import Fix
from app.knowledge.answers import FixView
from app.store.containment import History, Landed, PullHistory, ReleaseDay

STALE_LABELS = frozenset({"stale"})
NOT_FIXED_REASONS = frozenset({"not_planned", "duplicate"})
QUOTE_CHARS = 200

Authority = Literal["maintainer", "card", "other"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A stored pull request that is said to fix the issue."""

    number: int
    state: str
    merged_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Saying:
    """What the issue's people say of the fix, in their words."""

    fix: Fix
    by: Authority = "other"
    quote: str = ""

    @property
    def is_trusted(self) -> bool:
        """Whether these words count without a merged pull request: a card's, or a maintainer's to quote."""
        return self.by == "card" or (self.by == "maintainer" and bool(self.quote))

    @property
    def number(self) -> int | None:
        """The pull request that is named."""
        digits = (self.fix.pr or "").removeprefix("#")
        return int(digits) if digits.isdigit() else None


@dataclass(frozen=True, slots=True)
class FixCase:
    """One issue, as far as its fix goes."""

    state: str
    state_reason: str | None = None
    labels: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    said: Saying | None = None
    history: History = field(default_factory=History)


@dataclass(frozen=True, slots=True)
class Held:
    """Which versions hold the fix.

    Attributes:
        full, pre: releases and prereleases that are known to hold it, ascending.
        lacking: those that are known not to, or came out before it was merged.
        released: all full releases, ascending.
        commits: whether a commit holds it, by the commit; the merge commit itself does.
    """

    full: tuple[Version, ...] = ()
    pre: tuple[Version, ...] = ()
    lacking: frozenset[Version] = frozenset()
    released: tuple[Version, ...] = ()
    commits: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FixTruth:
    view: FixView
    held: Held = Held()


@lru_cache(maxsize=4096)
def version_of(tag: str) -> Version | None:
    """A tag or version as PEP 440 orders it; None if it is none."""
    try:
        return Version(tag)
    except InvalidVersion:
        return None


def decide(case: FixCase) -> FixTruth:
    """The state of the fix."""
    merged = [Landed(claim.number, claim.merged_at) for claim in case.claims if claim.merged_at is not None]
    unknown_to_us = case.said is not None and case.said.number not in {claim.number for claim in case.claims}
    if unknown_to_us and case.said is not None and _is_named(case, case.said.number):
        merged.append(Landed(case.said.number or 0, None))
    standing = [landed for pull in merged if (landed := landing_of(case.history, pull)) is not None]
    if standing:
        return _merged(case, standing)
    if merged:
        return FixTruth(_taken_back(case, merged))
    waiting = [claim for claim in case.claims if claim.state == "open"]
    said = case.said if unknown_to_us else None
    if said is not None and said.fix.state != "in_progress" and (said.is_trusted or not waiting):
        return _said(case, said)
    if waiting:
        return FixTruth(_in_progress(f"#{waiting[-1].number}"))
    if unknown_to_us and case.said is not None:
        reason = f"{_speaker(case.said)} names {case.said.fix.pr}; its state is not stored."
        source = case.said.fix.source
        return FixTruth(FixView(state="in_progress", pr=case.said.fix.pr, source=source, reason=reason))
    return FixTruth(_by_state(case))


# ---- reverts and re-landings


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
        item for candidate in again
        if (item := landing_of(history, candidate, seen)) is not None
        and (last is None or (item.merged_at is not None and item.merged_at > last))
    ]  # fmt: skip
    if back:
        return min(back, key=lambda item: (item.merged_at is None, item.merged_at, item.number))
    return None if active else pull


def _follows(later: Landed, earlier: Landed) -> bool:
    return earlier.merged_at is None or later.merged_at is None or later.merged_at >= earlier.merged_at


def _taken_back(case: FixCase, merged: Iterable[Landed]) -> FixView:
    told = []
    for pull in merged:
        reverts = case.history.pulls[pull.number].reverted_by
        told.append(f"#{pull.number} was merged and taken back by #{max(reverts, key=_moment).number}")
    waiting = [claim for claim in case.claims if claim.state == "open"]
    if waiting:
        view = _in_progress(f"#{waiting[-1].number}")
        return view.model_copy(update={"reason": f"{'; '.join(told)}. {view.reason}"})
    return FixView(state="not_fixed", source="pull request", reason=f"{'; '.join(told)}.")


def _moment(item: Landed) -> float:
    return item.merged_at.timestamp() if item.merged_at else 0.0


# ---- merged: in which release


def _merged(case: FixCase, standing: Iterable[Landed]) -> FixTruth:
    """The fix by a merged pull request: one that a release holds, else the newest."""
    history = case.history
    found = {item: _held(history, item) for item in standing}
    best = max(found, key=lambda item: (bool(found[item].full), _moment(item), item.number))
    held, pr = found[best], f"#{best.number}"
    known = history.pulls.get(best.number, PullHistory())
    if held.full:
        first = held.full[0]
        by_notes = any(version_of(tag) == first for tag in known.named_in)
        how = f"named in the notes of {first}" if by_notes else f"found in {first} by GitHub's comparison"
        source = "release notes" if by_notes else "compare"
        view = FixView(
            state="fixed", pr=pr, released_in=str(first), source=source,
            also_in=tuple(map(str, held.full[1:])), reason=f"{pr} is merged and {how}.",
        )  # fmt: skip
        return FixTruth(view, held)
    said = case.said
    if said and said.number == best.number and said.is_trusted and said.fix.released_in:
        return _said(case, said, held)
    return FixTruth(_unreleased(history, best, held), held)


def _unreleased(history: History, pull: Landed, held: Held) -> FixView:
    pr = f"#{pull.number}"
    reason = f"{pr} is merged; no release is known to hold it yet."
    if held.pre:
        reason = f"{pr} is merged and in the prerelease {held.pre[0]}; no release is known to hold it yet."
    possible = _first_possible(history, pull, held)
    if possible is None:
        return FixView(state="merged_unreleased", pr=pr, source="pull request", reason=reason)
    reason = (
        f"{reason[:-5]}. {possible} is the first that came out after the merge; whether it holds the fix is "
        "not known, since a release's branch is cut before its tag."
    )  # fmt: skip
    return FixView(
        state="merged_unreleased", pr=pr, earliest_possible=possible, source="estimated", reason=reason
    )  # fmt: skip


def _first_possible(history: History, pull: Landed, held: Held) -> str | None:
    """The first full release after the merge that is not known to lack the fix."""
    merged_at = pull.merged_at
    if merged_at is None:
        return None
    after = [
        item for item in history.releases
        if _is_full(item) and item.published_at is not None and item.published_at >= merged_at
        and version_of(item.tag) not in held.lacking
    ]  # fmt: skip
    first = min(after, key=lambda item: (item.published_at, item.tag), default=None)
    return _plain(first.tag) if first else None


@dataclass(frozen=True, slots=True)
class _Calendar:
    """Releases put in order: version by tag, which of them are full, and the full ones ascending."""

    versions: Mapping[str, Version]
    full_tags: frozenset[str]
    full: tuple[Version, ...]


@lru_cache(maxsize=64)
def _calendar(releases: tuple[ReleaseDay, ...]) -> _Calendar:
    """A tag that is no version cannot be ordered and is left out of the versions."""
    versions = {item.tag: version for item in releases if (version := version_of(item.tag)) is not None}
    full_tags = frozenset(item.tag for item in releases if _is_full(item))
    return _Calendar(
        versions, full_tags, tuple(sorted({versions[tag] for tag in full_tags if tag in versions}))
    )


def _held(history: History, pull: Landed) -> Held:
    """What is known of the releases that hold a pull request."""
    known, calendar = history.pulls.get(pull.number, PullHistory()), _calendar(history.releases)
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
    version = version_of(release.tag)
    return not release.is_prerelease and not (version is not None and version.is_prerelease)


def _is_before(release: ReleaseDay, merged_at: datetime) -> bool:
    return release.published_at is not None and release.published_at < merged_at


def _plain(tag: str) -> str:
    version = version_of(tag)
    return str(version) if version is not None else tag


# ---- what people say


def _is_named(case: FixCase, number: int | None) -> bool:
    """Whether a pull request that is not stored stands in a release's notes: then it is merged."""
    known = case.history.pulls.get(number) if number is not None else None
    return known is not None and not _calendar(case.history.releases).full_tags.isdisjoint(known.named_in)


def _said(case: FixCase, said: Saying, held: Held | None = None) -> FixTruth:
    """By words alone: `fixed` only if a maintainer or a card names the release."""
    fix, words = said.fix, _speaker(said)
    version = version_of(fix.released_in) if fix.released_in else None
    quoted = f'{words} says: "{_cut(said.quote)}".' if said.quote else f"{words} names {fix.pr}."
    if not said.is_trusted:
        reason = f"{quoted} That it is merged is not known."
        return FixTruth(FixView(state="unknown", pr=fix.pr, source=fix.source, reason=reason))
    if version is None or version.is_prerelease or not fix.pr:
        reason = f"{quoted} No release is named."
        return FixTruth(FixView(state="merged_unreleased", pr=fix.pr, source=fix.source, reason=reason))
    known = held or Held(released=_calendar(case.history.releases).full)
    view = FixView(state="fixed", pr=fix.pr, released_in=str(version), source=fix.source, reason=quoted)
    return FixTruth(
        view,
        Held((version,), known.pre, known.lacking - {version}, known.released, known.commits),
    )


def _speaker(said: Saying) -> str:
    if said.by == "card":
        return "The starter card"
    if said.by == "maintainer":
        return "A maintainer"
    return "The reporter's text" if said.fix.source == "body" else "A comment"


def _cut(quote: str) -> str:
    flat = " ".join(quote.split())
    return flat if len(flat) <= QUOTE_CHARS else f"{flat[:QUOTE_CHARS]}…"


# ---- not merged


def _in_progress(pr: str) -> FixView:
    return FixView(state="in_progress", pr=pr, source="pull request", reason=f"{pr} is open.")


def _by_state(case: FixCase) -> FixView:
    if case.state == "open":
        reason = "Open, and no merged pull request is known to fix it."
        return FixView(state="not_fixed", source="issue", reason=reason)
    is_stale = not STALE_LABELS.isdisjoint(label.lower() for label in case.labels)
    if case.state_reason in NOT_FIXED_REASONS or is_stale:
        why = "as stale" if is_stale else f"as {(case.state_reason or '').replace('_', ' ')}"
        return FixView(
            state="closed_unresolved", source="issue", reason=f"Closed {why}; no fix is known."
        )  # fmt: skip
    return FixView(state="unknown", source="issue", reason="Closed, but nothing says what fixed it.")
