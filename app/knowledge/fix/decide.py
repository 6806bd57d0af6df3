"""Decide whether an issue is fixed, in which releases, and what that means for the caller's version.

Pure functions of `FixCase`. `fixed` requires a pull request and a release that contains it, according to the
release notes, the starter set's table, GitHub's comparison, a maintainer or a starter card. A revert undoes a
fix; a re-landing restores it, with its own release. A closed issue alone is not fixed.

Releases of one line (0.9.x) build on each other. A higher line was cut from main and contains the fix unless
known otherwise. If no release is known to contain a merged fix, the first line that began after the merge
may lack it, as its branch was cut before, and higher lines contain it. For a dev or rc build between the
last release without the fix and the first with it the answer is unknown, unless its commit (`g<sha>`) was
compared.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from app.extract.versions import Version, is_before, ordered, sort_key
from app.knowledge.fix.shapes import FixCase, FixStatement, FixTruth, FixView, ForYou, Held
from app.store.github.releases import History, LandedPull, PullHistory, ReleaseDay


def landing_of(history: History, pull: LandedPull, seen: frozenset[int] = frozenset()) -> LandedPull | None:
    """Return the pull request that has the change in main now: `pull` or a re-landing; None if reverted."""
    if pull.number in seen:
        return pull
    seen |= {pull.number}
    known = history.pulls.get(pull.number, PullHistory())
    reverts = [item for item in known.reverted_by if _follows(item, pull)]
    active: list[LandedPull] = []
    relandings = list(known.relanded_by)
    for revert in reverts:
        after = history.pulls.get(revert.number, PullHistory())
        relandings += after.relanded_by
        if (holds := landing_of(history, revert, seen)) is not None:
            active.append(holds)
        else:
            relandings += [item for item in after.reverted_by if _follows(item, revert)]
    last = max((item.merged_at for item in active if item.merged_at), default=None)
    restored = [
        item
        for candidate in relandings
        if (item := landing_of(history, candidate, seen)) is not None
        and (last is None or (item.merged_at is not None and item.merged_at > last))
    ]
    if restored:
        return min(restored, key=lambda item: (item.merged_at is None, item.merged_at, item.number))
    return None if active else pull


def _follows(later: LandedPull, earlier: LandedPull) -> bool:
    return earlier.merged_at is None or later.merged_at is None or later.merged_at >= earlier.merged_at


def first_possible(history: History, pull: LandedPull, held: Held) -> str | None:
    """Return the first full release after the merge that is not known to lack the fix."""
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
    return str(ordered(first.tag) or first.tag) if first else None


@dataclass(frozen=True, slots=True)
class Calendar:
    """Parsed releases: version by tag, the tags of full releases, and the full versions ascending."""

    versions: Mapping[str, Version]
    full_tags: frozenset[str]
    full: tuple[Version, ...]


@lru_cache(maxsize=64)
def calendar_of(releases: tuple[ReleaseDay, ...]) -> Calendar:
    """Parse releases. A tag that is not a version is left out of the versions."""
    versions = {item.tag: version for item in releases if (version := ordered(item.tag)) is not None}
    full_tags = frozenset(item.tag for item in releases if _is_full(item))
    return Calendar(
        versions, full_tags, tuple(sorted({versions[tag] for tag in full_tags if tag in versions}))
    )


def held_by(history: History, pull: LandedPull) -> Held:
    """Return which releases are known to contain a pull request."""
    known, calendar = history.pulls.get(pull.number, PullHistory()), calendar_of(history.releases)
    versions = calendar.versions
    holding = {tag for tag, contained in known.answers.items() if contained} | {*known.named_in}
    holding |= {known.table_tag} if known.table_tag else set()
    lacking = {tag for tag, contained in known.answers.items() if not contained}
    if pull.merged_at is not None:
        dated = ((item.tag, item.published_at) for item in history.releases)
        lacking |= {tag for tag, day in dated if day is not None and day < pull.merged_at}
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


NOT_FIXED_REASONS = frozenset({"not_planned", "duplicate"})
QUOTE_CHARS = 200


def decide(case: FixCase) -> FixTruth:
    case = _without_earlier(case)
    merged = [
        LandedPull(claim.number, claim.merged_at) for claim in case.claims if claim.merged_at is not None
    ]
    # A statement counts only if the pull request it names is not stored.
    stated = case.stated
    if stated is not None and stated.number in {claim.number for claim in case.claims}:
        stated = None
    if stated is not None and _is_in_release(case, stated.number):
        merged.append(LandedPull(stated.number or 0, None))
    active = [landed for pull in merged if (landed := landing_of(case.history, pull)) is not None]
    if active:
        return _merged(case, active)
    if merged:
        return FixTruth(_reverted(case, merged))
    if stated is not None and stated.fix.state != "in_progress" and (stated.is_trusted or not case.waiting):
        return _by_statement(case, stated)
    if case.waiting:
        return FixTruth(_in_progress(f"#{case.waiting[-1]}"))
    if stated is not None:
        fix = stated.fix
        reason = f"{_speaker(stated)} names {fix.pr}; its state is not stored."
        return FixTruth(FixView(state="in_progress", pr=fix.pr, source=fix.source, reason=reason))
    return FixTruth(_by_state(case))


def _without_earlier(case: FixCase) -> FixCase:
    """Leave out a pull request that the reporter names and that was merged or released before the report.

    Reporters name it because the failure is similar, or because it did not help.
    """
    stated = case.stated
    if stated is None or case.reported_at is None or stated.fix.source not in {"title", "body"}:
        return case
    known = case.history.pulls.get(stated.number or 0, PullHistory())
    tags = {*known.named_in, known.table_tag}
    days = [claim.merged_at for claim in case.claims if claim.number == stated.number]
    days += [release.published_at for release in case.history.releases if release.tag in tags]
    if not any(day is not None and day < case.reported_at for day in days):
        return case
    claims = tuple(claim for claim in case.claims if claim.number != stated.number)
    return replace(case, claims=claims, stated=None)


# ---- merged and reverted


def _reverted(case: FixCase, merged: Iterable[LandedPull]) -> FixView:
    reverted = []
    for pull in merged:
        reverts = case.history.pulls[pull.number].reverted_by
        reverted.append(f"#{pull.number} was merged and reverted by #{max(reverts, key=_timestamp).number}")
    if case.waiting:
        view = _in_progress(f"#{case.waiting[-1]}")
        return view.model_copy(update={"reason": f"{'; '.join(reverted)}. {view.reason}"})
    return FixView(state="not_fixed", source="pull request", reason=f"{'; '.join(reverted)}.")


def _timestamp(item: LandedPull) -> float:
    return item.merged_at.timestamp() if item.merged_at else 0.0


# ---- merged: in which release


def _merged(case: FixCase, active: Sequence[LandedPull]) -> FixTruth:
    """Decide by the merged pull requests: prefer one contained in a full release, then the newest.

    An open issue for which a later pull request waits is not fixed by them.
    """
    newest = max(pull.number for pull in active)
    later = [number for number in case.waiting if number > newest]
    if later and case.state == "open":
        return FixTruth(_in_progress(f"#{later[-1]}", after=f"#{newest}"))
    history = case.history
    found = {item: held_by(history, item) for item in active}
    best = max(found, key=lambda item: (bool(found[item].full), _timestamp(item), item.number))
    held, pr = found[best], f"#{best.number}"
    known = history.pulls.get(best.number, PullHistory())
    if held.full:
        first = held.full[0]
        source, how = "compare", f"found in {first} by GitHub's comparison"
        if any(ordered(tag) == first for tag in known.named_in):
            source, how = "release notes", f"named in the notes of {first}"
        elif known.table_day is not None and ordered(known.table_tag) == first:
            source, how = (
                "release table",
                f"first in {first} by the release table of {known.table_day:%Y-%m-%d}",
            )
        view = FixView(
            state="fixed",
            pr=pr,
            released_in=str(first),
            source=source,
            also_in=tuple(map(str, held.full[1:])),
            reason=f"{pr} is merged and {how}.",
        )
        return FixTruth(view, held)
    stated = case.stated
    if stated and stated.number == best.number and stated.is_trusted and stated.fix.released_in:
        return _by_statement(case, stated, held)
    return FixTruth(_unreleased(history, best, held), held)


def _unreleased(history: History, pull: LandedPull, held: Held) -> FixView:
    pr = f"#{pull.number}"
    reason = f"{pr} is merged; no release is known to hold it yet."
    if held.pre:
        reason = f"{pr} is merged and in the prerelease {held.pre[0]}; no release is known to hold it yet."
    possible = first_possible(history, pull, held)
    if possible is None:
        return FixView(state="merged_unreleased", pr=pr, source="pull request", reason=reason)
    reason = (
        f"{reason[:-5]}. {possible} is the first that came out after the merge; whether it holds the fix is "
        "not known, since a release's branch is cut before its tag."
    )
    return FixView(
        state="merged_unreleased", pr=pr, earliest_possible=possible, source="estimated", reason=reason
    )


# ---- statements


def _is_in_release(case: FixCase, number: int | None) -> bool:
    """True if the notes of a full release or the release table name a pull request: then it is merged."""
    known = case.history.pulls.get(number) if number is not None else None
    tags = {*known.named_in, known.table_tag} if known is not None else set()
    return not calendar_of(case.history.releases).full_tags.isdisjoint(tags)


def _by_statement(case: FixCase, stated: FixStatement, held: Held | None = None) -> FixTruth:
    """Decide by a statement alone: `fixed` only if a maintainer or a card names the release."""
    fix, speaker = stated.fix, _speaker(stated)
    version = ordered(fix.released_in)
    quoted = f'{speaker} says: "{_cut(stated.quote)}".' if stated.quote else f"{speaker} names {fix.pr}."
    if not stated.is_trusted:
        reason = f"{quoted} That it is merged is not known."
        return FixTruth(FixView(state="unknown", pr=fix.pr, source=fix.source, reason=reason))
    if version is None or version.is_prerelease or not fix.pr:
        reason = f"{quoted} No release is named."
        return FixTruth(FixView(state="merged_unreleased", pr=fix.pr, source=fix.source, reason=reason))
    known = held or Held(released=calendar_of(case.history.releases).full)
    view = FixView(state="fixed", pr=fix.pr, released_in=str(version), source=fix.source, reason=quoted)
    return FixTruth(
        view, Held((version,), known.pre, known.lacking - {version}, known.released, known.commits)
    )


def _speaker(stated: FixStatement) -> str:
    if stated.by == "card":
        return "The starter card"
    if stated.by == "maintainer":
        return "A maintainer"
    return "The reporter's text" if stated.fix.source == "body" else "A comment"


def _cut(quote: str) -> str:
    flat = " ".join(quote.split())
    return flat if len(flat) <= QUOTE_CHARS else f"{flat[:QUOTE_CHARS]}…"


# ---- not merged


def _in_progress(pr: str, after: str = "") -> FixView:
    """Return the state of a fix that is worked on; `after` was merged and left the issue open."""
    reason = f"{after} is merged, and the issue is open; {pr} is open, too." if after else f"{pr} is open."
    return FixView(state="in_progress", pr=pr, source="pull request", reason=reason)


def _by_state(case: FixCase) -> FixView:
    if case.state == "open":
        reason = "Open, and no merged pull request is known to fix it."
        return FixView(state="not_fixed", source="issue", reason=reason)
    is_stale = any(label.lower() == "stale" for label in case.labels)
    if case.state_reason in NOT_FIXED_REASONS or is_stale:
        why = "as stale" if is_stale else f"as {(case.state_reason or '').replace('_', ' ')}"
        return FixView(state="closed_unresolved", source="issue", reason=f"Closed {why}; no fix is known.")
    return FixView(state="unknown", source="issue", reason="Closed, but nothing says what fixed it.")


_COMMIT = re.compile(r"(?:^|[+.\-])(?:g([0-9a-f]{7,40})|([0-9a-f]{40}))(?![0-9a-z])")
"""The commit of a build: `+g73f48ce55` in a wheel's version, or the full hash in a nightly image tag."""

