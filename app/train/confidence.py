"""Learn `app/extract/confidence.json`: the precision of each extraction rule.

    python -m app.train.confidence --labels LABELS.jsonl… --issues ISSUES.jsonl[.gz]… [--out F]

A rule's confidence is its precision on labelled issues, smoothed towards that of its field (a beta prior
worth `PRIOR_VALUES` values). Also prints the expected calibration error over ten bins, cross-validated by
issue.

A label is one JSON object for an issue: the fields of `Facts` as a careful reader would fill them. Each
extracted value is compared with it leniently: case, punctuation, the organisation in a model name and build
suffixes of versions are ignored; of two texts, one must contain the other or share most of its words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.extract.evidence import Calibration, calibrated
from app.extract.facts import Facts
from app.extract.jsonl import issue_text
from app.extract.reader import RULES_VERSION, read_issue
from app.train.shared import make_parser, read_rows, write_json

FOLDS = 5
BINS = 10
PRIOR_VALUES = 6.0
FIELD_PRIOR_VALUES = 4.0
FIELD_PRIOR = 0.8
OUT = Path(__file__).parents[1] / "extract" / "confidence.json"


def judge_files(labels: Sequence[Path], issues: Sequence[Path]) -> list[Judged]:
    """Read every labelled issue and judge its values; labels without an issue text are ignored."""
    wanted = {row["number"]: row for row in read_rows(labels)}
    judged: dict[int, list[Judged]] = {}
    for row in read_rows(issues):
        if row["number"] in wanted and row["number"] not in judged:
            facts = read_issue(issue_text(row)).facts
            judged[row["number"]] = list(judge(facts, wanted[row["number"]]))
    return [item for items in judged.values() for item in items]


def learn(judged: Iterable[Judged]) -> Calibration:
    """Estimate confidences by field and by rule."""
    by_field: dict[str, list[bool]] = defaultdict(list)
    by_rule: dict[str, list[bool]] = defaultdict(list)
    field_of: dict[str, str] = {}
    for item in judged:
        field = item.field.partition(".")[0]
        key = f"{item.field}|{item.rule}"
        by_field[field].append(item.is_right)
        by_rule[key].append(item.is_right)
        field_of[key] = field
    fields = {field: _smoothed(right, FIELD_PRIOR, FIELD_PRIOR_VALUES) for field, right in by_field.items()}
    rules = {key: _smoothed(right, fields[field_of[key]], PRIOR_VALUES) for key, right in by_rule.items()}
    return Calibration(fields=dict(sorted(fields.items())), rules=dict(sorted(rules.items())))


def _smoothed(right: Sequence[bool], prior: float, prior_values: float) -> float:
    return round((sum(right) + prior * prior_values) / (len(right) + prior_values), 3)


def calibration_error(judged: Iterable[tuple[float, bool]]) -> float:
    """Return the expected calibration error: the mean gap of confidence and accuracy over ten equal bins."""
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, is_right in judged:
        bins[min(BINS - 1, int(confidence * BINS))].append((confidence, is_right))
    total = sum(map(len, bins.values()))
    gaps = (abs(sum(c for c, _ in one) - sum(r for _, r in one)) for one in bins.values())
    return sum(gaps) / total if total else 0.0


def unseen_confidences(judged: Sequence[Judged]) -> Iterator[tuple[Judged, float]]:
    """Yield each value with the confidence learned from the other folds."""
    for fold in range(FOLDS):
        table = learn(item for item in judged if item.number % FOLDS != fold)
        for item in judged:
            if item.number % FOLDS == fold:
                yield item, calibrated(table, item.field, item.rule, item.confidence)


def main() -> None:
    """Learn the table, print the calibration error, write the file."""
    parser = make_parser(__doc__)
    parser.add_argument("--labels", type=Path, nargs="+", required=True)
    parser.add_argument("--issues", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    judged = judge_files(asked.labels, asked.issues)
    error = calibration_error((sure, item.is_right) for item, sure in unseen_confidences(judged))
    before = calibration_error((item.confidence, item.is_right) for item in judged)
    print(f"{len(judged)} values of {len({item.number for item in judged})} issues")
    print(f"expected calibration error: {error:.3f} in {FOLDS} folds, {before:.3f} as the rules say now")
    table = learn(judged)
    learned = {"rules_version": RULES_VERSION, "values": len(judged), "fold_error": round(error, 3)}
    out = {**learned, "fields": table.fields, "rules": table.rules}
    write_json(asked.out, out, indent=1)


SHARED_WORDS_LEAST = 0.6
HELD_WORDS_LEAST = 0.2
"""If one text contains the other, the minimum share of words in common."""

MESSAGE_WORDS_LEAST = 0.4
"""The same for error messages."""

_WORD = re.compile(r"[a-z0-9_.\-/]+")


@dataclass(frozen=True, slots=True)
class Judged:
    """One extracted value with its rule and confidence, and whether the label agrees."""

    number: int
    field: str
    rule: str
    value: str
    confidence: float
    is_right: bool


def judge(facts: Facts, label: dict[str, Any]) -> Iterator[Judged]:
    """Judge each value of the labelled fields; a value cited twice is judged twice."""
    for item in facts.evidence:
        field, _, key = item.field.partition(".")
        if field == "workarounds":
            is_right = _is_remedy(facts, item.value, label["workarounds"])
        elif field == "error":
            if key not in ("message", "wrappers"):
                continue
            is_right = _is_error(key, item.value, label["error"] or {})
        elif field in _NORMALISERS:
            stated, fold = label[field], _NORMALISERS[field]
            wanted = (stated or {}).get(key) if key else stated
            is_right = fold(item.value) in {fold(str(one)) for one in _listed(wanted)}
        else:
            continue
        yield Judged(facts.number, item.field, item.rule, item.value, item.confidence, is_right)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _is_remedy(facts: Facts, action: str, labelled: Iterable[dict[str, Any]]) -> bool:
    """True if a label has the same action with the same outcome (helped or failed)."""
    fails = {one.outcome == "fails" for one in facts.workarounds if one.action == action}
    return any(is_alike(one["action"], action) and (one["outcome"] == "fails") in fails for one in labelled)


def _is_error(key: str, value: str, error: dict[str, Any]) -> bool:
    if key == "wrappers":
        return any(is_alike(text, value) for text in error.get("wrappers") or [])
    return bool(error) and is_alike(error["message"] or error["type"], value, MESSAGE_WORDS_LEAST)


def is_alike(label: str | None, value: str, held_least: float = HELD_WORDS_LEAST) -> bool:
    """True if one text contains the other, or if they share most of their words."""
    left, right = _normalised(label or ""), _normalised(value)
    mine, theirs = set(_WORD.findall(left)), set(_WORD.findall(right))
    if not mine or not theirs:
        return left == right
    shared = len(mine & theirs)
    if left in right or right in left:
        return shared / max(len(mine), len(theirs)) >= held_least
    return shared / len(mine | theirs) >= SHARED_WORDS_LEAST


def _normalised(text: str) -> str:
    return " ".join(text.lower().translate(str.maketrans("", "", "`*\"'")).split())


def _hardware_name(name: str) -> str:
    return re.sub(r"nvidia|amd|geforce|instinct|[^a-z0-9]", "", name.lower())


def _model_name(name: str) -> str:
    return name.lower().rstrip("/").rpartition("/")[2]


def _version(value: str) -> str:
    return value.lower().removeprefix("v").removeprefix("#").partition("+")[0]


_NORMALISERS: dict[str, Callable[[str], str]] = {
    "gpus": _hardware_name,
    "models": _model_name,
    "gpu_count": str,
    "failure_kind": str,
    "related": _version,
    "versions": _version,
    "backends": _hardware_name,
    "regression": _version,
}
"""Fields whose values are compared after normalisation, each with its function."""


if __name__ == "__main__":
    main()
