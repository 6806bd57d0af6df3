"""The answer to a pasted log."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.config import LOG_LIMIT_BYTES
from app.errors import EmptyInputError, TooLargeError, UnknownVersionError
from app.knowledge.diagnosis.diagnose import MAX_QUOTE_CHARS, diagnose
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.shapes import Diagnosis, IndexState, LogEnvironment, NextStep
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import (
    EARLY,
    FOREIGN_LOG,
    HEALTHY_LOG,
    LATE,
    REPO,
    a_pull,
    a_release,
    a_traceback,
    allreduce_log,
    an_issue,
    fenced,
    marlin_log,
    rope_log,
)

OTHER = "other/engine"
HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
MARLIN = an_issue(
    11,
    title="[Bug]: AWQ model does not load",
    body=fenced("It fails on start with vLLM 0.9.1.", marlin_log(), "With `--quantization awq` it works."),
)
ROPE = an_issue(12, title="[Bug]: KeyError in rope scaling", body=fenced("See the log.", rope_log()))
FAULT = an_issue(
    13,
    title="[Bug]: illegal memory access in custom all-reduce",
    body=fenced("See the log.", allreduce_log()),
)
FILLERS = [
    an_issue(
        100 + at,
        title=f"[Bug]: {word} fails",
        body=fenced(a_traceback(f"TypeError: the {word} is of the wrong kind", f"vllm/{word}.py:run") + "\n"),
    )
    for at, word in enumerate(
        ("sampler", "tokenizer", "scheduler", "detokenizer", "parser", "loader", "planner", "mapper")
    )
]
REWRITTEN = marlin_log(
    site="/home/jane/miniconda3/lib/python3.10/site-packages", line=999, pid=88, day="11-02", size=2112
)


@pytest.fixture
def base(store: Store, keep: Keep) -> Store:
    keep(MARLIN, ROPE, FAULT, *FILLERS)
    return store


def ask(store: Store, log: str, **options) -> Diagnosis:
    return diagnose(store, log, repos=options.pop("repos", (REPO,)), **options)


def numbers(diagnosis: Diagnosis) -> list[int]:
    return [match.number for match in diagnosis.matches]


# Finding


@pytest.mark.parametrize(
    ("log", "wanted"), [(REWRITTEN, 11), (rope_log(line=7, pid=9), 12), (allreduce_log(77), 13)]
)
def test_a_stored_issue_is_found_by_its_log_from_another_machine(base: Store, log: str, wanted: int) -> None:
    found = ask(base, log)

    assert (numbers(found)[0], found.verdict) == (wanted, "same")


def test_of_an_assertion_without_words_the_headline_names_what_did_not_hold(base: Store) -> None:
    log = """Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/vllm/perch.py", line 20, in land
    assert perch_config is not None
           ^^^^^^^^^^^^^^^^^^^^^^^^
