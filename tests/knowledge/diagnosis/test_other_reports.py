"""What other reports say of a failure whose matches have no remedy, or of its kind."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.other_reports import remedies_of_others
from app.match.search.log_query import make_log_query
from app.starter.card import REPO as VLLM
from app.store.github.issues import find_repository
from app.store.session import Store, open_store
from app.terminal.diagnosis import short_text
from tests.knowledge.conftest import Keep
from tests.samples import REPO, a_traceback, an_issue, fenced
from tests.starter_base import starter_file

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


MESSAGE = "No spare shelf left for the pigeon blocks. Try raising the loft share."
SHARED_LOG = a_traceback(f"ValueError: {MESSAGE}", "vllm/pigeon_loft.py:settle")


@pytest.fixture
def shared(store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch) -> Store:
    for number, word in enumerate(("sparrow", "starling", "swallow"), start=11):
        log = a_traceback(f"ValueError: {MESSAGE}", f"vllm/{word}.py:run")
        words = "With `--enforce-eager` it works. The root cause is a missing None check in the loft."
        keep(an_issue(number, title=f"[Bug]: {word}", body=fenced("See.", log, words)))
    keep(*(an_issue(100 + at, title=f"[Bug]: {at} hangs", body="It hangs.") for at in range(6)))
    monkeypatch.setattr("app.knowledge.diagnosis.diagnose._is_related", lambda *_, **__: False)
    return store


def test_what_many_issues_share_is_told_where_none_is_the_same(shared: Store) -> None:
    found = diagnose(shared, SHARED_LOG, repos=(REPO,))

    assert (found.verdict, found.workarounds) == ("unknown", ())
    assert found.common is not None
    assert found.common.reports == 3
    assert MESSAGE.startswith(found.common.text)
    assert {issue.number for issue in found.common.issues} == {11, 12, 13}
    assert [one.action for one in found.common.workarounds] == ["--enforce-eager"]
    assert "A common error: 3 reports share it" in found.headline
    assert "## A common error" in (text := diagnosis_markdown(found))
    assert "- named as cause in [#11](" in text
    assert "A COMMON ERROR, 3 REPORTS" in short_text(found, colours=False)


def test_of_an_assertion_without_words_the_code_that_did_not_hold_is_its_message(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "assert pigeon_blocks.shape[loft_dim] == self.spare_shelves"
    log = a_traceback("AssertionError", "vllm/pigeon_loft.py:settle").replace(
        "settle\n", f"settle\n    {code}\n           ^^^^^^\n"
    )
    for number in (11, 12):
        keep(an_issue(number, title=f"[Bug]: `{code}` fails", body="Since the last release."))
    keep(*(an_issue(100 + at, title=f"[Bug]: {at} hangs", body="It hangs.") for at in range(6)))
    monkeypatch.setattr("app.knowledge.diagnosis.diagnose._is_related", lambda *_, **__: False)

    found = diagnose(store, log, repos=(REPO,)).common

    assert found is not None
    assert (found.text, {issue.number for issue in found.issues}) == (code, {11, 12})


def test_hidden_issues_are_no_reports(shared: Store) -> None:
    found = diagnose(shared, SHARED_LOG, repos=(REPO,), exclude=frozenset({11, 12})).common

    assert found is not None
    assert (found.reports, [issue.number for issue in found.issues]) == (1, [13])
    assert diagnose(shared, SHARED_LOG, repos=(REPO,), exclude=frozenset({11, 12, 13})).common is None


def test_a_known_failure_is_no_common_error(store: Store, keep: Keep) -> None:
    keep(*(an_issue(number, title="[Bug]: pigeons", body=fenced(SHARED_LOG)) for number in (1, 2)))
    found = diagnose(store, SHARED_LOG, repos=(REPO,))

    assert found.verdict in {"same", "likely"}
    assert found.common is None


def test_of_a_message_that_unlike_faults_share_one_report_answers_for_no_other(
    shared: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "app.knowledge.diagnosis.diagnose.make_log_query",
        lambda reading: replace(make_log_query(reading), is_common=True),
    )

    of_three = diagnose(shared, SHARED_LOG, repos=(REPO,)).common
    of_one = diagnose(shared, SHARED_LOG, repos=(REPO,), exclude=frozenset({11, 12})).common

    assert of_three is not None
    assert [one.action for one in of_three.workarounds] == ["--enforce-eager"]
    assert (of_three.causes, of_one) == ((), None)


DIED = """\
(APIServer pid=1) INFO 11-20 10:00:00 [api_server.py:1] vLLM API server version 0.11.0
(EngineCore pid=12) ERROR 11-20 10:01:00 [multiproc_executor.py:230] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.
(APIServer pid=1) ERROR 11-20 10:01:01 [core_client.py:564] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.
"""


def test_over_the_starter_set_a_killed_worker_is_no_known_error_and_gets_nobodys_remedy(
    tmp_path: Path,
) -> None:
    base = shutil.copy(starter_file(), tmp_path / "triage.db")
    with closing(open_store(f"sqlite:///{base}")) as store:
        found = diagnose(store, DIED, repos=(VLLM,))

    assert found.verdict in {"related", "unknown"}
    assert (found.common, found.workarounds) == (None, ())
    assert "dmesg" in found.next_steps[0].command
