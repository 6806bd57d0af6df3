"""Parse an issue's Markdown into blocks: headings, prose, program output, quotes.

In: `IssueText`. Out: `Document` (see `document.py`). Nothing is rendered and nothing is lost: every block is
a span of its source. Program output outside a fence becomes `code`, too, since half of all reporters paste
their logs unfenced.
"""

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.extract.lists import FORM_HEADINGS
from app.extract.rules.patterns import pattern
from app.extract.text.document import Block, Document, IssueText, Kind, Line

FLAT_LINE_CHARS = 400
"""A text with a longer mean line is flattened: it lost its line breaks."""

WINDOW_CHARS = 1 << 20
"""Characters read for fields at the beginning, and at the end, of a very long source."""

BLOCKS_WINDOW_CHARS = 1 << 17
"""Characters split into blocks at the beginning, and at the end, of a very long issue text. GitHub's limit is
65,536 characters, so that only imported files can be longer."""

MAX_HEADING_CHARS = 200
"""Maximum length of a heading line."""

MAINTAINER_ASSOCIATIONS = frozenset({"MEMBER", "OWNER", "COLLABORATOR"})

_FENCE = pattern(r"^[ \t>]*(?:```+|~~~+)[ \t]*([\w+.-]*)")
_HEADING = pattern(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]+(\S.*?)[ \t#]*|(?:\*\*|__)([^*_]{2,80})(?:\*\*|__)[ \t]*:?[ \t]*)$"
    r"|(?i:<summary>)\s*(.{1,120}?)\s*(?i:</summary>)"
)
_LEADING_SIGNS = pattern(r"^[^\p{L}\p{N}]+")
_OUTPUT = pattern(
    r"^(?:"
    r"\s*File \"[^\"]{1,300}\", line \d+"
    r"|\s*Traceback \(most recent call last\)"
    r"|(?:\x1b?\[[\d;]*m)?\((?:\w*(?:EngineCore|Worker|APIServer|ApiServer)\w*)[^)]{0,80}\)"
    r"|\[rank\d+\]"
    r"|u?(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)[: ]+\d\d-\d\d \d\d:\d\d:\d\d"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
    r"|[A-Za-z_][\w.]{0,80}(?:Error|Exception|Interrupt|Exit)(?::|\s*$)"
    r"|\s+[\^~]{3,}\s*$"
    r"|(?:The above exception was|During handling of the above)"
    r"|terminate called|\s*what\(\):|frame #\d+:|#\d+ +0x"
    r"|(?:PyTorch version|CUDA used to build PyTorch|GPU models and configuration|\[pip3\]|\[conda\])"
    r")"
)
_LINE_START = pattern(
    r"(?: ###? )|```"
    r"|\((?:\w*(?:EngineCore|Worker|APIServer|ApiServer)\w*)(?: [^)]{0,60})?\) "
    r"|\[rank\d+\]: ?"
    r"|\b(?:INFO|WARNING|ERROR|DEBUG|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d"
    r"|Traceback \(most recent call last\)"
    r"|File \"[^\"]{1,300}\", line \d+"
    r"|The above exception was the direct|During handling of the above"
    r"|(?: - \[[ xX]\] )"
    r"|\b(?:Collecting environment information|PyTorch version:|Is debug build:|CUDA used to build PyTorch"
    r"|ROCM used to build PyTorch|OS:|GCC version|Clang version|CMake version|Libc version|Python version"
    r"|Python platform|Is CUDA available|CUDA runtime version|CUDA_MODULE_LOADING set to"
    r"|GPU models and configuration|Nvidia driver version|cuDNN version|HIP runtime version"
    r"|MIOpen runtime version|Is XNNPACK available|CPU:|Versions of relevant libraries"
    r"|ROCM Version|Neuron SDK Version|vLLM Version|vLLM Build Flags|GPU Topology)"
    r"|\[pip3\] |\[conda\] "
)


_RUN_ON_HEADINGS = tuple(sorted((h for h in FORM_HEADINGS if " " in h), key=len, reverse=True))


@dataclass(slots=True)
class _Open:
    """The block being built."""

    kind: Kind
    lines: list[Line]
    heading: str
    language: str


def is_flattened(text: str) -> bool:
    """True if a text has lost its line breaks."""
    return len(text) > FLAT_LINE_CHARS and len(text) / (text.count("\n") + 1) > FLAT_LINE_CHARS


