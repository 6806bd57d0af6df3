"""What the tier is worth: recorded replies of a large model, replayed over the labelled issues' texts."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.extract.jsonl import issue_text
from app.extract.reader import read_issue
from app.extract.text.blocks import read_document
from app.extract.text.document import Document
from app.knowledge.operations.model_reading import read_issues
from app.model_reader.check import check_reply
from app.model_reader.merge import merge
from app.model_reader.prompt import Prompt, make_prompt
from app.model_reader.reply import QuotedReading
from app.store.derived.readings import find_facts
from app.store.session import Store
from app.train.shared import read_rows
from ingest.importer import import_paths
from tests.benchmarks.extraction import load_scorer
from tests.model_reader.replies import a_client, answered, content_of
from tests.samples import REPO

LABELS = Path(__file__).parents[1] / "labels"
Row = dict[str, Any]

NOT_THERE = "(the model quoted what is not there)"
_QUOTED = {"quote": "line", "message": "line", "name": "line", "action": "line", "proof": "proof_line"}
_IN_QUOTE = ("value",)
"""Fields whose text is part of the quote in the same row, such as a version."""


def restore(row: Row, document: Document, prompt: Prompt) -> Row:
    """The reply that a row was recorded from: places become quotes again, with the prompt's line numbers."""
    reply: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            reply[name] = restore(value, document, prompt)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            reply[name] = [restore(item, document, prompt) for item in value]
        elif name in _QUOTED or (name in _IN_QUOTE and not isinstance(value, str)):
            text, line = _cut(value, document, prompt)
            reply |= {name: text}
            if not (name in _IN_QUOTE and "quote" in row):
                reply |= {_QUOTED.get(name, "line"): line}
        else:
            reply[name] = value
    return reply


def _cut(place: list[Any] | None, document: Document, prompt: Prompt) -> tuple[str, int]:
    """Return a quote and the number of its first line; line 1 if the prompt omits that line."""
    if place is None:
        return NOT_THERE, 1
    source, start, end = place
    numbers = (
        number
        for number, line in enumerate(prompt.lines, 1)
        if line.source == source and line.start <= start < line.end
    )
    return " ".join(document.sources[source][start:end].split()), next(numbers, 1)


@lru_cache(maxsize=1)
def replies() -> dict[tuple[str, int], Row]:
    return {(row["set"], row["number"]): row["reply"] for row in read_rows([LABELS / "replies.jsonl"])}


def texts_of(name: str, shared: Path) -> list[Row]:
    numbers = {number for of, number in replies() if of == name}
    files = {"A": "eval/extract_issues.jsonl", "T": "eval/threads_issues.jsonl"}
    rows = read_rows([shared / files.get(name, "corpus/issues.jsonl.gz")])
    return [row for row in rows if row["number"] in numbers]


def labels_of(name: str, shared: Path) -> list[Row]:
    files = {"A": shared / "eval/extract_gold.jsonl", "T": shared / "eval/threads_gold.jsonl"}
    rows = read_rows([files.get(name, LABELS / "issues.jsonl")])
    return [row for row in rows if name in "AT" or row.get("set") == name]


def merged(name: str, shared: Path) -> tuple[dict[int, Row], int]:
    """The facts of one set as JSON with the replies merged, and how many quotes are not in their text."""
    found, invented = {}, 0
    for row in texts_of(name, shared):
        issue = issue_text(row)
        reading, prompt = read_issue(issue), make_prompt(issue)
        reply = restore(replies()[name, row["number"]], reading.document, prompt)
        proven = check_reply(reading.document, prompt, QuotedReading.model_validate(reply))
        facts = merge(reading.facts, proven)
        sources = reading.document.sources
        invented += sum(sources[e.source][e.start : e.end] != e.quote for e in facts.evidence)
        found[row["number"]] = json.loads(facts.model_dump_json())
    return found, invented


@pytest.mark.long
def test_figures_on_rows_that_nothing_was_learned_from(shared: Path) -> None:
    scorer = load_scorer(shared / "eval")
    read: dict[int, Row] = {}
    for name in "EF":
        facts, invented = merged(name, shared)
        assert invented == 0
        read |= facts
    score = scorer.score([*labels_of("E", shared), *labels_of("F", shared)], read)[1]
    assert score["workarounds"] >= 0.80
    assert score["regression"] >= 0.80
    assert score["models"] >= 0.95
    assert score["useless_sold_as_workaround"] == 0


def test_figures_of_threads(shared: Path) -> None:
    facts, invented = merged("T", shared)
    score = load_scorer(shared / "eval").score(labels_of("T", shared), facts)[1]
    assert score["workarounds"] >= 0.80
    assert score["fix_invented"] == 0
    assert invented == 0


def test_replayed_by_a_server_the_base_holds_what_the_checks_let_through(
    sqlite_store: Store, shared: Path, tmp_path: Path
) -> None:
    rows = texts_of("T", shared)
    file = tmp_path / "threads.jsonl"
    file.write_text("\n".join(json.dumps({**row, "comments_data": [], "created_at": None}) for row in rows))
    import_paths(sqlite_store, [str(file)], REPO)
    by_title = {row["title"]: row for row in rows}

    def replay(request: httpx.Request) -> httpx.Response:
        content = content_of(request)
        row = next(row for title, row in by_title.items() if f"1| {title}\n" in content)
        issue = issue_text({**row, "comments_data": []})
        return answered(
            restore(replies()["T", row["number"]], read_document(issue_text(row)), make_prompt(issue))
        )

    with a_client(replay) as client:
        result = read_issues(sqlite_store, REPO, client)
    assert result.outcomes == {"complete": len(rows)}
    assert result.kept > 0
    with sqlite_store.reading() as session:
        facts = find_facts(session, 1, [row["number"] for row in rows])
    for row in rows:
        places = {"title": row["title"], "body": row.get("body") or ""}
        assert all(places[e.source][e.start : e.end] == e.quote for e in facts[row["number"]].evidence)
