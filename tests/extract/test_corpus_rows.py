"""Over the corpus: what is no version, no model and no error of a failure stays out of the facts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from app.extract.reader import read_issue
from app.extract.text.claims import LAST_MINOR
from app.extract.text.document import IssueText
from app.extract.versions import is_before, is_same, ordered

ONCE_WRONG = frozenset({2919, 10833, 11055, 13294, 13836, 15617, 17077, 22756, 27775, 28552, 33664})
"""Issues of which a part of a version, another package's version or a folder stood in the facts."""
ONCE_CONTRADICTORY = frozenset({16984, 21840, 29349, 30064, 40018, 44216})
"""Issues of which a fix before the reported release, or a slower release as the working one, stood in the facts."""
STEP = 60


@pytest.fixture(scope="module")
def rows(shared: Path) -> list[dict[str, Any]]:
    with gzip.open(shared / "corpus" / "issues.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return [
        row
        for at, row in enumerate(found)
        if at % STEP == 0 or row["number"] in ONCE_WRONG | ONCE_CONTRADICTORY
    ]


@pytest.mark.long
def test_facts_of_the_corpus_hold_no_foreign_version_folder_or_dump(rows: list[dict[str, Any]]) -> None:
    wrong = []
    for row in rows:
        facts = read_issue(IssueText(row["number"], row["title"], row["body"] or "")).facts
        span = facts.regression
        named = (span.last_working, span.first_failing, span.fixed_in, *span.still_failing) if span else ()
        places = [found for text in named if (found := ordered(text)) is not None]
        wrong += [(row["number"], str(one)) for one in places if one.major or one.minor > LAST_MINOR]
        wrong += [(row["number"], name) for name in facts.models if "\\" in name or "models--" in name]
        if facts.error and facts.error.message.lower().startswith("dumping input data"):
            wrong.append((row["number"], facts.error.message))
        if row["title"].lower().startswith("[rfc]") and facts.is_failure and facts.error is None:
            wrong.append((row["number"], row["title"]))
    assert wrong == []


@pytest.mark.long
def test_what_the_corpus_says_of_versions_does_not_contradict_itself(rows: list[dict[str, Any]]) -> None:
    wrong: list[tuple[int, str, str | None]] = []
    for row in rows:
        facts = read_issue(IssueText(row["number"], row["title"], row["body"] or "")).facts
        span, reported = facts.regression, facts.versions.get("vllm")
        if span is None:
            continue
        number = (span.culprit or "").removeprefix("#")
        if number.isdigit() and int(number) > row["number"]:
            wrong.append((row["number"], "a later change is blamed", span.culprit))
        if is_before(span.fixed_in, reported):
            wrong.append((row["number"], "fixed before it was reported", span.fixed_in))
        if is_same(span.last_working, reported):
            wrong.append((row["number"], "the working version is reported", reported))
        if is_same(span.first_failing, span.last_working) or is_before(span.first_failing, span.last_working):
            wrong.append((row["number"], "it works after it began to fail", span.last_working))
    assert wrong == []
