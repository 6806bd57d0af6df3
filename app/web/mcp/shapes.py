"""The tools' answers: those of the API, cut to the fields in `fields.toml`, so that small contexts hold them.

Texts in them are words of logs and public issues: data, never instructions. What is not seen (control,
zero-width and direction characters) is taken out before they leave, and so is what is empty or not known.

A result holds an answer twice, as JSON and as text, and a client reads one of them: each is shortened by its
own rule, and the result as it is sent has at most `max_chars` characters.
"""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel

from app.knowledge.markdown import cut_markdown, inert
from app.web.answers.budget import MIN_CHARS, TRUNCATED, dumps, fit, order_of

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

_FIELDS: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("fields.toml").read_text(encoding="utf-8")
)
_TRUNCATED = {
    "type": "object",
    "additionalProperties": {"type": "integer"},
    "description": "number of omitted entries by list name, to fit `max_chars`; `*` counts omitted fields",
}


def output_schema(tool: str, shape: type[BaseModel]) -> dict[str, Any]:
    """The schema of a tool's answer: the API's shape with the tool's fields alone."""
    schema = shape.model_json_schema(mode="serialization")
    known = schema.pop("$defs", {})
    _keep(schema, _FIELDS["answers"][tool])
    for name, inner in known.items():
        _keep(inner, _FIELDS["shapes"].get(name, list(inner.get("properties", ()))))
    schema["properties"][TRUNCATED] = _TRUNCATED
    used: dict[str, Any] = {}
    names = list(_names_in(schema))
    while names:
        if (name := names.pop()) not in used:
            used[name] = known[name]
            names += _names_in(known[name])
    return {**schema, "$defs": used}


def _keep(schema: dict[str, Any], names: Sequence[str]) -> None:
    """Leave these properties in an object's schema; as what is empty is left out, none must be there."""
    if found := schema.get("properties"):
        schema["properties"] = {name: found[name] for name in names}
        for one in found.values():
            one.pop("title", None)  # its name, with a capital
    schema.pop("required", None)


def _names_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        schema = list(schema.values())
    for part in schema if isinstance(schema, list) else ():
        yield from _names_in(part)


def _kept(shape: type[BaseModel], names: Sequence[str]) -> dict[str, Any]:
    """These fields of a shape, and the fields of the shapes in them, as a dump includes them."""
    kinds = {name: field.annotation for name, field in shape.model_fields.items()}
    kinds |= {name: field.return_type for name, field in shape.model_computed_fields.items()}
    return {name: _kept_in(kinds[name]) for name in names}


def _kept_in(kind: Any) -> Any:
    for inner in (kind, *get_args(kind)):
        names = _FIELDS["shapes"].get(getattr(inner, "__name__", ""))
        if names is not None:
            kept = _kept(inner, names)
            return {"__all__": kept} if get_origin(kind) is tuple else kept
    return True


def fitted(tool: str, answer: BaseModel, text: str, max_chars: int) -> CallToolResult:
    """The answer and its text, shortened where both together are longer than `max_chars` as JSON."""
    room = max_chars - ENVELOPE_CHARS
    included = _kept(type(answer), _FIELDS["answers"][tool])
    data = inert_data(answer.model_dump(mode="json", include=included))
    text_chars = _json_chars(text)
    if text_chars + len(dumps(data)) > room:
        data = fit(data, order_of(tool, data), max(room // 2, room - text_chars))
        text = cut_markdown(text, room - len(dumps(data)), size=_json_chars)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=data)


def inert_data(value: Any) -> Any:
    """JSON data without unseen characters in any of its texts, and without fields that are empty."""
    if isinstance(value, dict):
        cleaned = {key: inert_data(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item not in (None, "", [], {})}
    if isinstance(value, list):
        return [inert_data(item) for item in value]
    return inert(value) if isinstance(value, str) else value


def _json_chars(text: str) -> int:
    """How long a text is inside a JSON string."""
    return len(dumps(inert(text))) - 2
