"""A diagnosis as Markdown, in which foreign text stays inert; and a ready-made issue for a new failure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InputError
from app.extract.facts import Regression
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.markdown import (
    MAX_TITLE_CHARS,
    NewIssue,
    comment_markdown,
    diagnosis_markdown,
    draft_title,
    new_issue_address,
    read_event,
)
from app.knowledge.diagnosis.shapes import (
    Diagnosis,
    IndexState,
    LogEnvironment,
    Match,
    MatchLine,
    NextStep,
    RootCause,
    Why,
)
from app.knowledge.fix.shapes import FixView
from app.knowledge.markdown import code, escape
from app.knowledge.remedies import Remedy
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import HEALTHY_LOG, an_issue, fenced, marlin_log
from tests.served import CRASH
from tests.web.conftest import MATCHES, REPO, SAME, UNKNOWN, URL
from tests.web.injections import INJECTIONS
from tests.web.test_injections import DIAGNOSIS, shape, tokens, with_text

CARD_URL = f"https://github.com/{REPO}/issues/39288"

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![x](http://e.example/x.png)",
    "**bold** _it_ ~~gone~~",
    "`code` ``",
    "# heading",
    "> quote",
    "- item",
    "1. item",
    "| a | b |\n|---|---|\n| c | d |",
    "```\nfence",
    "line\n\n# heading after a blank line",
    "<!-- hidden",
    "&lt;b&gt;",
    "[ref]: http://e.example",
    "\\",
    "\\`",
    "***",
    "text\n===",
    "a ` b",
    "a `` b",
    "`",
    "</details>",
    "<http://e.example>",
    "    indented",
    "\t",
    "",
]


def test_of_an_unknown_failure_only_what_shares_more_than_single_words_is_readable() -> None:
    base = a_diagnosis().matches[0].model_copy(update={"score": 0.2, "band": "related"})

    def readable(*shared: str, score: float = 0.2) -> int:
        match = base.model_copy(update={"score": score, "why": Why(shared=shared)})
        return len(a_diagnosis(verdict="unknown", matches=(match,) * 9).readable_matches)

    assert [readable(shared) for shared in SPECIFIC] == [3, 3, 3, 3, 3]
    assert [readable(), readable("words “timed”", "GPU H100"), readable("error words “failed”")] == [0, 0, 0]
    assert readable("frame a.py:b", score=0.05) == 0


SPECIFIC = (
    "the whole signature: E | x",
    "frame a.py:b",
    "error type E",
    "words “tp_size”",
    "error words “a”, “b c”",
)


def a_diagnosis(text: str = "a thing", **more: Any) -> Diagnosis:
    remedy = Remedy(action=f"x {text}", kind="flag", outcome="works", repo=REPO, number=39288, url=CARD_URL)
    match = Match(
        number=39288,
        repo=REPO,
        title=text,
        url=CARD_URL,
        state="open",
        score=0.97,
        band="same",
        why=Why(shared=(text,), differs=(text,)),
        regression=Regression(first_failing=text, still_failing=(text,)),
        fix=FixView(state="fixed", pr="#7", released_in=text, for_you="upgrade"),
        workarounds=(remedy,),
        excerpt=(
            MatchLine(number=12, text=f"before {text}", role="before"),
            MatchLine(number=13, text=f"x {text}", role="error"),
        ),
    )
    found: dict[str, Any] = {
        "verdict": "same",
        "root_cause": RootCause(type=text, message=text, frame=text, process=text, line=3, quote=text),
        "environment": LogEnvironment(),
        "matches": (match,),
        "workarounds": (remedy,),
        "headline": text,
        "took_ms": 1.0,
        "next_steps": (NextStep(text="Run it once more", command="vllm serve"),),
        "index": IndexState(issues=15818, as_of=datetime(2026, 6, 3, 6, tzinfo=UTC)),
    }
    return Diagnosis(**{**found, **more})


def words(text: str) -> str:
    return "".join(
        token.content for token in tokens(text) if token.type in {"text", "code_inline", "text_special"}
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_changes_nothing_of_the_page_s_shape(text: str) -> None:
    assert shape(diagnosis_markdown(a_diagnosis(text))) == shape(diagnosis_markdown(a_diagnosis()))


@given(st.text(st.sampled_from("a`*_[]<>#|!~@\\()&:-=\n \t"), max_size=30))
def test_any_text_changes_nothing_of_the_page_s_shape(text: str) -> None:
    assert shape(diagnosis_markdown(a_diagnosis(text))) == shape(diagnosis_markdown(a_diagnosis()))


@given(st.text(st.sampled_from("a`*_[]<>#|!~@\\():-=\n 1."), max_size=30))
def test_escaped_text_reads_as_it_was(text: str) -> None:
    seen = words(f"x {escape(text)} x").replace("\u200b", "")
    assert seen == f"x {' '.join(text.split())} x"


def test_nobody_is_called_by_name() -> None:
    assert "@maintainer" not in escape("ask @maintainer")


@given(st.text(st.sampled_from("a`\\*<\n "), max_size=30).filter(str.strip))
def test_code_reads_as_it_was(text: str) -> None:
    assert words(f"x {code(text)} x") == f"x {' '.join(text.split())} x"


def test_the_answer_has_its_headings_in_order() -> None:
    diagnosis = a_diagnosis()
    typed = diagnosis.workarounds[0].model_copy(update={"command": "--x"})
    text = diagnosis_markdown(diagnosis.model_copy(update={"workarounds": (typed,)}))

    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "## Root cause",
        "## Both logs",
        "## Remedies",
        "## Matches",
        "## Next steps",
    ]


def test_where_no_issue_is_the_same_the_next_steps_come_first() -> None:
    text = diagnosis_markdown(a_diagnosis().model_copy(update={"verdict": "unknown"}))

    assert [line for line in text.splitlines() if line.startswith("#")][:2] == [
        "## Next steps",
        "## Root cause",
    ]
    assert text.count("## Next steps") == 1


def test_the_verdict_stands_first_and_the_freshness_last() -> None:
    lines = diagnosis_markdown(a_diagnosis()).splitlines()

    assert lines[0] == "**Same failure** (97%): a thing"
    assert lines[-1] == "Checked against 15,818 issues (as of: 2026-06-03 06:00 UTC)."


def test_an_answer_without_anything_is_short() -> None:
    empty = a_diagnosis(
        verdict="unknown",
        root_cause=None,
        matches=(),
        workarounds=(),
        next_steps=(),
        index=IndexState(issues=0),
    )

    assert (
        diagnosis_markdown(empty)
        == "**Unknown**: a thing\n\nChecked against 0 issues (as of: never synced).\n"
    )


def test_a_remedy_tells_outcome_and_source() -> None:
    remedy = Remedy(
        action="--enforce-eager",
        kind="flag",
        outcome="fails",
        by="maintainer",
        repo=REPO,
        number=39288,
        url=CARD_URL,
    )

    text = diagnosis_markdown(a_diagnosis(workarounds=(remedy,)))

    assert f"\n- `--enforce-eager`: did not help, reported by the maintainer, [#39288]({CARD_URL})\n" in text


@pytest.mark.parametrize(
    ("fix", "wanted"),
    [
        (FixView(state="fixed", pr="#7", released_in="0.9.2"), "Fixed by #7, in 0.9.2"),
        (
            FixView(state="fixed", pr="#7", released_in="0.9.2", for_you="upgrade"),
            "Fixed by #7, in 0.9.2. Upgrade: your version does not have it.",
        ),
        (FixView(state="not_fixed", for_you="not_fixed"), "Not fixed. Upgrading is not known to help."),
        (FixView(state="unknown"), "Fix unknown"),
    ],
)
def test_a_fix_is_told_in_words(fix: FixView, wanted: str) -> None:
    match = a_diagnosis().matches[0].model_copy(update={"fix": fix})

    assert f"\n  - fix: {wanted}\n" in diagnosis_markdown(a_diagnosis(matches=(match,)))


def test_both_logs_stand_as_two_blocks_of_code() -> None:
    blocks = [
        token.content
        for token in tokens(diagnosis_markdown(a_diagnosis("a ``` thing")))
        if token.type == "fence"
    ]

    assert blocks == ["a ``` thing\n", "before a ``` thing\nx a ``` thing\n"]


def test_without_the_issue_s_lines_there_are_no_blocks_of_code() -> None:
    empty = a_diagnosis().matches[0].model_copy(update={"excerpt": ()})

    assert "```" not in diagnosis_markdown(a_diagnosis(matches=(empty,)))


# The comment on a newly opened issue


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


HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
START = """\
vllm serve Qwen/Qwen3-8B --api-key correct-horse-battery \\
  --tensor-parallel-size 2 --max-model-len 4096
