"""Whether a pasted text is a question in words rather than a log."""

from __future__ import annotations

from app.extract.document import IssueText
from app.extract.reader import LogReading
from app.extract.sections import read_document

MAX_QUESTION_CHARS = 300
MAX_QUESTION_LINES = 3
"""A longer text without an error is the log of something, or a story."""


def is_question(reading: LogReading) -> bool:
    """No error in it, no line of a program's output, and short enough to be asked."""
    if reading.errors.cause is not None or reading.errors.wrappers:
        return False
    if len(reading.log) > MAX_QUESTION_CHARS or len(reading.lines) > MAX_QUESTION_LINES:
        return False
    if any(line.process or line.level for line in reading.lines):
        return False
    return all(block.kind != "code" for block in read_document(IssueText(0, "", reading.log)).blocks)
