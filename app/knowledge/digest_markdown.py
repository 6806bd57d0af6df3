"""A digest as Markdown with headings and tables: for chats and wikis. Foreign text is never markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.knowledge.digest_shapes import Advice, Digest
from app.knowledge.digest_tables import Cell, Part, digest_parts
from app.knowledge.digest_words import notes
from app.knowledge.quoting import NOTICE, code, escape


def digest_markdown(digest: Digest) -> str:
    """The digest as Markdown; ends with a line end."""
    lines = [*_head(digest), *_advice(digest.advice)]
    for part in digest_parts(digest):
        lines += _part(part)
    return "\n".join([*lines, *_foot(digest)]) + "\n"


def _head(digest: Digest) -> Iterator[str]:
    yield from (f"# {escape(digest.repo)}, week {digest.week}", "")
    yield from (f"{digest.days}, in UTC. {escape(digest.headline)}", "")
    for note in notes(digest):
        yield from (escape(note), "")


def _advice(lines: Sequence[Advice]) -> Iterator[str]:
    yield from ("## Do this week", "")
    if not lines:
        yield "Nothing that the stored issues tell."
    for place, line in enumerate(lines, 1):
        command = f" {code(line.command)}" if line.command else ""
        told = f"{escape(line.action)}{command} {_link(line.number, line.url)}"
        yield f"{place}. **{escape(line.whom)}:** {told}"
    yield ""


def _part(part: Part) -> Iterator[str]:
    yield from (f"## {part.name}", "")
    if part.words:
        yield from (escape(part.words), "")
    if part.rows:
        yield f"| {' | '.join(part.heads)} |"
        figures = [cell.is_figure for cell in part.rows[0]]
        yield f"|{'|'.join('---:' if is_figure else '---' for is_figure in figures)}|"
        yield from (f"| {' | '.join(_cell(cell) for cell in row)} |" for row in part.rows)
        yield ""


def _cell(cell: Cell) -> str:
    # A bare bar would end the cell, even in code.
    text = code(cell.text).replace("|", "\\|") if cell.is_code else escape(cell.text)
    return f"{_link(cell.number, cell.url)} {text}".rstrip() if cell.number else text


def _link(number: int, url: str) -> str:
    return f"[#{number}]({url})" if url.startswith("https://") and ")" not in url else f"#{number}"


def _foot(digest: Digest) -> Iterator[str]:
    until = digest.data.until
    as_of = f"{until:%Y-%m-%d %H:%M} UTC" if until else "never"
    yield f"From the issues stored of {escape(digest.repo)}, as of {as_of}. {NOTICE}"
