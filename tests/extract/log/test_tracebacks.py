"""Errors in a log, one record each, with frames, chain and place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.log.error_lines import MAX_MESSAGE_CHARS
from app.extract.log.frames import Frame
from app.extract.log.lines import read_lines
from app.extract.log.process_stream import ErrorRecord
from app.extract.log.tracebacks import MAX_ERRORS, MAX_FRAMES, find_errors, title_error
from app.extract.text.blocks import split_lines

LOADER = "/opt/venv/lib/python3.12/site-packages/vllm/model_executor/model_loader/utils.py"


def errors(log: str) -> list[ErrorRecord]:
    return find_errors(read_lines(split_lines(log)))


def told(log: str) -> list[tuple[str | None, str]]:
    return [(record.type, record.message) for record in errors(log)]


def a_traceback(last: str, *frames: tuple[str, str]) -> str:
    lines = [f'  File "{path}", line {at}, in {name}\n    go()' for at, (path, name) in enumerate(frames, 7)]
    return "\n".join(["Traceback (most recent call last):", *lines, last, ""])


def test_a_traceback_is_one_error_with_its_frames() -> None:
    [record] = errors(a_traceback("KeyError: 'w4a8'", ("/a/run.py", "main"), (LOADER, "load")))

    assert (record.type, record.message, record.line.number) == ("KeyError", "'w4a8'", 6)
    assert record.frames == (Frame("/a/run.py", "main"), Frame(LOADER, "load"))


def test_a_frame_s_place_is_file_and_function() -> None:
    assert Frame(LOADER, "load").place == "utils.py:load"
    assert Frame("C:\\vllm\\run.py", "").place == "run.py"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("ValueError: no", ("ValueError", "no")),
        ("torch.OutOfMemoryError: CUDA out of memory.", ("torch.OutOfMemoryError", "CUDA out of memory.")),
        (
            "vllm.v1.engine.exceptions.EngineDeadError: gone",
            ("vllm.v1.engine.exceptions.EngineDeadError", "gone"),
        ),
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory",
            ("triton.runtime.errors.OutOfResources", "out of resource: shared memory"),
        ),
        ("queue.Empty", ("queue.Empty", "")),
        ("ray.exceptions.RayTaskError(KeyError): ray::x()", ("ray.exceptions.RayTaskError", "ray::x()")),
        ("ERROR 03-14 09:26:53 [x.py:1] it fails with ValueError: no", ("ValueError", "no")),
        ("ERROR 03-14 09:26:53 [x.py:1] (ValueError: no)", ("ValueError", "no)")),
        ("RuntimeError: ", ("RuntimeError", "")),
        ("Exception: no such tokenizer", ("Exception", "no such tokenizer")),
        ("ValueError", None),
        ("DeprecationWarning: old", None),
        ("this text speaks of errors", None),
        ("Raises ValueError when empty", None),
        ("INFO 03-14 09:26:53 [x.py:1] no error here", None),
    ],
)
def test_an_error_line_that_stands_alone(line: str, wanted: tuple[str, str] | None) -> None:
    assert told(line) == ([wanted] if wanted else [])


def test_a_bare_name_ends_a_traceback() -> None:
    assert told(a_traceback("AssertionError", (LOADER, "load"))) == [("AssertionError", "")]


def test_a_message_on_the_next_line_is_taken() -> None:
    log = a_traceback("RuntimeError:", (LOADER, "load")) + "The shape of the scale is wrong\n"

    assert told(log) == [("RuntimeError", "The shape of the scale is wrong")]


def test_a_message_is_not_taken_from_a_later_line() -> None:
    log = a_traceback("RuntimeError:", (LOADER, "load")) + "\n\nThe next chapter\n"

    assert told(log) == [("RuntimeError", "")]


def test_pydantic_s_message_stands_below_its_name() -> None:
    log = a_traceback(
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig", (LOADER, "load")
    )
    log += "  Value error, The architecture Foo9 is not known. [type=value_error, input_value=1]\n    For further information\n"

    assert told(log) == [
        ("pydantic_core._pydantic_core.ValidationError", "The architecture Foo9 is not known.")
    ]


@pytest.mark.parametrize(
    "below",
    [
        " Value error, The architecture Foo9 is not known. [type=value_error, input_value=1]",
        "\n(APIServer pid=7) Value error, The architecture Foo9 is not known. [type=value_error, input_value=1]",
        " E Value error, The architecture Foo9 is not known. [type=value_error, input_value=1]",
    ],
)
def test_pydantic_s_message_is_read_where_its_indentation_is_lost(below: str) -> None:
    log = "(APIServer pid=7) pydantic_core.ValidationError: 1 validation error for ModelConfig" + below + "\n"

    assert told(log) == [("pydantic_core.ValidationError", "The architecture Foo9 is not known.")]


def test_pydantic_s_field_errors_are_read() -> None:
    log = "pydantic_core._pydantic_core.ValidationError: 1 validation error for Args\nport\n  Input should be a valid integer [type=int_parsing]\n"

    assert told(log) == [("pydantic_core._pydantic_core.ValidationError", "Input should be a valid integer")]


@pytest.mark.parametrize(
    ("between", "wanted"),
    [
        ("The above exception was the direct cause of the following exception:", ["", "caused_by"]),
        ("During handling of the above exception, another exception occurred:", ["", "during"]),
        ("", ["", ""]),
    ],
)
def test_a_chain_is_told(between: str, wanted: list[str]) -> None:
    log = f"{a_traceback('KeyError: 1', (LOADER, 'a'))}\n{between}\n\n{a_traceback('ValueError: 2', (LOADER, 'b'))}"

    assert [record.chain for record in errors(log)] == wanted


def test_processes_that_print_at_once_are_read_apart() -> None:
    one = a_traceback("KeyError: 'one'", (LOADER, "one")).splitlines()
    two = a_traceback("ValueError: two", (LOADER, "two")).splitlines()
    log = "\n".join(
        f"(Worker_TP{rank} pid={rank}) {line}"
        for pair in zip(one, two, strict=True)
        for rank, line in enumerate(pair)
    )

    assert [(r.type, r.line.process, r.frames[0].function) for r in errors(log)] == [
        ("KeyError", "Worker_TP0", "one"),
        ("ValueError", "Worker_TP1", "two"),
    ]


def test_a_flattened_traceback_is_read() -> None:
    log = f'Traceback (most recent call last): File "{LOADER}", line 7, in load raise ValueError("x") ValueError: no'

    assert [(r.type, r.message, r.rule) for r in errors(log.replace(": File", ":\nFile"))] == [
        ("ValueError", "no", "traceback.flat")
    ]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'an illegal memory access was encountered'",
            ("CUDA error", "an illegal memory access was encountered", "custom_all_reduce.cuh:455"),
        ),
        (
            "node1:88:91 [5] transport/net_ib.cc:388 NCCL WARN Cuda failure 2 'out of memory'",
            ("CUDA error", "out of memory", "transport/net_ib.cc:388"),
        ),
        ("Fatal Python error: Segmentation fault", ("Segmentation fault", "Segmentation fault", None)),
        (
            "Fatal Python error: Segmentation fault ... Current thread 0x00007f5442d0f740",
            ("Segmentation fault", "Segmentation fault", None),
        ),
        (
            "/app/build/csrc/fused_rope.hip:409:11: error: unused variable 'dim' [-Werror,-Wunused-variable]",
            (None, "unused variable 'dim' [-Werror,-Wunused-variable]", "fused_rope.hip"),
        ),
        ("*** SIGSEGV received at time=1 on cpu 4 ***", ("Segmentation fault", "SIGSEGV received", None)),
        (
            "Memory access fault by GPU node-4 (Agent handle: 0x55d) on address 0x7f2. Reason: Unknown.",
            ("HIP error", "Memory access fault by GPU node-4 (Agent handle: 0x55d) on address 0x7f2", None),
        ),
        (
            "ptxas fatal   : Value 'sm_110a' is not defined",
            ("ptxas fatal", "Value 'sm_110a' is not defined", None),
        ),
    ],
)
def test_a_native_fault_is_an_error(line: str, wanted: tuple[str, str, str | None]) -> None:
    [record] = errors(line)

    assert (record.type, record.message, record.frame) == wanted
    assert record.native is True


def test_a_crash_loop_is_read_up_to_a_limit() -> None:
    assert len(errors("ValueError: again\n" * (MAX_ERRORS + 50))) == MAX_ERRORS


def test_a_recursion_s_frames_are_kept_up_to_a_limit() -> None:
    [record] = errors(a_traceback("RecursionError: deep", *[(LOADER, "again")] * (MAX_FRAMES + 20)))

    assert len(record.frames) == MAX_FRAMES


def test_a_message_is_kept_up_to_a_limit() -> None:
    assert len(errors(f"ValueError: {'x' * 3000}")[0].message) == MAX_MESSAGE_CHARS


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("[Bug]: ValueError: no such head size", ("ValueError", "no such head size")),
        ("[Bug]: start fails with RuntimeError: no device", ("RuntimeError", "no device")),
    ],
)
def test_a_title_may_name_the_error(title: str, wanted: tuple[str, str]) -> None:
    record = title_error(title)

    assert record is not None
    assert (record.type, record.message, record.rule) == (*wanted, "title.inline")


def test_a_title_without_an_error_has_none() -> None:
    assert title_error("[Bug]: it is slow") is None


def test_a_notebook_s_frames_are_read() -> None:
    log = """\
