"""Models being served when it fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.fields.models import find_models, name_in
from app.extract.fields.settings import read_settings
from app.extract.reader import read_log
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText


def models(body: str, title: str = "") -> list[str]:
    document = read_document(IssueText(1, title, body))
    return [e.value for e in find_models(document, read_settings(document))]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/data/models/Qwen3-8B/", "Qwen3-8B"),
        ("Qwen3-8B", "Qwen3-8B"),
        ("models/Qwen3-8B", "Qwen3-8B"),
        (
            "/cache/models--Qwen--Qwen3-8B/snapshots/0e9e39f249a16976918f6564b8830bc894c89659/",
            "models--Qwen--Qwen3-8B",
        ),
        ("/kaggle/input/gemma-2-9b/transformers/default/1", "gemma-2-9b"),
        ("https://huggingface.co/Qwen/Qwen3-8B", "Qwen3-8B"),
        ("/models/x-Q4_K_M.gguf", "x-Q4_K_M.gguf"),
        ("/path/to/Qwen3-8B", "Qwen3-8B"),
    ],
)
def test_a_value_gives_its_telling_part(value: str, name: str) -> None:
    found = name_in(value)
    assert found is not None
    assert found[0] == name
    assert value[found[1] :].startswith(name)


@pytest.mark.parametrize(
    "value",
    ["/model", "$MODEL", "<model>", "${model_path}", "vllm", "/path/to/model", "/path/to/weights", ""],
)
def test_placeholders_name_nothing(value: str) -> None:
    assert name_in(value) is None


def test_a_command_is_believed_before_the_log_and_the_prose() -> None:
    body = "Gemma-3-27b works.\n```\nvllm serve Qwen/Qwen3-8B\n```\nwith config: model='/apps/svr/model-1',"
    assert models(body) == ["Qwen/Qwen3-8B"]


def test_draft_models_are_loaded_too() -> None:
    assert models("vllm serve org/big-70b --speculative-model org/small-1b") == [
        "org/big-70b",
        "org/small-1b",
    ]
    command = """vllm serve org/big-70b --speculative-config '{"method": "eagle3", "model": "org/head-1b"}'"""
    assert models(command) == ["org/big-70b", "org/head-1b"]


def test_an_anonymous_mount_gives_way_to_the_title_or_the_served_name() -> None:
    command = "vllm serve /model --served-model-name Qwen3-8B"
    assert models(command) == ["Qwen3-8B"]
    assert models("vllm serve /model", "Qwen/Qwen3-14B fails") == ["Qwen/Qwen3-14B"]


def test_a_title_s_model_is_spelled_as_it_is_served() -> None:
    command = "vllm serve /model --served-model-name DeepSeek-R1"
    assert models(command, "Cannot deserialize, 16 GPUs, DeepSeek R1") == ["DeepSeek-R1"]


@pytest.mark.parametrize("value", ["/usr/local/model/llm", "gpt-4-turbo"])
def test_folders_and_names_of_another_service_lead_further_up_or_nowhere(value: str) -> None:
    assert name_in(value) in (None, ("data", 1))


def test_words_without_a_number_name_no_second_model() -> None:
    assert models("vllm serve org/a-7b\n\n" + "curl x --model rag") == ["org/a-7b"]


def test_a_served_path_is_the_model_s_own() -> None:
    assert models("model='/m/gemma-2b', served_model_name='/m/gemma-2b'") == ["gemma-2b"]


def test_an_address_on_a_hub_needs_no_digit() -> None:
    assert models("Loading [it](https://huggingface.co/bigcode/octocoder) fails") == ["bigcode/octocoder"]


@pytest.mark.parametrize(
    ("title", "named"),
    [
        ("command-r7b stops", "CohereForAI/c4ai-command-r7b-12-2024"),
        ("llama3.2 vision instruct stops", "meta-llama/Llama-3.2-11B-Vision-Instruct"),
    ],
)
def test_a_title_is_completed_by_an_id_with_more_words(title: str, named: str) -> None:
    assert models(f"I tried {named} today.", title) == [named]


def test_a_title_is_completed_from_the_body() -> None:
    assert models("Runs Qwen/Qwen3-Next-80B-A3B-Instruct.", "Crash with Qwen3-Next-80B") == [
        "Qwen/Qwen3-Next-80B-A3B-Instruct"
    ]


def test_a_stated_line_is_read() -> None:
    assert models("Environment\n\n- **Model**: DeepSeek-R1-0528-FP4 (NVFP4)\n") == ["DeepSeek-R1-0528-FP4"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("It stops with Mixtral 8x22B here.", "Mixtral 8x22B"),
        ("We serve llama3.1 405b.", "llama3.1 405b"),
        ("We serve Llama 3.3 70B Instruct.", "Llama 3.3 70B Instruct"),
        ("I use Falcon 40B.", "Falcon 40B"),
        ("deepseek-coder-v2-lite-instruct stops.", "deepseek-coder-v2-lite-instruct"),
        ("QwQ-32B-AWQ large outputs stop.", "QwQ-32B-AWQ"),
        ("From https://huggingface.co/someone/tiny-3b it loads.", "someone/tiny-3b"),
        ("I run someone/Mixtral-8x7B-AWQ.", "someone/Mixtral-8x7B-AWQ"),
    ],
)
def test_a_name_in_prose_is_read_whole(text: str, name: str) -> None:
    assert models(text) == [name]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('LLM("org/m-7b", dtype="half")', "org/m-7b"),
        ('AsyncEngineArgs(\n    "org/m-7b")', "org/m-7b"),
        ("config: model=‘org/m-7b’,", "org/m-7b"),
    ],
)
def test_a_model_is_read_however_it_is_given(body: str, name: str) -> None:
    assert models(f"```\n{body}\n```") == [name]


def test_the_word_after_a_command_s_name_in_prose_is_no_model() -> None:
    assert models("I start vllm serve using docker and it stops.") == []


def test_a_model_taken_out_by_a_comment_is_not_served() -> None:
    assert models('```\n# llm = LLM(model="org/old-7b")\nllm = LLM(model="org/new-7b")\n```') == [
        "org/new-7b"
    ]


def test_a_family_s_name_gives_way_to_an_id_and_to_a_path() -> None:
    assert models("Loading google/gemma-3-12b-it stops.", "gemma3 stops") == ["google/gemma-3-12b-it"]
    assert models('llm = LLM(model="./out/tuned_model")', "LLama2 cannot be loaded") == ["tuned_model"]
    assert models("Nothing else is said.", "gemma3 stops") == ["gemma3"]


def test_a_served_name_without_a_family_gives_way_to_the_author_s_words() -> None:
    body = "For a Mixtral 8x22B we run\n```\nvllm serve $M --served-model-name 8x22_ours\n```\n"
    assert models(body) == ["Mixtral 8x22B"]


def test_a_wish_serves_nothing_unless_it_failed() -> None:
    assert models("Please.", "[New Model]: Llama-9-70B") == []
    assert models("ValueError: unknown architecture", "[Feature]: Llama-9-70B") == ["Llama-9-70B"]
    assert models("vllm serve org/m-7b", "[Feature]: a flag") == ["org/m-7b"]


@pytest.mark.parametrize(
    "text",
    [
        "Model name:    13th Gen Intel(R) Core(TM)",
        "Qwen2_5_VLForSequenceClassification",
        "test_a[gemma3-test_case91]",
    ],
)
def test_processors_classes_and_tests_are_no_models(text: str) -> None:
    assert models(text) == []


@pytest.mark.parametrize(
    "text", ["KeyError in Phi3ForCausalLM", "a step 3 of 5", "edit qwen2_5_vl.py", "vllm serve command fails"]
)
def test_classes_files_and_words_are_no_models(text: str) -> None:
    assert models(text, text) == []


@given(
    st.lists(
        st.sampled_from([*list("/-.~$ \n\"'é7b"), "--model ", "Qwen/Qwen3-8B", "model=", "vllm serve "]),
        max_size=60,
    ).map("".join)
)
def test_quotes_equal_their_spans(text: str) -> None:
    document = read_document(IssueText(1, text, text))
    for evidence in find_models(document, read_settings(document)):
        assert (
            document.sources[evidence.source][evidence.start : evidence.end]
            == evidence.quote
            == evidence.value
        )


def test_any_organisation_counts_after_the_word_model() -> None:
    assert models("Getting the model `acme-lab/tiny-3b` from the hub") == ["acme-lab/tiny-3b"]


def test_the_last_word_of_a_sentence_about_a_command_is_no_model() -> None:
    log = "vllm: error: unrecognized arguments: --task embed\n\nHint: --task is not a vllm serve option. Use --runner."

    assert read_log(log).surroundings.models == ()


@pytest.mark.parametrize(
    "body",
    [
        "docker run --gpus all vllm/vllm-openai:v0.21.0 /model/Qwen3-8B --port 80",
        "docker run --gpus all vllm/vllm-openai:latest \\\n  /model/Qwen3-8B --port 80",
        "args:\n  - --model\n  - /model/Qwen3-8B\n  - --port\n  - '80'",
        'args:\n  - "--model"\n  - "/model/Qwen3-8B"',
        "args: - --model - /model/Qwen3-8B - --port - 80",
        "vllm serve /path/to/Qwen3-8B",
    ],
)
def test_a_model_behind_the_image_or_in_the_next_item_of_a_list_is_read(body: str) -> None:
    assert models(body) == ["Qwen3-8B"]


def test_an_item_of_a_list_is_no_value_where_it_is_a_flag() -> None:
    assert models("args:\n  - --model\n  - --port") == []


def test_a_path_that_is_made_up_gives_way_to_the_title() -> None:
    body = "vllm serve /path/to/Qwen3-8B --port 80"
    assert models(body, "[Bug]: Qwen/Qwen3-8B-FP8 stops") == ["Qwen/Qwen3-8B-FP8"]


@pytest.mark.parametrize("title", ["[Bug]: GPT-OSS stops", "[Bug]: stops (gpt-oss, streaming)"])
def test_a_name_without_a_number_counts_in_a_title_that_names_no_other(title: str) -> None:
    assert [name.lower() for name in models("", title)] == ["gpt-oss"]
    assert models("vllm serve openai/gpt-oss-20b", title) == ["openai/gpt-oss-20b"]


def test_a_title_without_a_size_is_completed_by_the_author_s_words() -> None:
    body = "I load qwen3-8b on the second card. Qwen2-VL-7B-Instruct answers with commas."
    assert models(body, "[Bug]: Qwen2-VL answers with commas") == ["Qwen2-VL-7B-Instruct"]


def test_the_commands_of_a_proposal_are_examples() -> None:
    assert models("```\nvllm serve Qwen/Qwen3-8B\n```", "[RFC]: a new executor") == []
    assert models("```\nvllm serve Qwen/Qwen3-8B\n```", "[Bug]: stops") == ["Qwen/Qwen3-8B"]


def test_models_that_are_enumerated_are_all_read() -> None:
    body = "Loading Qwen3-8B, gemma-3-4b-it or `gemma-3-27b-it` stops. Llama-3-8B works."
    assert models(body) == ["Qwen3-8B", "gemma-3-4b-it", "gemma-3-27b-it"]


def test_the_next_option_is_no_part_of_a_name() -> None:
    found = name_in("meta-llama/Meta-Llama-3-8B-Instruct--host")
    assert found is not None
    assert found[0] == "meta-llama/Meta-Llama-3-8B-Instruct"
