"""What people say: the sentences of an issue's prose, headings and quotes, with their places.

In: a `Document`. Out: `Sentence`s in reading order. Logs, code, commands, environment tables and the
form's own words are left out, so that the readers of remedies, regressions and causes see people only.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.document import Block, Document, Line

MAX_SENTENCE_CHARS = 600
"""Longer runs without a full stop are tables or program output; they are cut here."""

MAX_PROSE_CHARS = 131_072
"""How much prose of one source is read: GitHub lets nobody write more than 65,536 characters into a body or
comment, so twice that is all a person can have said; imported files know no such limit."""

WRAPPED_LINE_CHARS = 60
"""A line this long without an end sign goes on in the next one."""

_LIST = load("narrative")
_BOILERPLATE: tuple[str, ...] = tuple(_LIST["boilerplate"])
_PROPOSAL_HEADINGS: tuple[str, ...] = tuple(_LIST["proposal_headings"])
_NO_REPORT: tuple[str, ...] = tuple(_LIST["no_report_titles"])
_ABBREVIATIONS: tuple[str, ...] = tuple(_LIST["abbreviations"])
_COMMANDS: tuple[str, ...] = tuple(_LIST["command_starts"])
_COMMENTED = pattern(
    r"(?i)^[^\n]{3,120} (?:(?:is|are|was) (?:also )?(?:ok|fine)|(?:work|fixe|solve|resolve)[sd]|worked)\b"
)
_END = pattern(r"\.\)? |[?!] |\.\t|[。！？；]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: `text == source[start:end]`; `low` is its lower-case form, of the same length."""

    text: str
    low: str
    source: str
    start: int
    end: int
    heading: str
    is_heading: bool = False

    def span(self, start: int, end: int) -> tuple[str, int, int]:
        """A place in this sentence as a place in its source."""
        return self.source, self.start + start, self.start + end

    @property
    def is_proposal(self) -> bool:
        """Whether the section only proposes, expects or asks."""
        return _is_proposal(self.heading)


@lru_cache(maxsize=256)
def _is_proposal(heading: str) -> bool:
    low = heading.lower()
    return any(word in low for word in _PROPOSAL_HEADINGS)


def is_request(document: Document) -> bool:
    """Whether the title's tag says that nothing failed: a feature, an RFC, a new model, the docs."""
    title = document.issue.title[:40].lower().replace(" ", "")
    return title.startswith(_NO_REPORT)


def lower(text: str) -> str:
    """Lower case of the same length, so that positions hold for both."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def is_commented(command: str) -> bool:
    """Whether a command line says what came of it: "pip install x works"."""
    return bool(_COMMENTED.search(command))


@lru_cache(maxsize=2)
def read_sentences(document: Document) -> tuple[Sentence, ...]:
    """All sentences that people wrote, in reading order; at most `MAX_PROSE_CHARS` of each source."""
    return tuple(_of_document(document))


def _of_document(document: Document) -> Iterator[Sentence]:
    left: dict[str, int] = {}
    for block in document.blocks:
        room = left.get(block.source, MAX_PROSE_CHARS)
        if block.kind != "code" and room > 0:
            left[block.source] = room - (block.end - block.start)
            yield from _of_block(document.sources[block.source], block, room)


def _of_block(source: str, block: Block, room: int) -> Iterator[Sentence]:
    limit = block.start + room
    for start, end in _paragraphs(line for line in block.lines if line.start < limit):
        for left, right in _cut(source, start, min(end, limit)):
            text = source[left:right]
            yield Sentence(
                text, lower(text), block.source, left, right, block.heading, block.kind == "heading"
            )


def _paragraphs(lines: Iterable[Line]) -> Iterator[tuple[int, int]]:
    """Lines, those joined that one sentence was wrapped over."""
    start = end = -1
    last = ""
    in_command = False
    for line in lines:
        text = line.text.strip()
        was_command, in_command = in_command, text.endswith("\\")
        if was_command or _is_noise(text):
            text = ""
        if start >= 0 and text and _goes_on(last, text):
            end, last = line.end, text
            continue
        if start >= 0:
            yield start, end
        start, end, last = (line.start, line.end, text) if text else (-1, -1, "")
    if start >= 0:
        yield start, end


def _goes_on(last: str, text: str) -> bool:
    return (
        len(last) >= WRAPPED_LINE_CHARS
        and last[-1] not in ".:!?;|。：！？"
        and text[0].islower()
        and not last.startswith("|")
    )


def _is_noise(text: str) -> bool:
    if not text:
        return True
    if text.startswith(_COMMANDS):
        return not is_commented(text)
    if text[0] in "-*[" and "[" in text[:4]:
        return any(words in text for words in _BOILERPLATE)
    if text[0] in "_<" and text[-1] in "_>" and len(text) < 80:
        return True
    return text.endswith("\\") and text.startswith("-")


def _cut(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A paragraph cut into sentences, without the white space around them."""
    left = start
    for mark in (*_marks(source[start:end], start), end):
        for piece in range(left, mark, MAX_SENTENCE_CHARS):
            text = source[piece : min(mark, piece + MAX_SENTENCE_CHARS)]
            if body := text.strip():
                lead = len(text) - len(text.lstrip())
                yield piece + lead, piece + lead + len(body)
        left = mark


def _marks(text: str, offset: int) -> Iterator[int]:
    """Where sentences end; a full stop behind an abbreviation ends none."""
    for match in _END.finditer(text):
        if not text.startswith(".", match.start()) or not text.endswith(_ABBREVIATIONS, 0, match.start()):
            yield offset + match.end()
