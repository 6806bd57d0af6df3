"""The comment on a newly opened issue: said only where it is of use, and inert."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.errors import InputError
from app.knowledge.diagnosis.markdown import NewIssue, comment_markdown, read_event
from app.knowledge.diagnosis.shapes import Diagnosis, LogEnvironment
from tests.served import CRASH
from tests.web.conftest import MATCHES, REPO, SAME, UNKNOWN, URL
from tests.web.injections import INJECTIONS
from tests.web.test_injections import DIAGNOSIS, shape, tokens, with_text

BODY = f"It dies at start on an H100.\n\n```text\n{CRASH}```\n"


def event(title: str = "[Bug]: it dies", body: str | None = BODY, **more: Any) -> str:
    """What GitHub sends; `more` are further fields of the issue."""
    issue = {"number": 77, "title": title, "body": body, "user": {"login": "someone"}, **more}
    return json.dumps({"action": "opened", "issue": issue, "repository": {"full_name": REPO}, "sender": {}})


def opened(**more: Any) -> NewIssue:
    found = read_event(event(**more))
    assert found is not None
    return found


def test_a_report_s_log_is_read_without_its_prose() -> None:
    issue = opened()

    assert issue.log.strip() == CRASH.strip()
    assert (issue.number, issue.repo, issue.facts.gpus) == (77, REPO, ("H100",))
    assert issue.vllm_version == "0.19.0"


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(event(pull_request={"url": "x"}), id="pull request"),
        pytest.param(event(title="[Feature]: support a new model", body="Please add it."), id="no failure"),
        pytest.param(event(title="", body=None), id="empty"),
        pytest.param(event().replace('"opened"', '"labeled"'), id="another action"),
    ],
)
def test_what_is_no_reported_failure_is_left_alone(told: str) -> None:
    assert read_event(told) is None


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", "{}", '{"issue": 1}', "[" * 100_000, '{"issue": {"number": 1}}']
)
def test_what_is_no_event_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="GITHUB_EVENT_PATH"):
        read_event(text)


def test_a_known_issue_is_told_with_evidence_remedies_and_what_is_missing() -> None:
    bare = SAME.model_copy(update={"environment": LogEnvironment()})
    text = comment_markdown(opened(body=BODY.replace(" on an H100", "")), bare)

    assert text.startswith("This looks like a known issue:")
    assert f"[#39288]({URL}39288)" in text
    assert "- `--moe-backend triton`: works" in text
    assert "did not help" not in text
    assert SAME.root_cause
    assert SAME.root_cause.quote in text
    assert "The report does not state the GPU and the model;" in text
    assert "#42583" not in text  # a match that is only related


def test_what_the_report_tells_is_not_asked_for() -> None:
    assert "does not state" not in comment_markdown(opened(), SAME)


def test_a_likely_match_is_told_as_one() -> None:
    likely = SAME.model_copy(update={"verdict": "likely", "matches": MATCHES[1:]})

    assert comment_markdown(opened(), likely).startswith("This may be a known issue:")


@pytest.mark.parametrize(
    "diagnosis",
    [
        UNKNOWN,
        SAME.model_copy(update={"verdict": "related", "matches": MATCHES[2:]}),
        SAME.model_copy(update={"matches": ()}),
    ],
)
def test_nothing_is_said_of_what_is_at_most_related(diagnosis: Diagnosis) -> None:
    assert comment_markdown(opened(), diagnosis) == ""


@pytest.mark.parametrize("link", ["See #39288.", f"Same as {URL}39288?", f"Like {REPO}#30579"])
def test_nothing_is_said_where_the_report_names_the_issue(link: str) -> None:
    assert comment_markdown(opened(body=f"{BODY}\n{link}"), SAME) == ""


def test_an_issue_is_not_its_own_duplicate() -> None:
    assert comment_markdown(opened(number=39288), SAME) == ""


@pytest.mark.parametrize("attack", INJECTIONS)
def test_hostile_texts_change_nothing_of_the_comment_s_shape(attack: str) -> None:
    issue = opened()
    text = comment_markdown(issue, with_text(DIAGNOSIS, INJECTIONS[attack]))

    assert shape(text) == shape(comment_markdown(issue, DIAGNOSIS))
    assert not [token for token in tokens(text) if token.type == "text" and "@INTRUDER" in token.content]
