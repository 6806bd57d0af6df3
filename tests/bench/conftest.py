"""A base with a few failures of our own, of known days, and cases pinned over it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from app.bench.cases import Case, Foreign, Pinned, Question, RealLog, plain_lines
from app.bench.run import BenchRun, run
from app.knowledge.indexing.derive import derive_issues
from app.store.github.issues import add_repository, save_issues
from app.store.records import IssueRecord
from app.store.session import Store
from tests.benchmarks.choose import a_case as make_case
from tests.benchmarks.choose import log_span
from tests.samples import EARLY, FOREIGN_LOG, REPO, a_traceback, an_issue, fenced, marlin_log, rope_log

MARLIN_ERROR = "Weight output_size_per_partition = 4544 is not divisible by min_thread_n = 64."
NEW_ERROR = "the planner of today cannot be copied"
NEW_LOG = a_traceback(f"TypeError: {NEW_ERROR}", "vllm/new/room.py:enter") + "\n"
MARLIN = an_issue(11, title="[Bug]: AWQ model does not load", body=fenced("It fails.", marlin_log()))
ROPE = an_issue(
    12,
    title="[Bug]: KeyError in rope scaling",
    body=fenced("See.", rope_log()).replace("\n", "\r\n"),
    created_at=EARLY + timedelta(days=2),
)
TWIN = an_issue(
    13,
    title="[Bug]: AWQ again",
    body=fenced("Me too.", marlin_log(pid=5, size=96)),
    created_at=EARLY + timedelta(days=3),
)
SLOW = an_issue(
    14, title="Time to first token doubled", body="Since the upgrade every first token takes twice as long."
)
FILLERS = [
    an_issue(
        100 + at,
        title=f"[Bug]: {word} fails",
        body=fenced(a_traceback(f"TypeError: the {word} is of the wrong kind", f"vllm/{word}.py:run") + "\n"),
    )
    for at, word in enumerate(("sampler", "tokenizer", "scheduler", "parser", "loader", "planner"))
]


def a_case(issue: IssueRecord, *right: int) -> Case:
    body = plain_lines(issue.body)
    span = log_span(body)
    assert span is not None
    return make_case(issue.number, span, body[slice(*span)], (issue.number, *right))


@pytest.fixture(scope="session")
def pinned() -> Pinned:
    return Pinned(
        [a_case(MARLIN, 13), a_case(ROPE), a_case(TWIN, 11)],
        [
            Question(id="q1", text="first token takes twice as long", right=(14,)),
            Question(id="q2", text="twice as long until the first token", right=(14,), held_out=True),
        ],
        [Foreign(id="f1", text=FOREIGN_LOG, why="a web application")],
        [
            RealLog(
                id="1.0-awq",
                vllm_version="1.0",
                error=MARLIN_ERROR,
                expected=(11, 13),
                log=marlin_log(pid=77),
            ),
            RealLog(id="1.0-new", vllm_version="1.0", error=NEW_ERROR, unseen=True, log=NEW_LOG),
        ],
    )


def fill(store: Store) -> Store:
    issues = [MARLIN, ROPE, TWIN, SLOW, *FILLERS]
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, issues)
        derive_issues(session, repo_id, REPO, [issue.number for issue in issues])
    return store


@pytest.fixture
def base(sqlite_store: Store) -> Store:
    """A base that a test may change."""
    return fill(sqlite_store)


@pytest.fixture(scope="session")
def ran(new_store: Callable[[str], Store], pinned: Pinned) -> BenchRun:
    """What came of asking everything."""
    return run(fill(new_store("sqlite")), REPO, pinned, report=lambda _: None)
