"""A tool's answer made to fit the characters its caller asked for: its JSON and its text together.

Both forms leave in one result, and a client reads one of them. Each is made shorter by its own rule, and what
one does not need the other may take; the result as it is sent never has more than `max_chars` characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.knowledge.text.quoting import cut_markdown, inert
from app.web.answers.budget import MIN_CHARS, Emptied, Entries, Inside, Shape, dumps, fit
from app.web.mcp.shapes import (
    Answer,
    DiagnosisAnswer,
    FixAnswer,
    IssueShort,
    KnownAnswer,
    SearchAnswer,
    inert_shape,
)

MIN_ANSWER_CHARS = MIN_CHARS
MAX_ANSWER_CHARS = 100_000
DEFAULT_ANSWER_CHARS = 8_000
"""About two thousand tokens."""

_ENVELOPE = {
    "content": [{"type": "text", "text": ""}],
    "structuredContent": "",
    "isError": False,
    "resultType": "complete",
}
ENVELOPE_CHARS = len(dumps(_ENVELOPE)) - 2
"""What the protocol writes around the two."""

_LIST = Shape(
    keeps=(), steps=(Inside("items.error", 3), Entries("items", 1), Inside("items.error"), Entries("items"))
)
SHAPES: dict[type[Answer], Shape] = {
    DiagnosisAnswer: Shape(
        keeps=("verdict",),
        steps=(
            Inside("matches.shared", 1),
            Inside("matches.differs", 1),
            Entries("matches", 3),
            Entries("workarounds", 4),
            Entries("next_steps", 2),
            Entries("matches", 1),
            Entries("workarounds", 1),
            Entries("next_steps"),
            Inside("matches.shared"),
            Inside("matches.differs"),
        ),
        ranked=("headline", "matches", "workarounds", "root_cause"),
    ),
    SearchAnswer: _LIST,
    IssueShort: Shape(
        keeps=("number",),
        steps=(
            Entries("quotes", 3),
            Entries("related", 5),
            Entries("workarounds", 4),
            Entries("quotes"),
            Entries("cause", 1),
            Entries("related"),
            Entries("workarounds", 1),
            Emptied("cause"),
        ),
        ranked=("url", "fix", "summary", "workarounds", "error", "title", "state"),
    ),
    FixAnswer: Shape(
        keeps=("number",),
        steps=(Entries("workarounds", 2), Entries("workarounds")),
        ranked=("fix", "url", "vllm_version", "title"),
    ),
    KnownAnswer: Shape(
        keeps=("version",),
        steps=(Inside("items.error", 3), Entries("items", 1), Inside("items.remedy"), Entries("items")),
        ranked=("total", "items"),
    ),
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """The two forms of an answer, as they are sent."""

    told: dict[str, Any]
    text: str


def fitted(answer: Answer, text: str, max_chars: int) -> Fitted:
    """The answer and its text, shortened where both together are longer than `max_chars` as JSON."""
    room = max_chars - ENVELOPE_CHARS
    whole = inert_shape(answer).model_dump(mode="json", exclude_none=True)
    if not whole["truncated"]:
        del whole["truncated"]
    text_chars, told_chars = _json_chars(text), len(dumps(whole))
    if text_chars + told_chars <= room:
        return Fitted(whole, text)
    told_room = max(room // 2, room - text_chars)
    told = fit(whole, SHAPES[type(answer)], told_room)
    return Fitted(told, cut_markdown(text, room - len(dumps(told)), size=_json_chars))


def _json_chars(text: str) -> int:
    """How long a text is inside a JSON string."""
    return len(dumps(inert(text))) - 2
