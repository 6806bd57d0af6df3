"""Replies of a large model to our prompts, recorded without the issues' texts: places in place of quotes.

A row has the form of a reply in which each quoted text is `[source, start, end]` in code points, or null
where the model quoted what the text does not hold. `restore` cuts the quotes out of the text again, so that a
test server can replay the reply, and precedence be learned from it, wherever the issues' texts are at hand.
"""

from __future__ import annotations

from typing import Any

from app.extract.text.document import Document
from app.model_reader.check import find_quote
from app.model_reader.prompt import Prompt

NOT_THERE = "(the model quoted what is not there)"
_QUOTED = {"quote": "line", "message": "line", "name": "line", "action": "line", "proof": "proof_line"}
_INSIDE = ("value",)
"""Fields whose text stands in the quote beside it: a version."""

Row = dict[str, Any]


def record(reply: Row, document: Document, prompt: Prompt) -> Row:
    """A reply with places in place of its quotes."""
    row: Row = {}
    for name, value in reply.items():
        if isinstance(value, dict):
            row[name] = record(value, document, prompt)
        elif isinstance(value, list):
            row[name] = [record(item, document, prompt) for item in value]
        elif name in _QUOTED or (name in _INSIDE and ("quote" not in reply or "role" in reply)):
            row[name] = find_quote(document, prompt, reply[_QUOTED.get(name, "line")], value)
        elif name not in ("line", "proof_line"):
            row[name] = value
    return row


def restore(row: Row, document: Document, prompt: Prompt) -> Row:
    """The reply that a row was made of, as the prompt numbers its lines."""
    reply: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            reply[name] = restore(value, document, prompt)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            reply[name] = [restore(item, document, prompt) for item in value]
        elif name in _QUOTED or (name in _INSIDE and not isinstance(value, str)):
            text, line = _cut(value, document, prompt)
            reply |= {name: text}
            if not (name in _INSIDE and "quote" in row):
                reply |= {_QUOTED.get(name, "line"): line}
        else:
            reply[name] = value
    return reply


def _cut(place: list[Any] | None, document: Document, prompt: Prompt) -> tuple[str, int]:
    """A quote and the number of the line in which it begins; line 1 for what the prompt leaves out."""
    if place is None:
        return NOT_THERE, 1
    source, start, end = place
    numbers = (
        number
        for number, line in enumerate(prompt.lines, 1)
        if line.source == source and line.start <= start < line.end
    )
    return " ".join(document.sources[source][start:end].split()), next(numbers, 1)
