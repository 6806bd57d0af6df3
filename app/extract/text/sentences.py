"""Split an issue's prose, headings and quotes into sentences, with their positions.

In: a `Document`. Out: `Sentence`s in reading order. Logs, code, commands, environment tables and form
boilerplate are left out, so that the readers of remedies, regressions and causes see only what people wrote.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.document import Block, Document, Line

MAX_SENTENCE_CHARS = 600
"""Longer text without a full stop, such as tables or program output, is split at this length."""

MAX_PROSE_CHARS = 131_072
"""Maximum prose read per source: twice GitHub's limit of 65,536 characters for a body or comment; imported
files may be longer."""

WRAPPED_LINE_CHARS = 60
"""Minimum length of a line without end punctuation that may continue on the next line."""

_LIST = load("narrative")
_BOILERPLATE: tuple[str, ...] = tuple(_LIST["boilerplate"])
_PROPOSAL_HEADINGS: tuple[str, ...] = tuple(_LIST["proposal_headings"])
_NO_REPORT: tuple[str, ...] = tuple(_LIST["no_report_titles"])
_ABBREVIATIONS: tuple[str, ...] = tuple(_LIST["abbreviations"])
_COMMANDS: tuple[str, ...] = tuple(_LIST["command_starts"])
_STATES_RESULT = pattern(
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
        """Convert a position in this sentence to a span of its source."""
        return self.source, self.start + start, self.start + end

    @property
    def is_proposal(self) -> bool:
        """True if the sentence's section only proposes, expects or asks."""
        return _is_proposal(self.heading)


@lru_cache(maxsize=256)
def _is_proposal(heading: str) -> bool:
    low = heading.lower()
    return any(word in low for word in _PROPOSAL_HEADINGS)


def is_request(document: Document) -> bool:
    """True if the title's tag says that nothing failed: a feature, an RFC, a new model, the docs."""
    title = document.issue.title[:40].lower().replace(" ", "")
    return title.startswith(_NO_REPORT)


def lower(text: str) -> str:
    """Lower-case a text without changing its length, so that positions stay valid."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def is_commented(command: str) -> bool:
    """True if a command line also states the result: "pip install x works"."""
    return bool(_STATES_RESULT.search(command))


@lru_cache(maxsize=2)
def read_sentences(document: Document) -> tuple[Sentence, ...]:
    """Return all sentences in reading order, from at most `MAX_PROSE_CHARS` of each source."""
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
        for left, right in _split(source, start, min(end, limit)):
            text = source[left:right]
            yield Sentence(
                text, lower(text), block.source, left, right, block.heading, block.kind == "heading"
            )


def _paragraphs(lines: Iterable[Line]) -> Iterator[tuple[int, int]]:
    """Yield the spans of lines, with wrapped lines joined."""
    start = end = -1
    last = ""
    in_command = False
    for line in lines:
        text = line.text.strip()
        was_command, in_command = in_command, text.endswith("\\")
        if was_command or _is_noise(text):
            text = ""
        if start >= 0 and text and _continues(last, text):
            end, last = line.end, text
            continue
        if start >= 0:
            yield start, end
        start, end, last = (line.start, line.end, text) if text else (-1, -1, "")
    if start >= 0:
        yield start, end


def _continues(last: str, text: str) -> bool:
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


def _split(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of a paragraph's sentences, without surrounding white space."""
    left = start
    for mark in (*_sentence_ends(source[start:end], start), end):
        for piece in range(left, mark, MAX_SENTENCE_CHARS):
            text = source[piece : min(mark, piece + MAX_SENTENCE_CHARS)]
            if body := text.strip():
                lead = len(text) - len(text.lstrip())
                yield piece + lead, piece + lead + len(body)
        left = mark


def _sentence_ends(text: str, offset: int) -> Iterator[int]:
    """Yield the ends of sentences; a full stop after an abbreviation is none."""
    for match in _END.finditer(text):
        if not text.startswith(".", match.start()) or not text.endswith(_ABBREVIATIONS, 0, match.start()):
            yield offset + match.end()
