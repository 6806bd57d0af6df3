"""What of a log is asked, part by part."""

from __future__ import annotations

import pytest

from app.extract.reader import read_log
from app.extract.rules.rules import load_rule_set
from app.match.search.log_query import LogQuery, make_log_query
from app.match.search.terms import ERROR, FRAME, HEADING, TEXT

START = """\
(APIServer pid=7) INFO 11-22 13:54:37 [api_server.py:500] vLLM API server version 0.32.0
(APIServer pid=7) WARNING 11-22 13:54:37 [system_utils.py:255] Found ulimit of 1024 and failed to raise it.
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/vllm/lora/peft_helper.py", line 99, in validate_legal
    raise ValueError(f"{' '.join(error_msg)}")
ValueError: LoRA rank 64 is greater than max_lora_rank 16 of /srv/adapters/blue.
"""


def asked(log: str) -> LogQuery:
    return make_log_query(read_log(log))


def part_of(query: LogQuery, channel: int, text: str) -> str | None:
    return query.parts.get((channel, text))


def test_the_words_of_the_cause_are_a_part_of_their_own() -> None:
    query = asked(START + TRACEBACK)

    assert part_of(query, TEXT, "lora rank") == "cause"
    assert part_of(query, ERROR, "type:ValueError") == "error"
    assert part_of(query, HEADING, "lora") == "title"
    assert part_of(query, FRAME, "peft_helper.py:validate_legal") == "frames"
    assert part_of(query, TEXT, "error_msg") == "near"


def test_the_length_of_a_log_changes_nothing_in_what_its_cause_asks() -> None:
    noise = "".join(
        f"(APIServer pid=7) INFO 11-22 13:54:{at % 60:02} [x.py:1] Step {at} of the warm-up\n"
        for at in range(300)
    )
    short, long = asked(TRACEBACK), asked(START + noise + TRACEBACK)

    assert [
        {term for term, name in query.parts.items() if name in {"cause", "error", "title", "frames"}}
        for query in (short, long)
    ] == [{term for term, name in short.parts.items() if name in {"cause", "error", "title", "frames"}}] * 2
    assert part_of(long, TEXT, "step") is None


def test_what_a_shared_message_was_wrapped_in_is_context() -> None:
    wrapper = (
        "ERROR 08-10 09:40:50 [multiproc_worker_utils.py:256] Exception in worker VllmWorkerProcess while "
        "processing method determine_num_available_blocks.\n"
    )
    shared = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 23.08 GiB.\n"

    assert part_of(asked(wrapper + shared), TEXT, "determine_num_available_blocks") == "context"
    assert part_of(asked(wrapper + TRACEBACK), TEXT, "determine_num_available_blocks") is None


def test_one_machine_s_own_words_are_not_the_cause_s() -> None:
    query = asked(TRACEBACK)

    assert part_of(query, TEXT, "adapters") != "cause"


@pytest.mark.parametrize(
    ("message", "is_common"),
    [
        ("ValueError: LoRA rank 64 is greater than max_lora_rank 16.", False),
        ("ConnectionRefusedError: [Errno 111] Connection refused", True),
        ("IndexError: list index out of range", True),
        ("KeyError: 'url'", True),
        ('Traceback (most recent call last):\n  File "a.py", line 1, in f\nAssertionError', True),
        ("ValueError: Unknown quantization method: int3", False),
    ],
)
def test_messages_that_unlike_faults_share_are_known(message: str, is_common: bool) -> None:
    assert asked(message).is_common == is_common


def test_a_refused_request_is_told_from_a_failed_server() -> None:
    refused = (
        START
        + """\
(APIServer pid=7) INFO:     Application startup complete.
(APIServer pid=7) ERROR 11-22 13:55:00 [serving.py:12] Error in preprocessing prompt inputs
(APIServer pid=7) Traceback (most recent call last):
(APIServer pid=7)   File "/opt/venv/lib/python3.12/site-packages/vllm/entrypoints/serving.py", line 99, in check
(APIServer pid=7) ValueError: The model does not support the colour blue
(APIServer pid=7) INFO:     10.0.0.7:51334 - "POST /v1/completions HTTP/1.1" 400 Bad Request
"""
    )

    assert (asked(refused).is_refused, asked(TRACEBACK).is_refused) == (True, False)
    assert not asked(refused).is_common


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("The checkpoint has model type `zebra2` but Transformers does not know it.", {"zebra2"}),
        ("Unknown quantization method: int3.", {"int3"}),
        ("unrecognized arguments: --max-modellen 512", {"max", "modellen"}),
        ("No module named 'vllm.zebra'", {"vllm", "zebra"}),
        ("ZebraBackend has no attribute stripe_count.", {"stripe_count"}),
        ("Repo id must be in the form of a name: '/data/models/zebra'", set()),
    ],
)
def test_names_are_what_a_message_is_about(message: str, names: set[str]) -> None:
    assert asked(f"ValueError: {message}").names == names


def test_what_a_missing_attribute_is_called_says_all_that_is_wrong() -> None:
    assert asked("AttributeError: ZebraBackend has no attribute stripe_count.").is_named
    assert not asked(TRACEBACK).is_named


def test_a_log_without_a_cause_says_little_by_itself() -> None:
    assert asked("INFO:     Started server process [7]").is_common
    assert not asked(TRACEBACK).is_common


def test_which_symbol_is_missing_says_all_that_is_wrong() -> None:
    assert asked("ImportError: /opt/a/_C.abi3.so: undefined symbol: _ZN3c106detailEv").is_named


def test_rules_of_common_errors_are_told_apart_by_name() -> None:
    rules = load_rule_set("common_errors").rules

    assert len({rule.id for rule in rules}) == len(rules)


def test_an_option_that_a_command_does_not_know_names_the_failure() -> None:
    assert not asked("vllm: error: unrecognized arguments: --perch-count 2").is_common
    assert asked("vllm: error: unrecognized arguments: -P 2").is_common


def test_where_only_wrappers_are_printed_the_places_of_their_code_are_asked() -> None:
    wrapper = "RuntimeError: Engine core initialization failed. See root cause above.\n"
    frames = TRACEBACK[: TRACEBACK.index("ValueError: ")]

    assert part_of(asked(START + frames + wrapper), TEXT, "peft_helper") == "near"
    assert part_of(asked(START + TRACEBACK), TEXT, "peft_helper") is None
