"""A diagnosis as text for a terminal, ours or that of who asks over HTTP: in colours or plain.

Colours of our own terminal follow what `rich` makes of it and of NO_COLOR. Nothing of a log or an issue can
move the cursor or colour anything: what is not printable is taken out before.
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
"""Of a short answer: what a terminal shows without scrolling."""
_MARK = "\x1f"
"""Stands between a line's style and its text; no text holds it once it is printable."""


def print_diagnosis(diagnosis: Diagnosis, file: TextIO) -> None:
    """Write verdict, remedies, fix state, root cause, matches and next steps (`templates/diagnosis.txt`).

    Lines are as long as the terminal is wide, but no longer than can be read; a terminal, which shows the end
    of a long answer, has the verdict there again.
    """
    console = Console(file=file, highlight=False, soft_wrap=True)
    width = max(WIDTH_MIN, min(WIDTH_MAX, console.width)) if console.is_terminal else WIDTH_MAX
    for line in _lines(diagnosis, width, is_terminal=console.is_terminal):
        console.print(line)


def short_text(diagnosis: Diagnosis, *, colours: bool) -> str:
    """The same for a terminal that is not ours, in at most `SHORT_LINES` lines."""
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
    """The lines of the template in their styles."""

    def lines(text: str, style: str = "", first: int | None = None, rest: int = 0) -> str:
        """The text's lines in a style; filled, with these indents, if `first` is given."""
        text = _printable(text)
        if first is not None:
            text = fill(
                text,
                width,
                initial_indent=" " * first,
                subsequent_indent=" " * rest,
                break_long_words=False,  # an address or an option is copied whole
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
