"""What an error message itself advises is quoted, and the nearest legal value is named."""

from __future__ import annotations

from typing import Any

import pytest

from app.extract.fields.launch import read_launch
from app.extract.reader import read_log
from app.extract.redact import redact
from app.extract.rules.patterns import pattern
from app.knowledge.diagnosis.quoted_advice import (
    MAX_QUOTE_CHARS,
    advice_data,
    given_value,
    is_advice,
    legal_values,
    option_step,
    quoted_steps,
)
from app.knowledge.diagnosis.shapes import NextStep

ROWS = [
    pytest.param(row, id=f"{name}-{row['id']}")
    for name in ("advice", "ignored", "given", "unsupported")
    for row in advice_data()[name]
]
PYDANTIC = """\
pydantic_core._pydantic_core.ValidationError: 1 validation error for {config}
{field}
  {message} [type={kind}, input_value={given}, input_type=str]
    For further information visit https://errors.example.org/v/{kind}
"""


def steps(log: str) -> tuple[NextStep, ...]:
    return quoted_steps(read_log(log), redact(log, private=True).text).steps


@pytest.mark.parametrize("row", ROWS)
def test_a_pattern_finds_its_hit_and_not_its_miss(row: dict[str, Any]) -> None:
    rule = pattern(row["pattern"])

    assert rule.search(row["hit"])
    assert not rule.search(row["miss"])


@pytest.mark.parametrize("row", advice_data()["advice"], ids=lambda row: row["id"])
def test_a_hit_is_advice(row: dict[str, Any]) -> None:
    assert is_advice(row["hit"])


@pytest.mark.parametrize("row", advice_data()["ignored"], ids=lambda row: row["id"])
def test_what_every_error_prints_is_no_advice(row: dict[str, Any]) -> None:
    assert not is_advice(row["hit"])


@pytest.mark.parametrize(
    ("log", "quote", "command"),
    [
        (
            (
                "ValueError: To serve at least one request, 8.00 GiB KV cache is needed. Try increasing "
                "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
            ),
            "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
            "",
        ),
        (
            "ImportError: the reader is missing. Please install fancy-reader with `pip install fancy-reader>=0.3`.",
            "Please install fancy-reader with `pip install fancy-reader>=0.3`.",
            "pip install 'fancy-reader>=0.3'",
        ),
        (
            "ImportError: the reader is too old. Try: `pip install fancy-reader -U`.",
            "Try: `pip install fancy-reader -U`.",
            "pip install fancy-reader -U",
        ),
        (
            (
                "RuntimeError: the length is over the limit. To allow it, set the env var "
                "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1."
            ),
            "To allow it, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.",
            "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve YOUR_ARGS",
        ),
        (
            (
                "ValueError: the repository holds code of its own.\n"
                "Please pass the argument `trust_remote_code=True` to allow it to be run."
            ),
            "Please pass the argument `trust_remote_code=True` to allow it to be run.",
            "vllm serve YOUR_ARGS --trust-remote-code",
        ),
    ],
)
def test_advice_is_quoted_with_what_it_says_to_type(log: str, quote: str, command: str) -> None:
    assert steps(log)[0] == NextStep(text=f"The message itself says: “{quote}”", command=command)


def test_a_message_that_only_states_the_error_gives_none() -> None:
    assert steps("ValueError: the sizes must be divisible by 8.") == ()
    assert (
        steps(
            "RuntimeError: CUDA error: device-side assert triggered\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
        )
        == ()
    )


def test_a_log_without_an_error_gives_none() -> None:
    assert steps("INFO 01-01 00:00:00 [a.py:1] Please install flashinfer for better performance.") == ()


def test_a_mistyped_choice_is_set_right() -> None:
    log = "vllm serve: error: argument --dtype: invalid choice: 'flaot16' (choose from 'auto', 'half', 'float16')"

    assert steps(log)[0] == NextStep(
        text="“flaot16” is not a legal value; “float16” is the nearest one.",
        command="vllm serve YOUR_ARGS --dtype float16",
    )


def test_an_illegal_value_is_set_right_in_the_option_that_has_it() -> None:
    log = (
        "$ vllm serve acme/V --served-model-name qwen3 --reasoning-parser qwen3_thinking\n"
        "KeyError: \"Reasoning parser 'qwen3_thinking' not found. Available parsers: olmo3, qwen3\"\n"
    )
    step = quoted_steps(read_log(log), log, read_launch(log)).steps[0]

    assert step.text == "“qwen3_thinking” is not a legal value; “qwen3” is the nearest one."
    assert step.command == "vllm serve YOUR_ARGS --reasoning-parser qwen3"
    assert not steps(log)[0].command


