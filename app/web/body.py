"""Names that a caller spelled wrong: the nearest of ours, and whether his can be repeated to him."""

import io
import json
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar, get_args
from urllib.parse import unquote_to_bytes

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from app.config import LOG_LIMIT_BYTES
from app.errors import NotTextError, TooLargeError, TriageError
from app.knowledge.diagnosis.log_input import (
    GZIP,
    check_is_text,
    clean_log,
    clean_words,
    decode_text,
    too_large,
    unpacked,
)

_GIVEN_CHARS = 200
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The name that is spelled most alike, or else the first that is made of the same words."""
    names = list(known)
    if near := get_close_matches(given[:_GIVEN_CHARS], names, n=1):
        return near[0]
    words = _words(given[:_GIVEN_CHARS])
    return next((name for name in names if len(words) > 1 and _words(name) == words), None)


def _words(name: str) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in re.split(r"[._-]", name.lower()))


def plain_name(name: str, otherwise: str) -> str:
    """A name that a caller sent, if it can be repeated to him; else `otherwise`."""
    return name if _PLAIN_NAME.fullmatch(name) else otherwise


JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain"
FORM_TYPE = "application/x-www-form-urlencoded"
MULTIPART_TYPE = "multipart/form-data"

_MARGIN = 256 * 1024
"""Room for the other fields, headers of parts and boundaries."""

BODY_LIMIT_BYTES = {
    TEXT_TYPE: 2 * LOG_LIMIT_BYTES + _MARGIN,  # UTF-16, as PowerShell writes it
    MULTIPART_TYPE: 2 * LOG_LIMIT_BYTES + _MARGIN,
    FORM_TYPE: 3 * LOG_LIMIT_BYTES + _MARGIN,  # %41
    JSON_TYPE: 6 * LOG_LIMIT_BYTES + _MARGIN,  # \u0041
}
"""Largest raw body of each kind: what the largest log needs when every character is escaped."""

_FIELD_COUNT_MAX = 20
_STEP = 1 << 20
"""How much of a body is looked at at a time, where more would need many times its size."""
PARTS_MAX = 100_000
_PARTS = ",[{"

Fields = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)


class MalformedError(TriageError):
    """The body does not follow its own format."""

    status = 400


@dataclass(slots=True)
class RawBody:
    """A body as received: its media type, and its bytes or a multipart form's parts."""

    media_type: str
    content: bytes = b""
    parts: dict[str, bytes] = field(default_factory=dict)

    def take(self) -> bytes:
        """The bytes, which are held here no longer: a request outlives the reading of its body by far."""
        content, self.content = self.content, b""
        return content


async def read_json_or_text(request: Request) -> RawBody:
    """The body of a JSON route: JSON or a bare log."""
    return await _read(request, (JSON_TYPE, TEXT_TYPE), f"Send the log as {JSON_TYPE} or {TEXT_TYPE}.")


async def read_json(request: Request) -> RawBody:
    """A JSON body that may be large."""
    return await _read(request, (JSON_TYPE,), f"Send {JSON_TYPE}.")


async def read_bare(request: Request) -> RawBody:
    """A bare log, as whatever it is sent: curl says that it sends a form."""
    return await _read(request, (TEXT_TYPE,), "", media_type=TEXT_TYPE)


async def read_form(request: Request) -> RawBody:
    """The body of a page's form."""
    return await _read(request, (MULTIPART_TYPE, FORM_TYPE), "Send the log with the form.")


async def read_limited(request: Request, limit_bytes: int, refusal: str) -> bytes:
    """The bytes of a body that holds no log.

    Raises:
        TooLargeError: over the limit, with `refusal` as its message.
    """
    chunks = _limited(request, limit_bytes, lambda _size: TooLargeError(refusal))
    return b"".join([chunk async for chunk in chunks])


