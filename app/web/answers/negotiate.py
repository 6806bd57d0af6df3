"""Content negotiation of JSON routes: JSON or Markdown, complete or within a budget of characters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Query
from fastapi.responses import PlainTextResponse, Response
from pydantic import BaseModel
from starlette.datastructures import URL
from starlette.requests import Request

from app.knowledge.markdown import cut_markdown
from app.web.answers.budget import MAX_CHARS, MIN_CHARS, dumps, fit, order_of
from app.web.answers.parameters import CursorText, narrowed, read_cursor, write_cursor
from app.web.body import JSON_TYPE

MARKDOWN_TYPE = "text/markdown"
VARY = {"Vary": "Accept"}

MaxChars = Annotated[
    int | None,
    Query(
        ge=MIN_CHARS,
        le=MAX_CHARS,
        description="maximum length of the answer in characters, JSON or Markdown; a longer one is "
        "cut at the end of entries, the least needed first, and `truncated` counts what was left out",
    ),
]


@dataclass(frozen=True, slots=True)
class Reply:
    """Formats a route's answer as the caller requested.

    Args:
        max_chars: the budget; None for the complete answer.
        url: the request's URL, the basis of the `Link` to a list's next page.
    """

    accept: str
    max_chars: int | None
    url: URL
    cursor: str | None = None

    def __call__(
        self,
        found: BaseModel,
        *,
        markdown: Callable[[], str] | None = None,
        cursor_at: Callable[[int], str] | None = None,
    ) -> Response:
        """Return the response.

        Args:
            found: the complete answer, already validated.
            markdown: renders it as Markdown; None if it has no Markdown form.
            cursor_at: for a list: returns the cursor after a number of this page's items.
        """
        headers = VARY if markdown else {}
        if markdown and wants(self.accept, MARKDOWN_TYPE):
            return markdown_answer(markdown(), self.max_chars)
        if self.max_chars is None:
            text, cursor = found.model_dump_json(), getattr(found, "next_cursor", None)
        else:
            whole = found.model_dump(mode="json")
            cut = fit(whole, order_of(type(found).__name__, whole), self.max_chars, cursor_at=cursor_at)
            text, cursor = dumps(cut), cut.get("next_cursor")
        if cursor:
            following = self.url.include_query_params(cursor=cursor)
            headers = {**headers, "Link": f'<{following.path}?{following.query}>; rel="next"'}
        return Response(text, media_type=JSON_TYPE, headers=headers)

    def part(self, kind: str, limit: int, question: Callable[[int], Any]) -> Response:
        """Return one page of a list whose cursor is an offset.

        Args:
            question: returns the page from an offset on, with the fields `total` and `next_cursor`.
        """
        kind = narrowed(kind, dict(parse_qsl(self.url.query)))
        after = read_cursor(kind, self.cursor) or 0
        found = question(after)
        if after + limit < found.total:
            found = found.model_copy(update={"next_cursor": write_cursor(kind, after + limit)})
        return self(found, cursor_at=lambda at: write_cursor(kind, after + at))


async def _reply(request: Request, max_chars: MaxChars = None) -> Reply:
    return Reply(request.headers.get("accept", ""), max_chars, request.url)


async def _list_reply(request: Request, cursor: CursorText = None, max_chars: MaxChars = None) -> Reply:
    return Reply(request.headers.get("accept", ""), max_chars, request.url, cursor)


ReplyDep = Annotated[Reply, Depends(_reply)]
ListReplyDep = Annotated[Reply, Depends(_list_reply)]


def markdown_answer(text: str, max_chars: int | None) -> Response:
    """Return a Markdown response, cut to the budget if there is one."""
    cut = text if max_chars is None else cut_markdown(text, max_chars)
    return PlainTextResponse(cut, media_type=MARKDOWN_TYPE, headers=VARY)


def wants(accept: str, media_type: str) -> bool:
    """True if an Accept header names this media type with a weight no lower than JSON's and HTML's."""
    if media_type not in accept.lower():
        return False
    weights: dict[str, float] = {}
    for item in accept.lower().split(",")[:20]:
        name, *parameters = (part.strip() for part in item.split(";"))
        weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            weights[name] = float(weight)
        except ValueError:
            weights[name] = 0.0
    wanted = weights.get(media_type, 0.0)
    others = max(weights.get(JSON_TYPE, 0.0), weights.get("text/html", 0.0))
    return wanted > 0 and wanted >= others
