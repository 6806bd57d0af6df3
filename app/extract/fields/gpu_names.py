"""Find names of accelerators in a text, with their canonical form and architecture.

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
    """Return the architecture of an accelerator; None if unknown."""
    for rule in load_rules("architecture"):
        if rule.pattern.search(gpu.strip()):
            return str(rule["value"])
    return None


def architectures_of(gpus: Iterable[str]) -> frozenset[str]:
    """Return the architectures of these accelerators; unknown ones are left out."""
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
"""Mentions read per text; texts with more are tables of something else."""

MAX_COUNT = 4_096

_LIST = load("gpus")
_NAMES: dict[str, str] = _LIST["names"]
GPU_NAMES = tuple(_NAMES)
"""Canonical names of accelerators, without families whose names contain a model number."""
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
_INNER_COUNT = pattern(r"\d ?[x×*] ?(\d{1,2})$|^(\d{1,2}) ?[x×*]", ignore_case=True)
NO_ARCH = "NoGCNArchName"
"""Suffix that old ROCm builds of torch append to the GPU's name."""

_SUFFIXES = (("super", "SUPER"), ("ti", "Ti"), ("d", "D"), ("laptop", "Laptop"))


@dataclass(frozen=True, slots=True)
class GpuMention:
    """An accelerator named in a text; `count` is the number stated beside it."""

    name: str
    span: Span
    count: int | None
    is_branded: bool


@lru_cache(maxsize=4096)
def canonical_name(text: str) -> str | None:
    """Return the canonical name of an accelerator as written by a driver or a person; None if unknown."""
    text = text[:120]
    bare = text.split(" (gfx", maxsplit=1)[0].split(NO_ARCH, maxsplit=1)[0]
    bare = bare.replace("(R)", "").replace("(TM)", "").strip(" .")
    return _exact(bare) or next((mention.name for mention in find_mentions(text)), None)


def gpu_name(text: str) -> str | None:
    """Return the canonical name of an accelerator given with or without brand and count; None if unknown."""
    found = _COUNTED.match(text)
    for name in (found[2] if found else text, text):
        if name.upper() == "CPU":
            return "CPU"
        if known := canonical_name(name) or canonical_name(f"NVIDIA {name}"):
            return known
    return None


def gpu_doubt(text: str) -> str | None:
    """Return a warning that no GPU has this name, with the nearest known one; None if it is known."""
    if gpu_name(text) is not None:
        return None
    near = get_close_matches(text.upper(), GPU_NAMES, n=1, cutoff=0.6)
    return f"{text[:40]} is no known GPU" + (f"; the nearest is {near[0]}." if near else ".")


def _fill(name: str, match: Any, text: str) -> str:
    """Fill a family's name with its model number and suffixes such as "Ti" or "SUPER"."""
    if "NUMBER" not in name:
        return name
    filled = name.replace("NUMBER", match.group(1))
    rest = text.lower()[text.find(match.group(1)) + len(match.group(1)) :]
    words = set(rest.replace("-", " ").replace("_", " ").replace("ti", " ti ", 1).split())
    return " ".join([filled, *(label for word, label in _SUFFIXES if word in words)])


def find_mentions(text: str, source: str = "", offset: int = 0) -> Iterator[GpuMention]:
    """Yield the accelerators named in a text, in order; `offset` is the text's position in `source`."""
    for match in islice(_ANY.finditer(text), MAX_MENTIONS):
        words = match.group(2)
        is_cut = words[0].isdigit() and match.end(1) == match.start(2)  # 2080 out of 122080
        if not is_cut and (name := _exact(words)):
            span = (source, offset + match.start(2), offset + match.end(2))
            yield GpuMention(name, span, _count(match), bool(_BRANDED.match(words)))


@lru_cache(maxsize=4096)
def _exact(words: str) -> str | None:
    return next(
        (_fill(name, found, words) for compiled, name in _EACH if (found := compiled.fullmatch(words))), None
    )


def _count(match: Any) -> int | None:
    """Return the count beside a name, or matched as part of it: "4xL4", "L4 * 4"; None if there is none."""
    total = 1
    is_named = match.group().startswith("_")  # the architecture of "sm_120 5090"
    around = [word for word in match.group(*((3, 4) if is_named else (1, 3, 4))) if word]
    for word in around:
        total *= COUNT_WORDS.get(word.lower()) or int(word)
    if around and 0 < total <= MAX_COUNT:
        return total
    inner = _INNER_COUNT.search(match.group(2))
    return int(inner.group(1) or inner.group(2)) if inner else None
