"""The same log gets the same answer from a base in SQLite and from its copy in PostgreSQL."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.bench.cases import find_logs, load_pinned, read_texts
from app.knowledge.diagnosis.diagnose import diagnose
from app.paths import cards_dir
from app.starter.card import read_cards
from app.store.backup.copy import copy_database
from app.store.session import Store
from ingest.importer import import_paths
from tests.benchmarks.rewrite import rewrite, ways_of
from tests.samples import REPO
from tests.starter_base import put_cards

TOP = 5
LOGS = 100
SHARE = 3
"""Of the cards, each so many-th is asked for."""
ALIKE = 0.98
"""The least share of logs with the same top; sums of floats may be ordered otherwise by another engine."""
EVERY = 16
"""Of the corpus, besides the issues that are asked for, each so many-th."""

Answer = tuple[str, tuple[int, ...]]


def answers(store: Store, logs: Sequence[str]) -> list[Answer]:
    """Verdict and top numbers of each log."""
    found = [diagnose(store, log, repos=(REPO,), limit=TOP) for log in logs]
    return [(one.verdict, tuple(match.number for match in one.matches)) for one in found]


def test_both_engines_answer_the_logs_of_the_cards_alike(
    sqlite_store: Store, postgresql_store: Store
) -> None:
    put_cards(sqlite_store)
    copy_database(sqlite_store, postgresql_store)
    logs = [
        rewrite(card.log, card.number, "kubernetes") for card in read_cards(cards_dir())[::SHARE] if card.log
    ]

    found = answers(sqlite_store, logs)

    assert len(logs) > 15
    assert sum(bool(numbers) for _, numbers in found) > 0.9 * len(logs)
    assert answers(postgresql_store, logs) == found


def corpus_part(shared: Path) -> list[str]:
    """Rows of the issues whose logs are pinned, of those they are known to repeat, and of many others."""
    asked = {number for case in load_pinned().cases for number in (case.number, *case.right)}
    with gzip.open(shared / "corpus" / "issues.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [
            line for at, line in enumerate(lines) if at % EVERY == 0 or json.loads(line)["number"] in asked
        ]


@pytest.mark.long
def test_both_engines_answer_pinned_logs_alike(
    sqlite_store: Store, postgresql_store: Store, shared: Path, tmp_path: Path
) -> None:
    path = tmp_path / "issues.jsonl"
    path.write_text("".join(corpus_part(shared)), encoding="utf-8")
    import_paths(sqlite_store, [path], REPO, kind="issues")
    copy_database(sqlite_store, postgresql_store)
    found = find_logs(read_texts(sqlite_store, REPO), load_pinned().cases).logs[:LOGS]
    logs = [rewrite(log, seed, form) for case, log in found for form, seed in ways_of(case.number, log)[:1]]

    pairs = list(zip(answers(sqlite_store, logs), answers(postgresql_store, logs), strict=True))

    assert len(pairs) == LOGS
    other = [(log[:200], *pair) for log, pair in zip(logs, pairs, strict=True) if pair[0] != pair[1]]
    assert len(other) <= (1 - ALIKE) * LOGS, other
