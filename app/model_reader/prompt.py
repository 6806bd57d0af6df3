"""Build the prompt: an issue's texts as numbered lines.

Input: an `IssueText`, and the maximum number of characters. Output: a `Prompt` with the offsets of each
numbered line. It depends only on the texts, the masking of secrets and this module, not on the extraction
rules, so that a stored reply can be checked again after any change of the rules.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.extract.lists import load
from app.extract.redact import redact
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rule_set
from app.extract.text.blocks import MAINTAINER_ASSOCIATIONS, split_lines
from app.extract.text.document import CommentText, IssueText
from app.model_reader.reply import instructions

TOKENS_MAX = 24_000
CHARS_PER_TOKEN = 3
"""Lower than for any common tokenizer on English and logs, so that estimates are never too low."""
CHARS_MAX = TOKENS_MAX * CHARS_PER_TOKEN
LINE_HEAD, LINE_TAIL = 1_000, 400
OUTPUT_LINE_HEAD, OUTPUT_LINE_TAIL = 300, 200
"""Only the head and tail of longer lines are sent: they are dumps of settings, not written by people."""
LINE_CHARS = 300
"""Longer lines are split at spaces and numbered in pieces, so that quotes are easy to locate."""
NOISE_CHARS = 400
"""Longer lines are not dropped as noise, as they may contain more than their start suggests."""
OUTPUT_LINES, OUTPUT_HEAD, OUTPUT_TAIL = 24, 5, 11
"""Longer blocks of output keep only their head, their tail, and error lines between them."""

_LIST = load("model_reader")
_FENCE = pattern(r"^[ \t>]*(?:```|~~~)")
_BLANK = pattern(r"(\n[ \t\r]*\n)")
_NOISE = pattern("|".join(_LIST["noise"]["lines"]))
_KEPT = pattern("|".join(_LIST["noise"]["but"]), ignore_case=True)
_OUTPUT = pattern(_LIST["output"]["line"])
_REPORTING = pattern(_LIST["reporting"]["line"])
_HIDDEN = pattern(_LIST["hidden"]["text"])
_SIGN = re.compile(r"[^\n]")
_UNUSUAL = re.compile(r"[^ -~\n\t\r]")


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """A line as sent to the model: `text` is `source[start:end]` in code points, with secrets masked."""

    source: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt for one issue.

    Attributes:
        lines: line number n is `lines[n - 1]`.
        content: the report between its markers, as sent.
        digest: hash of the numbered text, in hex digits.
    """

    lines: tuple[NumberedLine, ...]
    content: str
    digest: str

    @property
    def tokens(self) -> int:
        """Estimated number of tokens sent; rather too high than too low."""
        return estimate_tokens(f"{instructions()}{self.content}")


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text as a third of its bytes, so that a Chinese character counts as one."""
    return len(text.encode()) // CHARS_PER_TOKEN + 1


def make_prompt(issue: IssueText, chars_max: int = CHARS_MAX, *, is_log: bool = False) -> Prompt:
    """Build the prompt for an issue.

    Args:
        chars_max: maximum length of the content; surplus is cut from the middle of each text.
        is_log: for a pasted log: keep its output, and also mask names of hosts and people.
    """
    parts = list(_parts(issue, is_log=is_log))
    room = _room(parts, chars_max)
    lines: list[NumberedLine] = []
    sent: list[str] = []
    for heading, source, kept in parts:
        sent.append(f"[{heading}]")
        sent += _numbered(_within(kept, room), source, lines)
    text = "\n".join(sent)
    mark = hashlib.sha256(text.encode()).hexdigest()
    content = f"REPORT {mark[:12]} BEGINS\n{text}\nREPORT {mark[:12]} ENDS"
    return Prompt(tuple(lines), content, mark)


_SentLine = tuple[int, int, str]
"""Start, end and text of a line; with start < 0 it is a note on what was left out."""
_Part = tuple[str, str, list[_SentLine]]
"""Heading, source, and the lines to send."""


def _parts(issue: IssueText, *, is_log: bool) -> Iterator[_Part]:
    yield "title", "title", list(_sent_lines(issue.title, is_log=is_log))
    yield "body, by the reporter", "body", list(_sent_lines(issue.body, is_log=is_log))
    for position, comment in enumerate(issue.comments, 1):
        name = f"comment:{comment.id}" if comment.id is not None else f"comment:#{position}"
        day = f", {comment.created_at[:10]}" if comment.created_at else ""
        heading = f"comment {position} by {_role(issue, comment)}{day}"
        yield heading, name, list(_sent_lines(comment.body, is_log=is_log))


def _role(issue: IssueText, comment: CommentText) -> str:
    if comment.user is not None and comment.user == issue.user:
        return "the reporter"
    is_maintainer = comment.author_association in MAINTAINER_ASSOCIATIONS
    return "a maintainer" if is_maintainer else "somebody else"


def _sent_lines(source: str, *, is_log: bool) -> Iterator[_SentLine]:
    """Yield the lines to send: without blank lines, hidden text, prompt injections and environment dumps."""
    masked = redact(source, private=is_log).text
    text, closed_up = _without_hidden(masked), _without_hidden(masked, sign="")
    orders = find_orders(text) | (find_orders(closed_up) if closed_up != text else frozenset())
    if "text" in orders:
        yield _note("this text speaks to programs that read it, and was left out")
        return
    lines = list(_plain_lines(text)) if not orders else list(_without_ordering(text))
    output: list[_SentLine] = []
    is_fenced = False
    for item in lines:
        is_fence = item[0] >= 0 and _FENCE.match(item[2])
        is_fenced ^= bool(is_fence)
        if is_fence or not (is_fenced or _OUTPUT.search(item[2])):
            yield from _cut_output(output)
            output = []
        if is_fence:
            continue
        is_noise = item[0] >= 0 and len(item[2]) <= NOISE_CHARS and _is_noise(item[2])
        kept: Iterable[_SentLine] = (
            [_note("lines of the form or the environment were left out")] if is_noise else _cut_line(item)
        )
        if not is_log and (is_fenced or _OUTPUT.search(item[2])):
            output += kept
        else:
            yield from kept
    yield from _cut_output(output)


def _is_noise(text: str) -> bool:
    return bool(_NOISE.search(text)) and not _KEPT.search(text)


def _cut_line(line: _SentLine) -> Iterator[_SentLine]:
    start, end, text = line
    is_output = bool(_OUTPUT.search(text))
    head, tail = (OUTPUT_LINE_HEAD, OUTPUT_LINE_TAIL) if is_output else (LINE_HEAD, LINE_TAIL)
    if start < 0 or len(text) <= head + tail:
        yield line
        return
    yield start, start + head, text[:head]
    yield _note("the middle of a long line was left out")
    yield end - tail, end, text[-tail:]


def find_orders(text: str) -> frozenset[str]:
    """Detect prompt injections; return what to drop: the whole "text" or only the "paragraph"."""
    joined = " ".join(text.split())
    met = [*load_rule_set("model_reader").meeting(joined), *load_rule_set("model_reader").meeting(text)]
    return frozenset(rule["drops"] for rule in met)


def _plain_lines(text: str) -> Iterator[_SentLine]:
    return ((line.start, line.end, line.text) for line in split_lines(text) if line.text.strip())


def _without_ordering(text: str) -> Iterator[_SentLine]:
    """Yield the lines except those of paragraphs with prompt injections."""
    start = 0
    for paragraph in _BLANK.split(text):
        if find_orders(paragraph):
            yield _note("a paragraph that speaks to programs was left out")
        else:
            for at, end, words in _plain_lines(paragraph):
                yield start + at, start + end, words
        start += len(paragraph)


def _note(words: str) -> _SentLine:
    return -1, 0, words


def _without_hidden(text: str, sign: str = " ") -> str:
    """Remove what GitHub does not display: HTML comments and unprintable characters.

    Args:
        sign: replaces each unprintable character; a space keeps the length.
    """
    text = _HIDDEN.sub(lambda match: _SIGN.sub(" ", match.group()), text)
    if text.isascii():
        return text
    return _UNUSUAL.sub(lambda match: match[0] if match[0].isprintable() else sign, text)


def _cut_output(lines: list[_SentLine]) -> list[_SentLine]:
    if len(lines) <= OUTPUT_LINES:
        return lines
    middle = lines[OUTPUT_HEAD:-OUTPUT_TAIL]
    reporting = [item for item in middle if item[0] >= 0 and _REPORTING.search(item[2])]
    spare = OUTPUT_LINES - OUTPUT_HEAD - OUTPUT_TAIL
    note = _note("lines of output were left out")
    return [*lines[:OUTPUT_HEAD], note, *reporting[:spare], note, *lines[-OUTPUT_TAIL:]]


def _room(parts: Sequence[_Part], chars_max: int) -> int:
    """Return the maximum characters per part, giving the room that short parts leave to long ones."""
    sizes = sorted(sum(len(text) + 6 for _, _, text in kept) + 60 for _, _, kept in parts)
    left = chars_max
    for at, size in enumerate(sizes):
        share = left // (len(sizes) - at)
        if size > share:
            return max(share, LINE_CHARS)
        left -= size
    return chars_max


def _within(lines: list[_SentLine], room: int) -> list[_SentLine]:
    """Return the lines if they fit, or else only the first and last ones."""
    if sum(len(text) + 6 for _, _, text in lines) + 60 <= room:
        return lines
    pieces = [piece for line in lines for piece in _pieces(line)]
    head: list[_SentLine] = []
    tail: list[_SentLine] = []
    left = room // 2
    for piece in pieces:
        left -= len(piece[2]) + 6
        if left < 0:
            break
        head.append(piece)
    left = room // 2
    for piece in reversed(pieces[len(head) :]):
        left -= len(piece[2]) + 6
        if left < 0:
            break
        tail.append(piece)
    return [*head, _note("lines were left out"), *reversed(tail)]


def _pieces(line: _SentLine) -> Iterator[_SentLine]:
    """Split a line into pieces of at most LINE_CHARS, after a sentence or at a space if possible."""
    start, _, text = line
    at = 0
    while start >= 0 and len(text) - at > LINE_CHARS:
        window = text[at : at + LINE_CHARS]
        cut = max(window.rfind(". ", LINE_CHARS // 2) + 1, 0) or window.rfind(" ", LINE_CHARS // 2) or 0
        cut = cut if cut > 0 else LINE_CHARS
        yield start + at, start + at + cut, text[at : at + cut]
        at += cut
    yield (start + at, start + len(text), text[at:]) if start >= 0 else line


def _numbered(kept: Sequence[_SentLine], source: str, lines: list[NumberedLine]) -> Iterator[str]:
    """Yield numbered lines as sent, adding them to `lines`; consecutive equal notes are merged."""
    note = ""
    for line in kept:
        if line[0] < 0:
            if line[2] != note:
                yield f"[{line[2]}]"
            note = line[2]
            continue
        note = ""
        for start, end, text in _pieces(line):
            lines.append(NumberedLine(source, start, end, text))
            yield f"{len(lines)}| {text}"
