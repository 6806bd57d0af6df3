"""Choose by titles and indexes the failures whose facts decide on a stack, or on versions."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.knowledge.possible_versions import REPORTED
from app.knowledge.stack.models import is_of_line, may_be_model
from app.knowledge.stack.relation import title_test
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.standing import OPEN_MINORS, Line, line_of, may_persist
from app.store.derived.facts import REGRESSION_FIELDS, numbers_by_value
from app.store.derived.readings import FailureTitle, duplicates_of, find_failure_titles, links_to

_STILL_FAILING = "regression.still_failing"


@dataclass(frozen=True, slots=True)
class Candidates:
    """The failures to read. `reported`: all that were asked, by the minor line they are reported on."""

    numbers: Sequence[int]
    reported: Mapping[Line | None, Collection[int]]


def find_candidates(
    session: Session, repo_id: int, repo: str, versions: Sequence[str], stack: Stack | None
) -> Candidates:
    """Return the failures reported on these versions or before that may be the stack's, or else persist.

    A report that names no version is left out: its date does not tell which version its reporter ran. One on
    a later version says nothing about these, unless it states a range.
    """
    lines = sorted(filter(None, map(line_of, versions)))
    low, top = lines[0], lines[-1]
    floor = low[0], max(0, low[1] - OPEN_MINORS)
    reported: dict[Line | None, list[int]] = defaultdict(list)
    wanted: set[int] = set()
    likely: set[int] = set()
    for field, value, found in numbers_by_value(session, repo_id, (REPORTED, *REGRESSION_FIELDS, "fix")):
        line, numbers = line_of(value), found.tolist()
        if field == REPORTED:
            reported[line] += numbers
        if field != REPORTED or (line and floor <= line <= top):
            wanted.update(numbers)
        if line is None or (low <= line and (line <= top or field == _STILL_FAILING)):
            likely.update(numbers)
    told = find_failure_titles(session, repo_id, sorted(wanted))
    asked = [one.number for one in told]
    if stack:
        numbers = _of_stack(session, repo_id, stack, told)
    else:
        likely.update(target for *_, target in links_to(session, repo, asked, "fixes"))
        likely.update(duplicates_of(session, repo_id, repo, asked))
        numbers = [
            one.number
            for one in told
            if one.number in likely or may_persist(one.state, one.labels, one.failure_kind)
        ]
    return Candidates(numbers, {line: {*asked}.intersection(found) for line, found in reported.items()})


def _of_stack(session: Session, repo_id: int, stack: Stack, told: Sequence[FailureTitle]) -> list[int]:
    """Return the failures of which a model, an option, a parser or a feature may be the stack's."""
    models = [*numbers_by_value(session, repo_id, ["models"])] if stack.model else []
    mine = {n for _, name, found in models if may_be_model(name, stack) for n in found.tolist()}
    others = {n for _, _, found in models for n in found.tolist()} - mine
    is_named = title_test(stack)
    return [
        one.number
        for one in told
        if one.number in mine
        or is_named(one.title, one.labels)
        or (one.number not in others and is_of_line(one.title, stack))
    ]
