"""JSON lines of issues in, JSON lines of facts out: `triage extract` without input and output."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from app.extract.reader import read_issue
from app.extract.text.document import CommentText, IssueText


def facts_lines(lines: Iterable[str], name: str) -> Iterator[tuple[str, str]]:
    """Yield the facts of each line's issue as one line of JSON, or an error message, in the same order.

    Args:
        lines: `{number, title, body, repo?, labels?, state?, comments_data?}` each; blank lines are skipped.

    Returns:
        Facts and error message for each line, one of them empty.
    """
    for position, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield read_issue(issue_text(json.loads(line))).facts.model_dump_json(), ""
        except RecursionError:
            yield "", f"{name}:{position}: nested too deeply"
        except ValueError as error:
            yield "", f"{name}:{position}: {error}"


def issue_text(row: Any) -> IssueText:
    """Read an issue's texts from one JSON object.

    Raises:
        ValueError: not an object, or without an integer number or a title.
    """
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    number = row.get("number")
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError("`number` is missing or no whole number")
    if not isinstance(row.get("title"), str):
        raise ValueError("`title` is missing or no text")
    return IssueText(
        number=number,
        title=_clean(row["title"]),
        body=_clean(row.get("body")),
        repo=str(row.get("repo") or "vllm-project/vllm"),
        labels=tuple(filter(None, map(_label, _items(row.get("labels"))))),
        state=row.get("state"),
        user=_login(row.get("user")),
        created_at=row.get("created_at"),
        comments=tuple(_comment(item) for item in _items(row.get("comments_data")) if isinstance(item, dict)),
    )


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _label(label: Any) -> str:
    """Return the name of a label given as an object (as by `gh`) or a string; empty for anything else."""
    name = label.get("name") if isinstance(label, dict) else label
    return name if isinstance(name, str) else ""


def _comment(row: dict[str, Any]) -> CommentText:
    return CommentText(
        body=_clean(row.get("body")),
        id=row.get("id"),
        user=_login(row.get("user")),
        author_association=str(row.get("author_association") or "NONE"),
        created_at=row.get("created_at"),
    )


def _login(user: Any) -> str | None:
    return user.get("login") if isinstance(user, dict) else user


def _clean(text: Any) -> str:
    """Replace lone surrogates, which cannot be encoded; offsets stay valid."""
    return str(text or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
