"""What a change of the rules alters, as plain text: a table of all fields, then examples.

What a change of the rules alters: readings of the same issues compared, field by field.

In: for each issue what it was read as before and after. Out: `ReadingDiff`, counts and a few examples of
each field. A field is a name of `Facts`, or `field.key` where its value has keys (`backends.attention`,
`error.type`). Besides these: `links`; `fault`, the exception a rule threw; and `evidence`, whose change is
that of a value's quote, place, rule or confidence while the value stays.
Nothing is kept of an issue but the examples, so that any number of issues can be compared.
"""

from __future__ import annotations

import zlib
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from app.extract.facts import Evidence, Facts, Frozen
from app.extract.redaction.redact import mask_secrets
from app.store.records import LinkRecord

WIDTH = 96
SIGNS: dict[Kind, str] = {"added": "+", "removed": "-", "changed": "~"}

_HEAD = "issues with a value"
_COLUMNS = ("before", "after", "added", "removed", "changed")


class ReadingDiffs(Frozen):
    """What would be altered, by repository."""

    repositories: dict[str, ReadingDiff]


def diffs_text(diffs: Mapping[str, ReadingDiff]) -> str:
    """All repositories, each with its table and its examples."""
    return "\n\n".join("\n".join(_lines(repo, diff)) for repo, diff in diffs.items()) + "\n"


def _lines(repo: str, diff: ReadingDiff) -> Iterator[str]:
    stored = ", ".join(f"{rules} ({count:,})" for rules, count in diff.stored_rules.items())
    yield f"{repo}: {diff.differing:,} of {diff.compared:,} issues and pull requests would be read otherwise"
    yield f"rules stored: {stored or 'none'}; now: {diff.rules}"
    if diff.never_read:
        yield f"{diff.never_read:,} more were never read and are not compared"
    if not diff.fields:
        return
    yield ""
    width = max(len(name) for name in (_HEAD, *(item.field for item in diff.fields)))
    yield f"{_HEAD:{width}}" + "".join(f"{name:>9}" for name in _COLUMNS)
    for item in diff.fields:
        yield _row(item, width)
    for item in diff.fields:
        if item.examples:
            yield ""
            yield _title(item)
            for example in item.examples:
                yield from _example(example)


def _row(item: FieldDiff, width: int) -> str:
    altered = "".join(f"{count or '·':>9{',' if count else ''}}" for count in _altered(item))
    return f"{item.field:{width}}{item.before:>9,}{item.after:>9,}{altered}"


def _altered(item: FieldDiff) -> tuple[int, int, int]:
    return item.added, item.removed, item.changed


def _title(item: FieldDiff) -> str:
    counts = zip(_altered(item), SIGNS, strict=True)
    return f"{item.field}: " + ", ".join(f"{count:,} {kind}" for count, kind in counts if count)


def _example(example: Example) -> Iterator[str]:
    head = f"  {SIGNS[example.kind]} #{example.number:<6} "
    if example.kind != "changed":
        yield head + (example.after or example.before)
    elif len(line := f"{head}{example.before} -> {example.after}") <= WIDTH:
        yield line
    else:
        yield head + example.before
        yield f"{'->':>{len(head) - 1}} {example.after}"


Kind = Literal["added", "removed", "changed"]

KINDS: tuple[Kind, ...] = ("added", "removed", "changed")
EXAMPLE_CHARS = 80
"""Of a value that an example shows; two of them are two lines of a terminal."""
LEAD_CHARS = 20
"""What an example shows of the text before the first difference."""

_NO_KIND = Facts.model_fields["failure_kind"].default
_NOT_SHOWN = frozenset({"number", "evidence"})
_ORDER = [*Facts.model_fields, "links", "fault"]
_ORDER.append(_ORDER.pop(_ORDER.index("evidence")))


class Example(Frozen):
    """One issue whose value is another; `before` and `after` are masked, and cut to where they differ."""

    number: int
    kind: Kind
    before: str
    after: str


class FieldDiff(Frozen):
    """How many issues have a value of the field, and what becomes of it: after = before + added - removed."""

    field: str
    before: int
    after: int
    added: int
    removed: int
    changed: int
    examples: tuple[Example, ...]


