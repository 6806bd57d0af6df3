"""Whether a failure affects a stack: the version and what it is of, each with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.extract.facts import ErrorFact, Workaround
from app.knowledge.stack.affects import fit, refine_fit, vendor_of
from app.knowledge.stack.stack import Stack, parse_stack
from app.knowledge.stack.standing import Affects, FailureCase, combine_answers, standing
from tests.knowledge.stack.conftest import FIXED, SPAN, case

MINE = "0.21.0~H100~Qwen/Qwen3-30B-A3B~--tensor-parallel-size 4 --enable-lora"


def mine(text: str = MINE) -> Stack:
    stack = parse_stack(text)
    assert stack is not None
    return stack


def affects(stack: Stack, given: FailureCase) -> Affects:
    return combine_answers(standing(stack.vllm, given), fit(stack, given))


ALIKE = ("Qwen3-30B-A3B",)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (case(), "unknown"),
        (case("LoRA fails", labels=()), "unknown"),
        (case("LoRA fails", models=ALIKE), "yes"),
        (case("LoRA fails", span=SPAN), "yes"),
        (case("Eagle3 speculative decoding fails"), "no"),
        (case("xgrammar gives broken JSON"), "unknown"),
        (case("ROCm: x"), "no"),
        (case("LoRA crashes with `--max-num-batched-tokens`"), "no"),
        (case("`--enable-lora` crashes", models=ALIKE), "yes"),
        (case("`--enable-lora` with --kv-cache-dtype fp8 fails", models=ALIKE), "no"),
        (case("Qwen3-30B-A3B fails with transformers 5.0", titled_models=ALIKE), "unknown"),
        (case("Qwen3-8B fails", titled_models=("Qwen3-8B",)), "no"),
        (case("Qwen3 fails", models=("Qwen3-235B-A22B",)), "unknown"),
        (case("Qwen3VLForConditionalGeneration fails", models=ALIKE, span=SPAN), "unknown"),
        (case("Qwen3 tool calls fail", models=("Qwen3-235B-A22B",)), "no"),
        (case("x", labels=("rocm",)), "no"),
        (case("x", gpus=("MI300X",)), "no"),
        (case("Qwen3-30B-A3B fails", titled_models=("Qwen3-30B-A3B",)), "yes"),
        (case("Qwen3-VL-8B fails", titled_models=("Qwen3-VL-8B",)), "no"),
        (case("Qwen2.5 fails", titled_models=("Qwen2.5-7B",)), "no"),
        (case("Llama fails", titled_models=("Llama-3.1-8B",)), "no"),
        (case("fails on B200", titled_gpus=("B200",)), "no"),
        (case("fails on H200", titled_gpus=("H200",)), "unknown"),
        (case("Qwen3-30B-A3B fails on H200", titled_gpus=("H200",), titled_models=ALIKE), "yes"),
        (case(models=("Qwen/Qwen3-30B-A3B-Instruct",), gpus=("H100",)), "yes"),
        (case(models=("Qwen/Qwen3-30B-A3B-Instruct",)), "unknown"),
        (case(models=("meta-llama/Llama-3.1-8B",), gpus=("H100",)), "unknown"),
        (case("[CI Failure]: test_x.py"), "no"),
        (case("LoRA tests fail on a nightly job", models=ALIKE), "no"),
        (case("Qwen3 fails", titled_models=("Qwen3",)), "yes"),
        (case("Qwen3-30B-A3B-text-only fails", titled_models=("Qwen3-30B-A3B-text-only",)), "no"),
        (case("Qwen3-30B-A3B crashes", titled_models=ALIKE, kind="crash"), "yes"),
        (case("Qwen3-30B-A3B runs out of memory", titled_models=ALIKE, kind="oom"), "unknown"),
        (case("Qwen3 crashes", titled_models=("Qwen3",), kind="crash", gpus=("H100",)), "unknown"),
        (case("Qwen3-30B-A3B fails in the V0 engine", titled_models=ALIKE), "no"),
        (case("[v0.22] Qwen3-30B-A3B fails in v0.22.0", titled_models=ALIKE), "yes"),
    ],
)
def test_a_failure_is_of_a_stack_if_it_says_so(given: FailureCase, answer: str) -> None:
    found = fit(mine(), given)
    assert found.answer == answer, found
    assert found.reason


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (case(gpus=("H100",), models=ALIKE), "yes"),
        (case(gpus=("H100",), models=ALIKE, error=None), "unknown"),
        (case(gpus=("H200",), models=ALIKE, kind="crash"), "yes"),
        (case(gpus=("H200",), models=ALIKE, kind="slowdown"), "unknown"),
        (case(gpus=("H100",), models=ALIKE, kind="slowdown"), "unknown"),
        (case(gpus=("H100",), models=ALIKE, kind="slowdown", span=SPAN), "yes"),
        (case("LoRA fails", gpus=("B200",), models=ALIKE), "yes"),
        (case("LoRA fails", gpus=("B200",), models=ALIKE, kind="crash"), "unknown"),
        (case("LoRA gives garbage", gpus=("B200",), models=ALIKE, kind="wrong_output"), "unknown"),
        (case("LoRA streams no last field", gpus=("B200",), models=ALIKE, kind="wrong_output"), "yes"),
        (case("LoRA fails", kind="crash"), "unknown"),
        (case("LoRA fails", gpus=("H100",), models=("Qwen3-30B-A3B-FP8",), kind="crash"), "unknown"),
        (case("LoRA fails under high concurrency"), "unknown"),
    ],
)
def test_what_may_depend_on_the_card_must_have_been_seen_on_one_like_it(
    given: FailureCase, answer: str
) -> None:
    assert fit(mine(), given).answer == answer


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("vllm serve m --enable-lora", None),
        ("vllm serve m --enable-lora --tensor-parallel-size 8 --max-model-len 4096", None),
        ("export VLLM_LOGGING_LEVEL=DEBUG VLLM_USE_V1=1", None),
        ("VLLM_USE_V2_MODEL_RUNNER=1 vllm serve m", "VLLM_USE_V2_MODEL_RUNNER"),
        ("vllm serve m --load-format sharded_state", "sharded states"),
        ("vllm serve m --attention-backend FLASHINFER", "--attention-backend FLASHINFER"),
        ('vllm serve m --speculative-config \'{"method": "mtp"}\'', "speculative decoding"),
        ("we run it with the NIXL connector", "NIXL"),
        ("it is intermittent", "under load"),
        ("it runs under WSL2", "Windows"),
        ("export ASCEND_RT_VISIBLE_DEVICES=0", "Ascend"),
        ("INFO SpecDecoding metrics: Mean acceptance length: 1.6", "speculative decoding"),
        ('"chat_template_kwargs": {"enable_thinking": false}', "thinking"),
        ("it works with --pipeline-parallel-size 2", None),
    ],
)
def test_the_run_of_the_report_must_be_one_like_it(text: str, reason: str | None) -> None:
    tried = Workaround(action="--pipeline-parallel-size 2", kind="flag", outcome="works")
    given = case("LoRA fails", models=ALIKE)
    given = replace(given, facts=given.facts.model_copy(update={"workarounds": (tried,)}))
    before = fit(mine(), given)
    found = refine_fit(mine(), given, text, before)
    assert found == before if reason is None else reason in found.reason and found.weight < before.weight


def test_the_kind_of_speculation_must_be_the_same() -> None:
    given = case("MTP fails", models=ALIKE)
    kinds = {"{}": "unknown", '{"method":"mtp"}': "yes", '{"method":"ngram"}': "no"}
    for value, answer in kinds.items():
        assert fit(mine(f"{MINE} --speculative-config {value}"), given).answer == answer


def near(stack: Stack, given: FailureCase, text: str = "") -> bool:
    found = fit(stack, given)
    return (refine_fit(stack, given, text, found) if text else found).is_near


def test_all_that_is_not_known_is_named_beside_what_agrees() -> None:
    given = case("LoRA fails with structured output", models=("Qwen/Qwen3-30B-A3B",), gpus=("B200",))
    found = fit(mine(), given)
    assert (found.answer, found.is_near, found.missing) == ("unknown", True, 1)
    assert found.agrees == "of LoRA adapters, as yours; with Qwen/Qwen3-30B-A3B"
    assert found.reason == "it matters if your requests ask for structured outputs"
    read = refine_fit(mine(), given, "VLLM_NEW_THING=1 vllm serve m", found)
    assert read.reason.startswith(f"{found.reason}; the report sets VLLM_NEW_THING")
    assert (read.is_near, read.missing) == (True, 2)


@pytest.mark.parametrize(
    ("stack", "given", "text"),
    [
        (
            MINE,
            case("Structured output fails", models=("Llama-3.1-8B",)),
            "vllm serve m --kv-cache-dtype fp8",
        ),
        (MINE, case("[Usage]: LoRA fails", models=ALIKE), ""),
        (MINE, case("LoRA fails with num-scheduler-steps", models=ALIKE), ""),
        (MINE, case("LoRA is slow", models=ALIKE, kind="slowdown"), ""),
        (MINE, case("Structured output fails with DeepSeekTokenizer", models=ALIKE), ""),
        ("0.21.0~H100~Qwen/Qwen3-Reranker-4B~--runner pooling", case("xgrammar fails"), ""),
        ("0.21.0~MI300X~Qwen/Qwen3-30B-A3B", case("CUTLASS kernel fails with Qwen3-30B-A3B"), ""),
        (
            "0.21.0~H100~deepseek-ai/DeepSeek-R1~--tool-call-parser deepseek_v3",
            case("Tool calls fail", models=("DeepSeek-R1-Distill-Qwen-32B",)),
            "",
        ),
        (
            "0.21.0~H100~Qwen/Qwen3-8B~--tool-call-parser hermes",
            case("Tool calls fail with 2 users", models=("Qwen/Qwen3-8B",)),
            "vllm serve m --tool-call-parser qwen3_coder",
        ),
    ],
)
def test_what_the_stack_rules_out_is_never_near(stack: str, given: FailureCase, text: str) -> None:
    assert not near(mine(stack), given, text)


@pytest.mark.parametrize(
    ("title", "parsers", "answer"),
    [
        ("Hermes tool parser fails", "--tool-call-parser mistral", "no"),
        ("Hermes tool parser fails", "--tool-call-parser hermes", "yes"),
        ("It fails when tool calls stream (openai parser)", "--tool-call-parser hermes", "no"),
        ("pythonic tool call parsing fails", "--tool-call-parser hermes", "no"),
    ],
)
def test_a_parser_is_known_by_its_name_in_plain_words(title: str, parsers: str, answer: str) -> None:
    stack = mine(f"0.21.0~H100~Qwen/Qwen3-8B~{parsers} --enable-auto-tool-choice")
    assert fit(stack, case(title, models=("Qwen/Qwen3-8B",))).answer == answer


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", None),
        ("Qwen/Qwen2.5-VL-72B-Instruct", "yours is Qwen/Qwen2.5-VL-7B-Instruct, of another size"),
    ],
)
def test_a_size_that_the_title_leaves_out_is_the_report_s(theirs: str, reason: str | None) -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen2.5-VL-7B-Instruct")
    given = case("Qwen2.5-VL throws", titled_models=("Qwen2.5-VL",), models=("Qwen2.5-VL", theirs))
    found = fit(stack, given)
    assert found.reason == reason if reason else found.answer == "yes"


def test_another_generation_in_the_title_is_another_model() -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen2.5-VL-7B-Instruct")
    assert fit(stack, case("Qwen2-VL throws", models=("qwen-vl-7b",))).answer == "no"
    assert fit(stack, case("Qwen2.5-VL throws", models=("qwen-vl-7b",))).answer != "no"


@pytest.mark.parametrize(
    ("title", "text", "reason"),
    [
        ("LoRA fails with `stop` strings and max_tokens", "", "names stop string and max_tokens"),
        ("LoRA fails: CUDA_LOST_ERROR", "vllm serve m", None),
        ("LoRA fails on V1 (V1)", "", "the V1 engine"),
        ("LoRA fails", "pip install -U transformers", "a newer transformers"),
        ("LoRA fails", "You can update with the command `pip install --upgrade transformers`.", None),
        ("LoRA of org/Qwen3-30B-A3B-tuned fails", "", "its title names org/Qwen3-30B-A3B-tuned"),
        ("LoRA answers nothing in Open WebUI", "", "its title names Open WebUI"),
        ("LoRA fails", "It is the parser of offline inference.", "vLLM as a library"),
        ("LoRA fails", "INFO: falling back to Transformers implementation", "models run by transformers"),
        ("LoRA fails", "The same command works fine on a host with four cards.", "works fine on a host"),
        ("LoRA fails", "It works well with 0.20.0.", None),
        ("LoRA fails", "It hangs with a subset of GPUs.", "some of a host's cards"),
        ("LoRA fails", "To see it, enable `some_new_pass` in a run.", "some_new_pass"),
        ("LoRA fails", "compilation_config: enable_qk_norm_rope_fusion", "a compilation configuration"),
        ("LoRA fails", "A part is lost when it switches from reasoning to content.", "a reasoning parser"),
        ("LoRA fails", 'It is empty when "max_tokens" is less than 330.', "at which parameter of a request"),
        ("LoRA fails", "On L4, but on H100 machines we have not seen any of it.", "on H100 machines"),
        ("LoRA fails with batch invariance", "", "batch invariance"),
        ("LoRA fails at large scale", "", "a larger deployment"),
        ("LoRA fails", "It fails with EP>=32 on eight machines.", "a larger deployment"),
        ("LoRA fails", "vllm serve m --limit-mm-per-prompt image=4", "images, video or audio"),
    ],
)
def test_what_title_and_text_name_is_a_condition(title: str, text: str, reason: str | None) -> None:
    named = tuple(word for word in title.split() if "/" in word)
    given = case(title, version="0.7.3", models=named or ALIKE, titled_models=named)
    found = refine_fit(mine(), given, text, fit(mine(), given))
    assert reason is None or reason in found.reason, found
    assert reason is not None or found.answer == "yes"


def test_a_report_without_an_error_must_say_more_than_its_form() -> None:
    form = "### Your current environment\n\n### \U0001f41b Describe the bug\n\nSee https://example.com\n\n"
    said = "Every answer after the first one is cut at the same word, whatever the prompt says."
    given = case("LoRA loses words", models=ALIKE, error=None, kind="wrong_output", gpus=("H100",))
    before = fit(mine(), given)
    assert before.answer == "yes"
    assert refine_fit(mine(), given, form, before).reason == "the report says little"
    assert refine_fit(mine(), given, form + said, before).answer == "yes"


def test_a_card_in_the_title_is_none_of_its_architecture() -> None:
    given = case("LoRA crashes on H200", models=ALIKE, kind="crash", titled_gpus=("H200",))
    assert fit(mine(), given).answer == "unknown"
    assert fit(mine(MINE.replace("H100", "H200")), given).answer == "yes"


@pytest.mark.parametrize(
    ("title", "answer"),
    [
        ("LoRA fails with 4 GPUs", "yes"),
        ("LoRA fails with 8 GPUs", "unknown"),
        ("LoRA fails on 4x H100", "yes"),
        ("LoRA fails with TP=1", "no"),
    ],
)
def test_the_number_of_gpus_in_a_title_is_the_stack_s(title: str, answer: str) -> None:
    assert fit(mine(), case(title, models=ALIKE, gpus=("H100",))).answer == answer


@pytest.mark.parametrize(
    ("title", "text", "said"),
    [
        ("LoRA fails on very long prompts", "", "its title says \u201con very long prompts\u201d"),
        (
            "LoRA fails after two hundred requests",
            "",
            "its title says \u201cafter two hundred requests\u201d",
        ),
        ("LoRA fails", "It only happens when the cache is cold.", "the report says \u201conly happens"),
        ("LoRA fails on H100 with Qwen3-30B-A3B after upgrading to 0.21.0", "", None),
        ("LoRA fails with RuntimeError: no tensor with that name", "", None),
        ("LoRA fails with garbled answers when loading the model", "", None),
        ("LoRA fails when serving", "See https://example.com/when-vllm-is-a-library/MTP", None),
    ],
)
def test_a_clause_that_says_when_it_fails_is_a_condition(title: str, text: str, said: str | None) -> None:
    given = case(title, models=ALIKE)
    found = refine_fit(mine(), given, text, fit(mine(), given))
    assert (said in found.reason) if said else ("says" not in found.reason and found.answer == "yes")


def test_an_option_without_which_it_fails_rules_out_who_sets_it() -> None:
    for title in ("LoRA fails without `--enforce-eager`", "LoRA fails as --enforce-eager was not set"):
        given = case(title, models=ALIKE)
        assert fit(mine(), given).answer == "yes"
        assert fit(mine(f"{MINE} --enforce-eager"), given).answer == "no"


def test_weights_are_also_quantised_by_an_option() -> None:
    given = case("LoRA fails", gpus=("H100",), models=("Qwen3-30B-A3B-FP8",), kind="crash")
    assert fit(mine(f"{MINE} --quantization fp8"), given).answer == "yes"


def test_both_questions_make_the_answer() -> None:
    named = case("LoRA fails", models=ALIKE)
    assert affects(mine(), named).state == "affects"
    assert affects(mine(MINE.replace("0.21.0", "0.20.0")), named).state == "unknown"
    assert affects(mine(MINE.replace(" --enable-lora", "")), named).state == "not"
    assert affects(mine("0.21.0~H100"), named).state == "unknown"
    assert affects(mine(), case("LoRA fails", version="0.20.0", truth=FIXED)).state == "not"


@pytest.mark.parametrize(
    ("args", "answer"),
    [
        ("--reasoning-parser qwen3", "yes"),
        ("--reasoning-parser deepseek_r1", "no"),
        ("--tensor-parallel-size 4", "no"),
        ("", "unknown"),
    ],
)
def test_a_parser_that_the_title_names_must_be_the_stack_s(args: str, answer: str) -> None:
    stack = mine(f"0.21.0~H100~Qwen/Qwen3-30B-A3B{'~' * bool(args)}{args}")
    assert (
        fit(stack, case("Qwen3ReasoningParser leaks a tag", models=("Qwen/Qwen3-30B-A3B",))).answer == answer
    )


@pytest.mark.parametrize(
    ("model", "answer"), [("Qwen/Qwen3-30B-A3B", "yes"), ("someone/Qwen3-30B-A3B-packed", "unknown")]
)
def test_what_fails_to_load_depends_on_the_checkpoint(model: str, answer: str) -> None:
    given = case("load_weights of Qwen3-30B-A3B fails", models=(model,), titled_models=(model,))
    assert fit(mine(), given).answer == answer


@pytest.mark.parametrize(
    ("theirs", "answer"),
    [("Small-3.1-24B", "yes"), ("Small-4-24B", "unknown"), ("Small-24B", "yes")],
)
def test_a_model_of_another_generation_is_another(theirs: str, answer: str) -> None:
    stack = mine("0.21.0~H100~org/Small-3.1-24B-Instruct~--tensor-parallel-size 4")
    assert fit(stack, case(models=(theirs,), titled_models=(theirs,))).answer == answer


def test_torch_compile_needs_a_stack_that_compiles() -> None:
    given = case("torch.compile fails with Qwen3-30B-A3B", titled_models=("Qwen3-30B-A3B",))
    assert fit(mine(), given).answer == "yes"
    assert fit(mine(f"{MINE} --enforce-eager"), given).answer == "no"


def test_vendors_are_told_by_name() -> None:
    assert [vendor_of(name) for name in ("H100", "RTX 4090", "MI300X", "CPU", "Gaudi 2", "TPU v5e")] == [
        "NVIDIA",
        "NVIDIA",
        "AMD",
        "CPU",
        "Intel",
        "TPU",
    ]


@pytest.mark.parametrize(
    ("stack", "given", "missing"),
    [
        (
            "0.21.0~H100~--enable-lora",
            case("LoRA fails", models=("zai-org/GLM-4.7-Flash",)),
            "your model is not known",
        ),
        ("0.21.0~Qwen/Qwen3-8B", case("[ROCm] Qwen3 fails"), "your GPU is not known"),
        (
            "0.21.0~Qwen/Qwen3-8B",
            case("Qwen3-8B runs out of memory", gpus=("GB200",), models=("Qwen3-8B",), kind="oom"),
            "your GPU is not known",
        ),
    ],
)
def test_what_a_stack_leaves_out_is_unknown(stack: str, given: FailureCase, missing: str) -> None:
    found = affects(mine(stack), given)

    assert found.state == "unknown"
    assert missing in found.reason


@pytest.mark.parametrize(
    ("parsers", "answer"),
    [
        ("--tool-call-parser gemma4", "yes"),
        ("--tool-call-parser functiongemma --reasoning-parser gemma4", "no"),
    ],
)
def test_a_tool_parser_is_no_reasoning_parser(parsers: str, answer: str) -> None:
    stack = mine(f"0.21.0~H100~google/gemma-4-31B-it~{parsers} --enable-auto-tool-choice")
    assert fit(stack, case("Gemma4 tool parser leaks", models=("gemma-4-31B-it",))).answer == answer


def test_the_parser_of_the_report_s_run_decides_where_the_failure_is_of_tools() -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen3-8B~--tool-call-parser hermes --enable-auto-tool-choice")
    given = case("Tool calls fail", models=("Qwen/Qwen3-8B",))
    run = "vllm serve m --tool-call-parser qwen3_coder"
    assert refine_fit(stack, given, run, fit(stack, given)).answer == "unknown"
    assert refine_fit(stack, given, run.replace("qwen3_coder", "hermes"), fit(stack, given)).answer == "yes"


@pytest.mark.parametrize(("gpu", "answer"), [("MI300X", "yes"), ("MI355X", "unknown")])
def test_cards_of_two_generations_are_not_alike(gpu: str, answer: str) -> None:
    given = case(models=("Qwen/Qwen3-8B",), gpus=("MI325X",), kind="crash")
    assert fit(mine(f"0.21.0~{gpu}~Qwen/Qwen3-8B"), given).answer == answer


@pytest.mark.parametrize(
    ("title", "answer"), [("Tool calls fail", "yes"), ("Tool calls of 8B fail", "unknown")]
)
def test_a_size_in_the_title_counts_for_software_too(title: str, answer: str) -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen3-32B~--tool-call-parser hermes --enable-auto-tool-choice")
    assert fit(stack, case(title, models=("Qwen/Qwen3-8B",))).answer == answer


@pytest.mark.parametrize(
    ("stack", "given", "answer"),
    [
        ("0.21.0~Inferentia~--enable-lora", case("LoRA fails", gpus=("H100",)), "no"),
        ("0.5.0~H100~--speculative-model [ngram]", case("draft model fails"), "no"),
        ("0.5.0~H100~--speculative-model [ngram]", case("ngram fails", error=None), "unknown"),
        ("0.5.0~H100~--speculative-model a/b", case("draft model fails", span=SPAN), "yes"),
        ("0.21.0~H100~a/Phi-4-multimodal~", case("Phi-4-mini fails", titled_models=("Phi-4-mini",)), "no"),
        ("0.21.0~H100~--kv-cache-dtype fp8", case("FP8 KV cache fails", span=SPAN), "yes"),
        ("0.21.0~H100~a/b~--kv-cache-dtype fp8", case("FP8 weights fail", span=SPAN), "no"),
    ],
)
def test_a_part_is_not_taken_for_another(stack: str, given: FailureCase, answer: str) -> None:
    assert fit(mine(stack), given).answer == answer


def test_an_exception_is_told_with_the_card_it_was_seen_on() -> None:
    found = fit(mine(), case(gpus=("B200",), models=ALIKE, span=SPAN))
    assert (found.answer, found.reason) == ("unknown", "it was seen on B200, not on H100")


def test_several_gpus_of_a_run_decide_where_kernels_may() -> None:
    stack = mine("0.21.0~H100~Qwen/Qwen3-30B-A3B~--enable-lora --tool-call-parser hermes")
    for title, answer in (("LoRA fails", "unknown"), ("LoRA tool calls fail", "yes")):
        given = case(title, models=ALIKE)
        run = refine_fit(stack, given, "vllm serve x --tensor-parallel-size 8", fit(stack, given))
        assert run.answer == answer, (title, run)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It fails as soon as images are pruned (--video-pruning-rate above 0).", "--video-pruning-rate"),
        ("It fails as soon as images are pruned (`--video_pruning_rate`).", "--video-pruning-rate"),
        ("Started with --no-enable-prefix-caching, it gives nothing.", "--no-enable-prefix-caching"),
        ("Here --enable-lora is on.", None),
        ("The bench has --fancy-plots.", None),
        ("It listens on --port 9000.", None),
        ("```\nvllm serve m --enforce-eager\n```", None),
        ("vllm serve m \\\n  --seed 4", None),
    ],
)
def test_an_option_that_the_report_discusses_must_be_the_stack_s(text: str, reason: str | None) -> None:
    given = case("LoRA fails", models=ALIKE)
    found = refine_fit(mine(), given, text, fit(mine(), given))
    assert (found.answer == "yes") == (reason is None), found
    assert reason is None or reason in found.reason


_TRIED = Workaround(kind="flag", action="pass --enforce-eager", outcome="works")


def test_an_option_that_was_tried_is_no_condition() -> None:
    given = case("LoRA fails", models=ALIKE)
    tried = given.facts.model_copy(update={"workarounds": (_TRIED,)})
    text = "With --enforce-eager the same model runs."
    found = refine_fit(mine(), replace(given, facts=tried), text, fit(mine(), given))
    assert "--enforce-eager" not in found.reason


@pytest.mark.parametrize(("kind", "answer"), [("crash", "unknown"), ("oom", "unknown"), ("other", "yes")])
def test_a_failure_that_stops_without_a_known_error_may_have_any_cause(kind: str, answer: str) -> None:
    given = case("LoRA fails", kind=kind, error=None, models=ALIKE, gpus=("H100",))
    assert fit(mine(), given).answer == answer
    assert (
        fit(mine(), replace(given, facts=given.facts.model_copy(update={"regression": SPAN}))).answer == "yes"
    )


def test_servers_side_by_side_are_a_condition() -> None:
    given = case("LoRA fails", models=ALIKE)
    for text in ("I launch multiple models with two ports.", "It fails when running two instances here."):
        found = refine_fit(mine(), given, text, fit(mine(), given))
        assert "several servers" in found.reason, found


@pytest.mark.parametrize(
    ("args", "answer"), [("--tensor-parallel-size 2", "yes"), ("--pipeline-parallel-size 2", "no")]
)
def test_tensor_parallelism_is_none_of_the_other_kinds(args: str, answer: str) -> None:
    given = case("Qwen3-30B-A3B fails with tensor parallel", titled_models=ALIKE, models=ALIKE, span=SPAN)
    assert fit(mine(f"0.21.0~H100~Qwen/Qwen3-30B-A3B~{args}"), given).answer == answer


def test_checkpoints_for_long_contexts_are_others() -> None:
    given = case("Qwen2.5 1M fails", models=("Qwen2.5-7B-Instruct-1M",), span=SPAN)
    assert fit(mine("0.21.0~H100~Qwen/Qwen2.5-7B-Instruct~"), given).answer != "yes"
    assert fit(mine("0.21.0~H100~Qwen/Qwen2.5-7B-Instruct-1M~"), given).answer == "yes"


@pytest.mark.parametrize(("gpu", "answer"), [("H100", "unknown"), ("MI300X", "no")])
def test_an_error_of_nvidia_s_libraries_is_none_of_other_vendors(gpu: str, answer: str) -> None:
    error = ErrorFact(type="RuntimeError", message="CUDA driver error: invalid argument")
    given = case("LoRA fails", models=ALIKE, span=SPAN, error=error)
    assert fit(mine(f"0.21.0~{gpu}~Qwen/Qwen3-30B-A3B~--enable-lora"), given).answer == answer
