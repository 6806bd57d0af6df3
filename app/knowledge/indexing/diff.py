"""Diff stored readings against what the current rules read, field by field.

A field is a field of `Facts`, or `field.key` if its value has keys (`backends.attention`, `error.type`).
Also compared: `links`, and `fault`, the exception a rule raised. Quotes and confidences are not compared.
Memory use does not grow with the texts, so any number of issues can be compared.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any, Literal

from app.extract.facts import Facts, Frozen
from app.extract.reader import RULES_VERSION
from app.extract.redact import mask_secrets
from app.knowledge.indexing.batches import AHEAD, BATCH, stored_numbers
from app.knowledge.indexing.derive import read_stored
from app.knowledge.indexing.readers import reading_apart
from app.knowledge.markdown import render_markdown
from app.store.derived.readings import find_kept_readings
from app.store.records import LinkRecord, Progress, Report, quiet
from app.store.session import Store

Kind = Literal["added", "removed", "changed"]

SIGNS: dict[Kind, str] = {"added": "+", "removed": "-", "changed": "~"}
EXAMPLE_CHARS = 80
"""Longest value in an example."""
LEAD_CHARS = 20
"""Text in an example before the first difference."""
_NO_KIND = Facts.model_fields["failure_kind"].default
_ORDER = [*Facts.model_fields, "links", "fault"]


class ChangeExample(Frozen):
    """A changed value of one issue; `before` and `after` are masked and cut to where they differ."""

    number: int
    kind: Kind
    before: str
    after: str


class FieldDiff(Frozen):
    """Number of issues with a value of the field, and its changes: after = before + added - removed."""

    field: str
    before: int
    after: int
    added: int
    removed: int
    changed: int
    examples: tuple[ChangeExample, ...]


class ReadingDiff(Frozen):
    """The diff of a repository. `stored_rules` counts the compared readings by their rules version."""

    rules: str
    stored_rules: dict[str, int]
    compared: int
    differing: int
    never_read: int
    fields: tuple[FieldDiff, ...]


class ReadingDiffs(Frozen):
    """Diffs by repository."""

    repositories: dict[str, ReadingDiff]


def diff_all(store: Store, repo: str, report: Report = quiet, *, examples: int = 3) -> ReadingDiff:
    """Diff all stored readings of a repository against the current rules; nothing is written.

    An issue that was never read is only counted. If an issue's text is newer than its reading, changes due to
    the text are included too; `triage sync` reads those.

    Args:
        examples: examples per field and kind of change, newest first.

    Raises:
        NotFoundError: nothing of the repository is stored.
    """
    repo_id, numbers = stored_numbers(store, repo)
    rules: Counter[str] = Counter()
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    kept: defaultdict[tuple[str, Kind], list[ChangeExample]] = defaultdict(list)
    differing = done = 0
    numbers.reverse()
    with reading_apart(len(numbers)) as readers:
        for start in range(0, len(numbers), BATCH):
            batch = numbers[start : start + BATCH]
            with store.reading() as session:
                stored = find_kept_readings(session, repo_id, batch)
                readers.begin(session, repo_id, repo, numbers[start : start + AHEAD])
                found = read_stored(session, repo_id, repo, list(stored), readers.read)
            for item in sorted(found, key=lambda item: -item.reading.number):
                reading = item.reading
                old, facts = stored[reading.number], reading.facts
                dumped = facts.model_dump(mode="json", exclude={"evidence"}) if facts else None
                before = values_of(old.facts, old.links, old.fault)
                after = values_of(dumped, reading.links, reading.fault)
                rules[old.rules_version] += 1
                differing += before != after
                for name in before.keys() | after.keys():
                    counts[name].update({"before": name in before, "after": name in after})
                    example = change_of(reading.number, before.get(name), after.get(name))
                    if example is not None:
                        counts[name][example.kind] += 1
                        if len(kept[name, example.kind]) < examples:
                            kept[name, example.kind].append(example)
            done += len(batch)
            report(Progress("comparing", done, len(numbers)))
    return ReadingDiff(
        rules=RULES_VERSION,
        stored_rules=dict(sorted(rules.items())),
        compared=rules.total(),
        differing=differing,
        never_read=done - rules.total(),
        fields=tuple(
            FieldDiff(
                field=name,
                **{key: counts[name][key] for key in ("before", "after", *SIGNS)},
                examples=tuple(example for kind in SIGNS for example in kept[name, kind]),
            )
            for name in sorted(counts, key=_place)
        ),
    )


def values_of(
    facts: Mapping[str, Any] | None, links: Iterable[LinkRecord], fault: str | None
) -> dict[str, Any]:
    """Flatten a reading for comparison: value by field, without empty ones.

    Args:
        facts: `Facts` as JSON, possibly of an older version; None if a rule raised `fault`.
    """
    found: dict[str, Any] = {}
    for name, value in (facts or {}).items():
        if name not in {"number", "evidence"} and (name, value) != ("failure_kind", _NO_KIND):
            is_object = isinstance(value, dict)
            found |= {f"{name}.{key}": part for key, part in value.items()} if is_object else {name: value}
    found["links"] = sorted({f"{link.kind} {link.target_repo}#{link.target_number}" for link in links})
    found["fault"] = fault
    return {name: value for name, value in found.items() if value}


def change_of(number: int, old: Any, new: Any) -> ChangeExample | None:
    """Return the change from `old` to `new` (None: no value) as an example; None if they are equal."""
    if old == new:
        return None
    kind: Kind = "added" if old is None else "removed" if new is None else "changed"
    before, after = _words(old), _words(new)
    if max(len(before), len(after)) > EXAMPLE_CHARS and isinstance(old, list) and isinstance(new, list):
        before = _words([item for item in old if item not in new]) or before
        after = _words([item for item in new if item not in old]) or after
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    start = common - LEAD_CHARS if common > EXAMPLE_CHARS // 2 else 0
    return ChangeExample(number=number, kind=kind, before=_cut(before, start), after=_cut(after, start))


def _place(name: str) -> tuple[int, str]:
    top = name.partition(".")[0]
    return (_ORDER.index(top) if top in _ORDER else len(_ORDER), name)


def _cut(text: str, start: int) -> str:
    lead, rest = ("…" if start else ""), text[start:]
    return lead + (rest if len(rest) <= EXAMPLE_CHARS else rest[: EXAMPLE_CHARS - 1] + "…")


def _words(value: Any) -> str:
    """Format a value on one line, without empty parts; "" for None."""
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    if isinstance(value, dict):
        parts = ((key, part, _words(part)) for key, part in sorted(value.items()) if part)
        return " · ".join(w if isinstance(part, str) else f"{key} {w}" for key, part, w in parts if w)
    text = "" if value is None else " ".join(mask_secrets(str(value)).split())
    return "".join(char for char in text if char.isprintable())


def diffs_text(diffs: Mapping[str, ReadingDiff]) -> str:
    """Render the diffs as plain text: for each repository a table of fields, and the examples."""
    columns = ("before", "after", *SIGNS)
    return render_markdown("reading_diff.txt", diffs=diffs, columns=columns, signs=SIGNS)