def test_an_illegal_value_of_a_dotted_option_is_set_right_in_it() -> None:
    error = PYDANTIC.format(
        config="StructuredOutputsConfig",
        field="backend",
        message="Input should be 'auto', 'xgrammar' or 'outlines'",
        kind="literal_error",
        given="'outlines_x'",
    )
    log = f"$ vllm serve acme/V --structured-outputs-config.backend outlines_x\n{error}"

    assert quoted_steps(read_log(log), log, read_launch(log)).steps[0].command == (
        "vllm serve YOUR_ARGS --structured-outputs-config.backend outlines"
    )


@pytest.mark.parametrize(
    ("advice", "command"),
    [
        ("Use `--runner pooling` or `--runner auto` for embedding models.", "--runner pooling"),
        ("Use float16 by setting the `dtype` flag in CLI, for example: --dtype=half.", "--dtype half"),
        ("Use `--no-such-option 3` instead.", ""),
    ],
)
def test_an_option_that_the_advice_spells_out_is_typed(advice: str, command: str) -> None:
    found = steps(f"ValueError: This model does not work so. {advice}")

    assert found[0].command == (f"vllm serve YOUR_ARGS {command}" if command else "")


def test_of_legal_numbers_the_next_greater_one_is_taken() -> None:
    log = (
        "$ vllm serve acme/V --enable-lora --max-lora-rank 40\n"
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for LoRAConfig\n"
        "  Value error, max_lora_rank (40) must be one of (8, 16, 32, 64, 128). "
        "[type=value_error, input_value=ArgsKwargs((), {'bias_ena...s': None}), input_type=ArgsKwargs]\n"
    )
    step = quoted_steps(read_log(log), log, read_launch(log)).steps[0]

    assert step.command == "vllm serve YOUR_ARGS --max-lora-rank 64"


def test_an_illegal_value_within_json_is_set_right_there() -> None:
    log = (
        """$ vllm serve acme/V --structured-outputs-config '{"backend": "auto", "reasoning_parser": "olmo-3"}'\n"""
        """KeyError: "Reasoning parser 'olmo-3' not found. Available parsers: olmo3, qwen3"\n"""
    )
    assert quoted_steps(read_log(log), log, read_launch(log)).steps[0].command == (
        """vllm serve YOUR_ARGS --structured-outputs-config '{"backend": "auto", "reasoning_parser": "olmo3"}'"""
    )


def test_a_mistyped_field_of_a_configuration_is_set_right() -> None:
    log = "vllm serve: error: argument --structured-outputs-config: " + PYDANTIC.format(
        config="StructuredOutputsConfig",
        field="backend",
        message="Input should be 'auto', 'xgrammar' or 'guidance'",
        kind="literal_error",
        given="'xgramar'",
    ).replace("pydantic_core._pydantic_core.ValidationError: ", "")

    assert steps(log)[0].command == (
        """vllm serve YOUR_ARGS --structured-outputs-config '{"backend": "xgrammar"}'"""
    )


def test_a_mistyped_flag_is_set_right() -> None:
    assert steps("vllm: error: unrecognized arguments: --max-model-length 4096")[0] == NextStep(
        text="--max-model-length is no flag of this release; --max-model-len is the nearest one.",
        command="vllm serve YOUR_ARGS --max-model-len",
    )


def test_a_flag_of_another_release_is_not_called_mistyped() -> None:
    assert "another one" in steps("vllm: error: unrecognized arguments: --kv-transfer-config {}")[0].text


@pytest.mark.parametrize(
    ("text", "values", "given"),
    [
        ("invalid choice: 'x' (choose from 'a', 'b')", ("a", "b"), "x"),
        ("invalid choice: x (choose from auto, half)", ("auto", "half"), "x"),
        (
            "Input should be 0, 1, 2 or 3 [type=enum, input_value=9, input_type=int]",
            ("0", "1", "2", "3"),
            "9",
        ),
        ("invalid tool call parser: h (chose from { hermes,mistral })", ("hermes", "mistral"), "h"),
        ("Unknown quantization method: awq2. Must be one of ['awq', 'fp8'].", ("awq", "fp8"), "awq2"),
        ("no choice here", (), None),
    ],
)
def test_legal_values_and_what_was_given_are_read(
    text: str, values: tuple[str, ...], given: str | None
) -> None:
    assert legal_values(text) == values
    assert given_value(text) == given


def test_a_long_quote_is_cut() -> None:
    listed = ", ".join(f"'method-{number}'" for number in range(200))
    log = f"ValueError: Unknown method: zzz. Must be one of [{listed}]"
    quote = quoted_steps(read_log(log), log).later[0].text

    assert len(quote) < MAX_QUOTE_CHARS + 40
    assert quote.endswith("…”")


def test_a_secret_in_a_quote_is_masked() -> None:
    secret = "hf_" + "aB3dE5fG7hJ9" * 3
    log = f"OSError: the model is gated. Please pass HF_TOKEN={secret} to read it."

    assert all(secret not in step.text + step.command for step in steps(log))


