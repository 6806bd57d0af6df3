"""Since when it fails."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.prose.regression import find_regression
from tests.extract.saying import NUMBER, an_issue


def told(body: str, title: str = "EngineCore stops at startup") -> dict[str, Any]:
    regression, _ = find_regression(an_issue(body, title=title))
    return regression.model_dump(exclude_defaults=True) if regression else {}


@pytest.mark.parametrize(
    "said",
    [
        "Fine on 0.27.0, dies on 0.28.0.",
        "0.27.0 is fine; 0.28.0 crashes.",
        "It runs with v0.27.0 but not with v0.28.0.",
        "Good up to v0.27.0, bad from v0.28.0 on.",
        "After upgrading from 0.27.0 to 0.28.0 it hangs.",
        "Not reproducible on v0.27.0, always on v0.28.0.",
        "The regression came in between v0.27.0 and v0.28.0.",
        "Throughput is 18% lower on 0.28.0 than on 0.27.0.",
        "- Last working: vLLM v0.27.0\n- First failing: vLLM v0.28.0",
        "v0.27.0 works. v0.28.0 does not.",
        "0.28.0 crashes; using v0.27.0 the issue is gone.",
        "0.28.0 很慢，0.27.0 正常。",
        "Throughput regression from v0.27.0 to v0.28.0.",
        "A slowdown was seen between vLLM ROCm v0.27.0 and v0.28.0.",
        "Slow with 0.28.0(v0.27.0 was fine).",
        "After upgrading the image from vllm-openai:v0.27.0 to v0.28.0 the answers are empty.",
        "With the release of vllm 0.28.0 it no longer loads. It works fine with 0.27.0.",
        "When my vllm version is 0.27.0，can run successfully. 0.28.0 crashes.",
        "vLLM0.28.0 is about 10x slower than 0.27.0.",
        "On v0.27.0 I get much better throughput than on v0.28.0.",
    ],
)
def test_two_versions_make_a_range(said: str) -> None:
    assert told(said) == {"last_working": "0.27.0", "first_failing": "0.28.0"}


@pytest.mark.parametrize(
    "said",
    [
        "Answers are wrong with vLLM (>= v0.28.0).",
        "Serving it with version >=0.28.0 gives an error.",
        "The model fails to load on vLLM ≥ 0.28.0 here.",
    ],
)
def test_an_open_range_that_fails_begins_where_it_fails_first(said: str) -> None:
    assert told(said) == {"first_failing": "0.28.0"}


@pytest.mark.parametrize(
    "said",
    [
        "The error says that NVFP4 requires vLLM 0.28.0+.",
        "`pip install vllm>=0.28.0` fails.",
        "I run vllm>=0.28.0 with this model.",
        "The build of vllm 0.28.0+cu129 fails with numpy>=0.3.1.",
        "v0.28.0 and higher natively supports this model.",
    ],
)
def test_an_open_range_that_is_asked_for_fails_nowhere(said: str) -> None:
    assert told(said) == {}


def test_the_version_of_the_title_fails_if_another_works() -> None:
    assert told("It worked in 0.27.0.", "v0.28.0 raises a KeyError") == {
        "last_working": "0.27.0",
        "first_failing": "0.28.0",
    }


def test_a_rebuild_of_what_works_does_not_fail_beside_a_later_release() -> None:
    title = "0.27.0.post1 and 0.28.0 differ in speed"
    assert (
        told("It is slow since we upgraded from 0.27.0 to 0.28.0.", title=title)["first_failing"] == "0.28.0"
    )
    assert told("0.27.0 works.", title="0.27.0.post1 crashes")["first_failing"] == "0.27.0.post1"


def test_versions_without_a_patch_number_count_beside_others() -> None:
    assert told("It works with 0.27.1, but fails with 0.28 and 0.29.") == {
        "last_working": "0.27.1",
        "first_failing": "0.28",
        "still_failing": ("0.29",),
    }


def test_an_upgrade_that_does_not_cure_it_is_one_more_that_fails() -> None:
    assert told("I can reproduce the same error on v0.28.0.") == {"still_failing": ("0.28.0",)}


def test_several_versions_are_sorted_into_first_and_still() -> None:
    assert told("v0.19.0 is fast; v0.20.0, v0.21.0 and v0.26.0 are slow.") == {
        "last_working": "0.19.0",
        "first_failing": "0.20.0",
        "still_failing": ("0.21.0", "0.26.0"),
    }


@pytest.mark.parametrize(
    "said",
    [
        "vLLM version: v0.18.0",
        "It crashes on 0.18.0.",
        "torch 0.27.0 works, torch 0.28.0 fails.",
        "FlashInfer 0.6.7 works and 0.6.8 fails.",
        "--gpu-memory-utilization 0.9 works, 0.95 fails",
        "An autoregressive model fails.",
        "I get fixed results with vLLM 0.8.",
        "Should upgrade xformers from v0.0.30 to v0.0.31.",
        "The flashinfer upgrade from 0.6.6 to 0.6.7 is slow.",
        "Collecting ray (from pydantic<2->vllm==0.1.2)",
        "The recently updated vLLM (`v0.5.3.post1`) stops here with an error.",
    ],
)
def test_a_version_alone_is_no_regression(said: str) -> None:
    assert told(said) == {}


@pytest.mark.parametrize(
    ("said", "culprit"),
    [
        ("This regression was introduced by #36286.", "#36286"),
        ("Broken since #38123.", "#38123"),
        ("I think the bug started from https://github.com/vllm-project/vllm/pull/19168.", "#19168"),
        ("Bisected to 3f2c1ab9d0.", "3f2c1ab9d0"),
        ("#27563 broke the loading of MTP weights.", "#27563"),
        (
            "After merging https://github.com/vllm-project/vllm/pull/31000 this flag no longer works.",
            "#31000",
        ),
        ("Since  #31000 it cannot load the model.", "#31000"),
        ("After #31000 loading is much slower.", "#31000"),
        ("As I see it the **bug** starts in #31000.", "#31000"),
        ("#31000 is causing this error.", "#31000"),
    ],
)
def test_a_blamed_change_is_the_culprit(said: str, culprit: str) -> None:
    assert told(said) == {"culprit": culprit}


@pytest.mark.parametrize(
    "said",
    [
        "See #36286 for the same crash.",
        "The field was introduced in #36286.",
        f"Caused by #{NUMBER}.",
        "Since #36286 solved it.",
        "The decoder, available since #36286, is broken.",
        "After merging #36286, I tried it and got an error.",
    ],
)
def test_a_mentioned_change_is_no_culprit(said: str) -> None:
    assert "culprit" not in told(said)


def test_a_commit_can_be_the_last_that_works() -> None:
    assert told("Last working commit: 46f01a50ac") == {"last_working": "46f01a50ac"}


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("This is a regression from vLLM 0.27.0.", {"last_working": "0.27.0"}),
        ("The last release in which it works is `vllm==0.27.0`.", {"last_working": "0.27.0"}),
    ],
)
def test_one_end_of_the_range_is_kept_alone(said: str, wanted: dict[str, Any]) -> None:
    assert told(said) == wanted


def test_versions_parted_by_a_slash_are_each_read() -> None:
    said = told("It worked in vLLM 0.8.2. It crashes in vLLM 0.8.3/0.8.4 with the same error.")
    assert said["last_working"] == "0.8.2"
    assert said["first_failing"] == "0.8.3"
    assert said["still_failing"] == ("0.8.4",)


def test_a_version_with_a_build_s_name_behind_it_is_a_version() -> None:
    said = told(
        "It works fine with `vllm/vllm-openai:v0.8.2-aarch64`, but after upgrading to 0.8.3 it crashes."
    )
    assert (said["last_working"], said["first_failing"]) == ("0.8.2", "0.8.3")


def test_a_version_glued_to_a_name_is_read_whole() -> None:
    output = "It works on vllm0.12.0 image and it is broken on vllm0.13.0 since yesterday."
    assert told(output) == {"last_working": "0.12.0", "first_failing": "0.13.0"}


@pytest.mark.parametrize("said", ["It worked in 0.47.1 and fails in 0.49.1.", "From 11.2 to 13.0 it broke."])
def test_a_version_beyond_all_releases_is_none_of_ours(said: str) -> None:
    assert find_regression(an_issue(said))[0] is None


def test_of_spellings_of_one_version_the_fullest_is_told() -> None:
    both = told(
        "It ran with 0.27. After updating to vLLM 0.28.0 it hangs.", "Hang after upgrade to vLLM 0.28"
    )
    assert both == {"last_working": "0.27", "first_failing": "0.28.0"}


def test_the_title_s_only_version_does_not_work() -> None:
    assert told("It was fine when I used 0.28.0.", "vllm 0.28.0 has a severe problem") == {}


def test_still_failing_and_fixed_in_are_told_apart() -> None:
    assert told("The issue still exists as of v0.20.0.") == {"still_failing": ("0.20.0",)}
    assert told("It is fixed in v0.20.2.") == {"fixed_in": "0.20.2"}


@pytest.mark.parametrize("said", ["Tested under 0.8.3 and 0.8.4.", "I ran 0.8.3 and 0.8.4, both fail."])
def test_the_releases_that_a_reporter_ran_are_no_range(said: str) -> None:
    assert told(said) == {}


def test_an_untagged_build_is_kept_and_never_ordered_against_a_release() -> None:
    both = told("vLLM 0.9.0 works, vLLM 0.1.dev3151+g31c7178 fails.")
    assert both == {"last_working": "0.9.0", "first_failing": "0.1.dev3151+g31c7178"}
    placed = told("It fails with vLLM 0.1.dev3151+g31c7178. It fails with 0.10.0. It worked in 0.9.0.")
    assert placed["first_failing"] == "0.10.0"


@pytest.mark.parametrize(
    ("place", "culprit"), [("acme/vllm/pull/9550", "#9550"), ("acme/kernels/pull/9550", None)]
)
def test_a_change_of_another_repository_is_not_blamed(place: str, culprit: str | None) -> None:
    found = told(f"After https://github.com/{place}, building from source fails for me on H100.")
    assert found.get("culprit") == culprit


def test_the_days_of_nightly_builds_are_a_range() -> None:
    report = (
        "Nightly results of this group. **Current streak start:** 2026-03-12 **First failure in 60d window:** 2026-02-20 "
        "**Last successful nightly:** 2026-03-11 **Latest nightly date:** 2026-03-19"
    )
    assert told(report) == {"last_working": "2026-03-11", "first_failing": "2026-03-12"}
    assert told("It fails since 2026-03-12, it worked on 2026-03-11.") == {}


@pytest.mark.parametrize("name", ["v.0.13.0", "V0.13.0", "vllm_0.13.0_20251103", "vLLM0.13.0"])
def test_a_version_is_read_in_every_spelling(name: str) -> None:
    assert told(f"{name} works fine, but after upgrading to 0.14.0 it crashes.")["last_working"] == "0.13.0"


def test_a_version_right_behind_the_name_is_read_whole_and_cuda_s_is_none() -> None:
    range_ = told("It breaks on vllm0.13.0 with CUDA 13.0. No issue was seen in vllm0.11.2 and vllm0.12.0.")
    assert range_["last_working"] == "0.12.0"
    assert range_.get("first_failing", "0.13.0") == "0.13.0"
    assert not range_.get("still_failing")


PIECES = st.sampled_from(
    [
        "0.27.0 ",
        "v0.28 ",
        "works in ",
        "fails on ",
        "since ",
        "#12345 ",
        "introduced by ",
        "\n",
        "->",
        "\r\n",
        "，",
        "rc1",
    ]
)


@given(st.lists(PIECES | st.text(max_size=10), max_size=25).map("".join))
def test_every_version_is_a_quote_whatever_the_text(body: str) -> None:
    document = an_issue(body)
    regression, evidence = find_regression(document)
    assert (regression is None) == (not evidence)
    for item in evidence:
        assert document.sources[item.source][item.start : item.end] == item.quote