AssertionError
"""

    assert "assert perch_config is not None" in ask(base, log).headline


def test_a_found_issue_says_what_is_shared(base: Store) -> None:
    assert (
        ask(base, REWRITTEN)
        .matches[0]
        .why.shared[0]
        .startswith("the whole signature: ValueError | Weight output_size")
    )


def test_a_found_issue_s_remedy_is_given(base: Store) -> None:
    assert [(item.action, item.outcome, item.number) for item in ask(base, REWRITTEN).workarounds] == [
        ("--quantization awq", "works", 11)
    ]


def test_the_headline_names_the_issue(base: Store) -> None:
    assert ask(base, REWRITTEN).headline == (
        "Server did not start: Weight output_size_per_partition = 2112 is not "
        "divisible by min_thread_n = 64. – You hit #11: AWQ model does not load."
    )


def test_a_found_issue_has_no_next_steps(base: Store) -> None:
    assert ask(base, REWRITTEN).next_steps == ()


def test_the_cause_and_its_wrappers_are_told(base: Store) -> None:
    found = ask(base, REWRITTEN)

    assert found.root_cause is not None
    assert (
        found.root_cause.type,
        found.root_cause.frame,
        found.root_cause.process,
        found.root_cause.line,
    ) == ("ValueError", "marlin_utils.py:verify_marlin_supports_shape", "EngineCore_DP0", 6)
    assert found.wrappers == (
        "EngineCore failed to start.",
        "Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    )


def test_the_quote_is_the_line_of_the_log_without_what_the_logger_put_before_it(base: Store) -> None:
    root = ask(base, REWRITTEN).root_cause

    assert root is not None
    line = REWRITTEN.splitlines()[root.line - 1]
    assert line.endswith(root.quote)
    assert root.quote == f"{root.type}: {root.message}"
    assert line.startswith("(EngineCore_DP0 pid=")


def test_of_a_log_of_wrappers_alone_the_innermost_is_told_as_one(base: Store) -> None:
    found = ask(
        base, a_traceback("ValueError: Initial test run failed - Error: Not Found", "vllm/bench.py:run")
    )

    assert found.root_cause is not None
    assert found.root_cause.is_wrapper
    assert found.root_cause.message.startswith("Initial test run failed")
    assert found.signature is None


def test_both_engines_answer_alike(sqlite_store: Store, postgresql_store: Store) -> None:
    from app.knowledge.indexing.derive import derive_issues
    from app.store.github.issues import add_repository, save_issues

    answers = []
    for store in (sqlite_store, postgresql_store):
        with store.unit_of_work() as session:
            repo_id = add_repository(session, REPO)
            save_issues(session, repo_id, [MARLIN, ROPE, FAULT, *FILLERS])
            derive_issues(session, repo_id, REPO, [item.number for item in (MARLIN, ROPE, FAULT, *FILLERS)])
        answers.append(ask(store, REWRITTEN).model_copy(update={"took_ms": 0.0}))

    assert answers[0] == answers[1]


# Not finding


@pytest.mark.parametrize(
    "log", [FOREIGN_LOG, HEALTHY_LOG, "It does not work, please help."], ids=["foreign", "healthy", "prose"]
)
def test_what_is_no_known_failure_is_unknown(base: Store, log: str) -> None:
    found = ask(base, log)

    assert found.verdict == "unknown"
    assert {match.band for match in found.matches} <= {"related"}


def test_an_unknown_failure_gets_next_steps(base: Store) -> None:
    assert ask(base, FOREIGN_LOG).next_steps != ()


def test_an_unknown_failure_gets_no_remedy_of_a_weak_candidate(base: Store, monkeypatch) -> None:
    monkeypatch.setattr("app.knowledge.diagnosis.diagnose._is_related", lambda match, in_words: False)
    found = ask(base, REWRITTEN)

    assert (found.verdict, numbers(found)[0]) == ("unknown", 11)
    assert found.workarounds == ()
    assert all(match.workarounds == () for match in found.matches)
    assert found.matches[0].why.shared


def test_the_outcome_the_kind_and_the_advice_are_given(base: Store) -> None:
    log = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`."
    found = ask(base, log)

    assert (found.outcome, found.failure and found.failure.kind) == ("not_started", "kv_cache_room")
    assert found.advice[0].text == "Try increasing `gpu_memory_utilization`."
    assert found.next_steps[0].text == "The message itself says: “Try increasing `gpu_memory_utilization`.”"
    assert found.headline.startswith("Engine did not start (no room for the KV cache): No available memory")


def test_what_was_raised_on_top_of_the_cause_is_given(base: Store) -> None:
    outer = "The above exception was the direct cause of the following exception:"
    inner = a_traceback("KeyError: 'weight_of_x'", "vllm/loader.py:load")
    found = ask(
        base, f"{inner}\n\n{outer}\n\n" + a_traceback("OSError: x is no checkpoint", "vllm/loader.py:get")
    )

    assert [(item.type, item.message) for item in found.chain] == [("OSError", "x is no checkpoint")]


def test_a_log_that_is_not_of_vllm_is_said_to_be_so(base: Store) -> None:
    found = ask(base, "2026-03-01 12:00:00 shop started\n" * 30 + FOREIGN_LOG)

    assert (found.verdict, found.is_vllm, found.matches, found.issue_draft) == ("unknown", False, (), "")
    assert found.headline.startswith("This is the log of a Python web application, not of vLLM; its error: ")
    assert [step.text[:47] for step in found.next_steps] == [
        "Nothing in this text comes from vLLM. Give what"
    ]


def test_what_another_program_printed_is_never_the_same_failure(base: Store) -> None:
    bare = marlin_log().splitlines()[-2].partition("] ")[2]
    script = (
        'Traceback (most recent call last):\n  File "/home/me/chat.py", line 9, in <module>\n    main()\n'
    )

    assert ask(base, bare).verdict in {"same", "likely"}
    assert ask(base, script + bare).verdict in {"related", "unknown"}


def test_a_short_line_of_another_program_is_no_question(base: Store) -> None:
    found = ask(base, "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)")

    assert (found.is_question, found.is_vllm) == (False, False)


def test_a_common_error_of_another_program_is_unknown(base: Store) -> None:
    script = 'Traceback (most recent call last):\n  File "/home/me/fit.py", line 9, in <module>\n    fit()\n'
    found = ask(base, script + "RuntimeError: CUDA error: device-side assert triggered")

    assert (found.verdict, found.is_vllm, found.workarounds) == ("unknown", False, ())


def test_a_healthy_start_has_no_cause_and_weak_matches_at_most(base: Store) -> None:
    found = ask(base, HEALTHY_LOG)

    assert (found.verdict, found.root_cause, found.signature) == ("unknown", None, None)
    assert {match.band for match in found.matches} <= {"related"}
    assert "No stored issue is known to be this failure: the text holds no error line." in found.headline


def test_an_empty_base_answers_unknown(store: Store) -> None:
    found = ask(store, REWRITTEN)

    assert (found.verdict, found.index.issues, found.index.as_of) == ("unknown", 0, None)
    assert found.root_cause is not None


# Options


def test_excluded_numbers_are_no_answer(base: Store) -> None:
    assert 11 not in numbers(ask(base, REWRITTEN, exclude=frozenset({11})))


def test_no_more_matches_than_asked_for_are_given(base: Store) -> None:
    log = "\n".join(
        a_traceback(f"TypeError: the {word} is of the wrong kind", f"vllm/{word}.py:run")
        for word in ("sampler", "parser", "loader")
    )

    assert len(ask(base, log).matches) > 2
    assert len(ask(base, log, limit=2).matches) == 2


def test_only_asked_repositories_are_searched(base: Store, keep: Keep) -> None:
    keep(MARLIN, repo=OTHER)

    assert [match.repo for match in ask(base, REWRITTEN, repos=(OTHER,)).matches][:1] == [OTHER]
    assert {match.repo for match in ask(base, REWRITTEN, repos=(REPO, OTHER)).matches} == {REPO, OTHER}
    assert ask(base, REWRITTEN, repos=("no/body",)).matches == ()


def test_one_number_in_two_repositories_is_two_matches(base: Store, keep: Keep) -> None:
    keep(MARLIN, repo=OTHER)
    found = ask(base, REWRITTEN, repos=(REPO, OTHER))

    assert {(match.repo, match.number) for match in found.matches if match.number == 11} == {
        (REPO, 11),
        (OTHER, 11),
    }


@pytest.fixture
def fixed(base: Store, keep: Keep) -> Store:
    keep(a_pull(21, body="Fixes #11", merged_at=LATE), a_release("v0.9.2", 21, published_at=LATE))
    return base


STARTED = "(APIServer pid=1) INFO 03-14 09:26:40 [api_server.py:1978] vLLM API server version 0.9.1\n"


@pytest.mark.parametrize(
    ("log", "told", "wanted"),
    [
        (STARTED + REWRITTEN, None, "upgrade"),
        (STARTED + REWRITTEN, "0.9.2", "already_included"),
        (STARTED + REWRITTEN, "v0.10.0", "already_included"),
        (REWRITTEN, "0.9.1", "upgrade"),
        (REWRITTEN, None, None),
    ],
)
def test_a_fix_is_seen_from_the_caller_s_version_before_the_log_s(
    fixed: Store, log: str, told: str | None, wanted: str | None
) -> None:
    fix = ask(fixed, log, vllm_version=told).matches[0].fix

    assert fix is not None
    assert (fix.state, fix.pr, fix.released_in, fix.for_you) == ("fixed", "#21", "0.9.2", wanted)


def test_what_the_caller_says_of_the_run_wins_over_the_log(base: Store) -> None:
    found = ask(base, STARTED + REWRITTEN, vllm_version="v0.8.5", gpu="L4", model="org/m-7b").environment

    assert (found.versions["vllm"], found.gpus, found.models) == ("0.8.5", ("L4",), ("org/m-7b",))


# Input


def test_a_version_that_cannot_be_is_refused_and_a_newer_one_is_not(base: Store, keep: Keep) -> None:
    keep(a_release("v0.9.0"), a_release("v0.9.1"))
    for version in ("banana", "0.8.77"):
        with pytest.raises(UnknownVersionError, match=f"vllm_version: {version} is no "):
            ask(base, rope_log(), vllm_version=version)

    assert numbers(ask(base, rope_log(), vllm_version="1.7.0"))[0] == 12


@pytest.mark.parametrize("log", ["", " \n\t ", "\x00\x01"])
def test_an_empty_log_is_refused(sqlite_store: Store, log: str) -> None:
    with pytest.raises(EmptyInputError):
        ask(sqlite_store, log)


def test_a_log_over_the_limit_is_refused(sqlite_store: Store) -> None:
    with pytest.raises(TooLargeError, match="10,485,761 bytes is over the limit of 10 MiB"):
        ask(sqlite_store, "é" * (LOG_LIMIT_BYTES // 2) + "x")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=300).filter(str.strip)
    | st.lists(
        st.sampled_from([*REWRITTEN.splitlines(keepends=True), "\x00", "\ud83d", "\r\n", "KeyError: 1 "]),
        min_size=1,
        max_size=12,
    ).map("".join)
)
def test_any_text_gets_an_answer(sqlite_store: Store, log: str) -> None:
    try:
        found = ask(sqlite_store, log)
    except EmptyInputError:
        assert "".join(char for char in log if char.isprintable()).strip() == ""
    else:
        assert Diagnosis.model_validate_json(found.model_dump_json()) == found


# Secrets

SECRETS = {
    "token": HUB,
    "key": "sk-abcdefghijklmnopqrstuv",
    "password": "correct-horse-battery",
    "address": "10.20.30.40",
    "person": "jane.doe",
    "mail": "ops@example.com",
    "credentials": "user:pass123",
    "cut": "hf_" + "Q" * 37,
    "key block": "MIIEvQIBADANBgkqhkiG9w0",
    "second line of a key block": "AAAASCBKcwggSjAgEAAoIBAQ",
}
LEAKY = f"""\
(APIServer pid=1) INFO 03-14 09:26:40 [api_server.py:1] args: model='/home/{SECRETS["person"]}/models/m-7b', api_key=['{SECRETS["password"]}']
(EngineCore_DP0 pid=9, ip={SECRETS["address"]}) INFO 03-14 09:26:40 [core.py:1] proxy http://{SECRETS["credentials"]}@proxy:8080
-----BEGIN PRIVATE KEY-----
{SECRETS["key block"]}
{SECRETS["second line of a key block"]}
-----END PRIVATE KEY-----
Traceback (most recent call last):
  File "/home/{SECRETS["person"]}/vllm/vllm/entrypoints/openai/api_server.py", line 20, in build