def media_type_of(request: Request) -> str:
    """The media type of a body, in lower case and without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def json_reader(
    model: type[Model], limit_bytes: int, noun: str
) -> Callable[[Request], Coroutine[Any, Any, Model]]:
    """A dependency: a small JSON body as a model; `noun` is what a refusal calls it.

    Raises:
        NotTextError: it is not sent as JSON, as which a form of another site cannot send it.
        TooLargeError: over the limit.
        RequestValidationError: a field is at fault; and what `parse_body` raises.
    """

    async def read(request: Request) -> Model:
        if media_type_of(request) != JSON_TYPE:
            raise NotTextError(f"Send the {noun} as {JSON_TYPE}.")
        refusal = f"The {noun} is over the limit of {limit_bytes >> 10} KiB."
        content = await read_limited(request, limit_bytes, refusal)
        return validated(model, parse_body(RawBody(JSON_TYPE, content)))

    return read


def validated(model: type[Model], fields: Fields, *, strict: bool = True) -> Model:
    """A body's fields as a model; `strict` where they come with JSON's own types.

    Raises:
        RequestValidationError: a field is missing, of another type or out of range.
    """
    try:
        return model.model_validate(fields, strict=strict)
    except ValidationError as error:
        errors = error.errors(include_input=False, include_url=False)
        raise RequestValidationError([_named(model, fault) for fault in errors]) from None


def _named(model: type[BaseModel], fault: ErrorDetails) -> ErrorDetails:
    """A fault as it is; of a field that there is not, with the nearest that there is."""
    if fault["type"] != "extra_forbidden":
        return fault
    *where, name = fault["loc"]
    near = nearest(str(name), _field_names(model))
    words = "is no field of this body" + (f"; the nearest is {near}" if near else "")
    # A name like none of ours may be a piece of the log, so it is not repeated.
    return {**fault, "loc": (*where, plain_name(str(name), "a field") if near else "a field"), "msg": words}


def _field_names(model: type[BaseModel]) -> Iterator[str]:
    """The fields of a body, and of the objects in its lists."""
    for name, each in model.model_fields.items():
        yield name
        for inner in get_args(each.annotation):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from _field_names(inner)


async def _read(
    request: Request, accepted: tuple[str, ...], way_out: str, *, media_type: str | None = None
) -> RawBody:
    """Read the body, up to the limit of its kind; `media_type` in place of what the request says.

    Raises:
        NotTextError: another media type than the accepted ones, or a compressed body.
        TooLargeError: more bytes than a log of 10 MiB can take; raised before the rest is read.
        MalformedError: a broken multipart form.
    """
    media_type = media_type or media_type_of(request)
    if media_type not in accepted:
        raise NotTextError(f"This content type is not read here. {way_out}")
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"", "identity"} and (encoding, media_type) != ("gzip", TEXT_TYPE):
        raise NotTextError(f"This encoding is not read: send the log as {TEXT_TYPE}, by gzip or plain.")
    chunks = _limited(request, BODY_LIMIT_BYTES[media_type], too_large)
    if media_type == MULTIPART_TYPE:
        return RawBody(media_type, parts=await _parse_multipart(request.headers["content-type"], chunks))
    content = io.BytesIO()  # whose value is no copy
    async for chunk in chunks:
        content.write(chunk)
    body = RawBody(media_type, content.getvalue())
    if encoding == "gzip" and not body.content.startswith(GZIP):
        raise NotTextError("The body is not compressed by gzip, as its Content-Encoding says.")
    return body


async def _limited(
    request: Request, limit_bytes: int, refuse: Callable[[int | None], TooLargeError]
) -> AsyncGenerator[bytes, None]:
    """The chunks of a body, refused by its declared size or as soon as it is over the limit."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and len(declared) < 20 and int(declared) > limit_bytes:
        raise refuse(int(declared))
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit_bytes:
            raise refuse(None)
        yield chunk


class _FormParser(MultiPartParser):
    spool_max_size = BODY_LIMIT_BYTES[MULTIPART_TYPE]
    """A file stays in memory: what people send is never written to a disk."""

    def close(self) -> None:
        """Close all files, those of parts that did not end too."""
        for file in self._files_to_close_on_error:
            file.close()


