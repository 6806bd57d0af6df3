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
from app.store.derived.readings import duplicates_of, find_failure_titles, links_to

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
    wanted: set[int] = set()
    likely: set[int] = set()
    for field, value, found in numbers_by_value(session, repo_id, (REPORTED, *REGRESSION_FIELDS, "fix")):
        line, numbers = line_of(value), found.tolist()
        if field == REPORTED:
            reported[line].update(numbers)
        if field != REPORTED or (line and floor <= line <= top):
            wanted.update(numbers)
        if field in _OF_OTHERS or line is None or low <= line <= top:
            likely.update(numbers)
    told = find_failure_titles(session, repo_id, sorted(wanted))
    asked = {number for number, *_ in told}
    if stack:
        models = [*numbers_by_value(session, repo_id, ["models"])] if stack.model else []
        likely = {n for _, name, found in models if may_be_model(name, stack) for n in found.tolist()}
        others = {n for _, _, found in models for n in found.tolist()} - likely
        is_named = title_test(stack)
        likely |= {number for number, title, labels, *_ in told if is_named(title, labels)}
        likely |= {n for n, title, *_ in told if n not in others and is_of_line(title, stack)}
    else:
        likely |= {target for *_, target in links_to(session, repo, [*asked], "fixes")}
        likely |= duplicates_of(session, repo_id, repo, [*asked]).keys()
        likely |= {n for n, _, labels, state, kind in told if may_persist(state, labels, kind)}
    return sorted(likely & asked), {line: found & asked for line, found in reported.items()}