def split_lines(text: str, offset: int = 0) -> Iterator[Line]:
    """Yield lines without their terminators (CRLF, LF); positions count from `offset`."""
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        stop = len(text) if end < 0 else end
        cut = stop - 1 if stop > start and text[stop - 1] == "\r" else stop
        yield Line(text[start:cut], offset + start, offset + cut)
        if end < 0:
            return
        start = end + 1


def cut_lines(text: str, offset: int = 0) -> Iterator[Line]:
    """Yield the lines of a text; flattened text is split where a known line start is found.

    Positions count from `offset`.
    """
    if not is_flattened(text):
        yield from split_lines(text, offset)
        return
    for line in split_lines(text, offset):
        marks = [0, *_line_starts(line.text), len(line.text)]
        for start, end in itertools.pairwise(marks):
            piece = line.text[start:end]
            lead = len(piece) - len(piece.lstrip(" "))
            body = piece.strip(" ")
            begin = line.start + start + lead
            title_end = _form_heading_end(body) if body.startswith("#") else 0
            if title_end:
                yield Line(body[:title_end], begin, begin + title_end)
                rest = body[title_end:].lstrip()
                begin += len(body) - len(rest)
                body = rest
            if body:
                yield Line(body, begin, begin + len(body))


def _form_heading_end(line: str) -> int:
    """Return the end of a form heading that is followed by its section in one line; 0 if there is none."""
    signs = _LEADING_SIGNS.match(line)
    start = signs.end() if signs else 0
    low = line[start : start + 120].lower()
    for heading in _RUN_ON_HEADINGS:
        if low.startswith(heading) and low[len(heading) : len(heading) + 1] in (" ", ":"):
            return start + len(heading)
    return 0


def _line_starts(text: str) -> list[int]:
    """Return the line starts in flattened text; adjacent prefixes belong to one line."""
    starts: list[int] = []
    previous_end = -10
    for match in _LINE_START.finditer(text):
        start, end = match.span()
        if start - previous_end > 1 and start > 0:
            starts.append(start)
        previous_end = end
    return starts


def windows(document: Document) -> Iterator[tuple[str, int, str]]:
    """Yield the parts of a document to read for fields: (source, offset, text), without the title.

    Of a source longer than twice `WINDOW_CHARS`, only the beginning and the end are read: a server logs
    settings and versions at start-up, and text around a pasted log is at the edges.
    """
    for source, text in document.sources.items():
        if source != "title" and text:
            yield from ((source, offset, part) for offset, part in _ends(text, WINDOW_CHARS))


def _ends(text: str, window_chars: int) -> Iterator[tuple[int, str]]:
    """Yield a text with its offset; if longer than two windows, only its beginning and its end."""
    if len(text) <= 2 * window_chars:
        yield 0, text
    else:
        yield 0, text[:window_chars]
        yield len(text) - window_chars, text[-window_chars:]


class Places:
    """Look up blocks by position: is it program output or the author's text?"""

    def __init__(self, document: Document) -> None:
        self._blocks = {source: list(document.of_source(source)) for source in document.sources}
        self._starts = {source: [b.start for b in blocks] for source, blocks in self._blocks.items()}

    def block_at(self, source: str, position: int) -> Block | None:
        """Return the block at a position, or the one before it; None before the first."""
        at = bisect_right(self._starts[source], position) - 1
        return self._blocks[source][at] if at >= 0 else None

    def is_prose(self, source: str, position: int) -> bool:
        """True if the position is in the author's own text: prose or a heading."""
        block = self.block_at(source, position)
        return block is None or block.kind in ("prose", "heading")


def read_document(issue: IssueText) -> Document:
    sources = {"title": issue.title, "body": issue.body}
    speaker = {"title": "reporter", "body": "reporter"}
    for position, comment in enumerate(issue.comments, 1):
        name = f"comment:{comment.id}" if comment.id is not None else f"comment:#{position}"
        sources[name] = comment.body
        if comment.user is not None and comment.user == issue.user:
            speaker[name] = "reporter"
        else:
            speaker[name] = "maintainer" if comment.author_association in MAINTAINER_ASSOCIATIONS else "other"
    blocks = tuple(
        block
        for name, text in sources.items()
        for offset, part in _ends(text, BLOCKS_WINDOW_CHARS)
        for block in _blocks(name, part, offset)
    )
    return Document(issue, sources, blocks, speaker, is_flattened(issue.body))


def read_log_document(log: str, read: Iterable[Line] | None = None) -> Document:
    """Wrap a pasted log in a document of one code block, so that the same rules read its fields.

    Args:
        read: the lines to include; all lines if None.
    """
    lines = tuple(cut_lines(log) if read is None else read)
    block = Block("code", "body", 0, len(log), log, "", "", lines)
    return Document(IssueText(0, "", log), {"title": "", "body": log}, (block,), {"body": "reporter"})