KeyError: 'no such user {SECRETS["mail"]}'
Traceback (most recent call last):
  File "/home/{SECRETS["person"]}/vllm/vllm/transformers_utils/config.py", line 20, in get_config
OSError: password: {SECRETS["password"]} is wrong for {HUB} at http://{SECRETS["address"]}:80 with {SECRETS["key"]} {"x" * 180} {SECRETS["cut"]}
RuntimeError: Engine core initialization failed. See root cause above. {HUB}
"""


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_of_the_log_never_comes_back_in_any_field(base: Store, kind: str) -> None:
    found = ask(base, LEAKY)

    assert SECRETS[kind] not in found.model_dump_json()
    assert SECRETS[kind][:16] not in found.model_dump_json()
    assert SECRETS[kind] not in diagnosis_markdown(found)


def test_a_secret_that_stands_across_the_cut_of_a_quote_is_masked(sqlite_store: Store) -> None:
    root = ask(sqlite_store, f"ValueError: {'x' * (MAX_QUOTE_CHARS - 20)} {HUB}").root_cause

    assert root is not None
    assert (HUB[:6] in root.message, HUB[:6] in root.quote) == (False, False)


def test_masked_secrets_are_counted(base: Store) -> None:
    counts = {item.kind: item.count for item in ask(base, LEAKY).redactions}

    assert counts == {
        "api_key": 1,
        "email": 1,
        "hugging_face_token": 3,
        "ip_address": 2,
        "named_secret": 2,
        "private_key": 1,
        "url_credentials": 1,
        "user_name": 3,
    }


def test_a_secret_of_a_public_issue_is_not_shown(store: Store, keep: Keep) -> None:
    keep(
        an_issue(
            11,
            title=f"[Bug]: load fails with {HUB}",
            body=fenced(
                "See.",
                marlin_log().replace("is not divisible", f"of {HUB} is not divisible"),
                f"`HF_TOKEN={HUB}` works.",
            ),
        ),
        *FILLERS,
    )
    found = ask(store, REWRITTEN.replace("is not divisible", f"of {HUB} is not divisible"))

    assert numbers(found)[0] == 11
    assert HUB.lower() not in found.model_dump_json().lower()


def test_a_secret_that_the_caller_names_as_the_model_is_masked(base: Store) -> None:
    found = ask(base, REWRITTEN, model="/home/jane.doe/m-7b")

    assert "jane.doe" not in found.model_dump_json()


# Freshness


def test_the_answer_tells_how_many_issues_it_was_checked_against(base: Store, keep: Keep) -> None:
    keep(a_pull(500, merged_at=EARLY))

    assert ask(base, REWRITTEN).index.issues == 3 + len(FILLERS)


# Questions in words


def test_a_question_is_answered_by_words_and_never_as_the_same_failure(base: Store) -> None:
    found = ask(
        base, "AWQ model does not load, is not divisible by min_thread_n, Weight output_size_per_partition"
    )

    assert found.is_question
    assert numbers(found)[:1] == [11]
    assert found.verdict != "same"
    assert {match.band for match in found.matches} <= {"likely", "related"}


@pytest.mark.parametrize("log", ["x", "...", "the 12 is"])
def test_a_text_without_a_word_that_says_anything_has_no_matches_and_one_step_to_paste_the_log(
    store: Store, keep: Keep, log: str
) -> None:
    keep(*(an_issue(number, title=f"x the 12 is {number}", body="x the 12 is") for number in range(1, 5)))
    found = ask(store, log)

    assert (found.verdict, found.matches) == ("unknown", ())
    assert not any("root-cause line" in step.text for step in found.next_steps)


def test_a_log_is_no_question(base: Store) -> None:
    assert not ask(base, REWRITTEN).is_question


# What the page shows beside the log


def test_the_first_match_has_its_telling_lines_and_no_other(base: Store) -> None:
    found = ask(base, REWRITTEN)

    assert "is not divisible by min_thread_n = 64." in next(
        line.text for line in found.matches[0].excerpt if line.role == "error"
    )
    assert [match.number for match in found.matches[1:] if match.excerpt] == []


def test_candidates_of_an_unknown_failure_have_no_telling_lines(base: Store) -> None:
    found = ask(base, FOREIGN_LOG.replace("OperationalError: connection", "TypeError: kind"))

    assert found.verdict == "unknown"
    assert [match.number for match in found.matches if match.excerpt] == []


def test_only_what_nobody_is_known_to_have_met_gets_an_issue_to_send(base: Store) -> None:
    unknown = "RuntimeError: the engine lost its third pigeon"
    assert (ask(base, REWRITTEN).issue_draft, ask(base, unknown).issue_draft[:3]) == ("", "###")


def test_a_log_of_millions_of_characters_is_answered_with_a_draft(store: Store) -> None:
    noise = '(APIServer pid=3) INFO:     10.0.0.9:1234 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    crash = "(EngineCore_DP0 pid=7) ERROR 04-01 12:00:00 [core.py:396] KeyError: 'layers.0.bias'\n"
    answer = diagnose(store, noise * 20_000 + crash + noise * 5_000, repos=("vllm-project/vllm",))

    assert answer.root_cause is not None
    assert (answer.root_cause.type, answer.root_cause.line) == ("KeyError", 20_001)
    assert "KeyError: 'layers.0.bias'" in answer.issue_draft


NO_ROOM = (
    "$ vllm serve org/model --max-model-len 4096\n"
    "(EngineCore_DP0 pid=7) ERROR 03-01 10:00:00 [core.py:708] EngineCore failed to start.\n"
    "(EngineCore_DP0 pid=7) ERROR 03-01 10:00:00 [core.py:708] ValueError: No available memory for the cache "
    "blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
)


def test_a_step_that_the_command_has_already_is_not_offered(store: Store) -> None:
    def commands(log: str) -> list[str]:
        return [step.command for step in ask(store, log).next_steps]

    assert "vllm serve YOUR_ARGS --max-model-len 4096" not in commands(NO_ROOM)
    assert "vllm serve YOUR_ARGS --max-model-len 4096" in commands(NO_ROOM.replace("4096", "8192"))


def test_a_step_that_types_the_command_among_others_has_the_caller_s(store: Store) -> None:
    log = "$ vllm serve org/model --port 9000\nOSError: [Errno 24] Too many open files\n"
    commands = [step.command for step in ask(store, log).next_steps]

    assert "ulimit -n 65535; vllm serve org/model --port 9000" in commands


def test_steps_stand_above_a_remedy_without_a_change_to_type() -> None:
    def answer(**values: object) -> Diagnosis:
        step = NextStep(text="…", command="vllm serve YOUR_ARGS --gpu-memory-utilization 0.27")
        return Diagnosis.model_validate(
            {"verdict": "same", "root_cause": None, "environment": LogEnvironment(), "next_steps": (step,)}
            | {"index": IndexState(issues=1), "took_ms": 1.0, "headline": "…", **values}
        )

    remedy = {"action": "lower `gpu_memory_utilization`", "kind": "flag", "outcome": "works"}
    source = {"repo": "org/repo", "number": 1, "url": "https://example.org/1"}
    assert answer().steps_first
    assert answer(workarounds=[remedy | source]).steps_first
    assert not answer(workarounds=[remedy | source], next_steps=()).steps_first
    assert not answer(workarounds=[remedy | source | {"command": "--gpu-memory-utilization 0.8"}]).steps_first
    assert answer(workarounds=[remedy | source | {"outcome": "fails"}]).steps_first
