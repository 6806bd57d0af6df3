"""A tool's answer made to fit the characters its caller asked for: its JSON and its text together.

Both forms leave in one result, and a client reads one of them. Each is made shorter by its own rule, and what
one does not need the other may take; the result as it is sent never has more than `max_chars` characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.knowledge.text.quoting import cut_markdown, inert
from app.web.answers.budget import MIN_CHARS, Cut, CutOrder, dumps, fit
from app.web.mcp.shapes import (
    DiagnosisAnswer,
    FixAnswer,
    IssueShort,
    KnownAnswer,
    SearchAnswer,
    ToolAnswer,
    inert_data,
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

_LIST = CutOrder(keeps=(), cuts=(Cut("items.error", 3), Cut("items", 1), Cut("items.error"), Cut("items")))
SHAPES: dict[type[ToolAnswer], CutOrder] = {
    DiagnosisAnswer: CutOrder(
        keeps=("verdict",),
        cuts=(
            Cut("matches.shared", 1),
            Cut("matches.differs", 1),
            Cut("matches", 3),
            Cut("workarounds", 4),
            Cut("next_steps", 2),
            Cut("matches", 1),
            Cut("workarounds", 1),
            Cut("next_steps"),
            Cut("matches.shared"),
            Cut("matches.differs"),
        ),
        ranked=("headline", "matches", "workarounds", "root_cause"),
    ),
    SearchAnswer: _LIST,
    IssueShort: CutOrder(
        keeps=("number",),
        cuts=(
            Cut("quotes", 3),
            Cut("related", 5),
            Cut("workarounds", 4),
            Cut("quotes"),
            Cut("cause", 1),
            Cut("related"),
            Cut("workarounds", 1),
            Cut("cause", whole=True),
        ),
        ranked=("url", "fix", "summary", "workarounds", "error", "title", "state"),
    ),
    FixAnswer: CutOrder(
        keeps=("number",),
        cuts=(Cut("workarounds", 2), Cut("workarounds")),
        ranked=("fix", "url", "vllm_version", "title"),
    ),
    KnownAnswer: CutOrder(
        keeps=("version",),
        cuts=(Cut("items.error", 3), Cut("items", 1), Cut("items.remedy"), Cut("items")),
        ranked=("total", "items"),
    ),
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """The two forms of an answer, as they are sent."""

    data: dict[str, Any]
    text: str


def fitted(answer: ToolAnswer, text: str, max_chars: int) -> Fitted:
    """The answer and its text, shortened where both together are longer than `max_chars` as JSON."""
    room = max_chars - ENVELOPE_CHARS
    whole = inert_data(answer)
    if not whole["truncated"]:
        del whole["truncated"]
    text_chars, data_chars = _json_chars(text), len(dumps(whole))
    if text_chars + data_chars <= room:
        return Fitted(whole, text)
    data_room = max(room // 2, room - text_chars)
    data = fit(whole, SHAPES[type(answer)], data_room)
    return Fitted(data, cut_markdown(text, room - len(dumps(data)), size=_json_chars))


def _json_chars(text: str) -> int:
    """How long a text is inside a JSON string."""
    return len(dumps(inert(text))) - 2
