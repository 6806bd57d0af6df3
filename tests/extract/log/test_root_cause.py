"""Which error of a log is the cause, and which ones only wrap it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.log.frames import Frame, is_plumbing
from app.extract.log.messages import ONLY_WRAPPER, first_sentence, wrapper_rule
from app.extract.log.root_cause import CauseChain, read_errors, title_first

SITE = "/opt/venv/lib/python3.12/site-packages"
CORE = "(EngineCore_DP0 pid=9) ERROR 03-14 09:26:54 [core.py:842] "
SERVER = "(APIServer pid=1) "
CRASH = f"""\
Traceback (most recent call last):
  File "{SITE}/vllm/v1/worker/gpu_worker.py", line 10, in load_model
    self.model_runner.load_model()
  File "{SITE}/vllm/model_executor/layers/fused_moe/layer.py", line 20, in weight_loader
    weight = table[name]
KeyError: 'layers.3.mlp.experts.w13_weight'
"""


def read(log: str) -> CauseChain:
    return read_errors(log)[1]


def cause(log: str) -> tuple[str | None, str, str | None] | None:
    found = read(log).cause
    return (found.type, found.message, found.frame) if found else None


def wrappers(log: str) -> list[str]:
    return [text for text, _ in read(log).wrappers]


def others(log: str) -> list[tuple[str | None, str]]:
    return [(item.type, item.message) for item in read(log).other]


def prefixed(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def a_traceback(last: str, *frames: str) -> str:
    lines = [
        f'  File "{SITE}/{frame.split(":")[0]}", line {at}, in {frame.split(":")[1]}'
        for at, frame in enumerate(frames, 7)
    ]
    return "\n".join(["Traceback (most recent call last):", *lines, last, ""])


FOUND = ("KeyError", "'layers.3.mlp.experts.w13_weight'", "layer.py:weight_loader")


def test_a_plain_traceback_is_its_own_cause() -> None:
    assert cause(CRASH) == FOUND


def test_a_log_without_an_error_has_no_cause() -> None:
    assert read("INFO 03-14 09:26:53 [api_server.py:1] Application startup complete.\n") == CauseChain(None)


def test_an_empty_text_has_no_cause() -> None:
    assert read("") == CauseChain(None)


# Prefixes


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-03-14T09:26:53.589793238Z stdout F ",
        "vllm-server-1  | ",
        "[2026-03-14T09:26:53Z] ",
        "\x1b_bk;t=1760000000000\x07",
        "[1;36m(EngineCore_DP0 pid=9)[0;0m ERROR 03-14 09:26:54 [core.py:842] ",
        "\x1b[1;36m(EngineCore_DP0 pid=9)\x1b[0;0m ",
        "Mar 14 09:26:53 node7 vllm[314]: ",
        "E   ",
        "> ",
        CORE,
        "[rank0]: ",
        "(RayWorkerWrapper pid=27, ip=10.1.2.3) ERROR 03-14 09:26:54 [worker_base.py:1] ",
    ],
    ids=[
        "kubernetes",
        "compose",
        "buildkite",
        "buildkite-raw",
        "colours-without-escape",
        "colours",
        "journald",
        "pytest",
        "quote",
        "vllm",
        "torch-rank",
        "ray",
    ],
)
def test_a_prefix_on_every_line_changes_nothing(prefix: str) -> None:
    assert cause(prefixed(prefix, CRASH)) == FOUND


def test_windows_line_ends_change_nothing() -> None:
    assert cause(CRASH.replace("\n", "\r\n")) == FOUND


# Processes


def test_workers_that_print_at_once_are_read_apart() -> None:
    other = a_traceback("RuntimeError: aborted by rank 0", *[f"vllm/{name}.py:run" for name in "abcd"])
    pairs = zip(CRASH.splitlines(), other.splitlines(), strict=True)
    log = "".join(f"(Worker_TP0 pid=1) {one}\n(Worker_TP1 pid=2) {two}\n" for one, two in pairs)

    assert cause(log) == FOUND
    assert others(log) == [("RuntimeError", "aborted by rank 0")]


def test_one_error_on_all_ranks_is_told_once() -> None:
    log = "".join(
        prefixed(f"(Worker_TP{rank} pid={rank}) ", CRASH.replace("layers.3", f"layers.{rank}"))
        for rank in range(4)
    )

    assert (cause(log), others(log)) == (("KeyError", "'layers.0.mlp.experts.w13_weight'", FOUND[2]), [])


def test_a_worker_knows_better_than_the_engine_core_that_printed_first() -> None:
    log = prefixed(CORE, a_traceback("RuntimeError: a collective call failed", "vllm/v1/engine/core.py:step"))
    log += prefixed("(Worker_TP0 pid=3) ", CRASH)

    assert cause(log) == FOUND


def test_the_engine_core_s_and_the_api_server_s_words_only_wrap() -> None:
    log = prefixed(CORE, f"EngineCore failed to start.\n{CRASH}")
    log += prefixed(
        SERVER,
        a_traceback(
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
            "vllm/v1/engine/utils.py:wait_for_engine_startup",
        ),
    )

    assert cause(log) == FOUND
    assert wrappers(log) == [
        "EngineCore failed to start.",
        "Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    ]


def test_a_client_s_error_is_not_the_server_s() -> None:
    log = "openai.InternalServerError: Error code: 500 - {'message': 'no'}\n" + CRASH

    assert cause(log) == FOUND


def test_only_wrappers_are_no_cause() -> None:
    log = f"""\
{SERVER}vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
{SERVER}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}
"""
    assert cause(log) is None
    assert wrappers(log) == [
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    ]


def test_what_is_printed_at_every_exit_is_neither_cause_nor_wrapper() -> None:
    log = f"{CRASH}asyncio.exceptions.CancelledError: Cancelled by cancel scope 7f60\nKeyboardInterrupt: \n"

    assert (cause(log), wrappers(log)) == (FOUND, [])


def test_an_error_that_a_wrapper_quotes_is_the_cause_where_nothing_else_tells() -> None:
    log = (
        "vllm.engine.multiprocessing.MQEngineDeadError: Engine loop is not running. Inspect the stacktrace to find "
        "the original error: RuntimeError('CUDA error: device-side assert triggered')\n"
    )
    assert cause(log) == ("CUDA error", "device-side assert triggered", None)


# Chains


def test_raise_from_makes_the_outer_error_a_wrapper() -> None:
    log = f"{CRASH}\nThe above exception was the direct cause of the following exception:\n\n"
    log += a_traceback("ValueError: the model cannot be loaded", "vllm/model_executor/loader.py:load")

    assert (cause(log), wrappers(log)) == (FOUND, ["the model cannot be loaded"])


def test_an_error_while_handling_another_comes_second() -> None:
    log = f"{CRASH}\nDuring handling of the above exception, another exception occurred:\n\n"
    log += a_traceback("AttributeError: 'NoneType' object has no attribute 'close'", "vllm/x.py:close")

    assert (cause(log), others(log)) == (
        FOUND,
        [("AttributeError", "'NoneType' object has no attribute 'close'")],
    )


def test_noise_is_no_cause_of_what_was_raised_from_it() -> None:
    log = a_traceback("asyncio.exceptions.CancelledError: scope", "asyncio/x.py:wait")
    log += "\nThe above exception was the direct cause of the following exception:\n\n"
    log += a_traceback("TimeoutError: the step took too long", "vllm/v1/engine/core_client.py:get")

    assert cause(log) == ("TimeoutError", "the step took too long", "core_client.py:get")


# Families


def test_pydantic_s_message_is_the_cause() -> None:
    log = a_traceback(
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "vllm/engine/arg_utils.py:create_model_config",
        "pydantic/_internal/_dataclasses.py:__init__",
    )
    log += "  Value error, The architecture Foo9ForCausalLM is not known. [type=value_error, input_value=1]\n"

    assert cause(log) == (
        "ValidationError",
        "The architecture Foo9ForCausalLM is not known.",
        "arg_utils.py:create_model_config",
    )


def test_a_native_cuda_line_is_the_cause_with_its_own_place() -> None:
    log = f"""\
Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'an illegal memory access was encountered'
{CORE}Worker proc VllmWorker-7 died unexpectedly, shutting down executor.
{SERVER}RuntimeError: Engine core initialization failed. See root cause above.
"""
    assert cause(log) == (
        "CUDA error",
        "an illegal memory access was encountered",
        "custom_all_reduce.cuh:455",
    )


def test_what_torch_appends_to_a_cuda_error_is_left_out() -> None:
    log = a_traceback(
        "torch.AcceleratorError: CUDA error: device-side assert triggered",
        "vllm/v1/worker/gpu_model_runner.py:execute_model",
    )
    log += "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n"

    assert cause(log) == ("CUDA error", "device-side assert triggered", "gpu_model_runner.py:execute_model")


def test_a_cuda_error_s_advice_in_the_same_line_is_left_out() -> None:
    log = "RuntimeError: CUDA error: no kernel image is available for execution on the device CUDA kernel errors might be asynchronously reported\n"

    assert cause(log) == ("CUDA error", "no kernel image is available for execution on the device", None)


def test_torch_s_accounting_of_memory_is_left_out() -> None:
    log = a_traceback(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.11 GiB",
        "vllm/x.py:load",
    )

    assert cause(log) == ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 MiB.", "x.py:load")


def test_nccl_s_words_are_the_cause_where_it_has_no_better() -> None:
    log = prefixed(
        "[rank0]: ",
        a_traceback(
            "torch.distributed.DistBackendError: NCCL error: remote process exited (run with NCCL_DEBUG=INFO)",
            "vllm/distributed/parallel_state.py:init_world",
        ),
    )

    assert cause(log) == (
        "NCCL error",
        "remote process exited (run with NCCL_DEBUG=INFO)",
        "parallel_state.py:init_world",
    )


@pytest.mark.parametrize(
    "words", ["box:27:27 [0] misc/shmutils.cc:113 NCCL WARN {}\n{}", "{1}Last error:\n{0}\n"]
)
def test_what_nccl_says_is_behind_its_unhandled_system_error(words: str) -> None:
    message = "Error while creating shared memory segment /dev/shm/nccl-v2jS20 (size 9637888)"
    last = "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"
    log = words.format(message, a_traceback(last, "vllm/distributed/pynccl.py:init"))

    assert cause(log) == ("NCCL error", message, "pynccl.py:init")


@pytest.mark.parametrize("words", [" with ImportError('{}')", ": ImportError('{}')"])
def test_why_the_extension_was_not_loaded_is_behind_a_missing_operator(words: str) -> None:
    message = "libcudart.so.12: cannot open shared object file: No such file or directory"
    warning = (
        f"WARNING 06-24 21:44:50 _custom_ops.py:14] Failed to import from vllm._C{words.format(message)}"
    )
    last = "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'"
    log = f"{warning}\n{a_traceback(last, 'vllm/_custom_ops.py:rms_norm')}"

    assert cause(log) == ("ImportError", message, "_custom_ops.py:rms_norm")
    assert cause(warning) != ("ImportError", message, None)
    assert cause(log.replace("'_C'", "'_D'"))[0] == "AttributeError"


def test_the_error_that_a_worker_reports_is_taken_out_of_its_wrapper() -> None:
    words = "RuntimeError: Worker failed with error '{}'"
    asked = "please check the stack trace above for the root cause"

    assert cause(words.format("no such compiler"))[:2] == ("RuntimeError", "no such compiler")
    assert cause(words.format("no such compiler") + f", {asked}")[:2] == ("RuntimeError", "no such compiler")
    fault = "CUDA error: no kernel image is available for execution on the device"
    assert cause(words.format(fault))[:2] == ("CUDA error", fault.partition(": ")[2])


def test_an_assertion_of_a_kernel_library_has_its_place() -> None:
    log = "RuntimeError: Assertion error (/srv/src/csrc/apis/../jit/layout.hpp:39): t.dim() == N"
    assert cause(log) == ("RuntimeError", "t.dim() == N", "layout.hpp:39")


@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        (
            "'type': 'extra_forbidden', 'loc': ('body', 'best_of'), 'msg': 'Extra inputs are not permitted', 'input': 2",
            "Extra inputs are not permitted",
        ),
        (
            "'type': 'value_error', 'loc': ('body',), 'msg': 'Value error, Only named tools are supported.', 'input': {}",
            "Only named tools are supported.",
        ),
    ],
)
def test_of_a_refused_request_the_first_reason_is_the_message(item: str, wanted: str) -> None:
    answer = "{'object': 'error', 'message': \"[{" + item + "}]\", 'type': 'BadRequestError', 'code': 400}"
    body = '{"object":"error","message":"[{' + item + '}]","type":"BadRequestError","code":400}'

    assert cause(f"openai.BadRequestError: Error code: 400 - {answer}")[:2] == ("BadRequestError", wanted)
    assert cause(body)[:2] == ("BadRequestError", wanted)
    assert cause(body.partition("'input'")[0])[:2] == (None, wanted)


def test_the_cuda_failure_that_nccl_names_is_behind_its_unhandled_error() -> None:
    log = "node1:88:91 [5] include/alloc.h:388 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'\n"
    log += prefixed(
        "[rank5]: ",
        a_traceback(
            "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO)",
            "vllm/distributed/pynccl.py:init",
        ),
    )

    assert cause(log) == ("CUDA error", "an illegal memory access was encountered", "pynccl.py:init")
    assert others(log) == [("NCCL error", "unhandled cuda error (run with NCCL_DEBUG=INFO)")]


def test_a_warning_is_no_cause_beside_an_error() -> None:
    log = a_traceback("UserWarning: it is slow", "vllm/x.py:warn") + CRASH

    assert cause(log) == FOUND


def test_a_bare_assertion_has_no_message() -> None:
    assert cause(a_traceback("AssertionError", "vllm/linear.py:load")) == (
        "AssertionError",
        "",
        "linear.py:load",
    )


# Damaged texts


def test_a_text_that_lost_its_line_breaks_is_read() -> None:
    talk = (
        "We start the server on two nodes, and after a while it ends with the words that stand below this line. "
        * 5
    )

    assert cause(talk + " ".join(CRASH.split("\n"))) == FOUND


def test_the_end_of_a_traceback_is_enough() -> None:
    assert cause("\n".join(CRASH.splitlines()[3:])) == FOUND


def test_the_last_line_of_a_traceback_is_enough_for_the_message() -> None:
    assert cause(CRASH.splitlines()[-1]) == (*FOUND[:2], None)


def test_a_traceback_without_its_end_has_no_cause() -> None:
    assert cause("\n".join(CRASH.splitlines()[:-1])) is None


# Frames


@pytest.mark.parametrize(
    ("path", "function", "wanted"),
    [
        (f"{SITE}/torch/nn/modules/module.py", "_call_impl", True),
        ("/usr/lib/python3.12/contextlib.py", "decorate_context", True),
        ("/usr/local/lib/python3.12/multiprocessing/process.py", "run", True),
        ("/usr/lib/python3.12/json/decoder.py", "decode", True),
        ("<frozen runpy>", "_run_code", True),
        (f"{SITE}/vllm/v1/engine/core.py", "run_engine_core", True),
        (f"{SITE}/vllm/v1/worker/gpu_worker.py", "load_model", False),
        ("C:\\site-packages\\vllm\\x.py", "load", False),
        ("/home/someone/serve.py", "main", False),
    ],
)
def test_frames_that_stand_in_every_traceback_are_plumbing(path: str, function: str, wanted: bool) -> None:
    assert is_plumbing(Frame(path, function)) is wanted


def test_where_all_frames_are_plumbing_the_innermost_is_shown() -> None:
    log = a_traceback("KeyError: 1", "torch/nn/modules/module.py:_call_impl", "torch/_ops.py:__call__")

    assert cause(log) == ("KeyError", "1", "_ops.py:__call__")


# Words


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("The head size 80 is not supported. Use another backend.", "The head size 80 is not supported."),
        (
            "CUDA out of memory. Tried to allocate 1 GiB. Free some.",
            "CUDA out of memory. Tried to allocate 1 GiB.",
        ),
        ("version 0.9.1 is too old", "version 0.9.1 is too old"),
        ("No stripes, please set STRIPES=1", "No stripes, please set STRIPES=1"),
        ("", ""),
    ],
)
def test_a_message_is_shown_without_its_advice(message: str, wanted: str) -> None:
    assert first_sentence(message) == wanted


@pytest.mark.parametrize("text", ["", "ValueError: no", "KeyError: 'x'", "CUDA error: out of memory"])
def test_a_plain_error_wraps_nothing(text: str) -> None:
    assert wrapper_rule(text) is None


PIECES = [
    *CRASH.splitlines(keepends=True),
    CORE,
    SERVER,
    "[rank0]: ",
    "The above exception was the direct cause\n",
    "RuntimeError: Engine core initialization failed.\n",
    "asyncio.exceptions.CancelledError\n",
    "ValueError: no\n",
    "MQEngineDeadError: Engine loop is not running. Inspect the stacktrace to find the original error: KeyError('x')\n",
    "Fatal Python error: Segmentation fault\n",
    "\n",
    " ",
    "x" * 450,
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_cause_wrappers_and_others_stand_on_lines_of_the_log(log: str) -> None:
    lines, chain = read_errors(log)
    output = [(item.message, item.line) for item in (chain.cause, *chain.other) if item]
    output += list(chain.wrappers)

    assert [text for text, line in output if text not in lines[line.number - 1].raw] == []


@given(st.text(max_size=300))
def test_any_text_can_be_read(log: str) -> None:
    lines, chain = read_errors(log)

    assert [line.raw for line in lines if log[line.start : line.end] != line.raw] == []
    assert chain.cause is None or chain.cause.line in lines


def test_the_compiler_s_own_error_gives_way_to_the_one_raised_inside() -> None:
    _, errors = read_errors("torch._inductor.exc.InductorError: KeyError: 'triton_poi_fused_0'\n")

    assert errors.cause is not None
    assert (errors.cause.type, errors.cause.message) == ("KeyError", "'triton_poi_fused_0'")


def test_what_the_shell_says_of_a_killed_program_is_an_error() -> None:
    _, errors = read_errors("run.sh: line 3:  4711 Segmentation fault (core dumped) vllm serve\n")

    assert errors.cause is not None
    assert errors.cause.type == "Segmentation fault"


TALK = (
    "We start the server on two nodes, and after a while it ends with the words that stand below this line. "
    * 5
)


def test_a_shell_prompt_behind_a_flattened_error_is_no_part_of_its_message() -> None:
    log = f'{TALK}File "{SITE}/vllm/a.py", line 1, in load ValueError: no such size ~$ nvidia-smi Tue Oct 7'

    assert cause(log) == ("ValueError", "no such size", "a.py:load")


def test_an_error_that_never_met_vllm_comes_after_one_that_did() -> None:
    log = a_traceback("ValidationError: 1 field is missing", "agents/run.py:step") + CRASH

    assert (cause(log), others(log)) == (FOUND, [("ValidationError", "1 field is missing")])


def test_the_first_error_of_a_chain_that_meets_vllm_later_stays_the_cause() -> None:
    log = a_traceback("SSLEOFError: EOF in violation of protocol", "urllib3/util/ssl_.py:wrap")
    log += "\nDuring handling of the above exception, another exception occurred:\n\n"
    log += a_traceback("SSLError: too many tries", "vllm/transformers_utils/config.py:get_config") + CRASH

    assert cause(log) == ("SSLEOFError", "EOF in violation of protocol", "ssl_.py:wrap")


def test_an_error_raised_inside_torch_alone_is_placed_where_vllm_called_it() -> None:
    log = a_traceback("RuntimeError: device < num_gpus", "torch/cuda/__init__.py:get_device_properties")
    log += "\nThe above exception was the direct cause of the following exception:\n\n"
    log += a_traceback(
        "torch.cuda.DeferredCudaCallError: CUDA call failed lazily at initialization with error: device",
        "vllm/v1/worker/gpu_worker.py:init_device",
        "torch/cuda/__init__.py:set_device",
    )

    assert cause(log) == ("RuntimeError", "device < num_gpus", "gpu_worker.py:init_device")


def test_nccl_s_unhandled_error_gives_way_to_the_cuda_error_a_warning_names() -> None:
    worker = "(VllmWorkerProcess pid=3) "
    log = f"{worker}WARNING 01-29 20:00:47 model_runner_base.py:143] Failed to pickle inputs: CUDA error: an illegal memory access was encountered\n"
    log += prefixed(
        worker,
        a_traceback(
            "RuntimeError: NCCL error: unhandled cuda error", "vllm/distributed/pynccl_wrapper.py:NCCL_CHECK"
        ),
    )

    assert cause(log) == (
        "CUDA error",
        "an illegal memory access was encountered",
        "pynccl_wrapper.py:NCCL_CHECK",
    )
    assert others(log) == [("NCCL error", "unhandled cuda error")]


def test_a_program_that_a_person_stopped_did_not_fail_by_it() -> None:
    log = a_traceback(
        "subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGINT: 2>.",
        "vllm/x.py:check",
    )

    assert cause(log + CRASH) == FOUND


def test_the_compiler_s_words_are_the_cause_of_a_failed_build() -> None:
    log = "/opt/torch/CUDAContextLight.h:7:10: fatal error: cusparse.h: No such file or directory\n"
    log += a_traceback(
        "subprocess.CalledProcessError: Command '['cmake']' returned non-zero exit status 1.",
        "vllm/setup.py:build_extensions",
    )

    assert cause(log) == (None, "cusparse.h: No such file or directory", "CUDAContextLight.h")


def test_code_that_raises_a_wrapper_is_no_wrapper_line() -> None:
    log = f'{CRASH}ERROR 03-14 09:26:54 [core.py:1]     raise RuntimeError("Engine core initialization failed. "\n'

    assert wrappers(log) == []


def test_what_the_compiler_s_backend_raised_keeps_the_backend_s_frames() -> None:
    log = a_traceback(
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
        "vllm/compilation/backends.py:compile",
    )
    log += "AssertionError: no hash of the graph\n"

    assert cause(log) == ("AssertionError", "no hash of the graph", "backends.py:compile")


def apparent(log: str) -> tuple[str | None, str] | None:
    found = read(log).apparent
    return (found.type, found.message) if found else None


# What stands for a cause that the log does not show


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (
            a_traceback(
                "vllm.engine.async_llm_engine.AsyncEngineDeadError: Background loop is stopped.",
                "vllm/engine/async_llm_engine.py:check_health",
            ),
            ("AsyncEngineDeadError", "Background loop is stopped."),
        ),
        ("ChildProcessError: worker died\n", ("ChildProcessError", "worker died")),
        (
            "ERROR 03-14 09:26:54 [launcher.py:1] MQLLMEngine is already dead, terminating server process\n",
            (None, "MQLLMEngine is already dead, terminating server process"),
        ),
        (
            a_traceback(
                "exceptiongroup.ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
                "anyio/_backends/_asyncio.py:__aexit__",
            ),
            ("ExceptionGroup", "unhandled errors in a TaskGroup (1 sub-exception)"),
        ),
        (
            "ERROR 03-14 09:26:54 [engine.py:1] No supported config format found in the folder\n",
            (None, "No supported config format found in the folder"),
        ),
        (
            "ERROR 03-14 09:26:54 engine.py:366] '<=' not supported between instances of 'str' and 'int'\n",
            (None, "'<=' not supported between instances of 'str' and 'int'"),
        ),
        ("Standard error: 0.21 (0.33%)\n", None),
        ("KeyboardInterrupt: stopped\n", None),
    ],
)
def test_the_outer_words_are_the_best_known_where_nothing_else_is(
    log: str, wanted: tuple[str | None, str] | None
) -> None:
    assert cause(log) is None
    assert apparent(log) == wanted


def test_a_lost_socket_tells_more_than_the_engine_s_wrapper() -> None:
    log = a_traceback("zmq.error.ZMQError: Operation not supported", "zmq/_future.py:poll")
    log += a_traceback(
        "RuntimeError: Engine process failed to start. See stack trace for the root cause.",
        "vllm/api_server.py:build",
    )

    assert apparent(log) == ("ZMQError", "Operation not supported")


def test_an_error_inside_an_exception_group_is_the_cause() -> None:
    log = "  + Exception Group Traceback (most recent call last):\n"
    log += '  |   File "/opt/app/run.py", line 3, in main\n  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n'
    log += "  +-+---------------- 1 ----------------\n" + prefixed("    | ", CRASH)

    assert cause(log) == FOUND


# Builds


def test_a_build_s_outer_steps_only_wrap_what_the_tool_says() -> None:
    log = "fatal: unable to access 'https://git.example/x.git/': Could not resolve host: git.example\n"
    log += "CMake Error at x-populate/clone.cmake:50 (message):\n  Failed to clone repository: 'https://git.example/x.git'\n"
    log += a_traceback(
        "subprocess.CalledProcessError: Command '['cmake', '--build', '.']' returned non-zero exit status 1.",
        "vllm/setup.py:run",
    )
    log += "ERROR: Failed building editable for vllm\n"

    assert cause(log) == (
        None,
        "unable to access 'https://git.example/x.git/': Could not resolve host: git.example",
        "clone.cmake:50",
    )
    assert wrappers(log) == [
        "Failed to clone repository: 'https://git.example/x.git'",
        "Command '['cmake', '--build', '.']' returned non-zero exit status 1.",
        "Failed building editable for vllm",
    ]


def test_the_installer_s_news_come_after_an_error_of_the_running_program() -> None:
    assert cause("ERROR: No matching distribution found for torch==9.9\n" + CRASH) == FOUND


# Faults of kernels


def test_a_kernel_s_own_check_comes_before_the_abort_that_follows() -> None:
    log = "/opt/ATen/native/hip/Indexing.hip:1294: indexSelect: Device-side assertion `src < size' failed.\n"
    log += "*** SIGABRT received at time=1 on cpu 7 ***\nFatal Python error: Aborted\n"

    assert cause(log) == ("HIP error", "Device-side assertion `src < size' failed", "Indexing.hip:1294")
    assert wrappers(log) == ["*** SIGABRT received at time=1 on cpu 7 ***", "Aborted"]


def test_nccl_s_own_fault_is_placed_where_python_called_it() -> None:
    log = "node1:88:91 [5] enqueue.cc:267 NCCL WARN Cuda failure 'dependency created on uncaptured work'\n"
    log += a_traceback("AssertionError", "vllm/distributed/pynccl.py:all_reduce")

    assert cause(log) == ("CUDA error", "dependency created on uncaptured work", "pynccl.py:all_reduce")


# Frames


def test_a_package_installed_below_a_folder_of_any_name_is_itself() -> None:
    assert not is_plumbing(
        Frame("/data/ray/session/lib/python3.10/site-packages/vllm/worker/worker.py", "init_device")
    )


def test_code_run_from_a_string_is_a_place_only_where_it_is_innermost() -> None:
    setup = 'File "<string>", line 9, in <module>\nFile "<string>", line 5, in configure\nRuntimeError: no compiler\n'
    spawn = 'File "<string>", line 1, in <module>\nFile "/site-packages/vllm/x.py", line 5, in load\nRuntimeError: no compiler\n'

    assert cause(f"Traceback (most recent call last):\n{setup}") == (
        "RuntimeError",
        "no compiler",
        "<string>:configure",
    )
    assert cause(f"Traceback (most recent call last):\n{spawn}") == (
        "RuntimeError",
        "no compiler",
        "x.py:load",
    )


# Wrapper lines


def test_what_a_handler_logs_above_the_traceback_wraps_it() -> None:
    log = prefixed("ERROR 03-14 09:26:54 [parser.py:1] ", f"Cannot read the answer of the tool.\n{CRASH}")

    assert wrappers(log) == ["Cannot read the answer of the tool."]


def test_a_sentence_above_a_traceback_is_no_wrapper() -> None:
    assert wrappers(f"I get this error:\n{CRASH}") == []


def test_the_title_s_error_comes_first_of_two() -> None:
    log = a_traceback("ValueError: bfloat16 is no type for this card", "vllm/config.py:check")
    log += a_traceback("RuntimeError: No CUDA GPUs are available", "vllm/worker.py:init_device")

    found = title_first(read(log), "[Bug]: no cuda gpus are available on Ray").cause
    assert found is not None
    assert found.message == "No CUDA GPUs are available"


def test_a_title_that_tells_nothing_changes_no_order() -> None:
    assert title_first(read(CRASH), "[Bug]: it stops") == read(CRASH)


def test_what_stands_for_a_cause_knows_that_it_only_wraps() -> None:
    standing = read("EngineDeadError: EngineCore encountered an issue.\n").apparent

    assert standing is not None
    assert standing.rule == ONLY_WRAPPER
    assert title_first(read(CRASH), "").cause.rule != ONLY_WRAPPER  # type: ignore[union-attr]


def test_the_errors_raised_on_top_of_the_cause_are_its_chain() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/a/vllm/loader.py", line 3, in load\n'
        "KeyError: 'weights'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "/a/vllm/loader.py", line 9, in load\n'
        "OSError: /models/a.safetensors is no checkpoint\n"
    )
    found = read(log)
    assert found.cause
    assert found.cause.message == "'weights'"
    assert [item.message for item in found.chain] == ["/models/a.safetensors is no checkpoint"]


def test_the_error_that_a_triton_server_quotes_is_the_cause() -> None:
    log = (
        "tritonclient.utils.InferenceServerException: [StatusCode.INVALID_ARGUMENT] load failed for model 'zebra': "
        "version 1 is at UNAVAILABLE state: Internal: AssertionError: Error in memory profiling.\n"
    )
    assert cause(log) == ("AssertionError", "Error in memory profiling.", None)


FRAMES = '  File "/opt/venv/site-packages/vllm/lora/worker_manager.py", line 122, in load\n    peft.check(config)\n'


def test_a_validation_error_within_another_error_is_read_to_its_reason() -> None:
    log = (
        "zebra.UnpickleableError: cannot be pickled, raw error:\n1 validation error for ModelConfig\n"
        "  Value error, no such model [type=value_error, input_value=1, input_type=int]\n"
    )
    found = cause(log)
    assert found is not None
    assert found[1] == "no such model"


@pytest.mark.parametrize(
    ("above", "message"),
    [
        (
            "(APIServer pid=3) ModuleNotFoundError: No module named 'torchvision'\n",
            "No module named 'torchvision'",
        ),
        ("", "Model architectures ['FooForCausalLM'] failed to be inspected."),
    ],
)
def test_what_sends_to_the_rest_of_the_log_is_the_cause_only_alone(above: str, message: str) -> None:
    head = "(APIServer pid=3) Traceback (most recent call last):\n" if above else ""
    place = '(APIServer pid=3)   File "/a/transformers/processing.py", line 7, in <module>\n' if above else ""
    log = (
        f"{head}{place}{above}"
        'Traceback (most recent call last):\n  File "/a/bin/vllm", line 8, in <module>\n'
        "ValueError: Model architectures ['FooForCausalLM'] failed to be inspected. "
        "Please check the logs for more details.\n"
    )
    cause = read_errors(log)[1].cause

    assert cause is not None
    assert cause.message == message


def test_a_place_outside_a_list_leaves_to_the_error_that_names_what_was_read() -> None:
    inner = a_traceback("IndexError: list index out of range", "transformers/loft.py:pick")
    outer = a_traceback("OSError: Can't load the loft of '/srv/models/pigeon'.", "transformers/loft.py:load")
    log = f"{inner}\n\nDuring handling of the above exception, another exception occurred:\n\n{outer}\n"

    cause = read_errors(log)[1].cause

    assert cause is not None
    assert cause.message == "Can't load the loft of '/srv/models/pigeon'."


def test_a_denied_request_leaves_to_the_error_that_says_what_was_asked_for() -> None:
    inner = a_traceback(
        "HTTPError: 401 Client Error: Unauthorized for url: https://hub.test/loft", "requests/models.py:check"
    )
    middle = a_traceback("GatedRepoError: 401 Client Error. (Request ID: 7)", "huggingface_hub/http.py:check")
    outer = a_traceback("OSError: You are trying to enter a gated loft.", "transformers/hub.py:load")
    above = "\n\nThe above exception was the direct cause of the following exception:\n\n"
    busy = inner.replace("401 Client Error: Unauthorized", "429 Client Error: Too Many Requests")

    causes = [read_errors(above.join([first, middle, outer]))[1].cause for first in (inner, busy)]

    assert [cause.message[:12] for cause in causes if cause] == ["You are tryi", "429 Client E"]


def test_a_kernel_s_failed_assertion_goes_before_the_call_that_reports_it() -> None:
    kernel = "/root/.cache/vllm/inductor_cache/zq/czqh5m3k2v7wq2l4n6p8r1t3v5x7z9b2d4f6h8j1l3n5w7y9.py:40: unknown: "
    log = (
        f"{kernel}block: [0,0,0], thread: [3,0,0] Assertion `index out of bounds: 0 <= tmp5 < 256` failed.\n"
    )
    log += prefixed(
        CORE,
        a_traceback(
            "torch.AcceleratorError: CUDA error: device-side assert triggered",
            "vllm/v1/worker/gpu/async_utils.py:get_output",
        ),
    )

    assertion = "Assertion `index out of bounds: 0 <= tmp5 < 256` failed"
    assert cause(log) == ("CUDA error", assertion, "async_utils.py:get_output")


def test_what_a_worker_raises_while_it_shuts_down_is_no_cause_of_what_was_before() -> None:
    stopped = a_traceback(
        "RuntimeError: Found no driver on your system.",
        "vllm/v1/worker/gpu_worker.py:shutdown",
        "torch/cuda/__init__.py:_lazy_init",
    )
    log = prefixed(CORE, CRASH) + prefixed("(Worker pid=12) ", stopped)

    assert cause(log) == FOUND
    assert cause(prefixed("(Worker pid=12) ", stopped)) is not None
