"""Names of accelerators: finds them in a text, gives each its canonical form and its architecture.

In: any text. Out: `GpuMention`s, each with the canonical name, its span and the count beside it
("8xH100", "two A10", "A100 x 4"). The names are data: `lists/gpus.toml`, `lists/architecture.toml`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Any

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rules
from app.extract.text.document import Span

_COUNTED = re.compile(r"^(?:(\d{1,2}) ?[x×] ?)?(.+?)(?: ?[x×] ?(\d{1,2}))?$", re.IGNORECASE)


@lru_cache(maxsize=2048)
def architecture_of(gpu: str) -> str | None:
    """The architecture of one accelerator; None where it is not known."""
    for rule in load_rules("architecture"):
        if rule.pattern.search(gpu.strip()):
            return str(rule["value"])
    return None


def architectures_of(gpus: Iterable[str]) -> frozenset[str]:
    """The known architectures among these."""
    return frozenset(found for gpu in gpus if (found := architecture_of(gpu)) is not None)


COUNT_WORDS = {
    "single": 1,
    "one": 1,
    "two": 2,
    "dual": 2,
    "three": 3,
    "four": 4,
    "quad": 4,
    "eight": 8,
}

MAX_MENTIONS = 400
"""A text that names GPUs more often than this is a table of something else."""

MAX_COUNT = 4_096
MAX_CHAINED = 6
"""Names that one slash after another may join."""

_LIST = load("gpus")
_NAMES: dict[str, str] = _LIST["names"]
GPU_NAMES = tuple(_NAMES)
"""Canonical names of accelerators, without those of families with a number."""
_FAMILIES: list[dict[str, str]] = _LIST["family"]
_BRAND, _TAIL = _LIST["brand"], _LIST["tail"]
_TEXTS: tuple[tuple[str, str], ...] = (
    *_NAMES.items(),
    *((row["name"], row["pattern"].replace("NUMBER", f"({row['number']})")) for row in _FAMILIES),
)
_ALL = "|".join(
    [*_NAMES.values(), *(row["pattern"].replace("NUMBER", f"(?:{row['number']})") for row in _FAMILIES)]
)
_ANY = pattern(
    r"(?:^|[^\w#/.\-@&]|_)"
    r"(?:(\d{1,3}|single|one|two|dual|three|four|quad|eight)[ \-]?(?:\\?[x×*][ ]?)?)?"
    rf"({_BRAND}(?:{_ALL}){_TAIL})"
    r"(?:(?:['’]?s)?(?:\b|$)(?:[ ]?\\?[x×*][ ]?(\d{1,2})\b)?|[x×*](\d{1,2})\b)",
    ignore_case=True,
)
_EACH: tuple[tuple[Any, str], ...] = tuple(
    (pattern(f"{_BRAND}(?:{text}){_TAIL}", ignore_case=True), name) for name, text in _TEXTS
)
_BRANDED = pattern(
    r"^(?:NVIDIA|AMD|Intel|GeForce|Tesla|Quadro|Instinct|Radeon|GRID|TPU)[ _\-(]", ignore_case=True
)
_CHAINED = pattern(rf"^[/&+]({_BRAND}(?:{_ALL}){_TAIL})(?:\b|$)", ignore_case=True)
_INNER_COUNT = pattern(r"\d ?[x×*] ?(\d{1,2})$")
NO_ARCH = "NoGCNArchName"
"""What old ROCm builds of torch glue to the name of a GPU."""

_SUFFIXES = (("super", "SUPER"), ("ti", "Ti"), ("d", "D"), ("laptop", "Laptop"))


@dataclass(frozen=True, slots=True)
class GpuMention:
    """One accelerator named in a text; `count` is what the words beside it say."""

    name: str
    span: Span
    count: int | None
    is_branded: bool


@lru_cache(maxsize=4096)
def canonical_name(text: str) -> str | None:
    """The canonical name of an accelerator as written by a driver or a person; None if unknown."""
    text = text[:120]
    bare = text.split(" (gfx", maxsplit=1)[0].split(NO_ARCH, maxsplit=1)[0]
    bare = bare.replace("(R)", "").replace("(TM)", "").strip(" .")
    return _exact(bare) or next((mention.name for mention in find_mentions(text)), None)


def gpu_name(text: str) -> str | None:
    """The canonical name of an accelerator, with or without its brand and count; None if it is none."""
    found = _COUNTED.match(text)
    for name in (found[2] if found else text, text):
        if name.upper() == "CPU":
            return "CPU"
        if known := canonical_name(name) or canonical_name(f"NVIDIA {name}"):
            return known
    return None


def gpu_doubt(text: str) -> str | None:
    """That no GPU has this name, with the nearest one that there is, in a sentence."""
    if gpu_name(text) is not None:
        return None
    near = get_close_matches(text.upper(), GPU_NAMES, n=1, cutoff=0.6)
    return f"{text[:40]} is no known GPU" + (f"; the nearest is {near[0]}." if near else ".")


def _fill(name: str, match: Any, text: str) -> str:
    """A family's name with its number and the suffixes that make another product."""
    if "NUMBER" not in name:
        return name
    filled = name.replace("NUMBER", match.group(1))
    rest = text.lower()[text.find(match.group(1)) + len(match.group(1)) :]
    words = set(rest.replace("-", " ").replace("_", " ").replace("ti", " ti ", 1).split())
    return " ".join([filled, *(label for word, label in _SUFFIXES if word in words)])


def find_mentions(text: str, source: str = "", offset: int = 0) -> Iterator[GpuMention]:
    """All accelerators named in a text, in order; `source` and `offset` say where the text stands."""
    for match in islice(_ANY.finditer(text), MAX_MENTIONS):
        words = match.group(2)
        if name := _exact(words):
            span = (source, offset + match.start(2), offset + match.end(2))
            yield GpuMention(name, span, _count(match), bool(_BRANDED.match(words)))
            yield from _chained(text, match.end(), source, offset)


def _chained(text: str, at: int, source: str, offset: int) -> Iterator[GpuMention]:
    """The further names of "A100/H100" or "L4&T4": a slash alone would be a path."""
    for _ in range(MAX_CHAINED):
        match = _CHAINED.match(text[at : at + 60]) if text[at : at + 1] in ("/", "&", "+") else None
        if match is None or (name := _exact(match.group(1))) is None:
            return
        start, end = match.span(1)
        yield GpuMention(name, (source, offset + at + start, offset + at + end), None, is_branded=False)
        at += end


@lru_cache(maxsize=4096)
def _exact(words: str) -> str | None:
    return next(
        (_fill(name, found, words) for compiled, name in _EACH if (found := compiled.fullmatch(words))), None
    )


def _count(match: Any) -> int | None:
    """The count around a name, or inside one that needs it to be a name: "4xL4", "L4 * 4", "single L4"."""
    total = 1
    around = [word for word in match.group(1, 3, 4) if word]
    for word in around:
        total *= COUNT_WORDS.get(word.lower()) or int(word)
    if around and 0 < total <= MAX_COUNT:
        return total
    words = match.group(2)
    if trailing := _INNER_COUNT.search(words):
        return int(trailing.group(1))
    digits = words[: len(words) - len(words.lstrip("0123456789"))]
    if digits and words[len(digits) :].lstrip()[:1] in ("x", "X", "×", "*"):
        return int(digits)
    return COUNT_WORDS.get(words.split(maxsplit=1)[0].lower()) if words[0].islower() else None
