"""Errors that name no cause are not called the same on likeness alone.

Why a stored issue matches a log, and where the two differ.
"""

from __future__ import annotations

import pytest

from app.extract.facts import ErrorFact, Facts
from app.extract.reader import read_log
from app.knowledge.diagnosis.explain import LATE, MAX_PHRASES, WRAPPED, explain, why_not_same
from app.knowledge.diagnosis.shapes import Why
from app.match.search.log_query import PARTS
from app.match.search.log_search import Candidate
from app.match.search.terms import ERROR, FRAME, TEXT
from tests.samples import marlin_log

LATE_LOG = "RuntimeError: CUDA error: an illegal memory access was encountered"
WRAPPER_LOG = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
NAMED = "INFO 04-01 12:00:00 [api_server.py:1] non-default args: {'model': 'Qwen/Qwen3-8B'}\n"


def a_candidate(*frames: str) -> Candidate:
    zero = dict.fromkeys(PARTS, 1.0)
    return Candidate((1, 7), zero, zero, zero, 0.0, tuple((FRAME, text, 5.0) for text in frames))


@pytest.mark.parametrize(
    ("log", "wanted"), [(LATE_LOG, LATE), (WRAPPER_LOG, WRAPPED), ("KeyError: 'a.b'", None)]
)
def test_only_an_error_that_names_no_cause_is_doubted(log: str, wanted: str | None) -> None:
    assert why_not_same(read_log(log), Facts(number=7), a_candidate("worker.py:run")) == wanted


@pytest.mark.parametrize(
    ("theirs", "doubts"),
    [
        ("Weight output_size_per_partition = 4608 is not divisible by min_thread_n = 64.", False),
        ("Weight output_size_per_partition = 4544 is not divisible by min_thread_k = 64.", True),
        ("Another message, about group_size of the checkpoint.", False),
    ],
)
def test_other_names_in_the_same_message_are_doubted_and_other_numbers_are_not(
    theirs: str, doubts: bool
) -> None:
    facts = Facts(number=7, error=ErrorFact(type="ValueError", message=theirs))

    reason = why_not_same(read_log(marlin_log()), facts, a_candidate())

    assert reason == ("your message has “min_thread_n”; theirs “min_thread_k”" if doubts else None)


def test_the_same_model_family_takes_the_doubt_away() -> None:
    theirs = Facts(number=7, models=("Qwen2.5-72B-Instruct-AWQ",))

    assert why_not_same(read_log(NAMED + LATE_LOG), theirs, a_candidate()) is None


def test_another_model_leaves_the_doubt() -> None:
    theirs = Facts(number=7, models=("meta-llama/Llama-3.1-8B",))

    assert why_not_same(read_log(NAMED + LATE_LOG), theirs, a_candidate()) == LATE


def test_the_same_backend_takes_the_doubt_away() -> None:
    log = "INFO 04-01 12:00:00 [cuda.py:1] Using FlashInfer backend on V1 engine.\n" + LATE_LOG
    mine = read_log(log)
    assert mine.surroundings.backends["attention"]

    assert (
        why_not_same(
            mine,
            Facts(number=7, backends={"attention": mine.surroundings.backends["attention"]}),
            a_candidate(),
        )
        is None
    )


def test_a_shared_kernel_takes_the_doubt_away() -> None:
    assert why_not_same(read_log(LATE_LOG), None, a_candidate("_custom_ops.py:moe_align_block_size")) is None


LOG = (
    "(APIServer pid=1) INFO 03-14 09:26:40 [api_server.py:1978] vLLM API server version 0.9.1\n"
    + marlin_log()
)
READING = read_log(LOG)
THEIRS = Facts(number=1, error=ErrorFact(type="ValueError", message="no"))


def shared(*terms: tuple[int, str]) -> Candidate:
    scores = dict.fromkeys(PARTS, 1.0)
    return Candidate(
        (1, 1), scores, scores, scores, 0.0, tuple((channel, text, 1.0) for channel, text in terms)
    )


def why(
    facts: Facts | None, *terms: tuple[int, str], gpus: tuple[str, ...] = (), models: tuple[str, ...] = ()
) -> Why:
    from dataclasses import replace

    around = READING.surroundings.model_copy(update={"gpus": gpus, "models": models})
    return explain(replace(READING, surroundings=around), facts, shared(*terms))


def test_a_shared_signature_says_it_all() -> None:
    facts = THEIRS.model_copy(update={"signatures": READING.signatures})

    assert why(facts).shared[0] == f"the whole signature: {READING.signatures[0].text[:160]}"


