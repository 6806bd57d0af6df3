"""Chooses the cases of the benchmark out of a synced base and writes `cases.jsonl`.

    python -m tests.benchmarks.choose --database sqlite:///triage.db [--leave-out FILE.jsonl…] [--same FILE.jsonl…]

Every issue whose text holds a traceback is a case: the longest fenced block with one, else the longest run
of lines that starts with one. A file of `--leave-out` holds lines with `expected` and `exclude` numbers that
are kept for other measurements; one of `--same` holds judged pairs, `{"a": 1, "b": 2, "label":
"same_failure"}`. Right answers are the issue and all that `twins.jsonl` and these pairs tie to it. The same
base gives the same file.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from app.bench import cases as pinned
from app.bench.cases import Case, SearchText, read_texts, sha256_of
from app.store.session import open_store
from app.terminal import say
from tests.benchmarks.rewrite import Dice, ways_of

CASES = Path(pinned.__file__).with_name("cases.jsonl")
TWINS = Path(__file__).with_name("twins.jsonl")
CASES_MAX = 200
LINES_MIN = 3
CHARS_MAX = 60_000
TRACEBACK = "Traceback (most recent call last):"
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(?P<inside>.*?)^[ \t]*\1", re.DOTALL | re.MULTILINE)
_RUN = re.compile(r"^[^\n]*Traceback \(most recent call last\):\n(?:[^\n]+\n?)+", re.MULTILINE)
_ERROR_LINE = re.compile(r"^(?:[^\n]{0,80}\] )?[\w.]*(?:Error|Exception): ", re.MULTILINE)
_ENVIRONMENT = re.compile(r"Collecting environment|PyTorch version:")


def log_span(body: str) -> tuple[int, int] | None:
    """Where the log stands in an issue's text."""
    fenced = [found.span("inside") for found in _FENCE.finditer(body)]
    for spans in (fenced, [found.span() for found in _RUN.finditer(body)]):
        logs = [(start, end) for start, end in spans if _is_log(body[start:end])]
        if logs:
            return max(logs, key=lambda span: (span[1] - span[0], -span[0]))
    return None


def _is_log(text: str) -> bool:
    if len(text) > CHARS_MAX or text.count("\n") < LINES_MIN:
        return False
    found = TRACEBACK in text or ('File "' in text and _ERROR_LINE.search(text) is not None)
    return found and not _ENVIRONMENT.search(text)


def choose(
    documents: Sequence[SearchText], groups: Iterable[frozenset[int]], left_out: frozenset[int]
) -> list[Case]:
    """The cases, by number."""
    ties = tied(groups)
    known = {document.number for document in documents}
    cases = []
    for document in documents:
        span = None if document.number in left_out else log_span(document.body)
        if span is None:
            continue
        log = document.body[slice(*span)]
        right = sorted({document.number} | (ties.get(document.number, frozenset()) & known))
        if ways_of(document.number, log):
            cases.append(a_case(document.number, span, log, right))
    # Past the limit a draw decides that depends on the number alone, not on what else is stored.
    drawn = sorted(cases, key=lambda case: (len(case.right) == 1, Dice("draw", case.number).below(10**12)))
    return sorted(drawn[:CASES_MAX], key=lambda case: case.number)


def a_case(number: int, span: tuple[int, int], log: str, right: Iterable[int]) -> Case:
    """A case with the hash of its log."""
    start, end = span
    return Case(number=number, start=start, end=end, sha256=sha256_of(log), right=tuple(right))


def load_twins() -> list[frozenset[int]]:
    """Groups of issues that report the same failure."""
    return [frozenset(_numbers(row["numbers"])) for row in _rows([TWINS])]


def tied(groups: Iterable[frozenset[int]]) -> Mapping[int, frozenset[int]]:
    """Each number with all it is tied to, over any number of groups."""
    whole: dict[int, frozenset[int]] = {}
    for group in groups:
        merged = frozenset().union(group, *(whole.get(number, frozenset()) for number in group))
        whole |= dict.fromkeys(merged, merged)
    return whole


def _rows(paths: Iterable[Path]) -> Iterable[dict[str, object]]:
    for path in paths:
        yield from (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line)


def _numbers(value: object) -> list[int]:
    return [item for item in value if isinstance(item, int)] if isinstance(value, list) else []


def main() -> None:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--database", required=True)
    parser.add_argument("--repo", default="vllm-project/vllm")
    parser.add_argument("--leave-out", nargs="*", type=Path, default=[])
    parser.add_argument("--same", nargs="*", type=Path, default=[])
    asked = parser.parse_args()
    left_out = frozenset(
        number
        for row in _rows(asked.leave_out)
        for name in ("expected", "exclude")
        for number in _numbers(row.get(name))
    )
    judged = [
        frozenset(_numbers([row["a"], row["b"]]))
        for row in _rows(asked.same)
        if row.get("label") == "same_failure"
    ]
    store = open_store(asked.database)
    cases = choose(read_texts(store, asked.repo), [*load_twins(), *judged], left_out)
    lines = (json.dumps(case.model_dump(mode="json")) + "\n" for case in cases)
    CASES.write_text("".join(lines), encoding="utf-8")
    say(f"{len(cases)} cases, {sum(len(case.right) > 1 for case in cases)} with known twins")


if __name__ == "__main__":
    main()
