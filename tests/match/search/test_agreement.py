"""How far surroundings and signatures of a log and an issue agree."""

from __future__ import annotations

import pytest

from app.extract.facts import Facts, Signature
from app.extract.reader import LogReading, read_log
from app.match.search.agreement import UNKNOWN, agreement_of, model_family, model_line

TITLE = "[Bug]: No memory left"
LOG = """INFO 11-20 10:00:01 [api_server.py:1289] vLLM API server version 0.11.2
(EngineCore pid=1) Traceback (most recent call last):
(EngineCore pid=1)   File "/usr/lib/python3.12/site-packages/vllm/v1/core/kv_cache_utils.py", line 7, in check
(EngineCore pid=1) ValueError: no memory left for the cache of 12 blocks
"""


def a_reading(model: str = "", gpu: str = "", attention: str = "") -> LogReading:
    lines = [f"model='{model}'"] if model else []
    lines += [f"INFO 11-20 10:00:00 [gpu.py:1] Device: NVIDIA {gpu}"] if gpu else []
    lines += [f"INFO 11-20 10:00:00 [cuda.py:1] Using {attention} backend."] if attention else []
    return read_log("\n".join([*lines, LOG]))


def some_facts(**told: object) -> Facts:
    return Facts.model_validate({"number": 7, "is_failure": True, "failure_kind": "crash", **told})


@pytest.mark.parametrize(
    ("title", "log", "wanted"),
    [
        ("[CI Failure]: Language Models Test (Extended Pooling)", LOG, -1),
        ("[Bug]: test_port.py::test_get_port fails", LOG, -1),
        ("[Bug]: test_port.py::test_get_port fails", f"FAILED tests/test_port.py::test_get_port\n{LOG}", 1),
        ("[Bug]: No memory left in our stress test", LOG, 0),
    ],
)
def test_a_report_of_a_test_is_of_a_run_of_tests_and_not_of_a_server(
    title: str, log: str, wanted: float
) -> None:
    assert agreement_of(read_log(log), some_facts(), title).test == wanted


def test_what_one_of_the_two_does_not_tell_neither_agrees_nor_differs() -> None:
    assert agreement_of(read_log(LOG), some_facts(), TITLE) == UNKNOWN


def test_a_signature_of_the_log_that_the_issue_has_too_agrees() -> None:
    reading = read_log(LOG)

    assert agreement_of(reading, some_facts(signatures=reading.signatures), TITLE).signature == 1


@pytest.mark.parametrize(
    ("message", "frame", "wanted"),
    [
        ("no memory left for the cache of 9 blocks", "kv_cache_utils.py:check", (1.0, 1.0)),
        ("the device was lost", "gpu_worker.py:run", (-0.8, 0.0)),
    ],
)
def test_the_root_errors_are_compared_by_words_and_frame(
    message: str, frame: str, wanted: tuple[float, float]
) -> None:
    error = {"type": "ValueError", "message": message, "frame": frame, "wrappers": (), "other": ()}
    found = agreement_of(a_reading(), some_facts(error=error), TITLE)

    assert (round(found.message, 1), found.frame) == wanted


@pytest.mark.parametrize(
    ("theirs", "others", "wanted"),
    [
        ("No module named 'vllm._C'", (), -1),
        ("No module named 'vllm.worker'", (), 0),
        ("No module named 'vllm._C'", ("ModuleNotFoundError | No module named 'vllm.worker'",), 0),
        ("the device was lost", (), 0),
    ],
)
def test_one_message_about_another_thing_is_noted(
    theirs: str, others: tuple[str, ...], wanted: float
) -> None:
    reading = read_log(
        "Traceback (most recent call last):\nModuleNotFoundError: No module named 'vllm.worker'"
    )
    error = {"type": "ModuleNotFoundError", "message": theirs, "frame": None, "wrappers": (), "other": ()}
    signatures = [{"id": f"s1-{at}", "text": text, "role": "root"} for at, text in enumerate(others)]

    found = agreement_of(reading, some_facts(error=error, signatures=signatures), TITLE)

    assert found.names == wanted


