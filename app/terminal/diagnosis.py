"""Render a diagnosis as terminal text, coloured or plain, for the local terminal or an HTTP client's.

On the local terminal, `rich` decides on colours, respecting NO_COLOR. Unprintable characters are removed, so
that log and issue texts cannot send control sequences.
"""

import io
from textwrap import fill
from typing import TextIO

from rich.console import Console
from rich.text import Text

from app.knowledge import labels
from app.knowledge.diagnosis.headline import issue_name
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.markdown import inert
from app.render import make_environment

WIDTH_MAX, WIDTH_MIN = 96, 40
SHORT_LINES = 40
"""Length of a short answer, which fits on a terminal without scrolling."""
_MARK = "\x1f"
"""Separates a line's style from its text; not printable, so it never occurs in the text."""


def print_diagnosis(diagnosis: Diagnosis, file: TextIO) -> None:
    """Write verdict, remedies, fix state, root cause, matches and next steps (`templates/diagnosis.txt`).

    Lines have the terminal's width, within WIDTH_MIN and WIDTH_MAX. On a terminal the verdict is repeated at
    the end, which is the part visible after a long answer.
    """
    console = Console(file=file, highlight=False, soft_wrap=True)
    width = max(WIDTH_MIN, min(WIDTH_MAX, console.width)) if console.is_terminal else WIDTH_MAX
    for line in _lines(diagnosis, width, is_terminal=console.is_terminal):
        console.print(line)


def short_text(diagnosis: Diagnosis, *, colours: bool) -> str:
    """Return the diagnosis for a remote terminal, in at most `SHORT_LINES` lines."""
    file = io.StringIO()
    lines = _lines(diagnosis, WIDTH_MAX, is_short=True)
    if len(lines) > SHORT_LINES:
        lines = [*lines[: SHORT_LINES - 1], Text("… `triage diagnose` shows the rest")]
    console = Console(
        file=file,
        force_terminal=colours,
        color_system="standard" if colours else None,
        no_color=not colours,
        highlight=False,
        soft_wrap=True,
        _environ={},
    )
    for line in lines:
        console.print(line)
    return file.getvalue()


def _lines(
    diagnosis: Diagnosis, width: int, *, is_terminal: bool = False, is_short: bool = False
) -> list[Text]:
    def lines(text: str, style: str = "", first: int | None = None, rest: int = 0) -> str:
        """Template filter: mark lines with a style; wrap them with these indents if `first` is given."""
        text = _printable(text)
        if first is not None:
            text = fill(
                text,
                width,
                initial_indent=" " * first,
                subsequent_indent=" " * rest,
                break_long_words=False,  # so that URLs and options can be copied
                break_on_hyphens=False,
            )
        return "\n".join(f"{style}{_MARK}{line}" for line in text.split("\n"))

    environment = make_environment(
        filters={"lines": lines, "escape": str, "code": str}, names={**vars(labels), "issue_name": issue_name}
    )
    rendered = environment.get_template("diagnosis.txt").render(
        diagnosis=diagnosis, is_terminal=is_terminal, is_short=is_short
    )
    parts = (line.rpartition(_MARK) for line in rendered.rstrip().split("\n"))
    return [Text(text, style=style) for style, _, text in parts]


def _printable(text: str) -> str:
    return "".join(char for char in inert(text) if char in "\n\t" or char.isprintable())
