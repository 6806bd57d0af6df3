"""Remedies for a failure whose matches have none."""

from __future__ import annotations

import pytest

from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.other_reports import remedies_of_others
from app.store.github.issues import find_repository
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import REPO, a_traceback, an_issue, fenced

FRAME = "spot.py:run"
LOG = a_traceback("ValueError: the widget table has no row for shard 7", f"vllm/{FRAME}")
SILENT = an_issue(21, title="[Bug]: the widget table has no row", body=fenced("See the log.", LOG))
AGAIN = an_issue(
    22,
    title="[Bug]: the widget table has no row for a shard",
    body=fenced("Here, too.", LOG, "With `--enforce-eager` it works."),
)
NEARBY = an_issue(
    23,
    title="[Bug]: gadget of a foreign colour",
    body=fenced(
        "Another one.",
        a_traceback("KeyError: 'gadget colour is not registered'", f"vllm/{FRAME}"),
        "With `--enforce-eager` it works.",
    ),
)


def others(store: Store, hidden: tuple[int, ...] = ()) -> tuple[list[int], str]:
    with store.reading() as session:
        repo_id = find_repository(session, REPO) or 0
        excluded = [(repo_id, number) for number in hidden]
        found, source = remedies_of_others(session, REPO, (repo_id, 21), FRAME, excluded)
    return [item.number for item in found], source


@pytest.mark.parametrize(
    ("hidden", "wanted"),
    [((), ([22], "cluster")), ((22,), ([23], "same_frame")), ((22, 23), ([], "matches"))],
    ids=["its own reports first", "then another failure at the same place", "else none"],
)
def test_other_reports_are_asked_in_order(
    store: Store, keep: Keep, hidden: tuple[int, ...], wanted: tuple[list[int], str]
) -> None:
    keep(SILENT, AGAIN, NEARBY)

    assert others(store, hidden) == wanted


def test_a_known_failure_without_a_remedy_has_next_steps(store: Store, keep: Keep) -> None:
    keep(
        SILENT, NEARBY, *(an_issue(100 + at, title=f"[Bug]: {at} hangs", body="It hangs.") for at in range(8))
    )
    found = diagnose(store, LOG, repos=(REPO,))

    assert (found.verdict, found.remedies_from) == ("same", "same_frame")
    assert [item.number for item in found.workarounds] == [23]
    assert found.next_steps
