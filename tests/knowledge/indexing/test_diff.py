"""What a change of the rules would alter, in values, examples and text."""

from __future__ import annotations

from typing import Any

from app.extract.facts import ErrorFact, Facts, Fix, Signature, Workaround
from app.knowledge.indexing.diff import (
    EXAMPLE_CHARS,
    LEAD_CHARS,
    ChangeExample,
    FieldDiff,
    ReadingDiff,
    change_of,
    diffs_text,
    values_of,
)
from app.store.records import LinkRecord
from tests.samples import REPO


def read_as(*, links: tuple[LinkRecord, ...] = (), fault: str | None = None, **fields: Any) -> dict[str, Any]:
    facts = Facts(number=1, **fields)
    return values_of(facts.model_dump(mode="json", exclude={"evidence"}), links, fault)


def shown(before: dict[str, Any], after: dict[str, Any], name: str) -> tuple[str, str]:
    example = change_of(1, before.get(name), after.get(name))
    assert example is not None
    return example.before, example.after


# Values


def test_an_empty_value_is_none() -> None:
    assert read_as() == {}
    assert read_as(is_failure=True, failure_kind="oom", gpu_count=2) == {
        "is_failure": True,
        "failure_kind": "oom",
        "gpu_count": 2,
    }


def test_values_with_keys_are_compared_key_by_key() -> None:
    assert read_as(
        error=ErrorFact(type="ValueError", message="no"),
        backends={"moe": ("TRITON",)},
        versions={"torch": "2.7.0"},
        fix=Fix(state="fixed", pr="#7"),
    ) == {
        "error.type": "ValueError",
        "error.message": "no",
        "backends.moe": ["TRITON"],
        "versions.torch": "2.7.0",
        "fix.state": "fixed",
        "fix.pr": 7,
        "fix.pull_request": "#7",
    }


def test_links_and_faults_are_fields_too() -> None:
    link = LinkRecord(REPO, 7, "fixes", "a closing keyword in the pull request")

    assert read_as(links=(link,)) == {"links": [f"fixes {REPO}#7"]}
    assert values_of(None, (), "KeyError") == {"fault": "KeyError"}


def test_facts_of_another_shape_are_compared_with_what_they_have() -> None:
    old = values_of({"number": 1, "gpus": ["H100"], "accelerator": "H100"}, (), None)

    assert old == {"gpus": ["H100"], "accelerator": "H100"}


# Examples


def test_a_change_is_an_addition_a_removal_or_another_value() -> None:
    assert change_of(1, ["H100"], ["H100"]) is None
    assert change_of(3, None, ["H100"]) == ChangeExample(number=3, kind="added", before="", after="H100")
    assert change_of(2, ["H100"], None) == ChangeExample(number=2, kind="removed", before="H100", after="")
    assert change_of(1, ["H100"], ["A100", "L40S"]) == ChangeExample(
        number=1, kind="changed", before="H100", after="A100, L40S"
    )


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


def test_remedies_and_signatures_are_given_in_words() -> None:
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


def a_diff(*fields: FieldDiff) -> ReadingDiff:
    return ReadingDiff(
        rules="new", stored_rules={"old": 3}, compared=3, differing=3, never_read=4, fields=fields
    )


def test_the_text_has_a_table_and_the_examples() -> None:
    long = "w" * 60
    added = ChangeExample(number=2, kind="added", before="", after="A100")
    changed = ChangeExample(number=1, kind="changed", before="H100", after="H200")
    summary = ChangeExample(number=3, kind="changed", before=f"{long}1", after=f"{long}2")
    gpus = FieldDiff(
        field="gpus", before=1, after=2, added=1, removed=0, changed=1, examples=(added, changed)
    )
    text = diffs_text(
        {
            REPO: a_diff(
                gpus,
                FieldDiff(
                    field="summary", before=1, after=1, added=0, removed=0, changed=1, examples=(summary,)
                ),
            )
        }
    )

    assert text.splitlines() == [
        f"{REPO}: 3 of 3 issues and pull requests would be read otherwise",
        "rules stored: old (3); now: new",
        "4 more were never read and are not compared",
        "issues with a value   before    after    added  removed  changed",
        "gpus                       1        2        1        0        1",
        "summary                    1        1        0        0        1",
        "+ gpus #2 A100",
        "~ gpus #1 H100 -> H200",
        f"~ summary #3 {long}1 -> {long}2",
    ]


def test_repositories_stand_one_below_the_other() -> None:
    text = diffs_text({REPO: a_diff(), "acme/engine": a_diff()})

    assert [line.partition(":")[0] for line in text.splitlines() if ": 3 of" in line] == [REPO, "acme/engine"]
