"""The whole command with a change in it."""

from __future__ import annotations

import pytest

from app.extract.fields.launch import read_launch
from app.knowledge.launch import ComposedCommand, compose, compose_all, named_options
from app.knowledge.remedies import Remedy

TYPED = "$ vllm serve acme/V --max-model-len 90000 -tp 2 --enable-prefix-caching > log 2>&1\n"
DOCKER = "$ docker run --gpus all -e VLLM_USE_V1=1 vllm/vllm-openai:v0.10.1 --model acme/V\n"
PROGRAM = "non-default args: {'max_model_len': 256, 'enforce_eager': True, 'model': 'acme/V'}\n"


def composed(log: str, change: str, *, without: bool = False) -> ComposedCommand | None:
    launch = read_launch(log)
    assert launch is not None
    found = compose(launch, change, without=without)
    if found is not None:
        assert "".join(part.text for part in found.parts if part.change != "removed") == found.line
    return found


@pytest.mark.parametrize(
    ("log", "change", "line", "taken"),
    [
        (
            TYPED,
            "--max-model-len 8192",
            "vllm serve acme/V --max-model-len 8192 -tp 2 --enable-prefix-caching",
            ["--max-model-len 90000"],
        ),
        (
            TYPED,
            "--tensor-parallel-size=4",
            "vllm serve acme/V --max-model-len 90000 --tensor-parallel-size=4 --enable-prefix-caching",
            ["-tp 2"],
        ),
        (
            TYPED,
            "--no-enable-prefix-caching",
            "vllm serve acme/V --max-model-len 90000 -tp 2 --no-enable-prefix-caching",
            ["--enable-prefix-caching"],
        ),
        (
            TYPED,
            "export VLLM_USE_V1=0",
            "VLLM_USE_V1=0 vllm serve acme/V --max-model-len 90000 -tp 2 --enable-prefix-caching",
            [],
        ),
        (
            TYPED,
            "NCCL_P2P_DISABLE=1 vllm serve YOUR_ARGS --disable-custom-all-reduce -tp 1",
            (
                "NCCL_P2P_DISABLE=1 vllm serve acme/V --max-model-len 90000 --disable-custom-all-reduce -tp 1 "
                "--enable-prefix-caching"
            ),
            ["-tp 2"],
        ),
        (
            DOCKER,
            "NCCL_SOCKET_IFNAME=eth1 GLOO_SOCKET_IFNAME=eth1 vllm serve YOUR_ARGS",
            (
                "docker run -e NCCL_SOCKET_IFNAME=eth1 -e GLOO_SOCKET_IFNAME=eth1 --gpus all -e VLLM_USE_V1=1 "
                "vllm/vllm-openai:v0.10.1 --model acme/V"
            ),
            [],
        ),
        (
            TYPED,
            "pip install vllm==0.10.2",
            "pip install vllm==0.10.2 && vllm serve acme/V --max-model-len 90000 -tp 2 --enable-prefix-caching",
            [],
        ),
        (
            TYPED,
            "vllm/vllm-openai:v0.10.2",
            "pip install vllm==0.10.2 && vllm serve acme/V --max-model-len 90000 -tp 2 --enable-prefix-caching",
            [],
        ),
        (
            DOCKER,
            "pip install vllm==0.9.2",
            "docker run --gpus all -e VLLM_USE_V1=1 vllm/vllm-openai:v0.9.2 --model acme/V",
            ["vllm/vllm-openai:v0.10.1"],
        ),
        (
            "$ docker run --rm mirror.acme/vllm/vllm-openai:v0.10.1 --model acme/V\n",
            "vllm/vllm-openai:v0.9.2",
            "docker run --rm mirror.acme/vllm/vllm-openai:v0.9.2 --model acme/V",
            ["mirror.acme/vllm/vllm-openai:v0.10.1"],
        ),
        (
            DOCKER,
            "export VLLM_USE_V1=0",
            "docker run --gpus all -e VLLM_USE_V1=0 vllm/vllm-openai:v0.10.1 --model acme/V",
            ["-e VLLM_USE_V1=1"],
        ),
        (
            DOCKER,
            "--enforce-eager",
            "docker run --gpus all -e VLLM_USE_V1=1 vllm/vllm-openai:v0.10.1 --model acme/V --enforce-eager",
            [],
        ),
        (
            PROGRAM,
            "--max-model-len 128",
            "LLM(model='acme/V', max_model_len=128, enforce_eager=True)",
            ["max_model_len=256"],
        ),
        (
            PROGRAM,
            "--no-enable-prefix-caching",
            "LLM(model='acme/V', max_model_len=256, enforce_eager=True, enable_prefix_caching=False)",
            [],
        ),
    ],
)
def test_the_change_takes_the_old_values_place(log: str, change: str, line: str, taken: list[str]) -> None:
    found = composed(log, change)
    assert found is not None
    assert found.line == line
    assert [part.text for part in found.parts if part.change == "removed"] == taken


