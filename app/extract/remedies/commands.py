"""Extract the commands that were run, and whether they failed or worked according to the line above.

In: a `Document`. Out: `Attempt`s.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.document import Block, Document

Result = Literal["fails", "works"]

MAX_LABEL_CHARS = 160
MAX_ATTEMPTS = 40
MAX_READ_CHARS = 131_072
"""Code points of a source searched for commands: twice GitHub's limit for one text."""

_LIST = load("attempts")
_HINTS = ("vllm", "docker", "podman", "python")
_START = pattern(
    r"^\s*(?:[$>%]\s*|[-*]\s+)?`?(?:(?:sudo|exec|nohup|time|env|srun|numactl \S+)\s+)*"
    r"(?:(?:export\s+)?[A-Z][A-Z0-9_]*=\S*\s+)*"
    r"(?:vllm\s+(?:serve|bench|chat|complete)\b|(?:\S*/)?python[0-9.]*\s+(?:-\S+\s+)*\S*"
    r"|(?:docker|podman)\s+run\b|uv\s+run\b)"
)
_EXPORT = pattern(r"^\s*(?:[$>]\s*)?(?:export|set)\s+[A-Z][A-Z0-9_]*=")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command. `label` is the line above it that states the result; `result` is None if none does."""

    command: str
    source: str
    start: int
    end: int
    label: str
    result: Result | None
    is_workaround: bool


@lru_cache(maxsize=2)
def read_attempts(document: Document) -> tuple[Attempt, ...]:
    """Return all server and client commands of an issue, in reading order, up to `MAX_READ_CHARS`."""
    found: list[Attempt] = []
    label = ""
    for block in document.blocks:
        if block.start > MAX_READ_CHARS or len(found) >= MAX_ATTEMPTS:
            continue
        if block.kind == "heading":
            label = block.text
            continue
        if not any(hint in block.text for hint in _HINTS) and "export " not in block.text:
            last = next((line.text for line in reversed(block.lines) if line.text.strip()), "")
            label = last if block.kind != "code" else ""
            continue
        for attempt, after in _of_block(document, block, label):
            if attempt is not None and len(found) < MAX_ATTEMPTS:
                found.append(attempt)
            label = after
    return tuple(found)


def _read_result(label: str) -> Result | None:
    """Return whether a label line says that what follows works or fails."""
    low = label.lower()
    negated, good, bad = (
        any(words in low for words in _LIST[name]) for name in ("negated", "works", "fails")
    )
    if negated:
        return "fails"
    if good == bad:
        return "works" if good and "workaround" in low else None
    return "works" if good else "fails"


def _of_block(document: Document, block: Block, label: str) -> Iterator[tuple[Attempt | None, str]]:
    """Yield the attempts of a block, each with the label that applies after it."""
    source = document.sources[block.source]
    start = end = -1
    goes_on = False
    for line in block.lines:
        if line.start > MAX_READ_CHARS:
            break
        text = line.text
        if start >= 0 and (goes_on or text.lstrip().startswith("--")):
            end, goes_on = line.end, text.rstrip().endswith("\\")
            continue
        if start >= 0:
            yield _attempt(source, block.source, start, end, label), ""
            start, label = -1, ""
        if not text.strip():
            continue
        if _is_command(text):
            start, end, goes_on = line.start, line.end, text.rstrip().endswith("\\")
        elif block.kind != "code" or text.lstrip().startswith("#"):
            label = text
    if start >= 0:
        yield _attempt(source, block.source, start, end, label), ""
        label = ""
    yield None, label


def _is_command(text: str) -> bool:
    if any(hint in text for hint in _HINTS):
        return bool(_START.search(text))
    return "=" in text and bool(_EXPORT.search(text))


def _attempt(source: str, name: str, start: int, end: int, label: str) -> Attempt:
    whole = source[start:end]
    command = whole.strip()
    begin = start + len(whole) - len(whole.lstrip())
    short = label if len(label) <= MAX_LABEL_CHARS else ""
    result = _read_result(short)
    is_workaround = result != "fails" and ("workaround" in short.lower() or "绕过" in short)
    return Attempt(command, name, begin, begin + len(command), short, result, is_workaround)
