"""vLLM versions in sentences, and claims that something works.

`versions_in`: a `Sentence` in, vLLM's versions with their positions out. Numbers after another package's
name, memory sizes, sampling settings and addresses are excluded.
`claimed_to_work`: a `Document` and a span in; out whether its sentence, or the line above its code block,
says that it works. Settings in such places are not those of the failure.
"""

from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import Places
from app.extract.text.document import Document, Span
from app.extract.text.sentences import Sentence

_FOREIGN: tuple[str, ...] = tuple(load("regression")["foreign"])
_OURS = ("vllm-openai", "vllm/vllm-openai", "vllm")
_VERSION = pattern(
    r"(?:\b|vllm[_-]?)(?:v\.? ?)?"
    r"(\d{1,2}\.\d{1,2}(?:\.\d{1,2}){0,2}(?:[._-]?(?:post|rc|dev|a|b)\d+)*(?:\.dev\d+)?(?:\+[\w.]*\w)?)(?:\b|_|xx)",
    ignore_case=True,
)
_UNITS = (" gb", " gib", " mb", " tok", " s ", "gb", " ms", "s)")
_LISTED = frozenset(
    [",", "and", "->", "to", "/", "or", "→", "=>", "~", "vs", "vs.", "&", "、", "和", ", and"]
)
_BEFORE_SHORT = (" on", " in", "since", "from", " with", " than")
FOREIGN_MAJOR_FROM = 1
"""vLLM's major version is 0; a larger one belongs to another package."""
LAST_MINOR = 40
"""Highest plausible minor version of vLLM; raise it as releases approach it."""


@dataclass(frozen=True, slots=True)
class VersionMention:
    """A version and its position in the sentence, including a leading v."""

    text: str
    start: int
    end: int


def versions_in(sentence: Sentence) -> list[VersionMention]:
    """Return vLLM's versions in a sentence, without those of other packages."""
    if "." not in sentence.text:
        return []
    found: list[VersionMention] = []
    foreign_end = -10
    for match in _VERSION.finditer(sentence.text):
        start, end = match.start(), match.end(1)
        before = sentence.low[max(0, start - 28) : start].rstrip(" =<>~:`*(v-@")
        is_listed = sentence.text[foreign_end:start].strip(" `*") in _LISTED
        is_foreign = before.endswith(_FOREIGN) and not before.endswith(_OURS)
        if is_foreign or (foreign_end > 0 and is_listed):
            foreign_end = end
        elif _is_vllm_version(sentence, match, before, found[-1].end if found else -1):
            found.append(VersionMention(match.group(1), start, end))
    return found


def names_other(low: str) -> bool:
    """True if a text names another package and not vLLM."""
    return "vllm" not in low and any(word in _FOREIGN for word in low.replace(",", " ").split())


def _is_vllm_version(sentence: Sentence, match: Any, before: str, last_end: int) -> bool:
    """True if a number is a vLLM version, judged by its format and context.

    Args:
        last_end: where the last version before it ends: in "0.8.3, 0.9" both are named.
    """
    text, start, end = match.group(1), match.start(), match.end(1)
    numbers = text.split(".")
    is_named = (
        match.group(0)[:1] in "vV"
        or before.endswith(("vllm", "version", "release", "image", "openai"))
        or sentence.text[last_end:start].strip(" `*") in _LISTED
    )
    if text.startswith("0.0.") or (sentence.text[end : end + 2] in (".x", ".*") and len(numbers) > 2):
        return False
    if (
        int(numbers[0]) >= FOREIGN_MAJOR_FROM
        or int("".join(takewhile(str.isdigit, numbers[1]))) > LAST_MINOR
        or (len(numbers) < 3 and not _is_short_version(sentence, match, is_named))
    ):
        return False
    if sentence.text[end : end + 1] == "%" or sentence.low.startswith(_UNITS, end):
        return False
    return is_named or start == 0 or sentence.text[start - 1] not in "-/=_"


def _is_short_version(sentence: Sentence, match: Any, is_named: bool) -> bool:
    """True if a number such as `0.27` is a version: called one, or after a word such as "on" or "since"."""
    start: int = match.start()
    text: str = match.group(1)
    before = sentence.low[max(0, start - 7) : start].rstrip(" `*")
    return is_named or (before.endswith(_BEFORE_SHORT) and len(text) >= 4 and text[2] in "123")


MAX_LINE_CHARS = 300
"""Characters of prose read on either side of a span."""

_LIST = load("models")["works"]
_END = pattern(r"\n|\. |; ")
_WORKS = pattern(_LIST["line"], ignore_case=True)
_FAILS = pattern(_LIST["unless"], ignore_case=True)


def claimed_to_work(document: Document, places: Places, span: Span) -> bool:
    """True if a span's sentence, or the last prose line before its code block, says that it works."""
    source, start, end = span
    block = places.block_at(source, start)
    if block is None:
        return False
    text = document.sources[source]
    if block.kind == "prose":
        before = text[max(block.start, start - MAX_LINE_CHARS) : start]
        after = text[start : min(block.end, end + MAX_LINE_CHARS)]
        return _says_it_works(_END.split(before)[-1] + _END.split(after)[0])
    if block.kind != "code":
        return False
    lead = places.block_at(source, block.start - 1)
    if lead is None or lead.start >= block.start or lead.kind not in ("prose", "heading"):
        return False
    above = text[max(lead.start, block.start - MAX_LINE_CHARS) : block.start].splitlines()
    lines = [line for line in above if line.strip("`~ \t")]
    return bool(lines) and _says_it_works(lines[-1])


def _says_it_works(line: str) -> bool:
    return bool(_WORKS.search(line)) and not _FAILS.search(line)