_SHORTEST_COMMIT = 7

_Answer = tuple[ForYou, str, Version | None]
"""The answer, a sentence that explains it if unknown, and the release to upgrade to."""


def seen_from(truth: FixTruth, vllm_version: str | None) -> FixView:
    """Return the fix for the caller's version; `released_in` becomes the release to upgrade to."""
    if vllm_version is None:
        return truth.view
    answer, why, goal = _answer_for(truth, vllm_version.strip())
    update: dict[str, object] = {"for_you": answer}
    if why:
        update["reason"] = f"{truth.view.reason} {why}"
    if goal is not None and str(goal) != truth.view.released_in:
        others = {*truth.view.also_in, str(truth.view.released_in)} - {str(goal)}
        update |= {"released_in": str(goal), "also_in": tuple(sorted(others, key=sort_key))}
    return truth.view.model_copy(update=update)


def not_comparable(view: FixView, repo: str) -> FixView:
    """Return the fix for a version of another repository, not comparable with releases of `repo`."""
    if view.state not in {"fixed", "merged_unreleased"}:
        return view.model_copy(update={"for_you": "unknown" if view.state == "unknown" else "not_fixed"})
    reason = f"{view.reason} Your version is not one of {repo}."
    return view.model_copy(update={"for_you": "unknown", "reason": reason.strip()})


