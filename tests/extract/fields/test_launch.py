"""The launch command out of a log: typed, or made of what each release prints of its arguments."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from app.extract.fields.launch import OPEN, cut_command, read_launch

SERVER = "INFO 05-02 10:00:01 [api_server.py:1040] vLLM API server version {}\n"
OLD = (
    "INFO 05-02 10:00:01 [api_server.py:1041] args: Namespace({start}host=None, port=8100, "
    "allowed_origins=['*'], api_key=None, lora_modules=None, response_role='assistant', middleware=[], "
    "model='acme/Llama-9B', tokenizer=None, trust_remote_code=True, dtype='half', "
    "config_format=<ConfigFormat.AUTO: 'auto'>, max_model_len=4096, tensor_parallel_size=2, block_size=16, "
    "swap_space=4, gpu_memory_utilization=0.9, served_model_name=['nine', 'b'], {more}max_num_seqs=256{end})\n"
)
SERVE = "subparser='serve', model_tag='acme/Llama-9B', config='', "
RUN = "--port 8100 {}--dtype half --max-model-len 4096 --tensor-parallel-size 2 --served-model-name nine b"
MODULE = "python3 -m vllm.entrypoints.openai.api_server --model acme/Llama-9B " + RUN.format(
    "--trust-remote-code "
)
NEW = "(APIServer pid=7) INFO 11-02 10:00:01 [utils.py:233] non-default args: {}\n"


def line_of(log: str, version: str | None = None) -> str | None:
    found = read_launch(log, version)
    return " ".join(piece.text for piece in found.pieces) if found else None


@pytest.mark.parametrize(
    ("version", "dump", "line"),
    [
        ("0.4.2", OLD.format(start="", more="enable_chunked_prefill=False, ", end=""), MODULE),
        (
            "0.6.6",
            OLD.format(
                start=SERVE, more="use_v2_block_manager=True, limit_mm_per_prompt={'image': 3}, ", end=""
            ),
            "vllm serve acme/Llama-9B "
            + RUN.format("--trust-remote-code ")
            + " --limit-mm-per-prompt image=3",
        ),
        (
            "0.9.2",
            NEW.format(
                "{'model_tag': 'acme/V', 'model': 'acme/V', 'limit_mm_per_prompt': {'image': 3}, "
                "'enable_prefix_caching': False, 'swap_space': 8.0}"
            ),
            "vllm serve acme/V --limit-mm-per-prompt '{\"image\": 3}' --no-enable-prefix-caching --swap-space 8",
        ),
        (
            "0.10.2",
            NEW.format(
                "{'lora_modules': [LoRAModulePath(name='sql', path='/a/sql', base_model_name=None)], "
                "'model': 'acme/V', 'enable_lora': True, 'allowed_origins': ['https://a.example']}"
            ),
            (
                "vllm serve acme/V --lora-modules sql=/a/sql --enable-lora "
                "--allowed-origins '[\"https://a.example\"]'"
            ),
        ),
        (
            "0.12.0",
            NEW.format("{'api_key': '████████', 'model': 'acme/V', 'data_parallel_size': 2, 'port': 9000}"),
            f"vllm serve acme/V --api-key '{OPEN}' --data-parallel-size 2 --port 9000",
        ),
        (
            "0.15.0",
            NEW.format(
                "{'model_tag': 'acme/V', 'model': 'acme/V', 'compilation_config': "
                "CompilationConfig(mode=<CompilationMode.NONE: 0>, backend='inductor', pass_config=PassConfig(x))}"
            ),
            f"vllm serve acme/V --compilation-config '{OPEN}'",
        ),
        (
            "0.16.0",
            NEW.format(
                "{'model_tag': 'acme/V', 'model': 'acme/V', 'kv_transfer_config': "
                "KVTransferConfig(kv_connector='NixlConnector', engine_id='44db16d4', kv_buffer_size=1000000000.0, "
                "kv_role='kv_both', kv_rank=None, kv_connector_extra_config={}, kv_port=14579)}"
            ),
            """vllm serve acme/V --kv-transfer-config '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'""",
        ),
        (
            "0.32.0",
            NEW.format("{'model_tag': 'acme/V', 'model': 'acme/V', 'chat_template': '/a b.jinja'}"),
            "vllm serve acme/V --chat-template '/a b.jinja'",
        ),
    ],
)
def test_each_release_prints_its_arguments_in_its_own_way(version: str, dump: str, line: str) -> None:
    assert line_of(SERVER.format(version) + dump, version) == line


def test_a_model_that_the_arguments_do_not_name_is_that_of_the_engine_or_left_open() -> None:
    dump = SERVER.format("0.12.0") + NEW.format("{'port': 9000, 'tensor_parallel_size': 2}")
    engine = "Initializing a V1 LLM engine (v0.12.0) with config: model='s3://acme/V', dtype=torch.bfloat16\n"
    assert line_of(dump + engine, "0.12.0") == "vllm serve s3://acme/V --port 9000 --tensor-parallel-size 2"
    found = read_launch(dump, "0.12.0")
    assert found is not None
    assert found.open_names == ("model",)


@pytest.mark.parametrize(
    ("version", "flags"), [("0.6.3", ""), ("0.8.5", " --no-enable-prefix-caching --max-num-seqs 256")]
)
def test_what_is_printed_of_an_option_was_chosen_where_its_default_is_unset(version: str, flags: str) -> None:
    more = "enable_prefix_caching=False, allowed_headers=[''], "
    found = line_of(OLD.format(start=SERVE, more=more, end=""), version)

    assert found == "vllm serve acme/Llama-9B " + RUN.format("--trust-remote-code ") + flags


def test_a_type_of_torch_is_passed_by_its_name() -> None:
    found = read_launch(NEW.format("{'model': 'acme/V', 'dtype': torch.bfloat16}"))
    assert found is not None
    assert found.line == "vllm serve acme/V --dtype bfloat16"


def test_the_command_as_it_was_typed_wins_and_ends_before_a_pipe() -> None:
    log = (
        "user@box:~$ CUDA_VISIBLE_DEVICES=0 vllm serve ${MODEL} \\\n    --max-model-len 512 2>&1 | tee run.log\n"
        + NEW.format("{'model': 'acme/V', 'max_model_len': 512}")
    )
    found = read_launch(log)
    assert found is not None
    assert found.source == "command"
    assert line_of(log) == "CUDA_VISIBLE_DEVICES=0 vllm serve ${MODEL} --max-model-len 512"


def test_a_wrapped_dump_is_one_dump() -> None:
    dump = SERVER.format("0.5.0") + OLD.format(start="", more="", end="").replace(
        "ust_remote", "ust\n_remote"
    )
    assert line_of(dump, "0.5.0") == MODULE


def test_blanks_that_a_terminal_put_into_a_dump_are_taken_out() -> None:
    dump = NEW.format(
        "{'model': 'acme/V', 'port': 81, 'enforce_ea ger': True, 'uvicorn_log_level': ' debug'}"
    )
    assert line_of(dump) == "vllm serve acme/V --port 81 --enforce-eager --uvicorn-log-level debug"


@pytest.mark.parametrize(
    "log",
    [
        NEW.format("{'model': 'acme/V', 'max_model"),
        NEW.format("{...}"),
        "usage: vllm serve [model_tag] [options]\nvllm serve: error: argument --dtype: invalid choice\n",
        "vllm serve works for me with the flags above\n",
        "non-default args: " + "{" * 5000,
    ],
)
def test_what_is_cut_off_or_no_command_gives_none(log: str) -> None:
    assert read_launch(log) is None


def test_a_program_that_calls_llm_has_keywords() -> None:
    log = (
        "INFO 11-22 [utils.py:253] non-default args: {'max_model_len': 256, 'disable_log_stats': True, "
        "'model': 'acme/V'}\n"
    )
    found = read_launch(log)
    assert found is not None
    assert found.program == "python"
    assert [piece.text for piece in found.pieces] == ["model='acme/V'", "max_model_len=256"]


def test_the_engines_configuration_alone_is_no_command() -> None:
    log = "INFO [core.py:77] Initializing a V1 LLM engine (v0.10.1) with config: model='acme/V', max_seq_len=512"
    assert read_launch(log) is None


def test_a_containers_options_and_image_are_apart() -> None:
    pieces = cut_command("docker run --gpus all -e HF_HOME=/c acme/vllm:1 --model acme/V --trust-remote-code")
    assert [(piece.text, piece.name) for piece in pieces[2:]] == [
        ("--gpus all", "gpus"),
        ("-e HF_HOME=/c", "HF_HOME"),
        ("acme/vllm:1", ""),
        ("--model acme/V", "model"),
        ("--trust-remote-code", "trust-remote-code"),
    ]


def test_real_logs_give_back_the_command_that_was_typed(shared: Path) -> None:
    """`gold.jsonl` has the command that each log was made with; a size such as 1G is printed in bytes."""
    right, wrong = [], []
    for folder in ("real_logs", "gpu_logs"):
        for row in map(json.loads, (shared / "eval" / folder / "gold.jsonl").read_text().splitlines()):
            log = (shared / "eval" / folder / row["file"]).read_text(errors="replace")
            _, is_served, rest = row["command"].partition("vllm serve")
            found = read_launch(log, row["vllm_version"])
            if found is None or found.program != "shell" or not is_served or ";" in row["command"]:
                continue
            sizes = (("1G", "1073741824"), ("300G", "322122547200"))
            rest = rest.replace(" -tp ", " --tensor-parallel-size ")
            words = [dict(sizes).get(word, word) for word in shlex.split(rest)]
            made = {word for piece in found.pieces[2:] for word in shlex.split(piece.text)}
            (right if made == set(words) else wrong).append(row["file"])
    assert len(right) >= 38
    assert wrong == ["090-kv-connector-unknown.log"]  # printed with the fields that nobody gave


DUMP = NEW.format("{'model_tag': 'acme/V', 'model': 'acme/V', 'max_model_len': 512}")


@pytest.mark.parametrize(
    ("typed", "before"),
    [
        (
            "We ran ``` VLLM_USE_V1=1 CUDA_VISIBLE_DEVICES=0,1 vllm serve acme/V \\ ```",
            "VLLM_USE_V1=1 CUDA_VISIBLE_DEVICES=0,1 ",
        ),
        (
            "# serve CUDA_VISIBLE_DEVICES=0 \\ VLLM_LOGGING_LEVEL='DEBUG' \\ vllm serve acme/V",
            "CUDA_VISIBLE_DEVICES=0 VLLM_LOGGING_LEVEL='DEBUG' ",
        ),
        (
            "VLLM_USE_V1=1 NCCL_DEBUG=INFO job run --gpus 1 -- vllm serve acme/V",
            "VLLM_USE_V1=1 NCCL_DEBUG=INFO job run --gpus 1 -- ",
        ),
        (
            "NCCL_DEBUG=INFO numactl -N 0 uv run vllm serve acme/V",
            "NCCL_DEBUG=INFO numactl -N 0 uv run ",
        ),
        (
            "I set `export NCCL_DEBUG=INFO OMP_NUM_THREADS=2` and started `VLLM_USE_V1=1 nohup vllm serve acme/V`",
            "NCCL_DEBUG=INFO OMP_NUM_THREADS=2 VLLM_USE_V1=1 nohup ",
        ),
        (
            "NCCL_DEBUG=INFO timeout 300 nice -n 5 stdbuf -oL vllm serve acme/V",
            "NCCL_DEBUG=INFO timeout 300 nice -n 5 stdbuf -oL ",
        ),
        ("Run uv run --no-sync --with vllm vllm serve acme/V:", "uv run --no-sync --with vllm "),
        ("Each time vllm serve acme/V fails:", ""),
        ("A script: #!/bin/sh export NCCL_DEBUG=INFO; vllm serve acme/V fails:", "NCCL_DEBUG=INFO "),
        (f"It was HF_TOKEN={'█' * 3} vllm serve acme/V here:", f"HF_TOKEN={OPEN} "),
        ("First `VLLM_USE_V1=1 vllm serve acme/V` worked, then `vllm serve acme/V`:", ""),
        ("With VLLM_USE_V1=1 it worked. Then vllm serve acme/V:", ""),
        (
            'Run: docker run --rm -e HF_HUB_OFFLINE=1 --env "VLLM_USE_V1=1" -p 8000:8000 vllm/vllm-openai:v0.9.1:',
            "HF_HUB_OFFLINE=1 VLLM_USE_V1=1 ",
        ),
        (
            "`podman exec --env VLLM_USE_V1=1 --env NCCL_DEBUG=INFO ${ID} vllm serve acme/V`",
            "VLLM_USE_V1=1 NCCL_DEBUG=INFO ",
        ),
        (
            "services: v: environment: - TZ=UTC - NCCL_DEBUG=INFO - VLLM_USE_V1=1 ipc: host command: -tp 2",
            "NCCL_DEBUG=INFO VLLM_USE_V1=1 ",
        ),
        ("First docker run -e VLLM_USE_V1=1 acme/vllm, then vllm serve acme/V:", ""),
        ("First VLLM_USE_V1=1 vllm serve acme/V, then docker run vllm/vllm-openai:", ""),
        ("nothing of it", ""),
    ],
)
def test_what_is_typed_before_the_command_is_kept_where_it_is_made_of_arguments(
    typed: str, before: str
) -> None:
    assert line_of(f"Text {typed} {DUMP}") == f"{before}vllm serve acme/V --max-model-len 512"


def test_a_typed_command_begins_with_what_runs_it() -> None:
    log = "$ NCCL_DEBUG=INFO job run --gpus 2 -- vllm serve acme/V --port 8001\n"

    assert line_of(log) == log[2:].strip()
    assert [piece.text for piece in cut_command("job run --gpus 2 -- vllm serve acme/V")][2:5] == [
        "--gpus 2",
        "--",
        "vllm",
    ]


def test_the_arguments_of_another_program_are_no_command_of_vllm() -> None:
    dump = OLD.format(start="", more="", end="")

    assert line_of(dump) is not None
    assert line_of(dump.replace("[api_server.py", "[my_server.py")) is None


def test_a_path_keeps_what_is_shown_of_it() -> None:
    log = NEW.format(f"{{'model': '/home/{'█' * 4}/models/V', 'port': 9000, 'hf_token': '{'█' * 9}'}}")
    found = read_launch(log)

    assert found is not None
    assert found.line == f"vllm serve '/home/{OPEN}/models/V' --port 9000 --hf-token '{OPEN}'"
    assert found.open_names == ("model", "hf-token")


def test_a_value_of_stars_is_masked() -> None:
    found = read_launch("non-default args: {'model_tag': 'acme/V', 'model': 'acme/V', 'hf_token': '***'}\n")

    assert found is not None
    assert found.open_names == ("hf-token",)


def test_a_dump_without_its_model_yields_to_the_command_between_fences() -> None:
    text = (
        "So: ```bash vllm serve acme/V --max_num_batched_tokens 1024 -tp 1 ``` it printed "
        "INFO api_server.py:1] vLLM API server version 0.9.0 non-default args: { 'task': 'embed'}"
    )

    assert line_of(text) == "vllm serve acme/V --max_num_batched_tokens 1024 -tp 1"


def test_the_last_whole_command_and_dump_count_of_many() -> None:
    typed = "$ vllm serve acme/V --port 9\n"
    assert line_of("docker run -it acme/x\n" * 500 + typed) == typed[2:].strip()
    assert line_of(DUMP + "non-default args: {'model': 'cut'" * 10) == "vllm serve acme/V --max-model-len 512"


def test_variables_that_the_shell_s_trace_prints_above_belong_to_the_command() -> None:
    log = "+ cd /srv\n+ VLLM_CPU_KVCACHE_SPACE=2\n+ export HF_HUB_OFFLINE=1\n+ vllm serve acme/V -tp 3\nINFO x\n"

    assert line_of(log) == "VLLM_CPU_KVCACHE_SPACE=2 HF_HUB_OFFLINE=1 vllm serve acme/V -tp 3"
    assert line_of(log.replace("+ vllm", "$ vllm")) == "vllm serve acme/V -tp 3"


def test_of_a_trace_the_variables_of_programs_count_once_and_those_of_the_script_not() -> None:
    log = "+ EXTRA=(-q x)\n+ MODEL_DIR=/m\n+ export OMP_NUM_THREADS=2 AB=1\n+ AB=2\n+ OMP_NUM_THREADS=2\n"

    assert line_of(f"{log}+ exec vllm serve acme/V -tp 3\n") == (
        "OMP_NUM_THREADS=2 AB=1 exec vllm serve acme/V -tp 3"
    )


def test_a_trace_that_lost_its_quotes_yields_to_the_arguments() -> None:
    log = "+ vllm serve acme/V --chat-template {% for m in messages %} --port 81\n"
    dump = NEW.format("{'model_tag': 'acme/V', 'port': 81, 'chat_template': '{% for m in messages %}'}")

    assert line_of(log) is None
    assert line_of(log + dump) == "vllm serve acme/V --port 81 --chat-template '{% for m in messages %}'"


def test_a_server_whose_model_is_named_in_its_file_is_started_without_one() -> None:
    assert line_of(NEW.format("{'config': '/etc/v.yaml', 'port': 81}")) == (
        "vllm serve --config /etc/v.yaml --port 81"
    )


def test_of_a_configuration_that_is_printed_whole_only_what_is_set_is_typed() -> None:
    fields = "{'mode': None, 'cache_dir': '', 'pass_config': {'fuse': None}, 'splitting_ops': [], 'sizes': [1], 'traced_files': []}"
    found = line_of(NEW.format(f"{{'model_tag': 'acme/V', 'compilation_config': {fields}}}"))

    assert found == """vllm serve acme/V --compilation-config '{"splitting_ops": [], "sizes": [1]}'"""


@pytest.mark.parametrize("prompt", ["user@██████:~/vllm$ ", "(venv) root@9f2c:/workspace# ", "[me@host x]$ "])
def test_a_prompt_may_name_a_masked_host_and_an_environment(prompt: str) -> None:
    assert (
        line_of(f"{prompt}CXX=/opt/clang++ vllm serve acme/V -tp 2\n")
        == "CXX=/opt/clang++ vllm serve acme/V -tp 2"
    )


def test_an_adapter_keeps_its_base_model_and_a_configuration_what_was_chosen() -> None:
    dump = (
        "{'model': 'acme/V', 'port': 81, 'lora_modules': [LoRAModulePath(name='a', path='/x', base_model_name='b'), "
        "LoRAModulePath(name='c', path='/y', base_model_name=None)], 'structured_outputs_config': "
        "StructuredOutputsConfig(backend='xgrammar', disable_fallback=False, reasoning_parser='')}"
    )
    assert line_of(NEW.format(dump)) == (
        """vllm serve acme/V --port 81 --lora-modules '{"name": "a", "path": "/x", "base_model_name": "b"}' c=/y """
        """--structured-outputs-config '{"backend": "xgrammar"}'"""
    )


@pytest.mark.parametrize(
    "mark",
    ["vllm-1  | ", "2026-11-02T03:04:05.678901234Z ", "Nov 02 03:04:05 box vllm[81]: ", "[pod/v-0/vllm] "],
)
def test_a_command_is_read_behind_what_marks_each_line(mark: str) -> None:
    lines = ["+ VLLM_CPU_KVCACHE_SPACE=2", "+ vllm serve acme/V --port 81", "INFO 11-02 03:04:05 [x.py:1] up"]

    assert line_of("".join(f"{mark}{line}\n" for line in lines)) == (
        "VLLM_CPU_KVCACHE_SPACE=2 vllm serve acme/V --port 81"
    )


@pytest.mark.parametrize(
    "prompt",
    ["█████████:~$ ", "me@host ~ % ", "PS /home/me> ", "➜  ~ ", "➜  work ", "❯ ", "(base) █████:/w# "],
)
def test_prompts_of_other_shells_stand_before_a_command(prompt: str) -> None:
    assert line_of(f"{prompt}vllm serve acme/V -tp 2\n") == "vllm serve acme/V -tp 2"


def test_a_command_that_a_terminal_cut_at_its_width_is_whole() -> None:
    typed = "me@host:~$ vllm serve acme/V --served-model-name a-rather-long-name another-name --tensor-parallel-size 2"
    printed = "INFO 11-02 03:04:05 [x.py:1] " + "a line of words " * 12
    cut = [line[at : at + 70] for line in (typed, printed, "short") for at in range(0, len(line), 70)]

    assert line_of("\n".join(cut)) == typed.partition("$ ")[2]
    assert line_of(f"{typed[:70]}\nshort\n") == "vllm serve acme/V --served-model-name a-rather-long-name an"


def test_a_served_name_alone_makes_no_server() -> None:
    dump = "INFO 11-02 10:00:01 [utils.py:233] non-default args: {'model': 'acme/V', 'served_model_name': ['a']}\n"

    assert line_of(dump) == "model='acme/V' served_model_name=['a']"
    assert (
        line_of(dump.replace("INFO", "(APIServer pid=7) INFO")) == "vllm serve acme/V --served-model-name a"
    )


def test_a_command_is_read_over_the_lines_that_a_shell_asks_for() -> None:
    log = (
        "me@host:~$ HF_HUB_OFFLINE=1 \\\n> vllm serve acme/V \\\n>   --port 81 -tp 2   # two cards\nINFO up\n"
    )

    assert line_of(log) == "HF_HUB_OFFLINE=1 vllm serve acme/V --port 81 -tp 2"