class ReadingDiff(Frozen):
    """The whole. `stored_rules` counts the readings compared by the rules they are from."""

    rules: str
    stored_rules: dict[str, int]
    compared: int
    differing: int
    never_read: int
    fields: tuple[FieldDiff, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """One reading: what each field has, if anything, and the evidence by the first part of its field."""

    of: Mapping[str, Any]
    evidence: Mapping[str, Sequence[tuple[Any, ...]]]


def values_of(
    facts: Mapping[str, Any] | None,
    evidence: Iterable[Evidence],
    links: Iterable[LinkRecord],
    fault: str | None,
) -> Values:
    """A reading as it is compared.

    Args:
        facts: `Facts` as JSON, of any age; None where a rule threw.
        evidence: of its values.
        links: that the text tells.
        fault: the class name of what the rule threw.
    """
    found: dict[str, Any] = {}
    for name, value in (facts or {}).items():
        if name in _NOT_SHOWN:
            continue
        parts = {f"{name}.{key}": v for key, v in value.items()} if isinstance(value, dict) else {name: value}
        found |= {key: part for key, part in parts.items() if part}
    if found.get("failure_kind") == _NO_KIND:
        del found["failure_kind"]
    if told := sorted({f"{link.kind} {link.target_repo}#{link.target_number}" for link in links}):
        found["links"] = told
    if fault:
        found["fault"] = fault
    quotes: dict[str, list[tuple[Any, ...]]] = {}
    for item in evidence:
        place = (item.source, item.start, item.end)
        quotes.setdefault(item.field.partition(".")[0], []).append(
            (item.field, item.value, item.quote, *place, item.rule, item.confidence)
        )
    return Values(found, {name: sorted(items) for name, items in quotes.items()})


def changes_between(before: Values, after: Values) -> dict[str, tuple[Any, Any]]:
    """Each field whose value is another, with both values; None where it has none."""
    changes = {
        name: (before.of.get(name), after.of.get(name))
        for name in {**before.of, **after.of}
        if before.of.get(name) != after.of.get(name)
    }
    if bool(before.evidence) != bool(after.evidence):
        changes["evidence"] = (_quoted(before.evidence.values()), _quoted(after.evidence.values()))
        return changes
    same = {**before.evidence, **after.evidence}.keys() - {name.partition(".")[0] for name in changes}
    other = [name for name in sorted(same) if before.evidence.get(name) != after.evidence.get(name)]
    if other:
        changes["evidence"] = (
            _quoted(before.evidence.get(name, ()) for name in other),
            _quoted(after.evidence.get(name, ()) for name in other),
        )
    return changes


def _quoted(groups: Iterable[Iterable[tuple[Any, ...]]]) -> list[str] | None:
    return [
        f"{name} “{quote}” {source} {start}-{end} {rule} {confidence:g}"
        for group in groups
        for name, _, quote, source, start, end, rule, confidence in group
    ] or None


@dataclass
class Tally:
    """Adds up what becomes of each field, issue by issue.

    Args:
        examples: how many to keep of each kind of change of each field. Which ones is told by the issues'
            numbers alone, so that the next comparison shows the same issues, from all years.
    """

    examples: int
    compared: int = field(default=0, init=False)
    differing: int = field(default=0, init=False)
    _before: dict[str, int] = field(default_factory=dict, init=False)
    _changes: dict[tuple[str, Kind], int] = field(default_factory=dict, init=False)
    _kept: dict[tuple[str, Kind], list[tuple[int, int, Example]]] = field(default_factory=dict, init=False)

    def add(self, number: int, before: Values, after: Values) -> None:
        """Compare one issue."""
        self.compared += 1
        for name in (*before.of, *(["evidence"] if before.evidence else [])):
            self._before[name] = self._before.get(name, 0) + 1
        changes = changes_between(before, after)
        self.differing += bool(changes)
        for name, (old, new) in changes.items():
            kind: Kind = "changed"
            if name != "evidence" or bool(before.evidence) != bool(after.evidence):
                kind = "added" if old is None else "removed" if new is None else "changed"
            self._changes[name, kind] = self._changes.get((name, kind), 0) + 1
            self._keep(number, name, kind, old, new)

    def _keep(self, number: int, name: str, kind: Kind, old: Any, new: Any) -> None:
        kept = self._kept.setdefault((name, kind), [])
        place = zlib.crc32(str(number).encode())
        if len(kept) < self.examples or (kept and place < kept[-1][0]):
            old_text, new_text = _shown(old, new)
            insort(kept, (place, number, Example(number=number, kind=kind, before=old_text, after=new_text)))
            del kept[self.examples :]

    def result(self, rules: str, stored_rules: dict[str, int], *, never_read: int) -> ReadingDiff:
        """The sum; of each field that any issue had before or has after, in the order of `Facts`.

        Args:
            rules: the version of those that read after.
            stored_rules: how many issues each version had read before.
            never_read: how many issues there was nothing to compare with.
        """
        names = {*self._before, *(name for name, _ in self._changes)}
        return ReadingDiff(
            rules=rules,
            stored_rules=stored_rules,
            compared=self.compared,
            differing=self.differing,
            never_read=never_read,
            fields=tuple(self._field(name) for name in sorted(names, key=_place)),
        )

    def _field(self, name: str) -> FieldDiff:
        before = self._before.get(name, 0)
        added, removed, changed = (self._changes.get((name, kind), 0) for kind in KINDS)
        return FieldDiff(
            field=name,
            before=before,
            after=before + added - removed,
            added=added,
            removed=removed,
            changed=changed,
            examples=tuple(item for kind in KINDS for *_, item in self._kept.get((name, kind), ())),
        )


def _place(name: str) -> tuple[int, str]:
    top = name.partition(".")[0]
    return (_ORDER.index(top) if top in _ORDER else len(_ORDER), name)


# ---- examples


def _shown(old: Any, new: Any) -> tuple[str, str]:
    """Both values in words; of long ones what differs."""
    before, after = _words(old), _words(new)
    if max(len(before), len(after)) <= EXAMPLE_CHARS:
        return before, after
    if isinstance(old, list) and isinstance(new, list):
        gone, come = ([item for item in a if item not in b] for a, b in ((old, new), (new, old)))
        if gone or come:
            before, after = _words(gone), _words(come)
    shorter = min(len(before), len(after))
    common = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    start = max(0, common - LEAD_CHARS) if common > EXAMPLE_CHARS // 2 else 0
    return _cut(before, start), _cut(after, start)


def _cut(text: str, start: int) -> str:
    lead, rest = ("…" if start else ""), text[start:]
    return lead + (rest if len(rest) <= EXAMPLE_CHARS else rest[: EXAMPLE_CHARS - 1] + "…")


def _words(value: Any) -> str:
    """A value on one line, without its empty parts; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(_words(item) for item in value)
    if isinstance(value, dict):
        parts = (_part(key, value[key]) for key in sorted(value) if value[key])
        return " · ".join(part for part in parts if part)
    text = " ".join(mask_secrets(str(value)).split())
    return "".join(char for char in text if char.isprintable())


def _part(key: str, part: Any) -> str:
    if isinstance(part, dict):
        inner = _words(part)
        return f"{key}: {inner}" if inner else ""
    return _words(part) if isinstance(part, str) else f"{key} {_words(part)}"
