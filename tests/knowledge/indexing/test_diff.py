"""What a change of the rules alters, told of readings of our own."""

from __future__ import annotations

from typing import Any

import pytest

from app.extract.facts import ErrorFact, Evidence, Facts, Fix, Signature, Workaround
from app.knowledge.indexing.diff import (
    EXAMPLE_CHARS,
    LEAD_CHARS,
    Example,
    FieldDiff,
    ReadingDiff,
    Tally,
    Values,
    changes_between,
    diffs_text,
    values_of,
)
from app.store.records import LinkRecord
from tests.samples import REPO


def read_as(*, links: tuple[LinkRecord, ...] = (), fault: str | None = None, **fields: Any) -> Values:
    facts = Facts(number=1, **fields)
    return values_of(facts.model_dump(mode="json", exclude={"evidence"}), facts.evidence, links, fault)


def a_quote(field: str = "gpus", value: str = "H100", **fields: Any) -> Evidence:
    told = {
        "quote": value,
        "source": "body",
        "start": 0,
        "end": len(value),
        "rule": "gpu.name",
        "confidence": 0.9,
    }
    return Evidence(field=field, value=value, **{**told, **fields})


def diff_of(*pairs: tuple[Values, Values], examples: int = 3) -> ReadingDiff:
    tally = Tally(examples)
    for number, (before, after) in enumerate(pairs, 1):
        tally.add(number, before, after)
    return tally.result("new", {"old": len(pairs)}, never_read=0)


def field_of(diff: ReadingDiff, name: str) -> FieldDiff:
    return next(item for item in diff.fields if item.field == name)


def counts(item: FieldDiff) -> tuple[int, int, int, int, int]:
    return item.before, item.after, item.added, item.removed, item.changed


def shown(before: Values, after: Values, name: str) -> tuple[str, str]:
    (example,) = field_of(diff_of((before, after)), name).examples
    return example.before, example.after


# Fields


def test_the_same_reading_has_no_changes() -> None:
    same = read_as(gpus=("H100",), versions={"vllm": "0.9.0"}, evidence=(a_quote(),))

    assert changes_between(same, same) == {}


def test_an_empty_value_is_none() -> None:
    assert read_as().of == {}
    assert read_as(is_failure=True, failure_kind="oom", gpu_count=2).of == {
        "is_failure": True,
        "failure_kind": "oom",
        "gpu_count": 2,
    }


def test_values_with_keys_are_compared_key_by_key() -> None:
    before = read_as(
        error=ErrorFact(type="ValueError", message="no"),
        backends={"moe": ("TRITON",)},
        versions={"torch": "2.7.0"},
    )
    after = read_as(
        error=ErrorFact(type="KeyError", message="no"),
        backends={"attention": ("XFORMERS",)},
        versions={"torch": "2.7.1"},
    )

    assert changes_between(before, after) == {
        "error.type": ("ValueError", "KeyError"),
        "backends.moe": (["TRITON"], None),
        "backends.attention": (None, ["XFORMERS"]),
        "versions.torch": ("2.7.0", "2.7.1"),
    }


def test_links_and_faults_are_fields_too() -> None:
    link = LinkRecord(REPO, 7, "fixes", "a closing keyword in the pull request")

    assert changes_between(read_as(), read_as(links=(link,))) == {"links": (None, [f"fixes {REPO}#7"])}
    assert changes_between(read_as(), values_of(None, (), (), "KeyError")) == {"fault": (None, "KeyError")}


def test_facts_of_another_shape_are_compared_with_what_they_have() -> None:
    old = values_of({"number": 1, "gpus": ["H100"], "accelerator": "H100"}, (), (), None)

    assert changes_between(old, read_as(gpus=("H100",))) == {"accelerator": ("H100", None)}


@pytest.mark.parametrize(
    "other", [{"rule": "gpu.dump"}, {"start": 4, "end": 8}, {"source": "comment:5"}, {"confidence": 0.8}]
)
def test_evidence_is_another_where_the_value_stays(other: dict[str, Any]) -> None:
    before = read_as(gpus=("H100",), evidence=(a_quote(),))
    after = read_as(gpus=("H100",), evidence=(a_quote(**other),))

    assert list(changes_between(before, after)) == ["evidence"]


def test_evidence_of_a_value_that_is_another_is_not_told_twice() -> None:
    before = read_as(gpus=("H100",), evidence=(a_quote(),))
    after = read_as(gpus=("A100",), evidence=(a_quote(value="A100"),))

    assert list(changes_between(before, after)) == ["gpus"]


# Counts


def test_what_is_added_removed_and_changed_is_counted() -> None:
    none, one, other = read_as(), read_as(gpus=("H100",)), read_as(gpus=("A100",))
    diff = diff_of((none, one), (one, none), (one, other), (one, one), (none, none), (none, one))

    assert counts(field_of(diff, "gpus")) == (3, 4, 2, 1, 1)
    assert (diff.compared, diff.differing) == (6, 4)


def test_evidence_adds_up_when_it_comes_and_goes_with_its_values() -> None:
    none, one = read_as(), read_as(gpus=("H100",), evidence=(a_quote(),))
    other = read_as(gpus=("H100",), evidence=(a_quote(rule="gpu.dump"),))
    diff = diff_of((none, one), (one, none), (one, none), (one, other), (one, one))

    assert counts(field_of(diff, "evidence")) == (4, 3, 1, 2, 1)


