"""Parse the output of `python collect_env.py`, in all the forms it is pasted in.

In: a `Document`. Out: `Environment`, the dump's entries, GPU lines and package lines, each with its
span; and `environment_facts`, the values that have no field of their own.

The dump has two layouts (`label: value` and, since 0.9, `label      : value` under banners). Half of the
pasted dumps have lost their line breaks, so a value ends at a line end, a banner or the next label.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import windows
from app.extract.text.document import Document, Span

GPU_LABELS = ("GPU models and configuration", "Intel GPU models")
PACKAGE_MARKS = ("[pip3] ", "[conda] ")
MAX_VALUE_CHARS = 300
MAX_GPU_REGION_CHARS = 6_000

_LIST = load("environment")
_UNKNOWN = frozenset(_LIST["unknown"])
_MARKS: tuple[str, ...] = tuple(_LIST["marks"])
_LABELS: tuple[str, ...] = tuple(sorted(_LIST["labels"], key=len, reverse=True))
_GPU_INDEX = pattern(r"\b(?:GPU|XPU) (\d{1,2}): *")


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of the dump and its span."""

    value: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """The values of a dump, without placeholders for unknown values. Compared by identity.

    `entries` maps the dump's own labels to values, `packages` maps package names (lower case) to versions.
    `gpus` has one entry per GPU line. `is_indexed`: these lines number the machine's GPUs
    (`GPU 0: …`); ROCm's do not.
    """

    entries: Mapping[str, Entry] = field(default_factory=dict)
    gpus: tuple[Entry, ...] = ()
    packages: Mapping[str, Entry] = field(default_factory=dict)
    is_indexed: bool = False
    has_dump: bool = False


def read_environment(document: Document) -> Environment:
    """Merge all dumps of a document; the first value of each label wins."""
    entries: dict[str, Entry] = {}
    packages: dict[str, Entry] = {}
    gpus: tuple[Entry, ...] = ()
    is_indexed = False
    for source, offset, text in windows(document):
        if not any(mark in text for mark in _MARKS):
            continue
        labels = _find_labels(text)
        limits = [start for start, _, _ in labels[1:]] + [len(text)]
        for (_, end, name), limit in zip(labels, limits, strict=False):
            if name in GPU_LABELS:
                if not gpus:
                    gpus, is_indexed = _read_gpus(source, offset, text, end, limit)
            elif (entry := _read_value(source, offset, text, end, limit)) is not None:
                entries.setdefault(name, entry)
        for name, entry in _packages(source, offset, text):
            packages.setdefault(name, entry)
    return Environment(entries, gpus, packages, is_indexed, bool(entries))


def environment_facts(environment: Environment) -> dict[str, str]:
    """Return `Facts.environment`: `{name: value}` for values that have no field of their own."""
    facts: dict[str, str] = {}
    for name, label in _LIST["facts"].items():
        if label in environment.entries:
            facts[name] = environment.entries[label].value
    for name, candidates in _LIST["packages"].items():
        found = next((environment.packages[c] for c in candidates if c in environment.packages), None)
        if found is not None:
            facts[name] = found.value
    return facts


def _find_labels(text: str) -> list[tuple[int, int, str]]:
    """Return start, end and name of each known label before a colon, in order and without overlaps."""
    found: dict[int, tuple[int, int, str]] = {}
    for name in _LABELS:
        at = text.find(name)
        while at >= 0:
            end = stop = at + len(name)
            while text[stop : stop + 1] in (" ", "\t"):
                stop += 1
            if text[stop : stop + 1] == ":" and _begins_label(text, at, name):
                found.setdefault(end, (at, stop + 1, name))
            at = text.find(name, end)
    return sorted(found.values())


def _begins_label(text: str, at: int, name: str) -> bool:
    """True if a label may begin here: after white space or, if long, right after the previous value."""
    if at == 0 or text[at - 1].isspace() or text[at - 1] in "|*`-\"'":
        return True
    return len(name) > 9 and text[at - 1] != "_"


def _read_value(source: str, offset: int, text: str, start: int, limit: int) -> Entry | None:
    """Return the value between a label and the next delimiter; None if it is unknown."""
    stop = min(limit, start + MAX_VALUE_CHARS)
    for end_mark in ("\n", " =====", "```", "</details>"):
        cut = text.find(end_mark, start, stop)
        if cut >= 0:
            stop = cut
    while start < stop and text[start] in " \t\r*`|":
        start += 1
    while stop > start and text[stop - 1] in " \t\r*`|\"'":
        stop -= 1
    value = text[start:stop]
    if value.lower() in _UNKNOWN:
        return None
    return Entry(value, (source, offset + start, offset + stop))


def _read_gpus(source: str, offset: int, text: str, start: int, limit: int) -> tuple[tuple[Entry, ...], bool]:
    """Return the GPU lines below their label, and whether they are numbered."""
    limit = min(limit, start + MAX_GPU_REGION_CHARS)
    region = text[start:limit]
    marks = list(_GPU_INDEX.finditer(region))
    if not marks:
        entry = _read_value(source, offset, text, start, limit)
        return ((entry,) if entry else ()), False
    ends = [mark.start() for mark in marks[1:]] + [len(region)]
    entries = (
        _read_value(source, offset, text, start + mark.end(), start + end)
        for mark, end in zip(marks, ends, strict=True)
    )
    return tuple(entry for entry in entries if entry), True


def _packages(source: str, offset: int, text: str) -> Iterator[tuple[str, Entry]]:
    """Yield `[pip3] name==version` and `[conda] name version …`; pip first, as Python imports those."""
    for mark in PACKAGE_MARKS:
        at = text.find(mark)
        while at >= 0:
            start = at + len(mark)
            words = text[start : start + 160].split(None, 2)
            at = text.find(mark, start)
            if not words:
                continue
            name, _, version = words[0].partition("==")
            if not version and len(words) > 1:
                version = words[1]
            if not version or not version[0].isdigit():
                continue
            begin = text.find(version, start + len(name))
            span = (source, offset + begin, offset + begin + len(version))
            yield name.lower(), Entry(version, span)
