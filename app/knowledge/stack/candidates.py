"""Choose by titles and indexes the failures whose facts decide on a stack, or on versions."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.knowledge.possible_versions import REPORTED
from app.knowledge.stack.models import is_of_line, may_be_model
from app.knowledge.stack.relation import title_test
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.standing import OPEN_MINORS, Line, line_of, may_persist
from app.store.derived.facts import REGRESSION_FIELDS, numbers_by_value
from app.store.derived.readings import FailureTitle, duplicates_of, find_failure_titles, links_to

_OF_OTHERS = frozenset({"fix", "regression.still_failing"})
"""Facts that may say something of versions which they do not name."""


def find_candidates(
    session: Session, repo_id: int, repo: str, versions: Sequence[str], stack: Stack | None
) -> tuple[list[int], dict[Line | None, set[int]]]:
    """Choose among the failures reported on these versions or before; return also all of them by minor line.

    Chosen are those that may be the stack's; without one, those that the versions may have. A report that
    names no version is left out: its date does not tell which one its reporter ran. A report on a later
    version says nothing about these, unless it states a range.
    """
    lines = sorted(filter(None, map(line_of, versions)))
    low, top = lines[0], lines[-1]
    floor = low[0], max(0, low[1] - OPEN_MINORS)
    reported: dict[Line | None, set[int]] = defaultdict(set)
    reached: set[int] = set()
    named: set[int] = set()
    for field, value, found in numbers_by_value(session, repo_id, (REPORTED, *REGRESSION_FIELDS, "fix")):
        line, numbers = line_of(value), found.tolist()
        if field == REPORTED:
            reported[line].update(numbers)
        if field != REPORTED or (line and floor <= line <= top):
            reached.update(numbers)
        if field in _OF_OTHERS or line is None or low <= line <= top:
            named.update(numbers)
    titles = find_failure_titles(session, repo_id, sorted(reached))
    asked = {number for number, *_ in titles}
    if stack:
        chosen = _of_stack(session, repo_id, titles, stack)
    else:
        chosen = named | {target for *_, target in links_to(session, repo, [*asked], "fixes")}
        chosen |= duplicates_of(session, repo_id, repo, [*asked]).keys()
        chosen |= {n for n, _, labels, state, kind in titles if may_persist(state, labels, kind)}
    return sorted(chosen & asked), {line: found & asked for line, found in reported.items()}


def _of_stack(session: Session, repo_id: int, titles: Sequence[FailureTitle], stack: Stack) -> set[int]:
    """Choose the failures that name the stack's model or one of its options, or that name no model."""
    models = [*numbers_by_value(session, repo_id, ["models"])] if stack.model else []
    chosen = {n for _, name, found in models if may_be_model(name, stack) for n in found.tolist()}
    others = {n for _, _, found in models for n in found.tolist()} - chosen
    is_named = title_test(stack)
    chosen |= {number for number, title, labels, *_ in titles if is_named(title, labels)}
    return chosen | {n for n, title, *_ in titles if n not in others and is_of_line(title, stack)}
