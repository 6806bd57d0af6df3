"""One stored issue as it is shown."""

from __future__ import annotations

import pytest

from app.errors import NotFoundError
from app.extract.redact import BLOCK
from app.knowledge.issue_view import view_issue
from app.knowledge.starter_set import load_starter_set
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import LATE, REPO, a_comment, a_pull, a_release, an_issue, fenced, marlin_log

HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
KEY = "correct-horse-battery"


def test_github_s_fields_and_ours_are_shown(store: Store, keep: Keep) -> None:
    keep(an_issue(1, author="someone", labels=("bug",), body=fenced("With `--quantization awq` it works.", marlin_log())))
    view = view_issue(store, REPO, 1)

    assert (view.repo, view.number, view.author, view.labels, view.origin) == (REPO, 1, "someone", ("bug",), "github")
    assert view.facts is not None
    assert [item.action for item in view.facts.workarounds] == ["--quantization awq"]


def test_quotes_equal_their_spans_in_what_is_shown(store: Store, keep: Keep) -> None:
    body = fenced(f"I set api_key='{KEY}' and `HF_TOKEN={HUB}`.", marlin_log(start=f"model='org/m-7b', token {HUB}\n"))
    keep(an_issue(1, title=f"[Bug]: ValueError: {HUB} fails", body=body))
    view = view_issue(store, REPO, 1)
    shown = {"title": view.title, "body": view.body}

    assert view.facts is not None
    assert view.facts.evidence != ()
    assert [item for item in view.facts.evidence if shown[item.source][item.start : item.end] != item.quote] == []


def test_no_secret_is_shown_in_any_field(store: Store, keep: Keep) -> None:
    body = fenced(
        f"`HF_TOKEN={HUB} vllm serve org/m-7b --api-key {KEY}` fails, but `HF_TOKEN={HUB}` with `--enforce-eager` works.",
        f"Caused by the token {HUB}, I think.", marlin_log().replace("Weight", f"{HUB} Weight"),
    )  # fmt: skip
    keep(an_issue(1, title=f"[Bug]: {HUB}", body=body), a_comment(5, 1, f"`export HF_TOKEN={HUB}` works for me."))
    told = view_issue(store, REPO, 1).model_dump_json()

    assert (HUB in told, KEY in told) == (False, False)
    assert BLOCK * len(HUB) in told


def test_the_fix_is_seen_from_a_version(store: Store, keep: Keep) -> None:
    keep(an_issue(1), a_pull(7, body="Fixes #1", merged_at=LATE), a_release("v0.9.2", 7))

    assert [view_issue(store, REPO, 1, vllm_version=version).fix.for_you for version in (None, "0.9.1", "0.9.2")] == [
        None, "upgrade", "already_included"
    ]  # fmt: skip


def test_a_card_s_log_is_shown_while_only_the_card_tells(store: Store) -> None:
    load_starter_set(store)
    view = view_issue(store, REPO, 39288)

    assert view.origin == "card"
    assert "custom_all_reduce.cuh:455" in view.body


def test_github_s_text_is_shown_once_it_is_there(store: Store, keep: Keep) -> None:
    load_starter_set(store)
    keep(an_issue(39288, body="GitHub's text"))
    view = view_issue(store, REPO, 39288)

    assert (view.origin, view.body) == ("github", "GitHub's text")
    assert view.facts is not None
    assert [item.action for item in view.facts.workarounds] == ["--moe-backend triton"]


@pytest.mark.parametrize(("repo", "number"), [(REPO, 404), ("no/body", 1)])
def test_what_is_not_stored_is_named(store: Store, keep: Keep, repo: str, number: int) -> None:
    keep(an_issue(1))

    with pytest.raises(NotFoundError, match=f"{repo}#{number} is not stored"):
        view_issue(store, repo, number)
