"""What the reading room reads, how well and how fast; writes the table of `app/extract/README.md`.

    python -m tests.benchmarks.extraction --eval DIR --corpus ISSUES.jsonl.gz [--write app/extract/README.md]

DIR holds the labelled sets and `score_extract.py`; the corpus gives coverage, speed, and the texts of the
labels in `tests/labels`. Needs about a minute.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.extract.jsonl import issue_text
from app.extract.reader import read_issue
from app.extract.text.blocks import is_flattened
from app.train.confidence import Judged, calibration_error, judge
from app.train.shared import read_rows

LABELS = Path(__file__).parents[1] / "labels"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
FIELDS = (
    "gpus",
    "gpu_count",
    "models",
    "vllm_version",
    "other_versions",
    "backends",
    "engine_platform",
    "is_failure",
    "failure_kind",
    "root_error",
    "error_type",
    "frame",
    "wrappers_recall",
    "workarounds",
    "regression",
    "related",
    "fix_pr",
    "false_error_rate",
    "useless_sold_as_workaround",
)
KIND_FIELDS = (
    "gpus",
    "models",
    "vllm_version",
    "backends",
    "root_error",
    "frame",
    "workarounds",
    "regression",
)
MISS_FIELDS = (*KIND_FIELDS, "error", "related", "other_versions", "fix", "failure_kind")
SHAPES_MIB = (1 / 16, 1, 8)

Row = dict[str, Any]


@dataclass(frozen=True)
class LabelledSet:
    """Issues with labels, and what was read of them."""

    name: str
    issues: list[Row]
    labels: list[Row]
    read: dict[int, Row]
    judged: list[Judged]


def load_scorer(folder: Path) -> Any:
    """The module `score_extract.py` of a folder."""
    spec = importlib.util.spec_from_file_location("score_extract", folder / "score_extract.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_set(name: str, issues: Iterable[Row], labels: Sequence[Row]) -> LabelledSet:
    """Read the issues that have a label."""
    of_number = {row["number"]: row for row in labels}
    chosen = [row for row in issues if row["number"] in of_number]
    read, judged = {}, []
    for row in chosen:
        facts = read_issue(issue_text(row)).facts
        read[row["number"]] = json.loads(facts.model_dump_json())
        judged += judge(facts, of_number[row["number"]])
    return LabelledSet(name, chosen, [of_number[row["number"]] for row in chosen], read, judged)


def field_table(scorer: Any, sets: Sequence[LabelledSet]) -> Iterator[str]:
    """F1, accuracy or count of each field, a column a set."""
    scores = [scorer.score(one.labels, one.read)[1] for one in sets]
    yield "| field | " + " | ".join(f"{one.name} ({len(one.labels)})" for one in sets) + " |"
    yield "|---" * (len(sets) + 1) + "|"
    for field in FIELDS:
        found = ("–" if score[field] is None else f"{score[field]:.3g}" for score in scores)
        yield f"| `{field}` | " + " | ".join(found) + " |"
    errors = (calibration_error((item.confidence, item.is_right) for item in one.judged) for one in sets)
    yield "| calibration error | " + " | ".join(f"{error:.3f}" for error in errors) + " |"


def kind_table(scorer: Any, sets: Sequence[LabelledSet]) -> Iterator[str]:
    """The scores by kind of failure, all sets together."""
    by_kind: dict[str, list[Row]] = defaultdict(list)
    read = {number: row for one in sets for number, row in one.read.items()}
    for one in sets:
        for label in one.labels:
            by_kind[label["failure_kind"]].append(label)
    yield "| kind | issues | " + " | ".join(f"`{field}`" for field in KIND_FIELDS) + " |"
    yield "|---" * (len(KIND_FIELDS) + 2) + "|"
    for kind, labels in sorted(by_kind.items(), key=lambda item: -len(item[1])):
        score = scorer.score(labels, read)[1]
        yield f"| {kind} | {len(labels)} | " + " | ".join(f"{score[f]:.2f}" for f in KIND_FIELDS) + " |"


def known_wrong(scorer: Any, sets: Sequence[LabelledSet]) -> Iterator[str]:
    """The issues read wrongly, by field."""
    wrong: dict[str, set[int]] = defaultdict(set)
    for one in sets:
        for number, field, _, _ in scorer.score(one.labels, one.read, misses=True)[2]:
            wrong[field].add(number)
        for label in one.labels:
            if one.read[label["number"]]["failure_kind"] != label["failure_kind"]:
                wrong["failure_kind"].add(label["number"])
    for field in sorted(wrong):
        yield f"- `{field}`: " + ", ".join(f"#{number}" for number in sorted(wrong[field]))


def coverage(corpus: Sequence[Row]) -> Iterator[str]:
    """How many texts have a value at all: whole ones and those whose line breaks are lost."""
    groups: dict[str, list[Row]] = {"whole": [], "one line": []}
    for row in corpus:
        text = issue_text(row)
        groups["one line" if is_flattened(text.body) else "whole"].append(
            json.loads(read_issue(text).facts.model_dump_json(exclude={"evidence"}))
        )
    yield "| text | issues | failure | error | frame | GPU | vLLM version | model |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, rows in groups.items():
        shares = (
            sum(bool(test(row)) for row in rows) / max(1, len(rows))
            for test in (
                lambda row: row["is_failure"],
                lambda row: row["error"],
                lambda row: row["error"] and row["error"]["frame"],
                lambda row: row["gpus"],
                lambda row: row["versions"]["vllm"],
                lambda row: row["models"],
            )
        )
        yield f"| {name} | {len(rows):,} | " + " | ".join(f"{share:.0%}" for share in shares) + " |"


def speed(corpus: Iterable[Row]) -> Iterator[str]:
    """Seconds for all full issues, and how the cost of hostile texts grows."""
    full = [issue_text(row) for row in corpus if row.get("x_truncated") is False]
    start = time.perf_counter()
    for text in full:
        read_issue(text).facts.model_dump_json()
    yield f"{len(full):,} full issues: {time.perf_counter() - start:.1f} s on one core.\n"
    yield "| hostile text | " + " | ".join(f"{size:g} MiB" for size in SHAPES_MIB) + " |"
    yield "|---" * (len(SHAPES_MIB) + 1) + "|"
    for name, unit in HOSTILE.items():
        costs = []
        for mib in SHAPES_MIB:
            body = (unit * (int(mib * 2**20) // len(unit) + 1))[: int(mib * 2**20)]
            start = time.perf_counter()
            read_issue(issue_text({"number": 1, "title": "Crash", "body": body}))
            costs.append(f"{time.perf_counter() - start:.2f} s")
        yield f"| {name} | " + " | ".join(costs) + " |"


HOSTILE = {
    "one endless line": "token ",
    "nested quotes": ">" * 99 + " q\n",
    "unclosed fences": "```python\n~~~\n",
    "only `Traceback` lines": "Traceback (most recent call last):\n",
    "errors": "ValueError: no\n",
    "log prefixes": "(EngineCore_DP0 pid=7) ERROR 04-01 12:00:00 [core.py:396] step\n",
    "sentences on versions": "It worked in 0.6.1 but fails in 0.6.2. ",
    "sentences on remedies": "Setting VLLM_USE_V1=0 avoids it. ",
    "Chinese sentences": "问题解决了。",
    "tables": "| a | b |\n",
    "environment lines": "[pip3] torch==2.1\n",
}


def report(folder: Path, corpus_file: Path) -> str:
    """The whole table as markdown."""
    scorer, corpus = load_scorer(folder), list(read_rows([corpus_file]))
    own = list(read_rows([LABELS / "issues.jsonl"]))
    sets = [
        read_set(
            "set A",
            read_rows([folder / "extract_issues.jsonl"]),
            list(read_rows([folder / "extract_gold.jsonl"])),
        ),
        *(read_set(f"set {name}", corpus, [row for row in own if row["set"] == name]) for name in "BCDE"),
        read_set(
            "threads",
            read_rows([folder / "threads_issues.jsonl"]),
            list(read_rows([folder / "threads_gold.jsonl"])),
        ),
    ]
    parts = (
        ("By field", field_table(scorer, sets)),
        ("By kind of failure", kind_table(scorer, sets[:-1])),
        ("Coverage", coverage(corpus)),
        ("Speed", speed(corpus)),
        ("Known wrong", known_wrong(scorer, sets)),
    )
    return "\n".join(f"### {title}\n\n" + "\n".join(lines) + "\n" for title, lines in parts)


def main() -> None:
    """Print the report, and put it between the marks of a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--eval", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    found = report(asked.eval, asked.corpus)
    print(found)
    if asked.write is not None:
        text = asked.write.read_text(encoding="utf-8")
        head, _, rest = text.partition(BEGIN)
        asked.write.write_text(f"{head}{BEGIN}\n{found}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