def _answer_for(truth: FixTruth, text: str) -> _Answer:
    view, held = truth.view, truth.held
    if view.state not in {"fixed", "merged_unreleased"}:
        return ("unknown" if view.state == "unknown" else "not_fixed"), "", None
    if view.elsewhere is not None:
        return "unknown", f"Whether {text} brings it is not known.", None
    by_commit = _by_commit(held, text)
    mine = ordered(text)
    if mine is None or by_commit:
        why = "" if by_commit else "The version given cannot be ordered among the releases."
        return ("already_included" if by_commit else "unknown"), why, None
    if view.state == "merged_unreleased":
        return _answer_unreleased(view, held, mine, lacks=by_commit is False)
    if by_commit is False or not (mine.is_prerelease or _is_included(held, mine)):
        return _next_release(held, mine)
    return _answer_for_build(held, mine) if mine.is_prerelease else ("already_included", "", None)


def _by_commit(held: Held, text: str) -> bool | None:
    """True if the commit in a build's version contains the fix; None if it has none or was not compared."""
    found = _COMMIT.search(text.lower())
    if found is None:
        return None
    short = found.group(1) or found.group(2)
    return next(
        (
            holds
            for commit, holds in held.commits.items()
            if len(commit) >= _SHORTEST_COMMIT and (commit.startswith(short) or short.startswith(commit))
        ),
        None,
    )


