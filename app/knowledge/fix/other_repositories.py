"""Fixes that are made in another repository: a crash of vLLM that a pull request of FlashInfer mends.

Which release here brings such a fix is unknown, so its issue is never called fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlmodel import Session

from app.knowledge.fix.decide import landing_of
from app.knowledge.fix.shapes import FixElsewhere, FixTruth, FixView
from app.store.derived.links import find_repositories
from app.store.github.fix_containment import Landed, find_history
from app.store.github.issues import find_heads
from app.store.github.releases import first_releases_of

Pull = tuple[str, int]
"""Repository, as it is written where the pull request is named, and number."""
_OPEN = frozenset({"not_fixed", "closed_unresolved", "unknown"})
RANK = {"merged": 0, "open": 1, "unknown": 2, "closed": 3}


def parse_pull(name: str | None) -> Pull | None:
    """`owner/name#1` in parts; None for a pull request of the same repository, or none."""
    repo, _, digits = (name or "").rpartition("#")
    return (repo, int(digits)) if "/" in repo and digits.isdigit() else None


def find_elsewhere(
    session: Session,
    repo_id: int,
    pointing: Iterable[tuple[int, int, int]],
    named_by: Mapping[int, str | None],
) -> dict[int, FixElsewhere]:
    """For each issue the pull request of another repository that is said to fix it, the surest one.

    Args:
        pointing: links of pull requests to the issues that they say they close: (repository's key, number,
            issue). Those of the issues' own repository are left out.
        named_by: by issue the pull request that its people name.
    """
    claims = [(key, pull, issue) for key, pull, issue in pointing if key != repo_id]
    named = {issue: pull for issue, name in named_by.items() if (pull := parse_pull(name)) is not None}
    if not claims and not named:
        return {}
    names = find_repositories(session)
    wanted: dict[int, set[Pull]] = {}
    for key, number, target in claims:
        wanted.setdefault(target, set()).add((names[key], number))
    known = {name.lower(): name for name in names.values()}
    for target, (repo, number) in named.items():
        wanted.setdefault(target, set()).add((known.get(repo.lower(), repo), number))
    standing = _standing(session, names, sorted({pull for pulls in wanted.values() for pull in pulls}))
    best = {issue: min((standing[pull] for pull in pulls), key=_order) for issue, pulls in wanted.items()}
    return {issue: found for issue, found in best.items() if found.state != "closed"}


def with_elsewhere(truth: FixTruth, other: FixElsewhere | None) -> FixTruth:
    """The truth with the fix of another repository, where none of its own is known."""
    if other is None or truth.view.pr or truth.view.state not in _OPEN:
        return truth
    if other.state == "open":
        reason, source = f"{other.pr} is open.", "pull request"
        return FixTruth(
            FixView(state="in_progress", pr=other.pr, source=source, elsewhere=other, reason=reason)
        )
    if other.state == "unknown":
        reason = f"The issue's people name {other.pr}, of which nothing is stored."
        return FixTruth(FixView(state="unknown", pr=other.pr, elsewhere=other, reason=reason))
    held = f" and named in the notes of {other.repo} {other.released_in}" if other.released_in else ""
    reason = f"{other.pr} is merged{held}; no release here is known to bring it."
    return FixTruth(
        FixView(state="merged_unreleased", pr=other.pr, source="pull request", elsewhere=other, reason=reason)
    )


def _standing(session: Session, names: Mapping[int, str], pulls: Sequence[Pull]) -> dict[Pull, FixElsewhere]:
    found: dict[Pull, FixElsewhere] = {}
    for key, repo in names.items():
        numbers = [number for name, number in pulls if name == repo]
        heads = {head.number: head for head in find_heads(session, key, numbers) if head.is_pull_request}
        merged = [number for number, head in heads.items() if head.merged_at is not None]
        history = find_history(session, key, repo, merged)
        releases = first_releases_of(session, key, merged) if merged else {}
        for number, head in heads.items():
            landed = landing_of(history, Landed(number, head.merged_at)) if head.merged_at else None
            release = releases.get(number, "").removeprefix("v") or None
            found[repo, number] = FixElsewhere(
                repo=repo,
                pr=f"{repo}#{number}",
                state="merged" if landed else "open" if head.state == "open" else "closed",
                released_in=release if landed and landed.number == number else None,
            )
    for repo, number in pulls:
        unknown = FixElsewhere(repo=repo, pr=f"{repo}#{number}", state="unknown")
        found.setdefault((repo, number), unknown)
    return found


def _order(found: FixElsewhere) -> tuple[int, bool, str]:
    return RANK[found.state], found.released_in is None, found.pr