def test_a_value_that_a_shell_would_run_is_never_put_into_a_command() -> None:
    log = "error: argument --dtype: invalid choice: '$(reboot' (choose from 'auto', '$(reboot)')"

    assert all("reboot" not in step.command for step in steps(log))


def test_a_flag_that_switched_something_off_is_left_out_and_not_made_its_opposite() -> None:
    step = steps("vllm: error: unrecognized arguments: --disable-log-requests")[0]

    assert "leave it out" in step.text
    assert step.command == ""


def test_a_flag_that_is_like_none_is_not_set_right() -> None:
    assert steps("vllm: error: unrecognized arguments: --guided-decoding-backend outlines") == ()


def test_advice_that_the_message_warns_of_is_quoted_with_the_warning_and_is_no_first_step() -> None:
    log = (
        "ValueError: max_model_len (9000) is greater than the derived one (4096). To allow overriding this maximum, "
        "set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. VLLM_ALLOW_LONG_MAX_MODEL_LEN must be used with extreme caution."
    )
    found = quoted_steps(read_log(log), log)

    assert not found.steps
    assert [step.command for step in found.later] == ["VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve YOUR_ARGS"]
    assert "extreme caution" in found.later[0].text


def test_advice_of_an_outer_error_without_a_command_stands_behind_our_first_step() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/srv/hub/_http.py", line 407, in hf_raise_for_status\n'
        "    response.raise_for_status()\n"
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://hub.example.org/x\n"
        "\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/hub/hub.py", line 470, in cached_files\n'
        "    hf_hub_download(\n"
        "OSError: The file cannot be fetched. Please check your connection and try again.\n"
    )
    found = quoted_steps(read_log(log), log)
    ours = NextStep(text="Wait some minutes.", command="hf auth login")

    assert [step.text for step in found.joined((ours,))] == [
        ours.text,
        "An error raised on top of it says: “Please check your connection and try again.”",
    ]
    assert not found.is_risky


def test_what_two_steps_would_have_one_type_stands_with_the_one_that_says_more_of_it() -> None:
    log = (
        "ValueError: The repository /srv/m contains custom code which must be executed. "
        "Please pass the argument `trust_remote_code=True` to allow custom code to be run."
    )
    quoted = quoted_steps(read_log(log), redact(log).text)
    ours = NextStep(text="Read it first.", command="vllm serve YOUR_ARGS --trust-remote-code")

    joined = quoted.joined((ours,))

    assert [step.command for step in joined] == ["", ours.command]
    assert quoted.steps[0].command == ours.command


@pytest.mark.parametrize(
    ("message", "text", "command"),
    [
        (
            "`limit_mm_per_prompt` is only supported for multimodal models.",
            "The message is about `--limit-mm-per-prompt 2` in your command: leave it out.",
            "vllm serve YOUR_ARGS # without --limit-mm-per-prompt",
        ),
        (
            "invalid tool call parser: foo",
            "The message is about `--tool-call-parser foo` in your command: correct it.",
            "",
        ),
    ],
)
def test_the_option_that_a_message_is_about_is_named(message: str, text: str, command: str) -> None:
    launch = read_launch("$ vllm serve zebra --tool-call-parser foo --port 80 --limit-mm-per-prompt 2\n")
    assert launch is not None

    assert option_step(launch, message, ()) == NextStep(text=text, command=command)


def test_an_option_that_another_step_names_is_not_named_again() -> None:
    launch = read_launch("$ vllm serve zebra --max-model-len 9\n")
    assert launch is not None
    step = NextStep(text="Ask for less.", command="vllm serve YOUR_ARGS --max-model-len 8")

    assert option_step(launch, "max_model_len (9) is too large", [step]) is None


def test_an_unsupported_option_stays_where_the_message_says_what_to_set_it_to() -> None:
    launch = read_launch("$ vllm serve zebra --dtype bfloat16\n")
    assert launch is not None
    said = NextStep(text="The message itself says: use float16.", command="vllm serve YOUR_ARGS --dtype half")

    assert option_step(launch, "`kv_dtype`: --dtype bfloat16 is not supported", [said], [said]) is None


def test_a_proven_step_with_a_command_stands_before_a_quote_without_one() -> None:
    quoted = quoted_steps(read_log(WORDS), WORDS)
    ours = (NextStep(text="Ask for less.", command="vllm serve YOUR_ARGS --max-num-seqs 4"),)

    assert [step.text[:3] for step in quoted.joined(ours, ours)] == ["Ask", "The"]
    assert [step.text[:3] for step in quoted.joined(ours)] == ["The", "Ask"]


WORDS = "ValueError: There is too little room. Decrease the load or reduce the memory of other processes."
