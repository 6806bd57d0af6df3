"""What people say: the sentences of an issue's prose, headings and quotes, with their places.

In: a `Document`. Out: `Sentence`s in reading order. Logs, code, commands, environment tables and the
form's own words are left out, so that the readers of remedies, regressions and causes see people only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.extract.document import Block, Document, Line
from app.extract.lists import load

MAX_SENTENCE_CHARS = 600
"""Longer runs without a full stop are tables or program output; they are cut here."""

WRAPPED_LINE_CHARS = 60
"""A line this long without an end sign goes on in the next one."""

_LIST = load("narrative")
_BOILERPLATE: tuple[str, ...] = tuple(_LIST["boilerplate"])
_PROPOSAL_HEADINGS: tuple[str, ...] = tuple(_LIST["proposal_headings"])
_NO_REPORT: tuple[str, ...] = tuple(_LIST["no_report_titles"])
_ABBREVIATIONS: tuple[str, ...] = tuple(_LIST["abbreviations"])
_COMMANDS: tuple[str, ...] = tuple(_LIST["command_starts"])
_ENDS = (". ", "? ", "! ", ".\t", "。", "！", "？", "；", ".) ")


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
        head = self.heading.lower()
        return any(word in head for word in _PROPOSAL_HEADINGS)


def is_request(document: Document) -> bool:
    """Whether the title's tag says that nothing failed: a feature, an RFC, a new model, the docs."""
    title = document.issue.title[:40].lower().replace(" ", "")
    return title.startswith(_NO_REPORT)


def lower(text: str) -> str:
    """Lower case of the same length, so that positions hold for both."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def read_sentences(document: Document) -> tuple[Sentence, ...]:
    """All sentences that people wrote, in reading order."""
    found: list[Sentence] = []
    for block in document.blocks:
        if block.kind != "code":
            found.extend(_of_block(document.sources[block.source], block))
    return tuple(found)


def _of_block(source: str, block: Block) -> Iterator[Sentence]:
    for start, end in _paragraphs(block.lines):
        for left, right in _cut(source, start, end):
            text = source[left:right]
            yield Sentence(
                text, lower(text), block.source, left, right, block.heading, block.kind == "heading"
            )


def _paragraphs(lines: tuple[Line, ...]) -> Iterator[tuple[int, int]]:
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
        len(last) >= WRAPPED_LINE_CHARS and last[-1] not in ".:!?;|。：！？" and text[0].islower()
        and not last.startswith("|")
    )  # fmt: skip


def _is_noise(text: str) -> bool:
    if not text or text.startswith(_COMMANDS):
        return True
    if text[0] in "-*[" and "[" in text[:4]:
        return any(words in text for words in _BOILERPLATE)
    if text[0] in "_<" and text[-1] in "_>" and len(text) < 80:
        return True
    return text.endswith("\\") and text.startswith("-")


def _cut(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A paragraph cut into sentences, without the white space around them."""
    marks = {end}
    for sign in _ENDS:
        at = source.find(sign, start, end)
        while at >= 0:
            if not source.endswith(_ABBREVIATIONS, start, at):
                marks.add(at + len(sign))
            at = source.find(sign, at + len(sign), end)
    left = start
    for mark in sorted(marks):
        for piece in range(left, mark, MAX_SENTENCE_CHARS):
            right = min(mark, piece + MAX_SENTENCE_CHARS)
            text = source[piece:right]
            body = text.strip()
            if body:
                lead = len(text) - len(text.lstrip())
                yield piece + lead, piece + lead + len(body)
        left = mark
