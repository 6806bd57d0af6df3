"""Whether an issue is fixed, in which release, and what that means for the caller's version.

In: an issue's record, its facts and the pull requests that say they fix it. Out: `FixView`. Never `fixed`
without a merged pull request, or a card's or maintainer's word that is quoted. "Closed" alone is not
"fixed". Versions are ordered as PEP 440 orders them; a dev or rc build between the last release without
the fix and the first with it gets `unknown`.
"""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version
from sqlmodel import Session

from app.extract.facts import Facts, Fix
from app.knowledge.answers import FixView, ForYou
from app.store.issues import find_issues
from app.store.readings import links_to
from app.store.records import IssueRecord
from app.store.releases import first_releases_of

STALE_LABELS = frozenset({"stale"})
NOT_FIXED_REASONS = frozenset({"not_planned", "duplicate"})


def fix_states(
    session: Session, repo_id: int, repo: str, issues: Sequence[IssueRecord], facts: dict[int, Facts]
) -> dict[int, FixView]:
    """The fix state of each issue, without regard to a version."""
    numbers = [issue.number for issue in issues]
    claims: dict[int, list[int]] = {}
    for from_repo, pull, target in links_to(session, repo, numbers, "fixes"):
        if from_repo == repo_id:
            claims.setdefault(target, []).append(pull)
    for number in numbers:
        said = facts[number].fix if number in facts else None
        if said and said.pr and said.pr.removeprefix("#").isdigit():
            claims.setdefault(number, []).append(int(said.pr.removeprefix("#")))
    wanted = sorted({pull for pulls in claims.values() for pull in pulls})
    pulls = {pull.number: pull for pull in find_issues(session, repo_id, wanted) if pull.is_pull_request}
    releases = first_releases_of(session, repo_id, wanted)
    return {
        issue.number: _state(
            issue, facts.get(issue.number), [pulls[n] for n in claims.get(issue.number, ()) if n in pulls],
            releases,
        )
        for issue in issues
    }  # fmt: skip


def _state(
    issue: IssueRecord, facts: Facts | None, pulls: Sequence[IssueRecord], releases: dict[int, str]
) -> FixView:
    said = facts.fix if facts else None
    merged = [pull for pull in pulls if pull.merged_at is not None]
    if merged:
        return _merged(merged, said, releases)
    if said and said.state in {"fixed", "merged_unreleased"}:
        return _said(said)
    waiting = [pull for pull in pulls if pull.state == "open"]
    if waiting:
        pr = f"#{waiting[-1].number}"
        return FixView(state="in_progress", pr=pr, source="pull request", reason=f"{pr} is open.")
    return _said(said) if said and said.state == "in_progress" else _by_state(issue)


def _merged(merged: Sequence[IssueRecord], said: Fix | None, releases: dict[int, str]) -> FixView:
    """The fix by a merged pull request: the one a release names, else the newest."""
    newest = max(merged, key=lambda pull: (pull.number in releases, pull.merged_at))
    pr = f"#{newest.number}"
    if newest.number in releases:
        version = releases[newest.number].removeprefix("v")
        return FixView(
            state="fixed", pr=pr, released_in=version, source="release notes",
            reason=f"{pr} is merged and named in the notes of {version}.",
        )  # fmt: skip
    if said and said.pr == pr and said.released_in:
        return _said(said)
    reason = f"{pr} is merged; no release notes name it yet."
    return FixView(state="merged_unreleased", pr=pr, source="pull request", reason=reason)


def _said(said: Fix) -> FixView:
    words = {"card": "The starter card names it.", "body": "The reporter's text names it."}
    return FixView(
        state=said.state, pr=said.pr, released_in=said.released_in, source=said.source,
        reason=words.get(said.source or "", "A comment names it."),
    )  # fmt: skip


def _by_state(issue: IssueRecord) -> FixView:
    if issue.state == "open":
        reason = "Open, and no pull request is known to close it."
        return FixView(state="not_fixed", source="issue", reason=reason)
    if issue.state_reason in NOT_FIXED_REASONS or STALE_LABELS & set(issue.labels):
        why = "as stale" if STALE_LABELS & set(issue.labels) else f"as {issue.state_reason}"
        why = why.replace("_", " ")
        return FixView(
            state="closed_unresolved", source="issue", reason=f"Closed {why}; no fix is known."
        )  # fmt: skip
    return FixView(state="unknown", source="issue", reason="Closed, but nothing says what fixed it.")


def seen_from(fix: FixView, vllm_version: str | None) -> FixView:
    """The fix as the caller's version sees it."""
    if vllm_version is None:
        return fix
    return fix.model_copy(update={"for_you": _for_you(fix, vllm_version)})


def _for_you(fix: FixView, vllm_version: str) -> ForYou:
    if fix.state in {"not_fixed", "in_progress", "merged_unreleased", "closed_unresolved"}:
        return "not_fixed"
    if fix.state != "fixed" or fix.released_in is None:
        return "unknown"
    try:
        mine, first = Version(vllm_version.split("+", maxsplit=1)[0]), Version(fix.released_in)
    except InvalidVersion:
        return "unknown"
    if mine.is_prerelease and mine.base_version == first.base_version:
        return "unknown"
    if mine.is_prerelease and mine < first and Version(mine.base_version) >= first:
        return "unknown"
    return "already_included" if mine >= first else "upgrade"