async def _parse_multipart(content_type: str, chunks: AsyncGenerator[bytes, None]) -> dict[str, bytes]:
    headers = Headers({"content-type": f"{content_type}; charset=latin-1"})  # keeps the bytes of a field
    limit = BODY_LIMIT_BYTES[MULTIPART_TYPE]
    parser = _FormParser(
        headers, chunks, max_files=_FIELD_COUNT_MAX, max_fields=_FIELD_COUNT_MAX, max_part_size=limit
    )
    parts: dict[str, bytes] = {}
    try:
        for name, value in (await parser.parse()).multi_items():
            content = await value.read() if isinstance(value, UploadFile) else value.encode("latin-1")
            parts.setdefault(name, content)
    except MultiPartException:
        raise MalformedError("The form cannot be read.") from None
    finally:
        parser.close()
    if not parts:
        raise MalformedError("The form is empty.")
    return parts


def parse_body(body: RawBody) -> Fields:
    """The fields of a body, whose bytes it takes; for `text/plain` the one field `log`.

    A file takes the place of `log`.

    Raises:
        MalformedError: broken JSON or form.
        NotTextError, TooLargeError, EmptyInputError: see `check_is_text` and `clean_log`.
    """
    if body.media_type == TEXT_TYPE:
        return cleaned({"log": decode_text(unpacked(body.take()))})
    if body.media_type == JSON_TYPE:
        return cleaned(_parse_json(decode_text(body.take())))
    parts = body.parts if body.media_type == MULTIPART_TYPE else _parse_urlencoded(body.take())
    if not (parts.get("file") or b" ").isspace():
        parts["log"] = parts["file"]
    parts.pop("file", None)
    fields: Fields = {name: decode_text(unpacked(parts.pop(name))) for name in tuple(parts)}
    return cleaned({"log": "", **fields})


def cleaned(fields: Fields) -> Fields:
    """The fields with clean texts; what `fields` holds is taken out of it, so that no log is held twice."""
    return {name: _clean_value(name, fields.pop(name)) for name in sorted(fields, key="log".__eq__)}


def _clean_value(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name != "log":
        return clean_words(value)
    check_is_text(value)
    return clean_log(value)


def check_structure(text: str) -> None:
    """Refuse JSON of more parts than any caller has to send, before any are made of it.

    Each object, list and entry takes many times its own size.

    Raises:
        MalformedError: over `PARTS_MAX`.
    """
    if sum(map(text.count, _PARTS)) <= PARTS_MAX:  # those in strings too
        return
    count, is_inside, rest = 0, False, ""
    for start in range(0, len(text), _STEP):
        step = (rest + text[start : start + _STEP]).replace("\\\\", "").replace('\\"', "")
        rest = "\\" * step.endswith("\\")
        pieces = step.removesuffix(rest).split('"')
        count += sum(piece.count(part) for piece in pieces[is_inside::2] for part in _PARTS)
        is_inside ^= len(pieces) % 2 == 0
        if count > PARTS_MAX:
            raise MalformedError(f"The JSON has over {PARTS_MAX:,} entries.")


def _parse_json(text: str) -> Fields:
    check_structure(text)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_number)
    except MalformedError:
        raise
    except (ValueError, RecursionError):
        raise MalformedError("The body is not valid JSON.") from None
    if not isinstance(value, dict):
        raise MalformedError('The body must be a JSON object such as {"log": "..."}.')
    return value


def _number(text: str) -> int | float:
    """In JSON `3.0` is the number 3."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise MalformedError("A key stands twice in one JSON object.")
    return fields


def _no_constant(_name: str) -> None:
    raise MalformedError("NaN and Infinity are no JSON.")


def _parse_urlencoded(content: bytes) -> dict[str, bytes]:
    pairs = content.split(b"&", _FIELD_COUNT_MAX)
    if len(pairs) > _FIELD_COUNT_MAX:
        raise MalformedError("The form has too many fields.")
    fields: dict[str, bytes] = {}
    for pair in pairs:
        name, _, value = pair.partition(b"=")
        fields.setdefault(_unquote(name[:1000]).decode("utf-8", errors="replace"), _unquote(value))
    return fields


def _unquote(value: bytes) -> bytes:
    """Percent-decoding in steps: the library's takes 40 bytes for every escaped one, 2.5 GB of 30 MiB."""
    out = bytearray()
    start = 0
    while start < len(value):
        end = min(start + _STEP, len(value))
        if end < len(value) and b"%" in value[end - 2 : end]:
            end = value.rindex(b"%", end - 2, end)
        out += unquote_to_bytes(value[start:end].replace(b"+", b" "))
        start = end
    return bytes(out)
