"""Steps are data with a hit and a miss; what a message says fills them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from app.extract.reader import read_log
from app.knowledge.diagnosis.failures import find_kinds, kinds_of
from app.knowledge.diagnosis.next_steps import (
    MAX_STEPS,
    conditions_of,
    holds,
    message_conditions,
    next_steps,
    rows,
)
from app.knowledge.diagnosis.shapes import NextStep
from app.knowledge.remedies import gone_setting
from tests.samples import FOREIGN_LOG, HEALTHY_LOG, a_traceback

ASYNCHRONOUS = a_traceback("RuntimeError: CUDA error: device-side assert triggered", "vllm/x.py:y")
WRAPPERS = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
MEMORY = a_traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "vllm/x.py:y")
NCCL = a_traceback("RuntimeError: NCCL error: unhandled system error", "vllm/x.py:y")
MISSING = {"no_version", "no_gpu", "no_model", "environment_missing"}

KNOWN_NAMES = {
    "CUDA_LAUNCH_BLOCKING",
    "GLOO_SOCKET_IFNAME",
    "HF_HUB_OFFLINE",
    "MAX_JOBS",
    "NCCL_DEBUG",
    "VLLM_CPU_KVCACHE_SPACE",
    "--decode-context-parallel-size",
    "--hf-overrides",
    "--quantization",
    "NCCL_P2P_DISABLE",
    "NCCL_SOCKET_IFNAME",
    "TORCHDYNAMO_VERBOSE",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING",
    "TORCH_CUDA_ARCH_LIST",
    "VERBOSE",
    "VLLM_COMPUTE_NANS_IN_LOGITS",
    "VLLM_DISABLE_COMPILE_CACHE",
    "VLLM_HOST_IP",
    "VLLM_LOGGING_LEVEL",
    "VLLM_PORT",
    "VLLM_TRACE_FUNCTION",
    "--attention-backend",
    "--chat-template",
    "--disable-custom-all-reduce",
    "--distributed-executor-backend",
    "--dtype",
    "--enable-log-outputs",
    "--enable-log-requests",
    "--enable-lora",
    "--enable-prefix-caching",
    "--enforce-eager",
    "--gpu-memory-utilization",
    "--help",
    "--kv-cache-dtype",
    "--kv-transfer-config",
    "--limit-mm-per-prompt",
    "--max-lora-rank",
    "--max-model-len",
    "--max-num-batched-tokens",
    "--max-num-seqs",
    "--model-impl",
    "--pipeline-parallel-size",
    "--port",
    "--profiler-config",
    "--speculative-config",
    "--structured-outputs-config",
    "--tensor-parallel-size",
    "--tokenizer",
    "--trust-remote-code",
}
"""Variables and flags of vLLM 0.33 and of what it runs on, read out of its packages."""
PYTHON_S_OWN = {"PYTHONFAULTHANDLER", "PYTHONPATH", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}

STEPS = [pytest.param(row, id=f"{'+'.join(row['when']) or 'any'}-{at}") for at, row in enumerate(rows())]


def steps_for(log: str) -> tuple[NextStep, ...]:
    reading = read_log(log)
    return next_steps(reading, kinds_of(reading))


def conditions_in(log: str) -> frozenset[str]:
    reading = read_log(log)
    return conditions_of(reading, kinds_of(reading))


CONDITIONS = [pytest.param(row, id=row["id"]) for row in message_conditions()]


@pytest.mark.parametrize("row", CONDITIONS)
def test_what_a_message_says_is_a_condition(row: dict[str, Any]) -> None:
    assert row["id"] in conditions_in(row["hit"])
    assert row["id"] not in conditions_in(row["miss"])


def given(row: dict[str, Any], log: str) -> bool:
    """Whether a step is among those of a log, with whatever its pattern put into it."""
    text = re.sub(r"\\{\w+\\}", ".+", re.escape(row["text"]))
    return any(re.fullmatch(text, step.text) for step in steps_for(log))


@pytest.mark.parametrize("row", STEPS)
def test_every_step_is_given_for_its_example(row: dict[str, Any]) -> None:
    assert holds(row, conditions_in(row["hit"]))
    assert given(row, row["hit"]) or not (row["when"] or "pattern" in row)


@pytest.mark.parametrize("row", STEPS)
def test_no_step_is_given_for_what_it_is_not_about(row: dict[str, Any]) -> None:
    if row["when"] or "pattern" in row:
        assert not given(row, row["miss"])


def test_a_program_that_failed_is_named_without_the_user_whose_folder_it_is_in() -> None:
    log = (
        "subprocess.CalledProcessError: Command '['/home/jdoe77/bin/cc', 'a.c']' "
        "returned non-zero exit status 1."
    )

    first = steps_for(log)[0]
    assert "/bin/cc" in first.text
    assert "jdoe77" not in f"{first.text} {first.command}"


def test_no_step_stands_there_twice() -> None:
    assert len({(tuple(row["when"]), row["text"]) for row in rows()}) == len(rows())


@pytest.mark.parametrize("row", STEPS)
def test_a_command_names_only_variables_and_flags_that_there_are(row: dict[str, Any]) -> None:
    command = row.get("command", "")
    variables = set(re.findall(r"\b([A-Z][A-Z0-9_]{3,})=", command)) - PYTHON_S_OWN
    served = command.partition("vllm serve ")[2].partition(";")[0]
    flags = {flag.replace("--no-", "--") for flag in re.findall(r"--[a-z][a-z-]+", served)}

    assert variables | flags <= KNOWN_NAMES


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (HEALTHY_LOG, {"no_error", "no_gpu", "environment_missing"}),
        ("hello", {"question", *MISSING}),
        (WRAPPERS, {"only_wrappers"}),
        (ASYNCHRONOUS, {"device_assert", "device_fault", "names_devices"}),
        (MEMORY, {"out_of_memory", "names_devices"}),
        ("ValueError: No available memory for the cache blocks.", {"kv_cache_room"}),
        (NCCL, {"nccl"}),
        (FOREIGN_LOG, {"other_program"}),
        ("vllm: error: unrecognized arguments: --loft", {"unknown_argument", "own_mistake", *MISSING}),
        ("vLLM hangs on two GPUs", {"question", "timeout", *MISSING}),
    ],
)
def test_conditions_are_told_from_the_log(log: str, wanted: set[str]) -> None:
    found = conditions_in(log)

    assert (found if wanted & MISSING else found - MISSING) - {"not_started"} == wanted


@pytest.mark.parametrize(
    ("log", "first"),
    [
        (WRAPPERS, "kubectl logs --previous --tail=-1 POD > crash.log"),
        (ASYNCHRONOUS, "CUDA_LAUNCH_BLOCKING=1 vllm serve YOUR_ARGS"),
        (MEMORY, "vllm serve YOUR_ARGS --max-model-len 4096"),
        (NCCL, "NCCL_DEBUG=INFO vllm serve YOUR_ARGS"),
        (FOREIGN_LOG, ""),
        ("RuntimeError: the engine lost its third pigeon", "vllm collect-env"),
        ("hello", ""),
    ],
)
def test_the_most_telling_step_comes_first(log: str, first: str) -> None:
    assert steps_for(log)[0].command == first


@pytest.mark.parametrize("log", [WRAPPERS, ASYNCHRONOUS, MEMORY, NCCL, FOREIGN_LOG, HEALTHY_LOG])
def test_there_are_a_few_steps_and_none_twice(log: str) -> None:
    steps = steps_for(log)

    assert 1 <= len(steps) <= MAX_STEPS
    assert len({step.text for step in steps}) == len(steps)


def test_no_kind_of_failure_is_read_into_an_error_that_is_not_one_of_them() -> None:
    assert conditions_in("KeyError: 'rope_scaling_factor'") - MISSING == set()


def test_a_kind_is_known_by_the_cause_and_not_by_what_wraps_it() -> None:
    log = f"{ASYNCHRONOUS}\nWorker proc VllmWorker-3 died unexpectedly, shutting down executor."

    assert conditions_in(log) - MISSING == {"device_assert", "device_fault", "names_devices"}


@pytest.mark.parametrize(
    ("log", "command"),
    [
        ("ModuleNotFoundError: No module named 'timm'", "pip install timm"),
        ("ModuleNotFoundError: No module named 'cv2.gapi'", "pip install opencv-python-headless"),
        ("ModuleNotFoundError: No module named 'tensorizer'", "pip install 'vllm[tensorizer]'"),
        (
            "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.",
            'dmesg -T | grep -i -E "killed process|out of memory"; cat /sys/fs/cgroup/memory.max',
        ),
        ("TimeoutError: RPC call to execute_model timed out.", ""),
        (
            (
                "ValueError: User-specified max_model_len (9000) is greater than the derived max_model_len "
                "(max_position_embeddings=4096.0 or model_max_length=None in model's config.json)."
            ),
            "vllm serve YOUR_ARGS --max-model-len 4096",
        ),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/x'", "ls -la '/data/x'"),
        (
            "ImportError: tokenizers>=0.23.1,<0.24.0 is required for a normal functioning of this module, but found 0.20.3.",
            "pip install 'tokenizers>=0.23.1,<0.24.0'",
        ),
        (
            "TypeError: EngineArgs.__init__() got an unexpected keyword argument 'x'",
            "vllm --version; vllm serve --help=all",
        ),
        (
            (
                "ValueError: As of transformers v4.44, default chat template is no longer allowed, so you must provide a "
                "chat template if the tokenizer does not define one."
            ),
            "vllm serve YOUR_ARGS --chat-template ./template.jinja",
        ),
        (
            "openai.BadRequestError: Error code: 400 - {'message': 'At most 1 image(s) may be provided in one prompt.'}",
            """vllm serve YOUR_ARGS --limit-mm-per-prompt '{"image": 2}'""",
        ),
    ],
)
def test_the_first_step_fits_the_message(log: str, command: str) -> None:
    first = steps_for(log)[0].command

    assert first == command or (not command and "py-spy dump" in first)


def test_what_a_message_puts_into_a_command_is_no_command_itself() -> None:
    steps = steps_for("PermissionError: [Errno 13] Permission denied: '/a'; reboot; '")

    assert all("reboot" not in step.command for step in steps)


@pytest.mark.parametrize(
    ("version", "command"),
    [
        ("0.10.1", "VLLM_ATTENTION_BACKEND=TRITON_ATTN_VLLM_V1 vllm serve YOUR_ARGS"),
        ("0.32.0", "vllm serve YOUR_ARGS --attention-backend TRITON_ATTN"),
    ],
)
def test_what_to_type_exists_in_the_log_s_version(version: str, command: str) -> None:
    reading = read_log(
        f"INFO vLLM API server version {version}\nRuntimeError: FlashInfer requires sm75 or higher"
    )
    assert command in [step.command for step in next_steps(reading, kinds_of(reading))]


def test_what_the_log_does_not_show_is_asked_for() -> None:
    reading = read_log("INFO vLLM API server version 0.10.1\nKeyError: 'x'")
    texts = " ".join(step.text for step in next_steps(reading, kinds_of(reading)))
    assert "Missing so far: GPU, model." in texts


def test_steps_name_the_port_of_the_log() -> None:
    log = "INFO 03-14 09:26:40 [utils.py:1] non-default args: {'port': 8422}\nOSError: [Errno 98] Address already in use"
    commands = [step.command for step in next_steps(read_log(log), find_kinds(read_log(log)))]

    assert not any("port}" in command for command in commands)
    assert commands[:2] == ["ss -ltnp | grep :8422", "vllm serve YOUR_ARGS --port 8423"]


def test_no_two_steps_set_the_same_option() -> None:
    log = (
        "ValueError: User-specified max_model_len (65536) is greater than the derived max_model_len "
        "(max_position_embeddings=4096 or model_max_length=None in model's config.json)."
    )
    commands = [step.command for step in next_steps(read_log(log), find_kinds(read_log(log)))]

    assert [command for command in commands if "--max-model-len" in command] == [
        "vllm serve YOUR_ARGS --max-model-len 4096"
    ]


@pytest.mark.parametrize(
    ("log", "command"),
    [
        (
            "ValueError: Free memory on device (8.5/10.96 GiB) on startup is less than desired GPU memory utilization (0.92, 10.09 GiB).",
            "vllm serve YOUR_ARGS --gpu-memory-utilization 0.77",
        ),
        (
            "ValueError: Available memory on node 0 (18.29/23.54 GiB) on startup is less than desired CPU memory utilization (0.92, 21.66 GiB).",
            "vllm serve YOUR_ARGS --gpu-memory-utilization 0.77",
        ),
        (
            "ValueError: At most 4 audio(s) may be provided in one prompt.",
            """vllm serve YOUR_ARGS --limit-mm-per-prompt '{"audio": 5}'""",
        ),
        (
            "ValueError: Total number of attention heads (40) must be divisible by tensor parallel size (16).",
            "vllm serve YOUR_ARGS --tensor-parallel-size 8",
        ),
        (
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29612, useIpv6: false, code: -98, name: EADDRINUSE",
            "VLLM_PORT=29613 vllm serve YOUR_ARGS",
        ),
    ],
)
def test_figures_follow_from_those_of_the_message(log: str, command: str) -> None:
    assert command in [step.command for step in steps_for(f"INFO non-default args: {{'port': 8326}}\n{log}")]


@pytest.mark.parametrize(
    "log",
    [
        "ValueError: Total number of attention heads (2) must be divisible by tensor parallel size (3).",
        "ValueError: num_redundant_experts is set to 2 but EPLB is not enabled. Either enable EPLB or unset num_redundant_experts.",
        "NotImplementedError: Pipeline parallelism is not supported for this model.",
        "ValueError: tp_size=1 must be divisible by dcp_size=2.",
    ],
)
def test_no_gpus_are_counted_for_a_sum_that_does_not_come_out(log: str) -> None:
    assert not any("nvidia-smi" in step.command for step in steps_for(log))


def test_a_hub_that_refuses_is_no_question_of_the_model_s_configuration() -> None:
    log = (
        "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: "
        "https://huggingface.co/a/b/resolve/main/config.json"
    )

    assert "wait some minutes" in steps_for(log)[0].text
    assert not any(step.command.startswith("cat ") for step in steps_for(log))


def test_beside_remedies_stand_only_the_steps_that_the_message_proves() -> None:
    reading = read_log("ImportError: cannot import name 'LLM' from 'vllm' (unknown location)")
    steps = next_steps(reading, kinds_of(reading), particular=True)

    assert [step.text[:20] for step in steps] == ["A folder named vllm "]


def test_lines_that_every_run_prints_are_no_failure() -> None:
    log = HEALTHY_LOG + "INFO 03-14 09:26:40 [core.py:1] non-default args: {'trust_remote_code': True}\n"

    assert not any("code of its own" in step.text for step in steps_for(log))


@pytest.mark.parametrize("version", ["0.6.6", "0.9.2", "0.11.2", "0.15.1", "0.19.1", "0.22.1", "0.33.0"])
@pytest.mark.parametrize("row", STEPS)
def test_what_to_type_is_not_gone_in_any_version(row: dict[str, Any], version: str) -> None:
    log = f"INFO vLLM API server version {version}\n{row['hit']}"
    reading = read_log(log)

    for step in next_steps(reading, kinds_of(reading)):
        assert gone_setting(step.command, version) is None


def test_a_command_names_the_log_s_model_where_it_is_on_the_hub() -> None:
    error = "huggingface_hub.errors.LocalEntryNotFoundError: outgoing traffic has been disabled"
    for model, named in (("facebook/opt-125m", "facebook/opt-125m"), ("/srv/models/opt", "YOUR_MODEL")):
        log = f"INFO 11-02 03:04:05 [utils.py:233] non-default args: {{'model': '{model}'}}\n{error}"

        assert f"hf auth whoami; hf download {named}" in [step.command for step in steps_for(log)]


def test_a_size_is_said_in_gib() -> None:
    log = f"non-default args: {{'kv_cache_memory_bytes': 322122547200}}\n{MEMORY}"

    assert any("takes 300 GiB for the cache" in step.text for step in steps_for(log))