def _blocks(source: str, text: str, offset: int) -> Iterator[Block]:
    current: _Open | None = None
    fence = ""
    heading = ""
    lines = list(cut_lines(text, offset))
    marks_left = sum(_is_fence(line.text) for line in lines)
    for line in lines:
        if _is_fence(line.text):
            marks_left -= 1
            yield from _close(source, text, offset, current)
            after_fence = _text_after_fence(line, fence)
            current, fence = _open_fence(line, fence, heading)
            if after_fence is not None:
                current = _Open("prose", [after_fence], heading, "")
            continue
        if fence and marks_left % 2 == 0 and _is_form_heading(line.text):
            fence = ""  # the remaining marks pair up among themselves: this fence was never closed
        kind, title = _kind_of(line.text, bool(fence))
        if title:
            heading = title
        if current is None or current.kind != kind or kind == "heading":
            yield from _close(source, text, offset, current)
            current = _Open(kind, [], heading, "")
        current.lines.append(line)
        if fence and line.text.rstrip().endswith(fence) and marks_left % 2 == 0:
            fence = ""
    yield from _close(source, text, offset, current)


def _is_fence(line: str) -> bool:
    """True if a line opens or closes a fence; a line that does both is inline code."""
    if "```" not in line and "~~~" not in line:
        return False
    found = _FENCE.match(line)
    return found is not None and "```" not in line[found.end() :]


def _open_fence(line: Line, fence: str, heading: str) -> tuple[_Open | None, str]:
    """Return the block that a fence line opens, if any, and the mark that will close it."""
    opened = _FENCE.match(line.text)
    mark = line.text.strip(" \t>")[:3]
    if fence:
        return None, "" if mark == fence else fence
    rest = line.text[opened.end() :].strip()
    return _Open("code", [line] if rest else [], heading, opened.group(1)), mark


def _text_after_fence(line: Line, fence: str) -> Line | None:
    """Return the text after a closing fence, as in flattened text; a single word is a language."""
    found = _FENCE.match(line.text)
    if not fence or line.text.strip(" \t>")[:3] != fence:
        return None
    rest = line.text[found.start(1) :].strip()
    return Line(rest, line.end - len(line.text[found.start(1) :].lstrip()), line.end) if " " in rest else None


def _is_form_heading(line: str) -> bool:
    return line.startswith("#") and line.strip("# \t:").lower() in FORM_HEADINGS


def _kind_of(line: str, in_fence: bool) -> tuple[Kind, str]:
    if in_fence:
        return "code", ""
    if len(line) < MAX_HEADING_CHARS and (title := _title_of(line)):
        return "heading", title
    if _OUTPUT.match(line):
        return "code", ""
    if line.lstrip().startswith(">"):
        return "quote", ""
    return "prose", ""


def _title_of(line: str) -> str:
    """Return the title if a short line is a heading."""
    if any(sign in line for sign in "#*_<") and (found := _HEADING.search(line)):
        return next(str(group) for group in found.groups() if group is not None)
    bare = line.strip(" \t:")
    if bare and not bare[0].isalnum():
        bare = _LEADING_SIGNS.sub("", bare).strip()
    return bare if bare.lower() in FORM_HEADINGS else ""


def _close(source: str, text: str, offset: int, block: _Open | None) -> Iterable[Block]:
    if block is None or not any(line.text.strip() for line in block.lines):
        return
    start, end = block.lines[0].start, block.lines[-1].end
    words = text[start - offset : end - offset]
    yield Block(block.kind, source, start, end, words, block.heading, block.language, tuple(block.lines))


class LinesAt:
    """The lines of a text as in `cut_lines`, created on access and found by position."""

    def __init__(self, text: str) -> None:
        cut = list(cut_lines(text)) if is_flattened(text) else []
        self._texts = [line.text for line in cut] or text.split("\n")
        self._starts = [line.start for line in cut] or [
            0,
            *itertools.accumulate(len(line) + 1 for line in self._texts[:-1]),
        ]

    def __getitem__(self, at: int) -> Line:
        text = self._texts[at].removesuffix("\r")
        return Line(text, self._starts[at], self._starts[at] + len(text))

    def at(self, spot: int) -> int | None:
        """Return the index of the line at a position in the text; None between lines."""
        found = bisect_right(self._starts, spot) - 1
        return found if found >= 0 and spot <= self[found].end else None
