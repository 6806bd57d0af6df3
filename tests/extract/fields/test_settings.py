"""Flags, keyword arguments, dumps and variables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.fields.settings import normalise_name, read_settings
from app.extract.text.blocks import read_log_document


def settings(text: str) -> list[tuple[str, str, str]]:
    return [(s.name, s.value, s.origin) for s in read_settings(read_log_document(text))]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("vllm serve org/m-7b --tensor-parallel-size 4", ("tensor-parallel-size", "4", "command")),
        ("vllm serve org/m-7b --tensor_parallel_size=4", ("tensor-parallel-size", "4", "command")),
        ("vllm serve org/m-7b -tp 4", ("tensor-parallel-size", "4", "command")),
        ("vllm serve org/m-7b --enforce-eager -q fp8", ("quantization", "fp8", "command")),
        ("python -m vllm.x \\\n  --model \\\n  org/m-7b \\\n", ("model", "org/m-7b", "command")),
        ("vllm serve org/m-7b", ("model", "org/m-7b", "command")),
        ('cmd = ["vllm", "serve", "org/m-7b", "--dtype", "half"]', ("dtype", "half", "command")),
        (
            '--speculative-config \'{"method": "mtp"}\'',
            ("speculative-config", '{"method": "mtp"}', "command"),
        ),
        ('LLM(model="org/m-7b", quantization="awq")', ("quantization", "awq", "keyword")),
        (
            "non-default args: {'model': 'org/m-7b', 'quantization': 'fp8'}",
            ("quantization", "fp8", "nondefault"),
        ),
        ("args: Namespace(model='org/m-7b', kv_cache_dtype='fp8')", ("kv-cache-dtype", "fp8", "namespace")),
        ("engine (v0.6.3) with config: model='m-7b', quantization=awq,", ("quantization", "awq", "config")),
        ("export VLLM_USE_V1=0", ("VLLM_USE_V1", "0", "variable")),
        (
            'os.environ["VLLM_ATTENTION_BACKEND"] = "FLASHINFER"',
            ("VLLM_ATTENTION_BACKEND", "FLASHINFER", "variable"),
        ),
        ('- name: VLLM_USE_V1\n  value: "1"', ("VLLM_USE_V1", "1", "variable")),
    ],
)
def test_a_setting_is_read_however_it_is_written(text: str, wanted: tuple[str, str, str]) -> None:
    assert wanted in settings(text)


def test_a_switch_takes_no_value() -> None:
    assert ("trust-remote-code", "", "command") in settings("vllm serve m --trust-remote-code true-story")
    assert ("no-enable-prefix-caching", "", "command") in settings("add `--no-enable-prefix-caching` here")


def test_a_flag_at_a_line_end_does_not_take_the_next_line() -> None:
    assert ("quantization", "", "command") in settings("try --quantization\nINFO the log goes on")


@pytest.mark.parametrize(
    "text", ['# model="org/m-7b"', 'x = 1\n#llm = LLM(model="org/m-7b")', '14    # model="org/m-7b"']
)
def test_what_a_comment_takes_out_is_not_set(text: str) -> None:
    assert not [s for s in settings(text) if s[0] == "model"]


def test_the_first_argument_of_an_engine_is_its_model() -> None:
    assert ("model", "org/m-7b", "keyword") in settings('LLM("org/m-7b", dtype="half")')


def test_a_shell_s_operator_is_no_value() -> None:
    assert ("quantization", "", "command") in settings("vllm serve m --quantization && curl x")


def test_engine_arguments_are_a_dump() -> None:
    assert settings("Engine args: AsyncEngineArgs(model='org/m-7b')") == [("model", "org/m-7b", "namespace")]


def test_only_dumps_are_not_chosen() -> None:
    found = read_settings(read_log_document("Namespace(model='a/b-7b')\nLLM(model='a/b-7b')"))
    assert [s.is_chosen for s in found if s.name == "model"] == [False, True]


def test_none_in_a_dump_is_no_value() -> None:
    assert not [s for s in settings("Namespace(quantization=None)") if s[0] == "quantization"]


def test_a_program_passing_its_own_variables_sets_nothing() -> None:
    assert settings("engine = Engine(model=args.model, dtype=self.dtype)") == []


def test_names_have_one_form() -> None:
    assert normalise_name("--tensor_parallel_size") == normalise_name("-tp") == "tensor-parallel-size"


@given(
    st.lists(
        st.sampled_from([*list("-- =\"'{}[]()\\\n\r\t,abé1"), "--model", "VLLM_X=", "model="]), max_size=60
    ).map("".join)
)
def test_nothing_throws_and_spans_hold_their_values(text: str) -> None:
    document = read_log_document(text)
    for setting in read_settings(document):
        source, start, end = setting.span
        assert setting.value in ("", document.sources[source][start:end])
