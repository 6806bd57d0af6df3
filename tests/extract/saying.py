"""Issues of our own, in the words of people, for the readers of what is said."""

from __future__ import annotations

from app.extract.text.blocks import read_document
from app.extract.text.document import CommentText, Document, IssueText

NUMBER = 50_000


def an_issue(
    body: str = "",
    *comments: str,
    title: str = "EngineCore stops at startup",
    labels: tuple[str, ...] = (),
    roles: tuple[str, ...] = (),
) -> Document:
    """An issue by "ada"; comments by others, `roles` their association from the first on."""
    output = tuple(
        CommentText(text, 100 + at, f"user{at}", roles[at] if at < len(roles) else "NONE")
        for at, text in enumerate(comments)
    )
    return read_document(IssueText(NUMBER, title, body, labels=labels, user="ada", comments=output))
