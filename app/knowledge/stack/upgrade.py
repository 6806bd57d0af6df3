"""What an upgrade between two versions fixes and breaks, for a stack or for all failures.

For a stack each failure is judged for both the old and the new version; see `affects`. Without a stack only
the versions decide. A failure with several reports becomes one line: the report with the most activity.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pydantic import Field

from app.errors import InputError, VersionOrderError
from app.extract.facts import Facts, FailureKind, Frozen
from app.extract.redact import mask_secrets
from app.extract.rules.patterns import pattern
from app.extract.versions import is_before, ordered, plain_version
from app.knowledge.fix.decide import seen_from
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import is_vllm
from app.knowledge.issue.stored import IssueHead
from app.knowledge.labels import plural
from app.knowledge.markdown import render_markdown
from app.knowledge.possible_versions import check_possible
from app.knowledge.remedies import Remedy, remedies_of
from app.knowledge.stack.failures import Failures, KnownFailure, load_failures
from app.knowledge.stack.relation import features_of_case, generation_of, is_of_software
from app.knowledge.stack.shapes import Fails
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.standing import line_of
from app.match.search.agreement import model_family
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.weeks import release_dates
from app.store.github.issues import find_repository
from app.store.github.releases import missing_for_fixes
from app.store.session import Store

Touches = Literal["affects", "unsure"]
Verdict = Literal["upgrade", "upgrade_with_remedy", "wait", "nothing_known"]
VERDICTS: dict[Verdict, str] = {
    "upgrade": "Upgrade",
    "upgrade_with_remedy": "Upgrade, with a remedy",
    "wait": "Wait",
    "nothing_known": "Nothing known",
}
LISTS = ("fixed", "breaks", "reported", "still_open", "unsure")
NEW_LISTS = ("breaks", "reported")
"""What `to_version` may bring."""
LINES_MAX = 100
TEXT_LINES_MAX = 15
REMEDY_CONFIDENCE_MIN = 0.8
"""Below it, an extracted remedy is often something that merely works, such as another machine."""
CANDIDATES_MAX = 12
"""Maximum number of releases checked for the newest one without a known break."""
_NO_START = pattern(
    r"(?i)启动.{0,40}(?:失败|崩溃)|部署.{0,40}失败"
    r"|EngineCore failed to start|engine core initialization failed|engine initialization|\bready timeout"
    r"|does not recogni[sz]e this architecture|has model type|no module or parameter named"
    r"|\bfail\w* to (?:load|start|deploy|launch|run|serve)|\bloading fail"
    r"|\b(?:unable|not able) to (?:run|load|start|serve)|\bcan(?:not|'t| not) (?:run|load|start|serve|deploy)"
    r"|\b(?:not|n't) (?:work|start|load)|\bstart-?up\b|NCCL init"
    r"|\barchitectures? \S{0,80} (?:are|is) not supported|\bfailed to be inspected"
)
"""In a title or error: the server does not start."""
_SEVERITY: dict[FailureKind, int] = {
    "wrong_output": 0,
    "crash": 1,
    "hang": 1,
    "exception": 2,
    "oom": 2,
    "install": 3,
    "other": 3,
    "slowdown": 4,
}
"""Sort order: wrong output, then failures that stop a server, then slowdowns."""


class UpgradeLine(IssueHead):
    """One failure that an upgrade touches."""

    opened_at: datetime | None
    failure_kind: FailureKind
    reports: int = Field(description="of the failure, this one among them")
    people: int = Field(description="reactions and comments")
    reason: str = Field(description="why it stands here, in one sentence")
    fix: FixView = Field(description="seen from the version that is left")
    remedy: Remedy | None = Field(None, description="the first one to try; none that is reported to fail")


class Upgrade(Frozen):
    """What an upgrade brings; without a stack its lists are of all failures, and there is no verdict."""

    repo: str
    from_version: str
    to_version: str
    stack: Stack | None
    verdict: Verdict | None
    reasons: tuple[str, ...] = Field(description="why, in sentences")
    are_fixes_known: bool = Field(
        True, description="false where no releases or no pull requests are stored; `reasons` says which"
    )
    fixed: tuple[UpgradeLine, ...] = Field(description="fails in `from_version`, and not in `to_version`")
    breaks: tuple[UpgradeLine, ...] = Field(
        description="fails in `to_version`, and began after `from_version`; without a stack also `reported`"
    )
    reported: tuple[UpgradeLine, ...] = Field(
        (),
        description="for a stack: fails in `to_version`; whether `from_version` has it too is not known",
    )
    still_open: tuple[UpgradeLine, ...] = Field(description="fails in both")
    unsure: tuple[UpgradeLine, ...] = Field(
        (),
        description="may fail in `to_version` for this stack: the reason says what agrees and what decides",
    )
    totals: dict[str, int] = Field(description="how many there are of each; the lists hold 100 at most")
    unreported: tuple[str, ...] = Field((), description="what nobody reported of `to_version`")
    newest_clean: str | None = Field(None, description="newest release after it without a known break")


@dataclass(frozen=True, slots=True)
class Affecting:
    """The failures that affect a stack, one line each.

    `numbers`: the reports that affect it, and those that may: the version has the failure, and the known part
    of the reported environment agrees. An upgrade lists the latter as `unsure`.
    """

    lines: tuple[UpgradeLine, ...] = ()
    numbers: Mapping[Touches, tuple[int, ...]] = field(default_factory=dict)


def compare_versions(
    store: Store, repo: str, from_version: str, to_version: str, stack: Stack | None = None
) -> Upgrade:
    """Return what an upgrade fixes and breaks.

    Raises:
        InputError: a version cannot be ordered, or the repository is not vLLM's.
        VersionOrderError: `from_version` is not the older one.
        UnknownVersionError: a version is not a release.
    """
    if not is_vllm(repo):
        raise InputError(f"{repo}: versions of another repository than vLLM's are not compared.")
    for name, version in (("from", from_version), ("to", to_version)):
        if ordered(version) is None:
            raise InputError(f"{name}: {version[:40]} is no release such as 0.21.0.")
    if not is_before(from_version, to_version):
        raise VersionOrderError(
            f"from: {from_version[:40]} is not older than {to_version[:40]}: give the older version first."
        )
    one, other = plain_version(from_version), plain_version(to_version)
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        check_possible(session, repo_id, "from", one)
        check_possible(session, repo_id, "to", other)
        tags = [ordered(item.tag) for item in release_dates(session, repo_id, full=True)]
        after = sorted(tag for tag in tags if tag and not tag.is_prerelease and is_before(one, str(tag)))
        releases = [str(tag) for tag in after[-CANDIDATES_MAX:]] if stack else []
        failures = load_failures(session, repo_id, repo, (one, other, *releases), stack)
        on_line = sorted(failures.reported.get(line_of(other), ())) if stack else ()
        reports = find_facts_without_evidence(session, repo_id, on_line).values()
        missing = missing_for_fixes(session, repo_id)
    found = _grouped_by_list(failures.known, one, other)
    totals = {name: len(found[name]) for name in LISTS}
    lines = {name: _lines(repo, found[name], one) for name in LISTS}
    clean = _newest_clean(failures, one, releases)
    verdict, reasons = None, _overview(totals, one, other, are_fixes_known=not missing)
    if stack:
        with_remedy = {
            name: sum(_remedy(repo, item) is not None for item, _ in found[name]) for name in NEW_LISTS
        }
        verdict, reasons = _verdict(totals, with_remedy, one, other, clean)
    if missing:
        reasons = (*reasons, _without_fixes(missing, totals["fixed"]))
    return Upgrade(
        repo=repo,
        from_version=one,
        to_version=other,
        stack=stack,
        verdict=verdict,
        reasons=reasons,
        are_fixes_known=not missing,
        totals=totals,
        unreported=_unreported(reports, other, stack) if stack else (),
        newest_clean=clean,
        **lines,
    )


def upgrade_markdown(found: Upgrade) -> str:
    """Render the comparison as Markdown."""
    return render_markdown("upgrade.md", found=found, verdicts=VERDICTS)


def upgrade_text(found: Upgrade) -> str:
    """Render the comparison for a terminal."""
    return render_markdown("upgrade.txt", found=found, verdicts=VERDICTS, lines_max=TEXT_LINES_MAX).rstrip()


def affecting(store: Store, repo: str, stack: Stack) -> Affecting:
    """Return the failures that affect a stack, most severe first; empty if its version cannot be ordered."""
    if stack.vllm is None or ordered(stack.vllm) is None or not is_vllm(repo):
        return Affecting()
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        failures = load_failures(session, repo_id, repo, (stack.vllm,), stack)
    grouped: dict[str, list[tuple[KnownFailure, str]]] = defaultdict(list)
    numbers: dict[Touches, list[int]] = {"affects": [], "unsure": []}
    for item in failures.known:
        found = item.affects(stack.vllm)
        if found.state == "affects":
            grouped[item.group].append((item, found.reason))
            numbers["affects"].append(item.stored.issue.number)
        elif found.state == "unknown" and item.may_affect(stack.vllm):
            numbers["unsure"].append(item.stored.issue.number)
    best = [max(entries, key=lambda entry: _people(entry[0])) for entries in grouped.values()]
    return Affecting(
        _lines(repo, sorted(best, key=lambda entry: _severity(entry[0])), stack.vllm),
        {name: tuple(sorted(found)) for name, found in numbers.items()},
    )


def _grouped_by_list(
    known: Iterable[KnownFailure], one: str, other: str
) -> dict[str, list[tuple[KnownFailure, str]]]:
    """Sort failures into lists, with the reason; one with reports in two lists is mostly `still_open`."""
    grouped: dict[str, list[tuple[str, KnownFailure, str]]] = defaultdict(list)
    for item in known:
        if name := _list_of(item, one, other):
            grouped[item.group].append((name, item, _reason(item, one, other)))
    found: dict[str, list[tuple[KnownFailure, str]]] = {name: [] for name in LISTS}
    for group in grouped.values():
        entries = [entry for entry in group if entry[0] != "unsure"] or group
        names = {name for name, _, _ in entries}
        best = max(entries, key=lambda entry: _people(entry[1]))
        name = best[0] if len(names) == 1 else "breaks" if names == {*NEW_LISTS} else "still_open"
        found[name].append((best[1], best[2]))
    for lines in found.values():
        lines.sort(key=lambda entry: _severity(entry[0]))
    found["unsure"].sort(key=lambda entry: _differences(entry[0]))
    return found


def _list_of(item: KnownFailure, one: str, other: str) -> str | None:
    """Return the list of a failure, or None."""
    before, after = item.standings[one].answer, item.standings[other].answer
    is_mine = item.relation is None or item.relation.answer == "yes"
    if is_mine and after == "yes":
        return _list_of_failing(item, one, before)
    if is_mine and before == "yes" and after == "no":
        return "fixed"
    return "unsure" if item.may_affect(other, since=one) else None


def _list_of_failing(item: KnownFailure, one: str, before: Fails) -> str | None:
    """Return the list of a failure that the new version has; `before`: whether the old one has it."""
    if before != "no" and item.relation and _keeps_from_starting(item):
        return "unsure"
    if before == "yes":
        return "still_open"
    if before == "no" or _began_after(item, one):
        return "breaks"
    is_newer = is_before(one, item.stored.case.facts.versions.get("vllm"))
    return ("reported" if item.relation else "breaks") if is_newer else None


def _keeps_from_starting(item: KnownFailure) -> bool:
    """True for a failure at installation or at the start: who runs the version does not have it.

    A server whose answers are wrong has started, where they are at fault and not the model.
    """
    facts = item.stored.case.facts
    if facts.failure_kind == "wrong_output" and is_of_software(features_of_case(item.stored.case)):
        return False
    error = " ".join((facts.error.line, *facts.error.wrappers)) if facts.error else ""
    words = f"{item.stored.case.title} {error}"
    return facts.failure_kind == "install" or _NO_START.search(words) is not None


def _differences(item: KnownFailure) -> int:
    return len(item.relation.differs) if item.relation else 0


def _reason(item: KnownFailure, one: str, other: str) -> str:
    """Return what is known of both versions and of the stack."""
    before, after = item.standings[one], item.standings[other]
    is_told = before.answer == after.answer or after.reason.startswith(before.reason)
    versions = [after.reason, *([] if is_told else [before.reason])]
    mine = item.relation
    told = dict.fromkeys([*"; ".join(versions).split("; "), *(mine.agrees if mine else ())])
    known = "; ".join(one for one in told if not any(it.startswith(f"{one} ") for it in told))
    differs = [*mine.differs] if mine else []
    if mine and before.answer != "no" and _keeps_from_starting(item):
        differs.append(f"it fails at the start, and yours runs on {one}")
    return f"{known}. Differs or is not known: {'; '.join(differs)}" if differs else known


def _began_after(item: KnownFailure, version: str) -> bool:
    """True if a failure is said to begin after a version."""
    span = item.stored.case.facts.regression
    return span is not None and is_before(version, span.first_failing)


def _lines(repo: str, found: Sequence[tuple[KnownFailure, str]], version: str) -> tuple[UpgradeLine, ...]:
    """Return the first `LINES_MAX` lines of a list."""
    return tuple(_line(repo, item, reason, version) for item, reason in found[:LINES_MAX])


def _severity(item: KnownFailure) -> tuple[int, int, int, int]:
    """Sort key: severity of the kind, then reports, then people."""
    kind = item.stored.case.facts.failure_kind
    return _SEVERITY.get(kind, 3), -item.reports, -_people(item), -item.stored.issue.number


def _line(repo: str, item: KnownFailure, reason: str, version: str) -> UpgradeLine:
    issue, case = item.stored.issue, item.stored.case
    return UpgradeLine(
        repo=repo,
        number=issue.number,
        title=mask_secrets(case.title),
        url=issue.url,
        state=issue.state,
        opened_at=issue.created_at,
        failure_kind=case.facts.failure_kind,
        reports=item.reports,
        people=_people(item),
        reason=f"{mask_secrets(reason[:1].upper() + reason[1:])}.",
        fix=seen_from(case.truth, version),
        remedy=_remedy(repo, item),
    )


def _remedy(repo: str, item: KnownFailure) -> Remedy | None:
    remedies = remedies_of(item.stored.case.facts, repo=repo, url=item.stored.issue.url)
    sure = (one for one in remedies if one.outcome != "fails" and one.confidence >= REMEDY_CONFIDENCE_MIN)
    return next((one for one in sure if one.kind != "version"), None)


def _people(item: KnownFailure) -> int:
    return item.stored.issue.reactions + item.stored.issue.comments


def _newest_clean(failures: Failures, start: str, releases: Sequence[str]) -> str | None:
    """Return the newest release without a known break of something that works in `start`."""
    # A release without reports is unknown, not clean.
    known = (version for version in reversed(releases) if failures.reported.get(line_of(version)))
    lists = ((one, _grouped_by_list(failures.known, start, one)) for one in known)
    return next((one for one, found in lists if not any(found[name] for name in NEW_LISTS)), None)


def _unreported(facts: Collection[Facts], version: str, stack: Stack) -> tuple[str, ...]:
    """Return sentences on the parts of the stack that none of these reports on its minor line names."""
    line = ".".join(map(str, line_of(version) or (0, 0)))
    if not facts:
        return (f"No stored report is of {line}: that nothing is known of it is no good news.",)
    mine = generation_of(stack.gpu) if stack.gpu else None
    is_named = {
        f"{stack.gpu}": not stack.gpu
        or any(stack.gpu in one.gpus or (mine and mine in map(generation_of, one.gpus)) for one in facts),
        f"{stack.family} models": not stack.family
        or any(stack.family in map(model_family, one.models) for one in facts),
    }
    missing = [name for name, found in is_named.items() if not found]
    return tuple(
        f"None of the {plural(len(facts), 'report')} on {line} names {name}: nothing is known of it there."
        for name in missing
    )


def _verdict(
    totals: Mapping[str, int], with_remedy: Mapping[str, int], one: str, other: str, clean: str | None
) -> tuple[Verdict, tuple[str, ...]]:
    """Return verdict and reasons; `with_remedy` counts the lines of `NEW_LISTS` with a remedy."""
    fixed, breaks, still = (totals[name] for name in ("fixed", "breaks", "still_open"))
    reported, new = totals["reported"], breaks + totals["reported"]
    reasons = []
    if fixed:
        reasons.append(f"{plural(fixed, 'failure')} of your stack {_is_are(fixed)} fixed on the way.")
    if breaks:
        known = f"{_is_are(breaks)} known of {other} and not of {one}"
        cure = _with_cure(with_remedy["breaks"])
        reasons.append(f"{plural(breaks, 'failure')} of your stack {known}, {cure}.")
    if reported:
        known = f"{_is_are(reported)} reported on {other}, {_with_cure(with_remedy['reported'])}"
        them = "it" if reported == 1 else "them"
        unknown = f"whether {one} has {them} is not known"
        reasons.append(f"{plural(reported, 'failure')} of your stack {known}; {unknown}.")
    if still:
        reasons.append(f"{plural(still, 'failure')} {_is_are(still)} open on both.")
    if new and clean and clean != other:
        reasons.append(f"{clean} is the newest release without a known break for you.")
    if not reasons:
        reasons.append(f"Nothing stored says that {other} mends or breaks anything for you.")
    verdict: Verdict = "upgrade" if fixed else "nothing_known"
    if new:
        verdict = "upgrade_with_remedy" if sum(with_remedy.values()) == new else "wait"
    return verdict, tuple(reasons)


def _with_cure(count: int) -> str:
    return f"{count} of them with a remedy" if count else "without a known remedy"


def _is_are(count: int) -> str:
    return "is" if count == 1 else "are"


def _overview(totals: Mapping[str, int], one: str, other: str, *, are_fixes_known: bool) -> tuple[str, ...]:
    new, fixed, still = (totals[name] for name in ("breaks", "fixed", "still_open"))
    sentences = (
        f"{plural(new, 'failure')} known of {other} and not of {one}.",
        f"{plural(fixed, 'failure')} of {one} fixed in {other}." if fixed or are_fixes_known else "",
        f"{plural(still, 'failure')} open in both.",
    )
    return tuple(filter(None, sentences))


def _without_fixes(missing: Sequence[str], fixed: int) -> str:
    nothing = " and ".join(f"no {name}" for name in missing)
    return (
        f"{'More fixes' if fixed else 'Fixes'} cannot be known here yet, as {nothing} are stored: "
        "triage sync brings them."
    )
