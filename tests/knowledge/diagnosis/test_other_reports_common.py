"""A known kind of error is an answer of its own."""

from __future__ import annotations

import pytest

from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.store.session import Store
from app.terminal.diagnosis import short_text
from tests.knowledge.conftest import Keep
from tests.samples import REPO, a_traceback, an_issue, fenced

MESSAGE = "No spare shelf left for the pigeon blocks. Try raising the loft share."
LOG = a_traceback(f"ValueError: {MESSAGE}", "vllm/pigeon_loft.py:settle")


@pytest.fixture
def base(store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch) -> Store:
    for number, word in enumerate(("sparrow", "starling", "swallow"), start=11):
        log = a_traceback(f"ValueError: {MESSAGE}", f"vllm/{word}.py:run")
        keep(
            an_issue(
                number, title=f"[Bug]: {word}", body=fenced("See.", log, "With `--enforce-eager` it works.")
            )
        )
    keep(*(an_issue(100 + at, title=f"[Bug]: {at} hangs", body="It hangs.") for at in range(6)))
    monkeypatch.setattr("app.knowledge.diagnosis.diagnose._is_related", lambda *_, **__: False)
    return store


def test_what_many_issues_share_is_told_where_none_is_the_same(base: Store) -> None:
    found = diagnose(base, LOG, repos=(REPO,))

    assert (found.verdict, found.workarounds) == ("unknown", ())
    assert found.common is not None
    assert found.common.reports == 3
    assert MESSAGE.startswith(found.common.text)
    assert {issue.number for issue in found.common.issues} == {11, 12, 13}
    assert [one.action for one in found.common.workarounds] == ["--enforce-eager"]
    assert "A common error: 3 reports share it" in found.headline
    assert "## A common error" in diagnosis_markdown(found)
    assert "A COMMON ERROR, 3 REPORTS" in short_text(found, colours=False)


def test_hidden_issues_are_no_reports(base: Store) -> None:
    assert diagnose(base, LOG, repos=(REPO,), exclude=frozenset({11, 12})).common is None


def test_a_known_failure_is_no_common_error(store: Store, keep: Keep) -> None:
    keep(*(an_issue(number, title="[Bug]: pigeons", body=fenced(LOG)) for number in (1, 2)))
    found = diagnose(store, LOG, repos=(REPO,))

    assert found.verdict in {"same", "likely"}
    assert found.common is None