def test_fields_come_in_the_order_of_the_facts_and_only_those_that_any_issue_has() -> None:
    full = read_as(
        summary="It fails.",
        gpus=("H100",),
        fix=Fix(state="fixed", pr="#7"),
        versions={"vllm": "0.9.0", "cuda": "12.8"},
        is_failure=True,
        evidence=(a_quote(),),
        links=(LinkRecord(REPO, 7, "mentions", ""),),
        fault="KeyError",
    )

    assert [item.field for item in diff_of((full, full)).fields] == [
        "is_failure",
        "gpus",
        "versions.cuda",
        "versions.vllm",
        "fix.pr",
        "fix.state",
        "summary",
        "links",
        "fault",
        "evidence",
    ]


# Examples


def test_each_kind_of_change_has_its_examples() -> None:
    none, one, other = read_as(), read_as(gpus=("H100",)), read_as(gpus=("A100", "L40S"))
    diff = diff_of((one, other), (one, none), (none, one))

    assert field_of(diff, "gpus").examples == (
        Example(number=3, kind="added", before="", after="H100"),
        Example(number=2, kind="removed", before="H100", after=""),
        Example(number=1, kind="changed", before="H100", after="A100, L40S"),
    )


def test_so_many_examples_are_kept_and_the_same_ones_in_any_order() -> None:
    pair = (read_as(), read_as(gpus=("H100",)))
    numbers = range(1, 500)
    told = []
    for order in (numbers, reversed(numbers)):
        tally = Tally(4)
        for number in order:
            tally.add(number, *pair)
        told.append([item.number for item in field_of(tally.result("", {}, never_read=0), "gpus").examples])

    assert len(told[0]) == 4
    assert told[0] == told[1]
    assert max(told[0]) > 100


def test_without_examples_there_are_counts() -> None:
    diff = diff_of((read_as(), read_as(gpus=("H100",))), examples=0)

    assert (field_of(diff, "gpus").added, field_of(diff, "gpus").examples) == (1, ())


def test_long_texts_are_cut_to_where_they_differ() -> None:
    same = "the kernel refuses " * 20
    before, after = shown(read_as(summary=same + "x" * 300), read_as(summary=same + "y" * 300), "summary")

    assert (before[0], before[-2:], before.index("x")) == ("…", "x…", LEAD_CHARS + 1)
    assert max(len(before), len(after)) <= EXAMPLE_CHARS + 1


def test_the_end_that_only_one_has_is_shown() -> None:
    same = "the kernel refuses " * 20
    before, after = shown(read_as(summary=same + "now"), read_as(summary=same + "nowhere"), "summary")

    assert after == before + "here"


def test_long_lists_show_the_items_that_differ() -> None:
    many = tuple(f"org/model-{n}b-instruct" for n in range(12))

    assert shown(read_as(models=(*many, "a/old")), read_as(models=(*many, "a/new")), "models") == (
        "a/old",
        "a/new",
    )


def test_remedies_and_signatures_are_told_in_words() -> None:
    remedy = Workaround(action="--enforce-eager", kind="flag", outcome="works")
    before, after = shown(
        read_as(workarounds=(remedy,)),
        read_as(workarounds=(remedy.model_copy(update={"outcome": "fails"}),)),
        "workarounds",
    )
    signature = Signature(id="s1-aaaaaaaaaaaa", text="KeyError | <id>")

    assert before == "--enforce-eager · reporter · flag · works · body"
    assert after == "--enforce-eager · reporter · flag · fails · body"
    assert (
        shown(read_as(), read_as(signatures=(signature,)), "signatures")[1]
        == "s1-aaaaaaaaaaaa · root · KeyError | <id>"
    )


def test_an_example_is_one_line_without_secrets() -> None:
    token = "hf_" + "aB3dE6gH9j" * 4
    _, after = shown(read_as(), read_as(summary=f"It\n\tsays {token}\x1b[0m."), "summary")

    assert token not in after
    assert after.startswith("It says ")
    assert after.isprintable()


# As text


def test_the_text_has_a_table_and_the_examples() -> None:
    long = "w" * 60
    diff = diff_of(
        (read_as(gpus=("H100",)), read_as(gpus=("H200",))),
        (read_as(), read_as(gpus=("A100",))),
        (read_as(summary=f"{long}1"), read_as(summary=f"{long}2")),
    )
    text = diffs_text({REPO: diff.model_copy(update={"never_read": 4})})

    assert text.splitlines() == [
        f"{REPO}: 3 of 3 issues and pull requests would be read otherwise",
        "rules stored: old (3); now: new",
        "4 more were never read and are not compared",
        "",
        "issues with a value   before    after    added  removed  changed",
        "gpus                       1        2        1        ·        1",
        "summary                    1        1        ·        ·        1",
        "",
        "gpus: 1 added, 1 changed",
        "  + #2      A100",
        "  ~ #1      H100 -> H200",
        "",
        "summary: 1 changed",
        f"  ~ #3      {long}1",
        f"         -> {long}2",
    ]


def test_repositories_stand_one_below_the_other() -> None:
    text = diffs_text({REPO: diff_of(), "acme/engine": diff_of()})

    assert [line.partition(":")[0] for line in text.splitlines()] == [
        REPO,
        "rules stored",
        "",
        "acme/engine",
        "rules stored",
    ]