def test_a_steps_own_words_for_the_command_are_the_command() -> None:
    found = composed(TYPED, "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve YOUR_ARGS")
    assert found is not None
    assert found.change == "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1"
    assert found.line.startswith("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve acme/V --max-model-len 90000")
    shorter = composed(TYPED, "vllm serve YOUR_ARGS --max-model-len 2048")
    assert shorter is not None
    assert shorter.line == "vllm serve acme/V --max-model-len 2048 -tp 2 --enable-prefix-caching"


def test_what_is_to_be_left_out_is_left_out() -> None:
    found = composed(TYPED, "--enable-prefix-caching", without=True)
    assert found is not None
    assert found.line == "vllm serve acme/V --max-model-len 90000 -tp 2"


@pytest.mark.parametrize(
    ("log", "change"),
    [
        (DOCKER, "pip install x"),
        (PROGRAM, "export A=1"),
        (PROGRAM, "--chat-template ./template.jinja"),
        (PROGRAM, "--enable-log-requests --enable-log-outputs"),
        (TYPED, "restart the server"),
        (TYPED, "nvidia-smi"),
    ],
)
def test_what_has_no_place_in_the_command_is_not_put_there(log: str, change: str) -> None:
    assert composed(log, change) is None


def test_a_command_that_has_the_change_already_says_so() -> None:
    for log, change in ((TYPED, "--tensor-parallel-size 2"), (PROGRAM, "--enforce-eager")):
        found = composed(log, change)
        assert found is not None
        assert found.is_there


def test_the_cost_depends_on_which_way_a_number_goes() -> None:
    for change, cost in (
        ("--max-model-len 8192", "longer requests are refused"),
        ("--max-model-len 95000", None),
        ("--tensor-parallel-size 4", "needs that many GPUs"),
        ("--enforce-eager", "decoding is slower: no CUDA graphs and no compilation"),
    ):
        found = composed(TYPED, change)
        assert found is not None
        assert found.cost == cost


def test_only_what_is_believed_is_composed() -> None:
    def remedy(**fields: object) -> Remedy:
        shape = {"kind": "flag", "outcome": "works", "repo": "a/b", "number": 1, "url": "u", **fields}
        return Remedy.model_validate(shape)

    remedies = [
        remedy(action="--enforce-eager", command="--enforce-eager", outcome="fails"),
        remedy(action="--dtype half"),
        remedy(action="--enable-prefix-caching", without=True, confidence=0.6),
        remedy(action="`--max-num-seqs 8`", command="--max-num-seqs 8"),
    ]
    found = compose_all(read_launch(TYPED), remedies, ["", "--enforce-eager"])
    assert [item.change for item in found] == ["--max-num-seqs 8", "--enforce-eager"]


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("max_model_len (9) is larger than the model's", ["max-model-len"]),
        ("2 heads must be divisible by tensor parallel size (3)", ["tensor-parallel-size"]),
        ("Transport is not supported", []),
        ("the model has no layers", []),
    ],
)
def test_a_message_names_an_option_by_its_field_or_by_its_words(message: str, names: list[str]) -> None:
    launch = read_launch("$ vllm serve zebra --port 80 --max-model-len 9 --tensor-parallel-size 3\n")
    assert launch is not None

    assert [piece.name for piece in named_options(launch, message)] == names


def test_an_option_that_a_step_leaves_out_is_left_out() -> None:
    launch = read_launch('$ vllm serve zebra --port 80 --speculative-config \'{"model": "x"}\'\n')
    assert launch is not None
    found = compose(launch, "vllm serve YOUR_ARGS # without --speculative-config")

    assert found is not None
    assert found.line == "vllm serve zebra --port 80"
    assert compose(launch, "vllm serve YOUR_ARGS # without --pipeline-parallel-size") is None
