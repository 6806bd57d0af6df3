"""The fix state of stored issues: loads what is stored and calls `fix.decide`.

An issue closed as a duplicate has the fix of its original. A version is compared only with releases of its
own repository. If the fix is in another repository (FlashInfer fixes a crash of vLLM), the release of this
one that picks it up is unknown, so the issue is never `fixed`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy.orm import Session

from app.extract.facts import Facts, Fix, FixState
from app.extract.text.blocks import MAINTAINER_ASSOCIATIONS
from app.knowledge.fix.decide import decide, landing_of, not_comparable, seen_from
from app.knowledge.fix.shapes import Authority, Claim, FixCase, FixElsewhere, FixStatement, FixTruth, FixView
from app.store.derived.links import find_repositories
from app.store.derived.readings import duplicates_of, find_facts_without_evidence, links_to, quotes_on_fixes
from app.store.github.issues import find_heads
from app.store.github.releases import History, LandedPull, find_history, first_releases_of
from app.store.records import IssueRecord

DUPLICATES_DEEP = 3
"""Longest chain of duplicates that is followed, in steps."""
_KNOWN = frozenset({"fixed", "merged_unreleased", "in_progress"})


def fix_states(
    session: Session,
    repo_id: int,
    repo: str,
    issues: Sequence[IssueRecord],
    facts: Mapping[int, Facts],
    *,
    vllm_version: str | None = None,
    versions_of: str | None = None,
) -> dict[int, FixView]:
    """Return the fix state of each issue for `vllm_version` of `versions_of` (`repo` by default)."""
    truths = fix_truths(session, repo_id, repo, issues, facts)
    if vllm_version is not None and versions_of not in {None, repo}:
        return {number: not_comparable(truth.view, repo) for number, truth in truths.items()}
    return {number: seen_from(truth, vllm_version) for number, truth in truths.items()}


def fix_truths(
    session: Session, repo_id: int, repo: str, issues: Sequence[IssueRecord], facts: Mapping[int, Facts]
) -> dict[int, FixTruth]:
    """Return what is known of the fix of each issue, independent of the caller's version."""
    truths = _truths(session, repo_id, repo, issues, facts)
    return truths | _of_originals(session, repo_id, repo, issues, truths)


def is_vllm(repo: str) -> bool:
    """True if a repository is vLLM or a fork, so that its releases are vLLM releases."""
    return repo.rpartition("/")[2].lower() == "vllm"


def _truths(
    session: Session, repo_id: int, repo: str, issues: Sequence[IssueRecord], facts: Mapping[int, Facts]
) -> dict[int, FixTruth]:
    numbers = [issue.number for issue in issues]
    fixes = {number: fix for number in numbers if number in facts and (fix := facts[number].fix)}
    pointing = links_to(session, repo, numbers, "fixes")
    elsewhere = find_elsewhere(session, repo_id, pointing, {number: fix.pr for number, fix in fixes.items()})
    claims = _claims(repo_id, pointing, fixes)
    wanted = sorted({pull for pulls in claims.values() for pull in pulls})
    heads = {head.number: head for head in find_heads(session, repo_id, wanted)}
    history = find_history(session, repo_id, repo, wanted)
    stated = _statements(session, repo_id, issues, fixes, heads)
    pulls = {n: Claim(n, head.state, head.merged_at) for n, head in heads.items() if head.is_pull_request}
    truths = {}
    for issue in issues:
        case = FixCase(
            state=issue.state,
            state_reason=issue.state_reason,
            reported_at=issue.created_at,
            labels=issue.labels,
            claims=tuple(pulls[n] for n in claims.get(issue.number, ()) if n in pulls),
            stated=stated.get(issue.number),
            history=history if issue.number in claims else History(),
        )
        truths[issue.number] = with_elsewhere(decide(case), elsewhere.get(issue.number))
    return truths


def _claims(
    repo_id: int, pointing: Sequence[tuple[int, int, int]], fixes: Mapping[int, Fix]
) -> dict[int, list[int]]:
    """Return the pull requests named as the fix of each issue, in their own text or in the issue."""
    claims: dict[int, list[int]] = {}
    for from_repo, pull, target in pointing:
        if from_repo == repo_id:
            claims.setdefault(target, []).append(pull)
    for number, fix in fixes.items():
        named = FixStatement(fix).number
        if named is not None and named not in claims.setdefault(number, []):
            claims[number].append(named)
    return claims


def _statements(
    session: Session,
    repo_id: int,
    issues: Sequence[IssueRecord],
    fixes: Mapping[int, Fix],
    stored: Mapping[int, IssueRecord],
) -> dict[int, FixStatement]:
    """Return the statement about each fix. Its quote and author are loaded only if they can decide.

    Statements that name an issue instead of a pull request, or another repository's, are left out.
    """
    stated = {}
    for number, fix in fixes.items():
        named = FixStatement(fix).number
        head = stored.get(named) if named is not None else None
        if parse_pull(fix.pr) is None and (head is None or head.is_pull_request):
            stated[number] = fix, head is None or bool(fix.released_in)
    wanted = [number for number, (fix, decides) in stated.items() if decides and fix.source != "card"]
    words = quotes_on_fixes(session, repo_id, wanted) if wanted else {}
    writers = {issue.number: issue.author_association for issue in issues}
    return {
        number: FixStatement(fix, *_attribution(fix, words.get(number), writers[number]))
        for number, (fix, _) in stated.items()
    }