TypeError                                 Traceback (most recent call last)
Cell In[1], line 12
---> 12 client.create()

File ~/lib/python3.10/site-packages/openai/_utils/_utils.py:275, in required.<locals>.inner(*args, **kwargs)
--> 275 return func(*args, **kwargs)

~/vllm/vllm/engine/llm_engine.py in step(self)
---> 10     go()

TypeError: no such keyword
"""
    [record] = errors(log)

    assert (record.type, record.message) == ("TypeError", "no such keyword")
    assert [frame.place for frame in record.frames] == ["_utils.py:inner", "llm_engine.py:step"]


def test_a_traceback_cut_behind_a_failed_assert_is_an_assertion_error() -> None:
    [record] = errors(a_traceback("    assert actual_len >= group_len", (LOADER, "load")))

    assert (record.type, record.message, record.frames[-1].place) == ("AssertionError", "", "utils.py:load")


def test_an_assert_on_the_way_to_another_error_is_none() -> None:
    log = (
        a_traceback("    assert check(size)", (LOADER, "load"))
        + '  File "/a/x.py", line 3, in check\n    go()\nValueError: no\n'
    )

    assert told(log) == [("ValueError", "no")]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("KeyError: 'a.b' [repeated 7x across cluster]", ("KeyError", "'a.b'")),
        (
            "ModuleNotFoundError: No module named 'vllm' ~$ nvidia-smi",
            ("ModuleNotFoundError", "No module named 'vllm'"),
        ),
        ("It says `ValueError: the size 3 is odd` each time.", ("ValueError", "the size 3 is odd")),
        ("We get **ValueError: the size 3 is odd** each time.", ("ValueError", "the size 3 is odd")),
        ("NameError: name 'x' is not defined```", ("NameError", "name 'x' is not defined")),
        ("RuntimeError: no kernel image<br />", ("RuntimeError", "no kernel image")),
    ],
)
def test_a_message_ends_where_the_error_s_own_words_end(line: str, wanted: tuple[str, str]) -> None:
    assert told(line) == [wanted]


def test_a_message_that_ends_in_a_colon_is_whole_unless_it_announces_the_next_line() -> None:
    assert told("RuntimeError: no operator for the inputs:\n  query: (1, 2)\n") == [
        ("RuntimeError", "no operator for the inputs:")
    ]
    assert told("RuntimeError: 400, message:\nNot enough data\n") == [("RuntimeError", "Not enough data")]


PIECES = [
    "Traceback (most recent call last):",
    f'  File "{LOADER}", line 7, in load',
    'File "',
    "KeyError: 1",
    "RuntimeError:",
    "ValidationError: 1",
    "  Value error, x [type=",
    "The above exception was the direct cause",
    "(Worker_TP0 pid=1) ",
    "During handling of the above exception",
    "    assert x == y",
    "what():  y",
    "Fatal Python error: Aborted",
    "\n",
    "\n",
    " ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_errors_come_in_the_order_of_the_log_and_stand_in_it(log: str) -> None:
    lines = log.split("\n")
    numbers = [record.line.number for record in errors(log)]

    assert numbers == sorted(numbers)
    assert [r.message for r in errors(log) if r.message not in lines[r.line.number - 1]] == []


# Other programs' forms


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (
            "vllm serve: error: unrecognized arguments: --lora-path x\n",
            (None, "unrecognized arguments: --lora-path x"),
        ),
        (
            "`vllm serve: error: the following arguments are required: model_tag`\n",
            (None, "the following arguments are required: model_tag"),
        ),
        (
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n",
            (
                None,
                "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
            ),
        ),
        (
            "**error: kernel.py:211:0: stack frame size (556488) exceeds limit (262112) in function 'f'\n",
            (None, "stack frame size (556488) exceeds limit (262112)"),
        ),
        (
            "vllm\\csrc\\kernels.cu(41): error: expression must have a constant value\n",
            (None, "expression must have a constant value"),
        ),
        ("Warning: Parser Error: token fails parse; stopping\n", ("Parser Error", "token fails parse")),
        ("FAILED: build/csrc/gemm_kernels.cu.o\n", (None, "FAILED: build/csrc/gemm_kernels.cu.o")),
        (
            "      NameError: name 'cuda_version' is not defined\n",
            ("NameError", "name 'cuda_version' is not defined"),
        ),
    ],
)
def test_an_error_line_of_another_program(log: str, wanted: tuple[str | None, str]) -> None:
    assert told(log) == [wanted]


@pytest.mark.parametrize(
    "log",
    [
        "    except RuntimeError: pass  # Error: none\n",
        "run()  # ValueError: never here\n",
        "// RuntimeError: in a comment\n",
    ],
)
def test_a_line_that_only_mentions_an_error_is_none(log: str) -> None:
    assert told(log) == []


def test_a_failed_test_s_assertion_is_read_with_its_place() -> None:
    log = "    def test_abort():\n>           assert not engine.busy()\nE           assert not True\nE            +  where True = busy()\n\nv1/test_llm.py:178: AssertionError\n"
    [record] = errors(log)

    assert (record.type, record.message, record.frames) == (
        "AssertionError",
        "assert not True",
        (Frame("v1/test_llm.py", "test_abort"),),
    )


def test_a_failed_test_s_frames_are_read() -> None:
    log = "tests/test_x.py:63: in _run_test\n    go()\n/opt/lib/model.py:21: in resize\n    go()\nE       RuntimeError: no such size\n"

    assert [frame.place for frame in errors(log)[0].frames] == ["test_x.py:_run_test", "model.py:resize"]


def test_a_fault_s_stack_below_it_is_read_from_the_inside() -> None:
    log = 'Fatal Python error: Segmentation fault\n\nStack (most recent call first):\n  File "/a/nccl.py", line 2 in reduce\n  File "/a/run.py", line 1 in main\n\nExtension modules: x\n'

    assert [frame.place for frame in errors(log)[0].frames] == ["run.py:main", "nccl.py:reduce"]


def test_an_embedded_python_s_list_is_read_from_the_inside() -> None:
    log = "Failed to start: ValueError: signal only works in main thread\n\nAt:\n  /usr/lib/python3.12/signal.py(58): signal\n  /app/core_client.py(160): __init__\n"

    assert [frame.place for frame in errors(log)[0].frames] == ["core_client.py:__init__", "signal.py:signal"]


def test_a_box_around_a_traceback_changes_nothing() -> None:
    log = "╭─ Traceback (most recent call last) ─╮\n│ /a/run.py:3 in main                 │\n│   3 │ go()                          │\n╰─────────────────────────────────────╯\nKeyError: 'x'\n"
    [record] = errors(log)

    assert (record.type, [frame.place for frame in record.frames]) == ("KeyError", ["run.py:main"])


def test_a_traceback_that_was_cut_behind_raise_tells_the_class() -> None:
    [record] = errors(
        'Traceback (most recent call last):\n  File "/a/run.py", line 3, in main\n    raise ValueError("no such size")\n'
    )

    assert (record.type, record.message, record.frames) == (
        "ValueError",
        "no such size",
        (Frame("/a/run.py", "main"),),
    )


def test_a_cmake_error_s_words_stand_on_the_next_line() -> None:
    [record] = errors("CMake Error at cmake/utils.cmake:50 (message):\n  No such compiler is known\n")

    assert (record.message, record.frame) == ("No such compiler is known", "utils.cmake:50")


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("[Bug]: RuntimeError:NCCL error is reported with graphs", ("RuntimeError", "NCCL error")),
        (
            "[Bug]: RuntimeError: an illegal memory access was encountered with graphs",
            ("RuntimeError", "an illegal memory access was encountered"),
        ),
        (
            "[Bug]: zmq.error.ZMQError: Operation not supported",
            ("zmq.error.ZMQError", "Operation not supported"),
        ),
        (
            "[Bug]: nvcc error   : 'ptxas' died due to signal 11",
            (None, "nvcc error   : 'ptxas' died due to signal 11"),
        ),
        ("[Bug]: it is slow", None),
    ],
)
def test_a_title_s_error_is_read_without_what_is_said_of_it(
    title: str, wanted: tuple[str | None, str] | None
) -> None:
    found = title_error(title)
    assert (found and (found.type, found.message)) == wanted


TOO_LONG = "the length is far too large " * 30
CHOICES = ", ".join(["auto"] * 90)
REASONS = (
    (
        f"""pydantic_core.ValidationError: 1 validation error for ModelConfig
  Value error, {TOO_LONG}[type=value_error, input_value=1, input_type=int]""",
        "the length is far too large",
    ),
    (
        """vllm serve: error: argument --compilation-config/-cc: 1 validation error for CompilationConfig
mode
  Input should be 0, 1, 2 or 3 [type=enum, input_value=9, input_type=int]""",
        "Input should be 0, 1, 2 or 3",
    ),
    (
        f"vllm serve: error: argument --dtype: invalid choice: 'f8' (choose from {CHOICES})",
        "argument --dtype: invalid choice: 'f8'",
    ),
    (
        r"""{"error":{"message":"bad regex \"[a-\"\n  more","type":"BadRequestError","param":null,"code":400}}""",
        'bad regex "[a-"',
    ),
    (
        r"""{"error":{"message":"1 validation error:\n  {'type': 'missing', 'msg': 'Field required'}","code":400}}""",
        "Field required",
    ),
    (
        r"""{"error":{"message":"1 validation error:\n  out of range ['out of range']","type":"Bad Request","code":400}}""",
        "out of range",
    ),
)


@pytest.mark.parametrize(("log", "wanted"), REASONS)
def test_a_long_message_is_cut_and_never_lost(log: str, wanted: str) -> None:
    (found,) = find_errors(read_lines(split_lines(log)))
    assert found.message.startswith(wanted)
