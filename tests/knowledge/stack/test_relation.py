"""What relates a failure to a stack: each sign with a case where it holds and one where it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.extract.facts import ErrorFact, Outcome, Workaround
from app.knowledge.stack.relation import relate, relate_text, vendor_of
from app.knowledge.stack.shapes import FailureCase, affects_of
from app.knowledge.stack.stack import Stack, parse_stack
from app.knowledge.stack.standing import standing
from tests.knowledge.stack.conftest import FIXED, SPAN, case

MINE = "0.21.0~H100~Qwen/Qwen3-30B-A3B~--tensor-parallel-size 4 --enable-lora"
ALIKE = ("Qwen3-30B-A3B",)


def mine(text: str = MINE) -> Stack:
    stack = parse_stack(text)
    assert stack is not None
    return stack


WRAPPED = ErrorFact(type="RuntimeError", message="Engine core initialization failed.")


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (case(), "unknown"),
        (case("LoRA fails"), "unknown"),
        (case("LoRA fails", models=ALIKE), "yes"),
        (case("Tool calls fail on sm_103a", models=ALIKE), "no"),
        (case("LoRA fails", models=("meta-llama/Llama-3.1-8B",)), "unknown"),
        (case("Eagle3 speculative decoding fails"), "no"),
        (case("xgrammar gives broken JSON"), "unknown"),
        (case("xgrammar gives broken JSON", models=ALIKE), "unknown"),
        (case("ROCm: x"), "no"),
        (case("x", labels=("rocm",)), "no"),
        (case("x", gpus=("MI300X",)), "no"),
        (case("Qwen3-30B-A3B fails", titled_models=ALIKE), "yes"),
        (case("Qwen3-30B-A3B repeats words", titled_models=ALIKE, kind="wrong_output"), "yes"),
        (case("Qwen3-8B fails", titled_models=("Qwen3-8B",)), "no"),
        (case("Qwen3-VL-8B fails", titled_models=("Qwen3-VL-8B",)), "no"),
        (case("Qwen2.5 fails", titled_models=("Qwen2.5-7B",)), "no"),
        (case("Llama fails", titled_models=("Llama-3.1-8B",)), "no"),
        (case("Llama fails"), "no"),
        (case("qwen3 fails"), "yes"),
        (case("qwen3_5 is unknown"), "no"),
        (case("qwen3_vl fails"), "unknown"),
        (case("Qwen3VLForConditionalGeneration fails"), "unknown"),
        (case(models=("Qwen/Qwen3-30B-A3B-Instruct",), gpus=("H100",)), "yes"),
        (case(models=("Qwen/Qwen3-30B-A3B-FP8",)), "unknown"),
        (case("Tool division by zero", models=ALIKE), "yes"),
        (case("EngineCore died", models=ALIKE, error=None, kind="other"), "unknown"),
        (case("It raises an error", models=ALIKE, error=None), "unknown"),
        (case("It failed", models=ALIKE, error=None, kind="other"), "unknown"),
        (case("It failed", models=ALIKE, error=None, kind="other", gpus=("H100",)), "unknown"),
        (case("It raises an error", models=ALIKE, error=None, gpus=("H100",)), "unknown"),
        (case("It ends", models=ALIKE, error=WRAPPED, gpus=("H100",)), "unknown"),
        (case("LoRA ends", models=ALIKE, error=WRAPPED, gpus=("H100",)), "yes"),
        (case("It hangs", models=ALIKE, error=None, kind="hang", gpus=("H100",)), "yes"),
        (case("LoRA fails", models=ALIKE, error=ErrorFact(type="AssertionError", message="")), "unknown"),
        (case("LoRA is slow", models=ALIKE, gpus=("H100",), kind="slowdown"), "unknown"),
        (case("LoRA is slow", models=ALIKE, gpus=("H100",), kind="slowdown", span=SPAN), "yes"),
        (case("LoRA is slow", models=ALIKE, gpus=("H200",), kind="slowdown", span=SPAN), "unknown"),
        (case("[Performance]: LoRA", models=ALIKE), "unknown"),
        (case("[Performance]: LoRA", models=ALIKE, span=SPAN), "yes"),
        (case("LoRA has quality issues", models=ALIKE), "unknown"),
        (case("MFU is too high with LoRA", models=ALIKE), "no"),
        (case("Qwen3 and Qwen3-Coder lose words", models=ALIKE), "unknown"),
        (case("Qwen3 loses words", models=("Qwen3-235B-A22B",)), "yes"),
        (case("Qwen3 crashes", models=("Qwen3-235B-A22B",), gpus=("H100",), kind="crash"), "unknown"),
        (case("It loses words", models=("Qwen3-235B-A22B",)), "unknown"),
        (case("Whisper streams no text", models=ALIKE), "no"),
        (case("Docker image is too large", models=ALIKE), "unknown"),
        (case("Why is it slow?", models=ALIKE), "unknown"),
        (case("fails on B200", titled_gpus=("B200",)), "no"),
        (case("fails on sm120", models=ALIKE), "no"),
        (case("fails on H200", titled_gpus=("H200",), models=ALIKE), "yes"),
        (case("[CI Failure]: test_x.py", models=ALIKE), "no"),
        (case("It fails in the V0 engine", models=ALIKE), "no"),
        (case("It fails with a cold cache", models=ALIKE), "unknown"),
        (case("It fails on /v1/chat/completions during weight loading", models=ALIKE), "yes"),
        (case("It fails on Hopper", models=ALIKE), "yes"),
        (case("It fails on Blackwell", models=ALIKE), "no"),
        (case("It fails with RuntimeError: no tensor with that name", models=ALIKE), "yes"),
    ],
)
def test_a_failure_is_the_stack_s_if_its_model_or_a_feature_agrees_and_nothing_differs(
    given: FailureCase, answer: str
) -> None:
    found = relate(mine(), given)
    assert found.answer == answer, found
    assert found.reason


@pytest.mark.parametrize(
    ("gpus", "kind", "answer"),
    [
        (("H200",), "crash", "yes"),
        (("H200",), "oom", "unknown"),
        (("H100",), "oom", "yes"),
        (("B200",), "crash", "unknown"),
        (("B200",), "exception", "yes"),
        ((), "crash", "unknown"),
        ((), "exception", "yes"),
    ],
)
def test_what_may_depend_on_the_card_must_have_been_seen_on_one_like_it(
    gpus: tuple[str, ...], kind: str, answer: str
) -> None:
    assert relate(mine(), case(models=ALIKE, gpus=gpus, kind=kind)).answer == answer


@pytest.mark.parametrize(
    ("title", "answer"),
    [
        ("It gives garbage", "unknown"),
        ("It loses the last field", "unknown"),
        ("Tool call loses the last field", "yes"),
    ],
)
def test_a_wrong_answer_may_depend_on_the_card_unless_it_is_of_a_part_that_does_not(
    title: str, answer: str
) -> None:
    stack = mine(
        "0.21.0~H100~Qwen/Qwen3-30B-A3B~--enable-lora --tool-call-parser hermes --enable-auto-tool-choice"
    )
    given = case(title, models=ALIKE, gpus=("B200",), kind="wrong_output", error=None)
    assert relate(stack, given).answer == answer


@pytest.mark.parametrize(
    ("title", "args", "answer"),
    [
        ("LoRA fails without `--enforce-eager`", "--enable-lora --enforce-eager", "no"),
        ("LoRA fails without `--enforce-eager`", "--enable-lora", "yes"),
        ("LoRA fails with --kv-cache-dtype fp8", "--enable-lora", "no"),
        ("`--enable-lora` crashes", "--enable-lora", "yes"),
        ("LoRA fails with num-scheduler-steps", "--enable-lora", "unknown"),
        ("MTP fails", "--speculative-config {}", "unknown"),
        ("MTP fails", '--speculative-config {"method":"mtp"}', "yes"),
        ("MTP fails", '--speculative-config {"method":"ngram"}', "no"),
        ("torch.compile fails", "--enforce-eager", "no"),
        ("Hermes tool parser fails", "--tool-call-parser mistral", "no"),
        ("Hermes tool parser fails", "--tool-call-parser hermes", "yes"),
        ("Qwen3ReasoningParser leaks a tag", "--reasoning-parser deepseek_r1", "no"),
        ("Qwen3ReasoningParser leaks a tag", "--reasoning-parser qwen3", "yes"),
        ("It fails with TP=2 and pipeline parallelism", "--tensor-parallel-size 2", "no"),
        ("FP8 KV cache fails", "--kv-cache-dtype fp8", "yes"),
        ("FP8_BLOCK checkpoints give garbage", "--enable-lora", "no"),
        ("wfp8afp8 gives garbage", "--enable-lora", "no"),
        ("Functioncall gives garbage", "--enable-lora", "no"),
        ("FlashInfer backend gives garbage", "--enable-lora", "unknown"),
        ("OpenVINO: x", "--enable-lora", "no"),
    ],
)
def test_options_and_parsers_in_a_title_must_be_the_stack_s(title: str, args: str, answer: str) -> None:
    found = relate(mine(f"0.21.0~H100~Qwen/Qwen3-30B-A3B~{args}"), case(title, models=ALIKE))
    assert found.answer == answer, found


@pytest.mark.parametrize(
    ("model", "theirs", "answer"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL", "yes"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2.5-VL-72B-Instruct", "unknown"),
        ("Qwen/Qwen2-VL-7B-Instruct", "Qwen2___5-VL-7B-Instruct", "no"),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", "Qwen3-VL", "yes"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct-1M", "no"),
        ("deepseek-ai/DeepSeek-R1", "DeepSeek-R1-32B", "unknown"),
        ("Qwen/Qwen3.5-35B-A3B", "Qwen3.5-dense", "no"),
        ("deepseek-ai/DeepSeek-R1", "DeepSeek-R1-Distill-Qwen-32B", "no"),
        ("google/gemma-3-27b-it", "google/gemma-3n-E4B-it", "no"),
        ("moonshotai/Kimi-K2.5", "Kimi-Linear-48B", "no"),
        ("org/Small-3.1-24B-Instruct", "Small-4-24B", "no"),
    ],
)
def test_models_agree_in_family_generation_variant_and_size(model: str, theirs: str, answer: str) -> None:
    stack = mine(f"0.21.0~H100~model:{model}~--max-model-len 4096")
    assert relate(stack, case(models=(theirs,), titled_models=(theirs,))).answer == answer


def test_a_parser_s_failure_needs_the_model_or_the_parser_too() -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen3-32B~--reasoning-parser qwen3")
    assert relate(stack, case("Reasoning parser cannot be disabled", state="closed")).answer == "unknown"
    assert relate(stack, case("Qwen3ReasoningParser cannot be disabled")).answer == "yes"


def test_a_closed_report_of_tool_calls_alone_is_too_thin() -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen3-32B~--tool-call-parser hermes --enable-auto-tool-choice")
    assert relate(stack, case("Tool calls lose a brace")).answer == "yes"
    assert relate(stack, case("Tool calls lose a brace", state="closed")).answer == "unknown"
    assert relate(stack, case("Hermes tool calls lose a brace", state="closed")).answer == "yes"


def test_one_slight_difference_is_allowed_and_named() -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen3-32B~--tool-call-parser hermes --enable-auto-tool-choice")
    one = case("Qwen3 tool calls fail in streaming mode", models=("Qwen/Qwen3-32B",))
    two = case("Qwen3 tool calls fail in streaming mode under load", models=("Qwen/Qwen3-32B",))
    assert relate(stack, one).answer == "yes"
    assert relate(stack, one).differs == ("it matters if your requests ask for a stream",)
    assert relate(stack, two).answer == "unknown"


def test_a_report_that_spares_the_stack_s_model_is_not_its_own() -> None:
    stack = mine("0.21.0~H100~openai/gpt-oss-120b~--tool-call-parser openai --enable-auto-tool-choice")
    given = case("[gpt oss 20b] tool call fails", models=("openai/gpt-oss-20b",))
    before = relate(stack, given)
    assert before.answer == "yes"
    text = "This issue does not occur with gpt-oss-120b, which works as expected."
    assert relate_text(stack, given, text, before).answer == "unknown"


def test_another_variant_in_the_text_differs() -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen2.5-7B-Instruct~--max-model-len 4096")
    given = case("Qwen2.5 fails", models=("Qwen2.5",))
    before = relate(stack, given)
    assert relate_text(stack, given, "I run Qwen2.5-VL here", before).answer == "unknown"
    assert relate_text(stack, given, "I run Qwen2.5-7B and Qwen2.5-VL", before).answer == "yes"


def test_a_title_that_measures_one_card_by_another_is_of_the_first() -> None:
    given = case("LoRA on B200 is slower than on H100", models=ALIKE, titled_gpus=("B200", "H100"))
    assert relate(mine(), given).answer == "unknown"


def test_size_and_weights_are_nothing_to_tool_calls() -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen3-32B-AWQ~--tool-call-parser hermes --enable-auto-tool-choice")
    assert relate(stack, case("Tool calls fail", models=("Qwen/Qwen3-8B",))).answer == "yes"


def test_weights_quantised_when_they_are_loaded_are_not_those_of_a_quantised_checkpoint() -> None:
    stack = mine(f"{MINE} --quantization fp8")
    given = case("LoRA fails", models=ALIKE)
    loaded = replace(given, facts=given.facts.model_copy(update={"backends": {"quantization": ("fp8",)}}))
    assert relate(stack, loaded).answer == "yes"
    assert relate(stack, case("LoRA fails", models=("Qwen3-30B-A3B-FP8",))).answer == "unknown"


def test_all_that_differs_is_named_beside_what_agrees() -> None:
    given = case("LoRA fails with structured output", models=ALIKE, gpus=("B200",), kind="crash")
    found = relate(mine(), given)
    assert found.agrees == ("of LoRA adapters, as yours", "with Qwen3-30B-A3B")
    assert found.differs == (
        "it matters if your requests ask for structured outputs",
        "it was seen on B200, not on H100",
    )
    assert found.is_near
    read = relate_text(
        mine(), given, "vllm serve m --attention-backend FLASHINFER --load-format sharded_state", found
    )
    assert len(read.differs) == 4
    assert not read.is_near


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("vllm serve m --enable-lora", None),
        ("vllm serve m --enable-lora --tensor-parallel-size 8 --max-model-len 4096", None),
        ("vllm serve m --load-format sharded_state", "sharded states"),
        ("vllm serve m --attention-backend FLASHINFER", "--attention-backend FLASHINFER"),
        ('vllm serve m --speculative-config \'{"method": "mtp"}\'', "speculative decoding"),
        ("we run it with the NIXL connector", "NIXL"),
        ("it is intermittent", "under load"),
        ("it runs under WSL2", "Windows"),
        ("INFO SpecDecoding metrics: Mean acceptance length: 1.6", "speculative decoding"),
        ('"chat_template_kwargs": {"enable_thinking": false}', "thinking"),
        ("it works with --pipeline-parallel-size 2", None),
        ("It is the parser of offline inference.", "vLLM as a library"),
        ("It only happens when the cache is cold.", "only happens"),
        ("Qwen3-30B-A3B (from the hub, not ours) works fine.", "does not fail with Qwen3-30B-A3B"),
        ("vllm serve m --tensor-parallel-size 16", "several machines"),
        ("cu12 fails, and cu13 does not", "CUDA 12 with CUDA 13"),
        ("Would it be possible to add such a parser?", "a question"),
        ("See https://example.com/when-vllm-is-a-library/MTP", None),
        ("You can update with the command `pip install --upgrade transformers`.", None),
    ],
)
def test_the_run_of_the_report_must_be_one_like_it(text: str, reason: str | None) -> None:
    tried = Workaround(action="--pipeline-parallel-size 2", kind="flag", outcome="works")
    given = case("LoRA fails", models=ALIKE, workarounds=(tried,))
    before = relate(mine(), given)
    found = relate_text(mine(), given, text, before)
    assert found == before if reason is None else reason in found.reason


def test_a_wrong_computation_of_no_named_card_may_spare_other_vendors() -> None:
    given = case("Qwen3-30B-A3B repeats words", titled_models=ALIKE, kind="wrong_output")
    assert relate(mine(MINE.replace("H100", "MI300X")), given).answer == "unknown"


@pytest.mark.parametrize(
    ("action", "outcome", "answer"),
    [
        ("--quantization awq", "works", "unknown"),
        ("--quantization awq", "fails", "yes"),
        ("--tensor-parallel-size 4", "works", "unknown"),
        ("--tensor-parallel-size 1", "works", "yes"),
        ("--enforce-eager", "works", "yes"),
    ],
)
def test_a_stack_that_has_chosen_what_a_remedy_sets_may_be_spared(
    action: str, outcome: Outcome, answer: str
) -> None:
    tried = Workaround(action=action, kind="flag", outcome=outcome)
    given = case("LoRA fails", models=ALIKE, workarounds=(tried,))
    stack = mine(f"{MINE} --quantization awq_marlin")
    assert relate(stack, given).answer == answer


@pytest.mark.parametrize(
    ("model", "args", "answer"),
    [
        ("Qwen/Qwen3-30B-A3B", "--max-model-len 8192", "yes"),
        ("Qwen/Qwen3.5-27B", "--max-model-len 8192", "no"),
        ("Qwen/Qwen3.5-27B", "--enable-prefix-caching", "yes"),
    ],
)
def test_prefix_caching_is_off_by_default_for_models_with_recurrent_layers(
    model: str, args: str, answer: str
) -> None:
    given = case("Prefix caching loses words", models=(model,))
    assert relate(mine(f"0.21.0~H100~{model}~{args}"), given).answer == answer


@pytest.mark.parametrize(
    ("title", "answer"), [("It refuses image_embeds", "unknown"), ("It refuses an image", "yes")]
)
def test_inputs_that_are_computed_beforehand_are_seldom_sent(title: str, answer: str) -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen3-VL-8B-Instruct~--max-model-len 8192")
    assert relate(stack, case(title, models=("Qwen3-VL-8B-Instruct",))).answer == answer


def test_a_report_without_a_text_is_not_firmly_the_stack_s() -> None:
    given = case("LoRA fails", models=ALIKE)
    before = relate(mine(), given)
    assert before.answer == "yes"
    assert relate_text(mine(), given, " \n", before).answer == "unknown"


def test_the_parser_of_the_report_s_run_decides_where_the_failure_is_of_tools() -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen3-8B~--tool-call-parser hermes --enable-auto-tool-choice")
    given = case("Tool calls fail", models=("Qwen/Qwen3-8B",))
    run = "vllm serve m --tool-call-parser qwen3_coder"
    assert relate_text(stack, given, run, relate(stack, given)).answer == "unknown"
    assert (
        relate_text(stack, given, run.replace("qwen3_coder", "hermes"), relate(stack, given)).answer == "yes"
    )


@pytest.mark.parametrize(
    ("stack", "given", "missing"),
    [
        (
            "0.21.0~H100~--enable-lora",
            case("LoRA fails", models=("GLM-4.7-Flash",)),
            "your model is not known",
        ),
        ("0.21.0~Qwen/Qwen3-8B", case("[ROCm] Qwen3 fails"), "your GPU is not known"),
        (
            "0.21.0~Qwen/Qwen3-8B",
            case("Qwen3-8B runs out of memory", gpus=("GB200",), models=("Qwen3-8B",), kind="oom"),
            "your GPU is not known",
        ),
        (
            "0.21.0~H100~Qwen/Qwen3-30B-A3B",
            case("Hermes tool parser fails", models=ALIKE),
            "your arguments are not known",
        ),
    ],
)
def test_what_a_stack_leaves_out_is_unknown(stack: str, given: FailureCase, missing: str) -> None:
    found = relate(mine(stack), given)
    assert found.answer == "unknown"
    assert missing in found.reason


def test_version_and_relation_make_the_answer() -> None:
    def affects(stack: Stack, given: FailureCase) -> str:
        return affects_of(standing(stack.vllm, given), relate(stack, given)).state

    named = case("LoRA fails", models=ALIKE)
    assert affects(mine(), named) == "affects"
    assert affects(mine(MINE.replace("0.21.0", "0.20.0")), named) == "unknown"
    assert affects(mine(MINE.replace(" --enable-lora", "")), named) == "not"
    assert affects(mine("0.21.0~H100"), named) == "unknown"
    assert affects(mine(), case("LoRA fails", version="0.20.0", truth=FIXED)) == "not"


def test_vendors_are_told_by_name() -> None:
    names = ("H100", "RTX 4090", "MI300X", "CPU", "Gaudi 2", "TPU v5e", "Inferentia")
    assert [vendor_of(name) for name in names] == ["NVIDIA", "NVIDIA", "AMD", "CPU", "Intel", "TPU", "Neuron"]


@pytest.mark.parametrize(("gpu", "answer"), [("MI300X", "yes"), ("MI355X", "unknown")])
def test_cards_of_two_generations_are_not_alike(gpu: str, answer: str) -> None:
    given = case(models=("Qwen/Qwen3-8B",), gpus=("MI325X",), kind="crash")
    assert relate(mine(f"0.21.0~{gpu}~Qwen/Qwen3-8B"), given).answer == answer


@pytest.mark.parametrize(("gpu", "answer"), [("H100", "yes"), ("MI300X", "no")])
def test_an_error_of_nvidia_s_libraries_is_none_of_other_vendors(gpu: str, answer: str) -> None:
    error = ErrorFact(type="RuntimeError", message="CUDA driver error: invalid argument")
    given = case("LoRA fails", models=ALIKE, error=error)
    assert relate(mine(f"0.21.0~{gpu}~Qwen/Qwen3-30B-A3B~--enable-lora"), given).answer == answer