def test_a_shared_type_and_shared_error_words_are_named() -> None:
    assert why(THEIRS, (ERROR, "min_thread_n"), (ERROR, "type:ValueError")).shared[:2] == (
        "error type ValueError",
        "error words “min_thread_n”",
    )


def test_of_error_words_no_part_of_others_is_named() -> None:
    shared = why(THEIRS, (ERROR, "from cudagetdevicecount"), (ERROR, "cudagetdevicecount"), (ERROR, "driver"))

    assert shared.shared[1] == "error words “from cudagetdevicecount”, “driver”"


def test_shared_frames_are_named() -> None:
    assert why(None, (FRAME, "a.py:b"), (FRAME, "a.py:b > c.py:d")).shared == ("frame a.py:b",)


def test_where_only_words_are_shared_they_are_named() -> None:
    assert why(None, (TEXT, "weights")).shared == ("words “weights”",)


def test_another_type_differs() -> None:
    other = Facts(number=1, error=ErrorFact(type="KeyError", message="x"))

    assert "your error is ValueError; theirs KeyError" in why(other).differs


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted"),
    [
        (("H100",), ("H100",), (("GPU H100",), ())),
        (("H100",), ("A100", "H100"), (("GPU H100",), ())),
        (("H100",), ("A100",), ((), ("your GPU is H100; theirs A100",))),
        ((), ("A100",), ((), ())),
        (("H100",), (), ((), ())),
    ],
)
def test_hardware_is_compared(
    ours: tuple[str, ...], theirs: tuple[str, ...], wanted: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    found = why(THEIRS.model_copy(update={"gpus": theirs}), gpus=ours)

    assert (
        tuple(p for p in found.shared if "GPU" in p),
        tuple(p for p in found.differs if "GPU" in p),
    ) == wanted


def test_a_model_is_the_same_under_another_owner_and_spelling() -> None:
    found = why(THEIRS.model_copy(update={"models": ("org/M-7B",)}), models=("/models/m_7b",))

    assert "model /models/m_7b" in found.shared


@pytest.mark.parametrize(
    ("theirs", "wanted"), [("0.9.1", (True, False)), ("0.8.5", (False, True)), (None, (False, False))]
)
def test_versions_are_compared(theirs: str | None, wanted: tuple[bool, bool]) -> None:
    found = why(THEIRS.model_copy(update={"versions": {"vllm": theirs} if theirs else {}}))

    assert ("vLLM 0.9.1" in found.shared, "you run vLLM 0.9.1; theirs 0.8.5" in found.differs) == wanted


def test_no_more_than_a_few_phrases_are_given() -> None:
    facts = THEIRS.model_copy(update={"gpus": ("H100",), "models": ("m",), "versions": {"vllm": "0.9.1"}})
    found = why(
        facts, (ERROR, "a"), (ERROR, "b"), (FRAME, "a.py:b"), (FRAME, "c.py:d"), gpus=("H100",), models=("m",)
    )

    assert len(found.shared) == MAX_PHRASES


def test_alike_messages_show_the_words_in_which_they_differ() -> None:
    error = ErrorFact(type="AttributeError", message="module 'cv2.gapi' has no attribute 'DictValue'")
    log = "AttributeError: module 'cv2.dnn' has no attribute 'DictValue'"
    found = explain(read_log(log), Facts(number=7, error=error), a_candidate())

    assert found.differs == ("your message has “cv2.dnn”; theirs “cv2.gapi”",)


@pytest.mark.parametrize(
    ("ours", "theirs", "differs"),
    [
        ("Worker proc VllmWorker-0 died", "Worker proc VllmWorker-3 died", ()),
        ("no room for 2048 tokens", "no room for 4096 tokens", ("your message has “2048”; theirs “4096”",)),
    ],
)
def test_numbers_of_processes_are_no_difference_but_values_are(
    ours: str, theirs: str, differs: tuple[str, ...]
) -> None:
    stored = Facts(number=7, error=ErrorFact(type="RuntimeError", message=theirs))

    assert explain(read_log(f"RuntimeError: {ours}"), stored, a_candidate()).differs == differs


def test_words_that_stand_everywhere_and_masked_ones_are_no_evidence() -> None:
    zero = dict.fromkeys(PARTS, 1.0)
    shared = tuple(
        (ERROR, text, 5.0) for text in ("when", "than the", "02", "utilization size2", "paged cache")
    )
    candidate = Candidate((1, 7), zero, zero, zero, 0.0, shared)

    assert explain(read_log("ValueError: paged cache"), None, candidate).shared == (
        "error words “paged cache”",
    )
