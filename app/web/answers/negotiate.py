"""How a JSON route answers: as JSON or as Markdown, whole or within a budget of characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Query
from fastapi.responses import PlainTextResponse, Response
from pydantic import BaseModel
from starlette.requests import Request

from app.web.answers.budget import MAX_CHARS, MIN_CHARS, ORDERS, dumps, fit
from app.web.answers.budget_markdown import fit_markdown
from app.web.answers.parameters import read_cursor, write_cursor
from app.web.body import JSON_TYPE

MARKDOWN_TYPE = "text/markdown"
VARY = {"Vary": "Accept"}

MaxChars = Annotated[
    int | None,
    Query(
        ge=MIN_CHARS,
        le=MAX_CHARS,
        description="most characters of the whole answer as it is sent, JSON or Markdown; a longer one is "
        "cut at the end of entries, the least needed first, and `truncated` counts what was left out",
    ),
]


def answer(
    request: Request,
    found: BaseModel,
    max_chars: int | None,
    *,
    markdown: Callable[[], str] | None = None,
    cursor_at: Callable[[int], str] | None = None,
) -> Response:
    """The answer as the caller wants it.

    Args:
        request: its `Accept` header chooses between JSON and Markdown.
        found: the whole answer; of its shape already, so it is not checked anew.
        max_chars: the budget; None for the whole answer.
        markdown: writes the Markdown twin; None where there is none.
        cursor_at: for a list: the cursor after so many items of this page.
    """
    headers = VARY if markdown else None
    if markdown and wants_markdown(request.headers.get("accept", "")):
        return markdown_answer(markdown(), max_chars)
    if max_chars is None:
        return Response(found.model_dump_json(), media_type=JSON_TYPE, headers=headers)
    cut = fit(found.model_dump(mode="json"), ORDERS[type(found).__name__], max_chars, cursor_at=cursor_at)
    return Response(dumps(cut), media_type=JSON_TYPE, headers=headers)


def answer_list(
    request: Request,
    shape: type[BaseModel],
    question: Callable[[int], BaseModel],
    *,
    kind: str,
    cursor: str | None,
    limit: int,
    max_chars: int | None,
) -> Response:
    """A part of a list whose cursor counts entries.

    Args:
        shape: the answer: the fields that `question` gives, and `next_cursor`.
        question: the part after so many entries; it has `total`.
        kind: the list's name in its cursors.
    """
    after = read_cursor(kind, cursor) or 0
    fields = dict(question(after))
    more = write_cursor(kind, after + limit) if after + limit < fields["total"] else None
    found = shape(**fields, next_cursor=more)
    return answer(request, found, max_chars, cursor_at=lambda at: write_cursor(kind, after + at))


def markdown_answer(text: str, max_chars: int | None) -> Response:
    """Markdown, within its budget."""
    cut = text if max_chars is None else fit_markdown(text, max_chars)
    return PlainTextResponse(cut, media_type=MARKDOWN_TYPE, headers=VARY)


def wants_markdown(accept: str) -> bool:
    """Whether an Accept header names text/markdown, and no JSON or HTML above it."""
    if MARKDOWN_TYPE not in accept.lower():
        return False
    weights: dict[str, float] = {}
    for item in accept.lower().split(",")[:20]:
        name, *parameters = (part.strip() for part in item.split(";"))
        weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            weights[name] = float(weight)
        except ValueError:
            weights[name] = 0.0
    markdown = weights.get(MARKDOWN_TYPE, 0.0)
    others = max(weights.get(JSON_TYPE, 0.0), weights.get("text/html", 0.0))
    return markdown > 0 and markdown >= others
