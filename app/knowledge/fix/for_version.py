"""What a fix means for the caller's version: upgrade, already included, not fixed, or unknown and why.

Releases of one line (0.9.x) build on each other; a higher line was cut from main, where the fix is, unless
it is known to lack it. A dev or rc build between the last release without the fix and the first with it may
be either, so it is unknown, unless its commit (`g<sha>`) was compared.
"""

from __future__ import annotations

import re

from app.extract.versions import Version, is_before, ordered, sort_key
from app.knowledge.fix.shapes import FixTruth, FixView, ForYou, Held

_COMMIT = re.compile(r"(?:^|[+.\-])(?:g([0-9a-f]{7,40})|([0-9a-f]{40}))(?![0-9a-z])")
"""A build's commit: `+g73f48ce55` of a wheel, or the whole one in a nightly image's tag."""

_SHORTEST_COMMIT = 7

Seen = tuple[ForYou, str, Version | None]
"""The answer, the sentence that explains an unknown one, and the release to upgrade to."""


def seen_from(truth: FixTruth, vllm_version: str | None) -> FixView:
    """The fix as the caller's version sees it; `released_in` becomes the release to upgrade to."""
    if vllm_version is None:
        return truth.view
    answer, why, goal = _seen(truth, vllm_version.strip())
    update: dict[str, object] = {"for_you": answer}
    if why:
        update["reason"] = f"{truth.view.reason} {why}"
    if goal is not None and str(goal) != truth.view.released_in:
        others = {*truth.view.also_in, str(truth.view.released_in)} - {str(goal)}
        update |= {"released_in": str(goal), "also_in": tuple(sorted(others, key=sort_key))}
    return truth.view.model_copy(update=update)


def not_comparable(view: FixView, repo: str) -> FixView:
    """The fix as a version of another repository sees it: the releases of `repo` tell nothing of that one."""
    if view.state not in {"fixed", "merged_unreleased"}:
        return view.model_copy(update={"for_you": "unknown" if view.state == "unknown" else "not_fixed"})
    reason = f"{view.reason} Your version is not one of {repo}."
    return view.model_copy(update={"for_you": "unknown", "reason": reason.strip()})


def _seen(truth: FixTruth, text: str) -> Seen:
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
        return _of_unreleased(view, held, mine, lacks=by_commit is False)
    if by_commit is False:
        return _above(held, mine)
    return _of_build(held, mine) if mine.is_prerelease else _of_release(held, mine)


def _by_commit(held: Held, text: str) -> bool | None:
    """Whether the commit that a build names holds the fix; None if that was never compared."""
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


def _of_unreleased(view: FixView, held: Held, mine: Version, *, lacks: bool) -> Seen:
    if mine in held.pre:
        return "already_included", "", None
    if lacks or mine in held.lacking:
        return "not_fixed", "", None
    possible = ordered(view.earliest_possible) if view.earliest_possible else None
    floor = max((item for item in held.lacking if not item.is_prerelease), default=None)
    if possible is not None and mine >= possible:
        return "unknown", f"Whether {mine} holds it is not known.", None
    if mine.is_prerelease and (floor is None or mine > floor):
        return "unknown", f"{mine} is a build that may or may not hold it.", None
    if not mine.is_prerelease and held.released and mine > held.released[-1]:
        return "unknown", f"{mine} is newer than every release that is stored.", None
    return "not_fixed", "", None


def _of_release(held: Held, mine: Version) -> Seen:
    if _is_included(held, mine):
        return "already_included", "", None
    return _above(held, mine)


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
        return False  # the line was cut without it, and no release of the line is known to have got it
    return any(item < mine for item in held.full)


def _above(held: Held, mine: Version) -> Seen:
    goal = next((item for item in held.full if item > mine), None)
    return ("upgrade", "", goal) if goal is not None else ("not_fixed", "", None)


def _of_build(held: Held, mine: Version) -> Seen:
    """A dev or rc build."""
    if mine in held.pre or any(_has_base(item, mine) and item <= mine for item in held.pre):
        return "already_included", "", None
    if mine in held.lacking:
        return _above(held, mine)
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


def _has_base(item: Version, mine: Version) -> bool:
    return item.base_version == mine.base_version
