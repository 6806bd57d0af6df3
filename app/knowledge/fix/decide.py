"""Whether an issue is fixed, decided from frozen facts alone: no database, no network, no guess.

In: a `FixCase`. Out: a `FixTruth`: the `FixView` and what tells which versions hold the fix. `fixed` always
has a pull request and a release: named by the release's notes, or found in it by GitHub's comparison, or in
a maintainer's or starter card's words. A revert takes a fix back; a re-landing brings it back with the
re-landing's own release. "Closed" alone is not "fixed".
"""

from __future__ import annotations

from collections.abc import Iterable

from app.extract.versions import ordered
from app.knowledge.fix.releases import calendar_of, first_possible, held_by, landing_of
from app.knowledge.fix.shapes import FixCase, FixStatement, FixTruth, FixView, Held
from app.store.github.fix_containment import History, Landed, PullHistory

STALE_LABELS = frozenset({"stale"})
NOT_FIXED_REASONS = frozenset({"not_planned", "duplicate"})
QUOTE_CHARS = 200


def decide(case: FixCase) -> FixTruth:
    """The state of the fix."""
    merged = [Landed(claim.number, claim.merged_at) for claim in case.claims if claim.merged_at is not None]
    waiting = [claim for claim in case.claims if claim.state == "open"]
    # What people state counts where the pull request that they name is not stored.
    stated = case.stated
    if stated is not None and stated.number in {claim.number for claim in case.claims}:
        stated = None
    if stated is not None and _is_named(case, stated.number):
        merged.append(Landed(stated.number or 0, None))
    standing = [landed for pull in merged if (landed := landing_of(case.history, pull)) is not None]
    if standing:
        return _merged(case, standing)
    if merged:
        return FixTruth(_taken_back(case, merged))
    if stated is not None and stated.fix.state != "in_progress" and (stated.is_trusted or not waiting):
        return _by_words(case, stated)
    if waiting:
        return FixTruth(_in_progress(f"#{waiting[-1].number}"))
    if stated is not None:
        fix = stated.fix
        reason = f"{_speaker(stated)} names {fix.pr}; its state is not stored."
        return FixTruth(FixView(state="in_progress", pr=fix.pr, source=fix.source, reason=reason))
    return FixTruth(_by_state(case))


# ---- merged, and taken back


def _taken_back(case: FixCase, merged: Iterable[Landed]) -> FixView:
    undone = []
    for pull in merged:
        reverts = case.history.pulls[pull.number].reverted_by
        undone.append(f"#{pull.number} was merged and taken back by #{max(reverts, key=_moment).number}")
    waiting = [claim for claim in case.claims if claim.state == "open"]
    if waiting:
        view = _in_progress(f"#{waiting[-1].number}")
        return view.model_copy(update={"reason": f"{'; '.join(undone)}. {view.reason}"})
    return FixView(state="not_fixed", source="pull request", reason=f"{'; '.join(undone)}.")


def _moment(item: Landed) -> float:
    return item.merged_at.timestamp() if item.merged_at else 0.0


# ---- merged: in which release


def _merged(case: FixCase, standing: Iterable[Landed]) -> FixTruth:
    """The fix by a merged pull request: one that a release holds, else the newest."""
    history = case.history
    found = {item: held_by(history, item) for item in standing}
    best = max(found, key=lambda item: (bool(found[item].full), _moment(item), item.number))
    held, pr = found[best], f"#{best.number}"
    known = history.pulls.get(best.number, PullHistory())
    if held.full:
        first = held.full[0]
        by_notes = any(ordered(tag) == first for tag in known.named_in)
        how = f"named in the notes of {first}" if by_notes else f"found in {first} by GitHub's comparison"
        source = "release notes" if by_notes else "compare"
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
        return _by_words(case, stated, held)
    return FixTruth(_unreleased(history, best, held), held)


def _unreleased(history: History, pull: Landed, held: Held) -> FixView:
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


# ---- what people state


def _is_named(case: FixCase, number: int | None) -> bool:
    """Whether a pull request that is not stored stands in a release's notes: then it is merged."""
    known = case.history.pulls.get(number) if number is not None else None
    return known is not None and not calendar_of(case.history.releases).full_tags.isdisjoint(known.named_in)


def _by_words(case: FixCase, stated: FixStatement, held: Held | None = None) -> FixTruth:
    """By words alone: `fixed` only if a maintainer or a card names the release."""
    fix, words = stated.fix, _speaker(stated)
    version = ordered(fix.released_in)
    quoted = f'{words} says: "{_cut(stated.quote)}".' if stated.quote else f"{words} names {fix.pr}."
    if not stated.is_trusted:
        reason = f"{quoted} That it is merged is not known."
        return FixTruth(FixView(state="unknown", pr=fix.pr, source=fix.source, reason=reason))
    if version is None or version.is_prerelease or not fix.pr:
        reason = f"{quoted} No release is named."
        return FixTruth(FixView(state="merged_unreleased", pr=fix.pr, source=fix.source, reason=reason))
    known = held or Held(released=calendar_of(case.history.releases).full)
    view = FixView(state="fixed", pr=fix.pr, released_in=str(version), source=fix.source, reason=quoted)
    return FixTruth(
        view,
        Held((version,), known.pre, known.lacking - {version}, known.released, known.commits),
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


def _in_progress(pr: str) -> FixView:
    return FixView(state="in_progress", pr=pr, source="pull request", reason=f"{pr} is open.")


def _by_state(case: FixCase) -> FixView:
    if case.state == "open":
        reason = "Open, and no merged pull request is known to fix it."
        return FixView(state="not_fixed", source="issue", reason=reason)
    is_stale = not STALE_LABELS.isdisjoint(label.lower() for label in case.labels)
    if case.state_reason in NOT_FIXED_REASONS or is_stale:
        why = "as stale" if is_stale else f"as {(case.state_reason or '').replace('_', ' ')}"
        return FixView(state="closed_unresolved", source="issue", reason=f"Closed {why}; no fix is known.")
    return FixView(state="unknown", source="issue", reason="Closed, but nothing says what fixed it.")