@pytest.mark.parametrize(
    ("theirs", "others", "wanted"),
    [
        ("chat() got an unexpected keyword argument 'top_k'", (), -1),
        ("generate() got an unexpected keyword argument 'top_k'", (), 0),
        (
            "chat() got an unexpected keyword argument 'top_k'",
            ("TypeError | generate() got an unexpected",),
            0,
        ),
        ("got an unexpected keyword argument 'top_k'", (), -1),
        ("", (), 0),
    ],
    ids=["another", "the same", "an error beside", "none", "no message"],
)
def test_a_call_that_another_function_refuses_is_another_failure(
    theirs: str, others: tuple[str, ...], wanted: float
) -> None:
    reading = read_log(
        "Traceback (most recent call last):\nTypeError: generate() got an unexpected keyword argument 'top_k'"
    )
    error = {"type": "TypeError", "message": theirs, "frame": None, "wrappers": (), "other": ()}
    signatures = [{"id": f"s1-{at}", "text": text, "role": "root"} for at, text in enumerate(others)]

    found = agreement_of(reading, some_facts(error=error, signatures=signatures), TITLE)

    assert found.names == wanted


def test_what_must_be_so_is_a_name_too() -> None:
    reading = read_log("Traceback (most recent call last):\nValueError: n must be at least 1, got 0.")
    signature = {"id": "s1-0", "text": "ValueError | max_tokens must be at least <n>", "role": "root"}
    message = "max_tokens must be at least 1, got -186."
    error = {"type": "ValueError", "message": message, "frame": None, "wrappers": (), "other": ()}

    assert agreement_of(reading, some_facts(error=error, signatures=[signature]), TITLE).names == -1


def test_signatures_of_wrappers_do_not_count() -> None:
    reading = read_log(LOG)
    wrapped = [Signature(id=item.id, text=item.text, role="wrapper") for item in reading.signatures]

    assert agreement_of(reading, some_facts(signatures=wrapped), TITLE).signature == 0


@pytest.mark.parametrize(
    ("theirs", "wanted"), [("Qwen/Qwen3-VL-8B", 1), ("meta-llama/Llama-3.1-8B", -1), ("", 0)]
)
def test_model_families_are_compared(theirs: str, wanted: float) -> None:
    facts = some_facts(models=(theirs,) if theirs else ())

    assert agreement_of(a_reading(model="Qwen/Qwen2.5-7B-Instruct"), facts, TITLE).family == wanted


@pytest.mark.parametrize(("theirs", "wanted"), [("0.11.0", 1.0), ("0.8.2", 0.0), ("1.0.0", -0.9)])
def test_a_version_further_away_agrees_less(theirs: str, wanted: float) -> None:
    found = agreement_of(read_log(LOG), some_facts(versions={"vllm": theirs}), TITLE).version

    assert found == pytest.approx(wanted, abs=0.06)


@pytest.mark.parametrize("version", ["main", "nightly", ""])
def test_a_version_without_numbers_is_not_compared(version: str) -> None:
    assert agreement_of(read_log(LOG), some_facts(versions={"vllm": version}), TITLE).version == 0


@pytest.mark.parametrize(("theirs", "wanted"), [("H200", 1), ("A100", -1)])
def test_cards_of_one_architecture_agree(theirs: str, wanted: float) -> None:
    reading = a_reading(gpu="H100")

    assert reading.surroundings.gpus == ("H100",)
    assert agreement_of(reading, some_facts(gpus=(theirs,)), TITLE).architecture == wanted


@pytest.mark.parametrize(("theirs", "wanted"), [("flashinfer", 1), ("FLASH_ATTN", -1)])
def test_backends_are_compared_without_regard_to_case(theirs: str, wanted: float) -> None:
    reading = a_reading(attention="FlashInfer")

    assert agreement_of(reading, some_facts(backends={"attention": (theirs,)}), TITLE).backend == wanted


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Qwen/Qwen2.5-72B-Instruct", "qwen"),
        ("meta-llama/Meta-Llama-3.1-8B", "llama"),
        ("/models/deepseek_r1/", "deepseek"),
        ("123", ""),
        ("", ""),
    ],
)
def test_a_models_family_is_its_first_word(name: str, family: str) -> None:
    assert model_family(name) == family


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Qwen/Qwen2.5-72B-Instruct", "qwen2.5"),
        ("Qwen3-Coder-30B-A3B", "qwen3"),
        ("Qwen-7B-Chat", "qwen"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"),
        ("DeepSeek-R1-Distill-Llama-8B", "deepseek-r1"),
        ("meta-llama/Llama-4-Scout-17B-16E", "llama-4"),
        ("huggyllama/llama-13b", "llama"),
        ("Meta-Llama-3.1-8B", "llama-3.1"),
        ("openai/gpt-oss-120b", "gpt-oss"),
        ("Mixtral-8x7B-Instruct-v0.1", "mixtral"),
        ("facebook/opt-125m", "opt"),
        ("gemma-3-27b-it", "gemma-3"),
        ("acme/tiny-3b", "tiny"),
        ("123", ""),
    ],
)
def test_a_model_s_line_is_its_family_and_generation(name: str, line: str) -> None:
    assert model_line(name) == line
