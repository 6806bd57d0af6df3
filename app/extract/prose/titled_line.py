"""Find the error line that an issue's title quotes.

In: a `Document` whose logs and prose name no error by class. Out: an `ErrorRecord` without a type, if words
of failure in the title are repeated in the body as a line of a log or as a quotation: "[Bug]: Cannot use the
backend because …" above a log with "selector.py:189] Cannot use the backend because …".
"""

from collections.abc import Iterator

from app.extract.log.lines import LogLine
from app.extract.log.messages import first_sentence, wrapper_rule
from app.extract.log.process_stream import ErrorRecord
from app.extract.rules.patterns import pattern
from app.extract.text.document import Document, Line
from app.extract.text.sentences import lower

RULE = "said.title_line"
MAX_BEFORE_CHARS = 90
MAX_LINE_CHARS = 400
MIN_CHARS, MIN_WORDS = 18, 3
"""Shorter words of a title are often repeated by chance."""

_TAGS = pattern(r"^(?:\s*\[[^\]]{0,40}\]\s*[:：]?){0,4}\s*")
_STARTS = pattern(r": | - |, ")
_END = pattern(r" (?:when|in|on|with|for|but|after) |\. ")
_FAILS = pattern(
    r"(?i)\b(?:not|no|cannot|unable|fail\w*|error|fatal|invalid|missing|unexpected|expected|exceed\w*|killed|died"
    r"|must|unrecogni[sz]ed|unknown|unsupported|denied|refused|aborted|timed out|out of)\b|n['’]t\b"
)
_LOGGED = pattern(
    r"(?i)(?:\b\w+\.(?:py|h|cc|cpp|cu|rs):\d{1,5}\] ?"
    r"|\b(?:errors?|message|fatal|warn(?:ing)?|problem|what\(\))\b[^\n.`\"“]{0,60}[:：)] ?[`\"“]?"
    r"|\bWARN |[`\"“])$"
)
"""What stands before a line of a log or a quotation."""
_CLOSING = {"`": "`", '"': '"', "“": "”"}


def find_titled_line(document: Document) -> ErrorRecord | None:
    """Return the line of the body that the title quotes, or None; of several, the one it quotes most of."""
    body = lower(document.sources["body"])
    clauses = sorted(
        (words for words in _clauses(document.issue.title) if words in body), key=len, reverse=True
    )
    lines = [line for block in document.of_source("body") for line in block.lines] if clauses else []
    for words in clauses:
        for line in lines:
            at = lower(line.text).find(words)
            if at >= 0 and (found := _line_at(line, at, len(words))):
                return ErrorRecord(None, first_sentence(found.text), found, rule=RULE)
    return None


def _clauses(title: str) -> Iterator[str]:
    """Yield the parts of a title that may quote an error, in lower case."""
    title = lower(title[len(_TAGS.search(title)[0]) :])
    starts = [0, *(found.end() for found in _STARTS.finditer(title))]
    for start in starts:
        part = title[start:]
        end = _END.search(part)
        for words in (part, part[: end.start()] if end else part):
            bare = words.strip(" .`\"'“”")
            if len(bare) >= MIN_CHARS and len(bare.split()) >= MIN_WORDS and _FAILS.search(bare):
                yield bare


def _line_at(line: Line, at: int, length: int) -> LogLine | None:
    """Return the rest of a line or quotation that begins at `at`; None if neither does, or it only wraps."""
    before = line.text[max(0, at - MAX_BEFORE_CHARS) : at]
    if not _LOGGED.search(before):
        return None
    words = line.text[at : at + MAX_LINE_CHARS].partition("\x1b")[0]
    if closing := _CLOSING.get(before[-1]):
        words = words.partition(closing)[0]
    words = words.rstrip()
    if len(words) < length or wrapper_rule(words) is not None:
        return None
    start = line.start + at
    return LogLine(0, words, "", "", start, start + len(words), words)
