"""Learn `app/model_reader/precedence.json`: for each field, whether rules or model win if they disagree.

    python -m app.train.precedence --replies REPLIES.jsonl --labels LABELS.jsonl… --issues ISSUES.jsonl[.gz]…

For each field, learn the minimum confidence for values read only by the rules, and whether to accept values
proven only by the model: the combination with the highest F1 on the labelled issues, among equals the one
that trusts the model least. The confidence of the model's values is their precision. Printed by field: F1 of
the rules, of the merge (two-fold cross-validation), and of the merge as written.

The replies are those of a large model to our prompts, recorded without the issues' texts: each quote is
replaced by `[source, start, end]` in code points, or null if the quote is not in the text. `restore` inserts
the quotes again; a test server replays replies with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from app.extract.facts import Facts
from app.extract.jsonl import issue_text
from app.extract.reader import read_issue
from app.extract.text.document import Document
from app.model_reader.check import ProvenReading, check_reply
from app.model_reader.merge import Precedence, learned_precedence, merge
from app.model_reader.prompt import Prompt, make_prompt
from app.model_reader.reply import QuotedReading
from app.train.confidence import judge
from app.train.inputs import make_parser, read_rows, write_json

OUT = Path(__file__).parents[1] / "model_reader" / "precedence.json"
THRESHOLDS = (1.01, 0.97, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.0)
PRIOR_VALUES, PRIOR = 4.0, 0.8
"""Beta prior of the precision: its weight in values, and its mean."""
FIELDS = ("models", "regression", "workarounds")
"""The fields that are learned. There are no labels for causes."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled issue as read by the rules and by the model."""

    facts: Facts
    proven: ProvenReading
    label: dict[str, Any]


Table = dict[str, Precedence]


def load_samples(replies: Sequence[Path], labels: Sequence[Path], issues: Sequence[Path]) -> list[Sample]:
    """Load every issue that has a recorded reply, a label and a text."""
    answered: dict[int, dict[str, Any]] = {}
    for row in read_rows(replies):
        answered.setdefault(row["number"], row["reply"])
    wanted = {row["number"]: row for row in read_rows(labels)}
    found: dict[int, Sample] = {}
    for row in read_rows(issues):
        number = row["number"]
        if number in found or number not in answered or number not in wanted:
            continue
        issue = issue_text(row)
        reading, prompt = read_issue(issue), make_prompt(issue)
        reply = QuotedReading.model_validate(restore(answered[number], reading.document, prompt))
        found[number] = Sample(reading.facts, check_reply(reading.document, prompt, reply), wanted[number])
    return list(found.values())


def f1(samples: Sequence[Sample], field: str, table: Table) -> float:
    """Return F1 of one field with the readings merged by the table; 0 without labels and values."""
    right = read = labelled = 0
    for sample in samples:
        if field in (sample.label.get("arguable") or ()):
            continue
        facts, _ = merge(sample.facts, sample.proven, table)
        judged = {
            item.value: item.is_right for item in judge(facts, sample.label) if item.field.startswith(field)
        }
        right += sum(judged.values())
        read += len(judged)
        value = sample.label.get(field) or ()
        parts = value.values() if isinstance(value, dict) else [value]
        labelled += sum(len(part) if isinstance(part, list) else 1 for part in parts if part)
    return 2 * right / (read + labelled) if read + labelled else 0.0


def learn(samples: Sequence[Sample]) -> Table:
    """Return the precedence of each field with the highest F1 on these issues."""
    table = {**learned_precedence()}
    for field in FIELDS:
        choices = [
            Precedence(at, takes, _model_precision(samples, field))
            for takes, at in product((False, True), THRESHOLDS[::-1])
        ]
        table[field] = max(choices, key=lambda one: round(f1(samples, field, {**table, field: one}), 4))
    return table


def _model_precision(samples: Sequence[Sample], field: str) -> float:
    """Return the smoothed precision of values proven only by the model."""
    alone = {**learned_precedence(), field: Precedence(1.01, True, PRIOR)}
    verdicts = [
        item.is_right
        for sample in samples
        for item in judge(merge(sample.facts, sample.proven, alone)[0], sample.label)
        if item.field.startswith(field) and item.rule.startswith("model.")
    ]
    return round((sum(verdicts) + PRIOR * PRIOR_VALUES) / (len(verdicts) + PRIOR_VALUES), 3)


def fold_f1(
    samples: Sequence[Sample], field: str, learned: Callable[[Sequence[Sample]], Table] = learn
) -> float:
    """Return F1 of a field by two-fold cross-validation."""
    halves = [[one for one in samples if one.facts.number % 2 == rest] for rest in (0, 1)]
    scores = [
        (f1(half, field, learned(other)), len(half)) for half, other in zip(halves, halves[::-1], strict=True)
    ]
    return sum(score * size for score, size in scores) / max(1, len(samples))


NOT_THERE = "(the model quoted what is not there)"
_QUOTED = {"quote": "line", "message": "line", "name": "line", "action": "line", "proof": "proof_line"}
_IN_QUOTE = ("value",)
"""Fields whose text is part of the quote in the same row, such as a version."""

Row = dict[str, Any]


def restore(row: Row, document: Document, prompt: Prompt) -> Row:
    """Restore the reply that a row was recorded from, with the prompt's line numbers."""
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


def main() -> None:
    """Learn the table, print F1 by field, write the file."""
    parser = make_parser(__doc__)
    for name in ("replies", "labels", "issues"):
        parser.add_argument(f"--{name}", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    samples = load_samples(asked.replies, asked.labels, asked.issues)
    table, rules = (
        learn(samples),
        {name: Precedence(0.0, takes_model=False, confidence=0) for name in learned_precedence()},
    )
    print(f"{len(samples)} issues with replies and labels")
    for field in FIELDS:
        scores = (f1(samples, field, rules), fold_f1(samples, field), f1(samples, field, table))
        print(f"{field:14}" + "  ".join(f"{score:.3f}" for score in scores))
    stored = {name: asdict(table[name]) for name in sorted(table)}
    write_json(asked.out, stored, indent=1)


if __name__ == "__main__":
    main()