def _answer_unreleased(view: FixView, held: Held, mine: Version, *, lacks: bool) -> _Answer:
    if mine in held.pre or (not lacks and _is_cut_later(held, mine)):
        return "already_included", "", None
    if lacks or mine in held.lacking:
        return "not_fixed", "", None
    possible = ordered(view.earliest_possible) if view.earliest_possible else None
    floor = max((item for item in held.lacking if not item.is_prerelease), default=None)
    if floor is not None and mine <= floor and (possible is None or mine < possible):
        return "not_fixed", "", None
    if mine.is_prerelease and (possible is None or mine < possible):
        return "unknown", f"{mine} is a build that may or may not hold it.", None
    if not mine.is_prerelease and held.released and mine > held.released[-1]:
        return "unknown", f"{mine} is newer than every release that is stored.", None
    return "unknown", f"Whether {mine} holds it is not known.", None


def _is_cut_later(held: Held, mine: Version) -> bool:
    """True if a line of releases began after the merge and before the line of `mine`."""
    if not held.lacking or mine in held.lacking or mine.is_prerelease:
        return False
    began = (item for item in held.released if item.micro == 0 and not item.is_postrelease)
    first = next((item for item in began if item not in held.lacking), None)
    return first is not None and mine.release[:2] > first.release[:2]


def _is_included(held: Held, mine: Version) -> bool:
    if mine in held.full:
        return True
    if mine in held.lacking:
        return False
    line = mine.release[:2]
    same = [item for item in held.full if item.release[:2] == line]
    if same:
        return any(item <= mine for item in same)
    if any(item.release[:2] == line and item <= mine for item in held.lacking):
        return False  # the line was cut without the fix, and no release of it is known to have it back-ported
    return any(item < mine for item in held.full)


def _next_release(held: Held, mine: Version) -> _Answer:
    goal = next((item for item in held.full if item > mine), None)
    return ("upgrade", "", goal) if goal is not None else ("not_fixed", "", None)


def _answer_for_build(held: Held, mine: Version) -> _Answer:
    """Answer for a dev or rc build."""
    if any(item.base_version == mine.base_version and item <= mine for item in held.pre):
        return "already_included", "", None
    if mine in held.lacking:
        return _next_release(held, mine)
    first = next((item for item in held.full if item > mine), None)
    if _is_included(held, mine):
        return "already_included", "", None
    if first is None:
        return "unknown", f"{mine} is a build that may or may not hold it.", None
    last = max((item for item in held.released if item < first and item not in held.full), default=None)
    if not is_before(mine.base_version, str(first)) or (last is not None and mine > last):
        without = f"after {last}, which lacks it, and " if last is not None and mine > last else ""
        why = f"Your build {mine} came {without}before {first}, which has it: it may be either."
        return "unknown", why, None
    return "upgrade", "", first
