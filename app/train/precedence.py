"""Learns `app/model_reader/precedence.json`: by field whom to believe where rules and model read otherwise.

    python -m app.train.precedence --replies REPLIES.jsonl --labels LABELS.jsonl… --issues ISSUES.jsonl[.gz]…

For each field the least confidence from which a value stands that only the rules read, and whether one
stands that only the model proved: those with the highest F1 on the labelled issues, and of equal ones the
least trust in the model. A model's value has as its confidence the share of right ones. Printed, by field:
F1 of the rules, of both as learned from the other half of the issues, and of both as written.

The replies are a large model's to our prompts, recorded without the issues' texts: in place of each quoted
text a row has `[source, start, end]` in code points, or null where the model quoted what the text does not
hold. `restore` cuts the quotes out of the text again; a test server replays replies with it.
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
"""What a share of right values is drawn to, and how many values that is worth."""
FIELDS = {
    "backends": "backends",
    "error": "error",
    "failure_kind": "failure_kind",
    "models": "models",
    "regression": "regression",
    "versions": "versions.vllm",
    "workarounds": "workarounds",
}
"""Field, and how the evidence begins that is judged. No labels name causes."""
_OPEN = {"error": "root_error", "versions": "vllm_version", "backends": "backends"}
"""How a label calls a field on which careful readers differ."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled issue as both read it."""

    facts: Facts
    proven: ProvenReading
    label: dict[str, Any]


Table = dict[str, Precedence]


def load_samples(replies: Sequence[Path], labels: Sequence[Path], issues: Sequence[Path]) -> list[Sample]:
    """Every issue that has a recorded reply, a label and a text."""
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
    """F1 of one field as the table has both readings merged; 0 where nobody labelled or read anything."""
    right = read = labelled = 0
    for sample in samples:
        if {field, _OPEN.get(field, field)} & set(sample.label.get("arguable") or ()):
            continue
        facts, _ = merge(sample.facts, sample.proven, table)
        judged = {
            item.value: item.is_right
            for item in judge(facts, sample.label)
            if item.field.startswith(FIELDS[field]) and item.field != "error.wrappers"
        }
        right += sum(judged.values())
        read += len(judged)
        labelled += _labelled(field, sample.label)
    return 2 * right / (read + labelled) if read + labelled else 0.0


def _labelled(field: str, label: dict[str, Any]) -> int:
    value = label["versions"].get("vllm") if field == "versions" else label.get(field)
    if field in ("backends", "regression"):
        return sum(len(one) if isinstance(one, list) else 1 for one in (value or {}).values() if one)
    if field == "error":
        return int(bool(value))
    return len(value) if isinstance(value, list) else int(value is not None)


def learn(samples: Sequence[Sample]) -> Table:
    """The precedence of each field that is best on these issues."""
    table = {**learned_precedence()}
    for field in FIELDS:
        choices = [
            Precedence(at, takes, _share(samples, field))
            for takes, at in product((False, True), THRESHOLDS[::-1])
        ]
        table[field] = max(choices, key=lambda one: round(f1(samples, field, {**table, field: one}), 4))
    return table


def _share(samples: Sequence[Sample], field: str) -> float:
    """How often a value was right that only the model proved."""
    alone = {**learned_precedence(), field: Precedence(1.01, True, PRIOR)}
    verdicts = [
        item.is_right
        for sample in samples
        for item in judge(merge(sample.facts, sample.proven, alone)[0], sample.label)
        if item.field.startswith(FIELDS[field]) and item.rule.startswith("model.")
    ]
    return round((sum(verdicts) + PRIOR * PRIOR_VALUES) / (len(verdicts) + PRIOR_VALUES), 3)


def fold_f1(
    samples: Sequence[Sample], field: str, learned: Callable[[Sequence[Sample]], Table] = learn
) -> float:
    """F1 of a field, each half of the issues merged as learned from the other half."""
    halves = [[one for one in samples if one.facts.number % 2 == rest] for rest in (0, 1)]
    scores = [
        (f1(half, field, learned(other)), len(half)) for half, other in zip(halves, halves[::-1], strict=True)
    ]
    return sum(score * size for score, size in scores) / max(1, len(samples))


NOT_THERE = "(the model quoted what is not there)"
_QUOTED = {"quote": "line", "message": "line", "name": "line", "action": "line", "proof": "proof_line"}
_INSIDE = ("value",)
"""Fields whose text stands in the quote beside it: a version."""

Row = dict[str, Any]


def restore(row: Row, document: Document, prompt: Prompt) -> Row:
    """The reply that a row was made of, as the prompt numbers its lines."""
    reply: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            reply[name] = restore(value, document, prompt)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            reply[name] = [restore(item, document, prompt) for item in value]
        elif name in _QUOTED or (name in _INSIDE and not isinstance(value, str)):
            text, line = _cut(value, document, prompt)
            reply |= {name: text}
            if not (name in _INSIDE and "quote" in row):
                reply |= {_QUOTED.get(name, "line"): line}
        else:
            reply[name] = value
    return reply


def _cut(place: list[Any] | None, document: Document, prompt: Prompt) -> tuple[str, int]:
    """A quote and the number of the line in which it begins; line 1 for what the prompt leaves out."""
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
    """Learn, print what it is worth, write the table."""
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