def _attribution(fix: Fix, words: tuple[str, str | None] | None, writer: str | None) -> tuple[Authority, str]:
    if fix.source == "card":
        return "card", ""
    quote, association = words or ("", None)
    if fix.source in {"title", "body"}:
        association = writer
    return ("maintainer" if association in MAINTAINER_ASSOCIATIONS else "other"), quote


# ---- duplicates


def _of_originals(
    session: Session, repo_id: int, repo: str, issues: Sequence[IssueRecord], truths: Mapping[int, FixTruth]
) -> dict[int, FixTruth]:
    """Return the truth of the original for each issue closed as a duplicate that has no fix of its own."""
    unsolved = [
        issue.number
        for issue in issues
        if issue.state == "closed"
        and (
            issue.state_reason in {"duplicate", "not_planned"} or "duplicate" in map(str.lower, issue.labels)
        )
        and truths[issue.number].view.state in {"closed_unresolved", "unknown"}
    ]
    repeats = duplicates_of(session, repo_id, repo, unsolved, deep=DUPLICATES_DEEP)
    chains = {number: _chain(number, repeats) for number in unsolved}
    wanted = sorted({end for chain in chains.values() for end in chain})
    if not wanted:
        return {}
    originals = [issue for issue in find_heads(session, repo_id, wanted) if not issue.is_pull_request]
    facts = find_facts_without_evidence(session, repo_id, wanted)
    known = _truths(session, repo_id, repo, originals, facts)
    fixed = {number for number, truth in known.items() if truth.view.state in _KNOWN}
    found: dict[int, FixTruth] = {}
    for number, chain in chains.items():
        if original := next((end for end in chain if end in fixed), None):
            truth = known[original]
            reason = f"A duplicate of #{original}: {truth.view.reason}"
            found[number] = FixTruth(truth.view.model_copy(update={"reason": reason}), truth.held)
    return found


def _chain(number: int, repeats: Mapping[int, int]) -> list[int]:
    """Return the issues that one is a duplicate of, nearest first; stops at a cycle."""
    chain: list[int] = []
    end = number
    while len(chain) < DUPLICATES_DEEP and repeats.get(end, number) != number:
        end = repeats[end]
        chain.append(end)
    return chain


Pull = tuple[str, int]
"""Repository and number of a pull request."""
_OPEN = frozenset({"not_fixed", "closed_unresolved", "unknown"})
RANK = {"merged": 0, "open": 1, "unknown": 2, "closed": 3}


def parse_pull(name: str | None) -> Pull | None:
    """Split `owner/name#1`; None for a pull request of the same repository, or none."""
    repo, _, digits = (name or "").rpartition("#")
    return (repo, int(digits)) if "/" in repo and digits.isdigit() else None


def find_elsewhere(
    session: Session,
    repo_id: int,
    pointing: Iterable[tuple[int, int, int]],
    named_by: Mapping[int, str | None],
) -> dict[int, FixElsewhere]:
    """Return for each issue the most certain fix in another repository, if any.

    Args:
        pointing: closing links of pull requests: (repository key, pull request, issue). Links within the
            issues' own repository are ignored.
        named_by: by issue, the pull request named in it.
    """
    claims = [(key, pull, issue) for key, pull, issue in pointing if key != repo_id]
    named = {issue: pull for issue, name in named_by.items() if (pull := parse_pull(name)) is not None}
    if not claims and not named:
        return {}
    names = find_repositories(session)
    known = {name.lower(): name for name in names.values()}
    wanted: dict[int, set[Pull]] = defaultdict(set)
    for key, number, target in claims:
        wanted[target].add((names[key], number))
    for target, (repo, number) in named.items():
        wanted[target].add((known.get(repo.lower(), repo), number))
    states = _pulls(session, names, sorted({pull for pulls in wanted.values() for pull in pulls}))
    best = {
        n: min(
            (states[pull] for pull in pulls),
            key=lambda found: (RANK[found.state], found.released_in is None, found.pr),
        )
        for n, pulls in wanted.items()
    }
    return {issue: found for issue, found in best.items() if found.state != "closed"}


def with_elsewhere(truth: FixTruth, other: FixElsewhere | None) -> FixTruth:
    """Return the truth with the fix of another repository, if none in its own is known."""
    if other is None or truth.view.pr or truth.view.state not in _OPEN:
        return truth
    held = f" and in {other.repo} {other.released_in}" if other.released_in else ""
    state: FixState = "merged_unreleased"
    reason = f"{other.pr} is merged{held}; no release here is known to bring it."
    if other.state == "open":
        state, reason = "in_progress", f"{other.pr} is open."
    elif other.state == "unknown":
        state, reason = "unknown", f"The issue's people name {other.pr}, of which nothing is stored."
    source = "pull request" if state != "unknown" else None
    return FixTruth(FixView(state=state, pr=other.pr, source=source, elsewhere=other, reason=reason))


def _pulls(session: Session, names: Mapping[int, str], pulls: Sequence[Pull]) -> dict[Pull, FixElsewhere]:
    found: dict[Pull, FixElsewhere] = {}
    for key, repo in names.items():
        numbers = [number for name, number in pulls if name == repo]
        heads = {head.number: head for head in find_heads(session, key, numbers) if head.is_pull_request}
        merged = [number for number, head in heads.items() if head.merged_at is not None]
        history = find_history(session, key, repo, merged)
        releases = first_releases_of(session, key, merged) if merged else {}
        for number, head in heads.items():
            landed = landing_of(history, LandedPull(number, head.merged_at)) if head.merged_at else None
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
