"""What a change of the rules alters, as plain text: a table of all fields, then examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.extract.facts import Frozen
from app.knowledge.reading_diff import Example, FieldDiff, Kind, ReadingDiff

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