(APIServer pid=1) INFO 03-14 09:26:40 [api_server.py:1978] vLLM API server version 0.9.1
(APIServer pid=1) INFO 03-14 09:26:40 [utils.py:1] non-default args: {'model': 'Qwen/Qwen3-8B', 'gpu_memory_utilization': 0.95}
NVIDIA H100 80GB HBM3, VLLM_USE_V1=1
"""


def ask(store: Store, log: str) -> Diagnosis:
    return diagnose(store, log, repos=(REPO,))


def draft(store: Store, log: str) -> str:
    return ask(store, log).issue_draft


def test_it_has_the_form_s_headings_in_order(sqlite_store: Store) -> None:
    headings = [line for line in draft(sqlite_store, marlin_log()).splitlines() if line.startswith("#")]

    assert headings == [
        "### Your current environment",
        "### Describe the bug",
        "### Before submitting a new issue...",
    ]


def test_a_log_that_nowhere_names_vllm_is_said_to_be_so(sqlite_store: Store) -> None:
    note = "No line of this log names vLLM"

    assert note in draft(sqlite_store, "RuntimeError: the engine lost its third pigeon")
    assert note not in draft(sqlite_store, START + marlin_log())


def test_what_the_log_tells_of_the_run_is_filled_in(sqlite_store: Store) -> None:
    text = draft(sqlite_store, START + marlin_log())

    for output in (
        "- vLLM version: `0.9.1`",
        "- GPU: `H100`",
        "- Model: `Qwen/Qwen3-8B`",
        (
            "- Command: `vllm serve Qwen/Qwen3-8B --api-key █████████████████████ --tensor-parallel-size 2 "
            "--max-model-len 4096`"
        ),
        "- Not in the log: PyTorch, GPU driver; run `vllm collect-env`",
    ):
        assert output in text


def test_a_command_that_was_not_logged_is_rebuilt_from_the_printed_arguments(sqlite_store: Store) -> None:
    text = draft(sqlite_store, START.partition("\n  ")[2].partition("\n")[2] + marlin_log())

    assert "- Command, rebuilt from the log: `vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.95`" in text


def test_what_the_log_does_not_tell_is_named(sqlite_store: Store) -> None:
    assert "- Not in the log: vLLM version, GPU, Model, PyTorch, GPU driver; run `vllm collect-env`" in draft(
        sqlite_store, "RuntimeError: the engine lost its third pigeon"
    )


def test_the_telling_part_is_quoted_as_it_stands_in_the_log(sqlite_store: Store) -> None:
    noise = "INFO 03-14 09:26:40 [x.py:1] nothing happened\n" * 500
    log = noise + marlin_log() + noise
    quoted = draft(sqlite_store, log).split("```")[1].splitlines()[1:]

    assert [line for line in quoted if line != "[…]" and line not in log] == []
    assert any("is not divisible by min_thread_n" in line for line in quoted)
    assert any("Traceback" in line for line in quoted)
    assert len(quoted) < 20


def test_what_other_processes_print_in_between_is_left_out(sqlite_store: Store) -> None:
    other = "(Worker_TP1 pid=9) INFO 03-14 09:26:40 [x.py:1] something else\n"
    log = "".join(line + other for line in marlin_log().splitlines(keepends=True))

    assert "something else" not in draft(sqlite_store, log)


@pytest.mark.parametrize("secret", [HUB, "correct-horse-battery", "jane.doe", "10.20.30.40"])
def test_secrets_are_masked(sqlite_store: Store, secret: str) -> None:
    log = START + f"INFO token {HUB} at http://10.20.30.40:80\nValueError: /home/jane.doe/x has no {HUB}\n"
    found = ask(sqlite_store, log)

    assert secret not in found.issue_draft + new_issue_address(REPO, found)


def test_a_log_s_own_fences_do_not_end_the_quote(sqlite_store: Store) -> None:
    assert "````text" in draft(sqlite_store, "ValueError: no ``` here\n")


def test_a_log_without_an_error_asks_what_happened(sqlite_store: Store) -> None:
    assert "Say what happened" in draft(sqlite_store, HEALTHY_LOG)


def test_wrappers_alone_are_said_to_be_no_cause(sqlite_store: Store) -> None:
    assert "only lines that report another error" in draft(
        sqlite_store,
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    )


def test_a_question_is_quoted_with_what_it_lacks(sqlite_store: Store) -> None:
    text = draft(sqlite_store, "gibberish output with fp8 kv cache")

    assert "```text\ngibberish output with fp8 kv cache\n```" in text
    assert "- Not in the question: vLLM version" in text


def test_a_known_failure_needs_no_draft(store: Store, keep: Keep) -> None:
    keep(
        an_issue(11, title="[Bug]: AWQ does not load", body=fenced("See.", marlin_log())),
        *(an_issue(at, body=fenced(f"TypeError: kind {at} of thing\n")) for at in range(20, 30)),
    )
    found = ask(store, marlin_log(pid=77))

    assert (found.verdict, found.issue_draft) == ("same", "")
    assert [line.role for line in found.matches[0].excerpt].count("error") == 1


# The address of GitHub's form


@pytest.mark.parametrize(
    ("log", "has_draft"),
    [
        ("vllm: error: unrecognized arguments: --max-model-length 4096", False),
        ("NotFoundError: The model `gpt-4` does not exist.", False),
        ("OSError: [Errno 98] Address already in use", False),
        ("RuntimeError: Engine core has lost its third pigeon", True),
        ("unrecognized arguments?", True),
    ],
)
def test_what_the_caller_corrects_needs_steps_and_no_draft(
    sqlite_store: Store, log: str, has_draft: bool
) -> None:
    found = ask(sqlite_store, log)

    assert bool(found.issue_draft) == has_draft
    assert found.next_steps


def test_the_title_is_encoded_and_read_back_as_it_was(sqlite_store: Store) -> None:
    address = new_issue_address(REPO, ask(sqlite_store, "ValueError: a & b = 'c' ü?\n"))
    parts = urlsplit(address)

    assert (parts.netloc, parts.path) == ("github.com", f"/{REPO}/issues/new")
    assert parse_qs(parts.query) == {
        "template": ["400-bug-report.yml"],
        "title": ["[Bug]: ValueError: a & b = 'c' ü?"],
    }


def test_a_long_title_is_cut(sqlite_store: Store) -> None:
    title = draft_title(ask(sqlite_store, f"ValueError: {'word ' * 100}\n"))

    assert len(title) <= MAX_TITLE_CHARS
    assert title.endswith("…")


def test_another_repository_has_no_form_of_vllm_s(sqlite_store: Store) -> None:
    assert (
        new_issue_address("own/fork", ask(sqlite_store, "hello there"))
        == "https://github.com/own/fork/issues/new"
    )
