"""The fix state of stored issues: reads what the archive knows, and has it decided in `fix_truth`.

In: issues with their facts. Out: a `FixView` for each, seen from the caller's version where one is given. An
issue that was closed as a duplicate has the fix of the issue it repeats. A version is compared with releases
of its own repository only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlmodel import Session

from app.extract.facts import Facts
from app.extract.text.blocks import MAINTAINER_ASSOCIATIONS
from app.knowledge.fix.decide import decide
from app.knowledge.fix.for_version import not_comparable, seen_from
from app.knowledge.fix.other_repositories import find_elsewhere, parse_pull, with_elsewhere
from app.knowledge.fix.shapes import Authority, Claim, FixCase, FixTruth, FixView, Saying
from app.store.derived.readings import duplicates_of, find_facts_without_evidence, links_to, words_on_fixes
from app.store.github.fix_containment import History, find_history
from app.store.github.issues import find_heads
from app.store.records import IssueRecord

DUPLICATES_DEEP = 3
"""How long a chain of duplicates is followed."""
DUPLICATE_LABELS = frozenset({"duplicate"})
_TOLD = frozenset({"fixed", "merged_unreleased", "in_progress"})


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
    """The fix state of each issue, as `vllm_version` sees it.

    Args:
        versions_of: the repository whose version that is; this one where it is None.
    """
    truths = _truths(session, repo_id, repo, issues, facts)
    truths |= _of_originals(session, repo_id, repo, issues, truths)
    if vllm_version is not None and versions_of not in {None, repo}:
        return {number: not_comparable(truth.view, repo) for number, truth in truths.items()}
    return {number: seen_from(truth, vllm_version) for number, truth in truths.items()}


def is_vllm(repo: str) -> bool:
    """Whether a repository is vLLM or a copy of it, so that its releases are those of vLLM."""
    return repo.rpartition("/")[2].lower() == "vllm"


def _truths(
    session: Session, repo_id: int, repo: str, issues: Sequence[IssueRecord], facts: Mapping[int, Facts]
) -> dict[int, FixTruth]:
    pointing = links_to(session, repo, [issue.number for issue in issues], "fixes")
    claims = _claims(repo_id, pointing, issues, facts)
    told = {number: one.fix.pr for number, one in facts.items() if one.fix}
    elsewhere = find_elsewhere(session, repo_id, pointing, told)
    wanted = sorted({pull for pulls in claims.values() for pull in pulls})
    pulls = {head.number: head for head in find_heads(session, repo_id, wanted)}
    history = find_history(session, repo_id, repo, wanted)
    said = _sayings(session, repo_id, issues, facts, pulls)
    pulls = {number: pull for number, pull in pulls.items() if pull.is_pull_request}
    return {
        issue.number: with_elsewhere(
            decide(
                FixCase(
                    state=issue.state,
                    state_reason=issue.state_reason,
                    labels=issue.labels,
                    claims=tuple(_claim(pulls[n]) for n in claims.get(issue.number, ()) if n in pulls),
                    said=said.get(issue.number),
                    history=history if issue.number in claims else History(),
                )
            ),
            elsewhere.get(issue.number),
        )
        for issue in issues
    }


def _claims(
    repo_id: int,
    pointing: Sequence[tuple[int, int, int]],
    issues: Sequence[IssueRecord],
    facts: Mapping[int, Facts],
) -> dict[int, list[int]]:
    """Which pull requests are said to fix each issue: by their own text, or by the issue's people."""
    claims: dict[int, list[int]] = {}
    numbers = [issue.number for issue in issues]
    for from_repo, pull, target in pointing:
        if from_repo == repo_id:
            claims.setdefault(target, []).append(pull)
    for number in numbers:
        told = facts[number].fix if number in facts else None
        named = Saying(told).number if told else None
        if named is not None and named not in claims.setdefault(number, []):
            claims[number].append(named)
    return claims


def _claim(pull: IssueRecord) -> Claim:
    return Claim(pull.number, pull.state, pull.merged_at)


def _sayings(
    session: Session,
    repo_id: int,
    issues: Sequence[IssueRecord],
    facts: Mapping[int, Facts],
    stored: Mapping[int, IssueRecord],
) -> dict[int, Saying]:
    """What is said of each fix. Who says it, and how, is looked up only where it may decide.

    Words that name an issue for a pull request are left out, and those that name another repository's.
    """
    told = {
        issue.number: Saying(fix)
        for issue in issues
        if issue.number in facts
        and (fix := facts[issue.number].fix) is not None
        and parse_pull(fix.pr) is None
    }
    told = {
        number: saying
        for number, saying in told.items()
        if saying.number is None or saying.number not in stored or stored[saying.number].is_pull_request
    }
    wanted = [
        number
        for number, saying in told.items()
        if saying.fix.source != "card" and (saying.number not in stored or saying.fix.released_in)
    ]
    words = words_on_fixes(session, repo_id, wanted) if wanted else {}
    writers = {issue.number: issue.author_association for issue in issues}
    return {
        number: Saying(saying.fix, *_words(saying, words.get(number), writers[number]))
        for number, saying in told.items()
    }


def _words(saying: Saying, words: tuple[str, str | None] | None, writer: str | None) -> tuple[Authority, str]:
    if saying.fix.source == "card":
        return "card", ""
    quote, association = words or ("", None)
    if saying.fix.source in {"title", "body"}:
        association = writer
    return ("maintainer" if association in MAINTAINER_ASSOCIATIONS else "other"), quote


# ---- duplicates


def _of_originals(
    session: Session,
    repo_id: int,
    repo: str,
    issues: Sequence[IssueRecord],
    truths: Mapping[int, FixTruth],
) -> dict[int, FixTruth]:
    """The truth of the original for each issue that was closed as its duplicate and has no fix of its own."""
    open_ends = {
        issue.number: issue.number
        for issue in issues
        if _may_repeat(issue) and truths[issue.number].view.state in {"closed_unresolved", "unknown"}
    }
    found: dict[int, FixTruth] = {}
    for _ in range(DUPLICATES_DEEP if open_ends else 0):
        targets = duplicates_of(session, repo_id, repo, sorted(set(open_ends.values())))
        open_ends = {
            number: targets[end]
            for number, end in open_ends.items()
            if end in targets and targets[end] != number
        }
        if not open_ends:
            break
        wanted = sorted(set(open_ends.values()))
        originals = [issue for issue in find_heads(session, repo_id, wanted) if not issue.is_pull_request]
        known = _truths(
            session, repo_id, repo, originals, find_facts_without_evidence(session, repo_id, wanted)
        )
        for number, original in list(open_ends.items()):
            if original in known and known[original].view.state in _TOLD:
                found[number] = _repeated(known[original], original)
                del open_ends[number]
    return found


def _may_repeat(issue: IssueRecord) -> bool:
    if issue.state != "closed":
        return False
    has_label = not DUPLICATE_LABELS.isdisjoint(label.lower() for label in issue.labels)
    return has_label or issue.state_reason in {"duplicate", "not_planned"}


def _repeated(truth: FixTruth, original: int) -> FixTruth:
    reason = f"A duplicate of #{original}: {truth.view.reason}"
    return FixTruth(truth.view.model_copy(update={"reason": reason}), truth.held)
