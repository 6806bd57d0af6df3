"""Request bodies: read within size limits, decode, parse, validate; suggestions for misspelled names."""

import io
import json
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Annotated, Any, TypeVar, get_args
from urllib.parse import parse_qsl, unquote_to_bytes

from fastapi import Depends
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
    """Return the known name with the closest spelling, or else the first made of the same words, or None."""
    names = list(known)
    if near := get_close_matches(given[:_GIVEN_CHARS], names, n=1):
        return near[0]
    words = _words(given[:_GIVEN_CHARS])
    return next((name for name in names if len(words) > 1 and _words(name) == words), None)


def _words(name: str) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in re.split(r"[._-]", name.lower()))


def plain_name(name: str, otherwise: str) -> str:
    """Return a name sent by a caller if it is safe to echo, or else `otherwise`."""
    return name if _PLAIN_NAME.fullmatch(name) else otherwise


JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain"
FORM_TYPE = "application/x-www-form-urlencoded"
MULTIPART_TYPE = "multipart/form-data"

_MARGIN = 256 * 1024
"""Allowance for the other fields, part headers and boundaries."""

BODY_LIMIT_BYTES = {
    TEXT_TYPE: 2 * LOG_LIMIT_BYTES + _MARGIN,  # UTF-16, as PowerShell writes it
    MULTIPART_TYPE: 2 * LOG_LIMIT_BYTES + _MARGIN,
    FORM_TYPE: 3 * LOG_LIMIT_BYTES + _MARGIN,  # %41
    JSON_TYPE: 6 * LOG_LIMIT_BYTES + _MARGIN,  # \u0041
}
"""Largest raw body by media type: the size of the largest log with every character escaped."""

SMALL_FORM_BYTES = 4096
_FIELD_COUNT_MAX = 20
_STEP = 1 << 20
"""Chunk size for decoding a form, as decoding it whole would need many times its size."""
PARTS_MAX = 100_000
_PARTS = ",[{"
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[,\[{]', re.DOTALL)
"""A string, whatever it contains, or a part."""

Fields = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)


class MalformedError(TriageError):
    """The body does not follow its own format."""

    status = 400


@dataclass(slots=True)
class RawBody:
    """A received body: its media type, and its bytes or the parts of a multipart form."""

    media_type: str
    content: bytes = b""
    parts: dict[str, bytes] = field(default_factory=dict)

    def take(self) -> bytes:
        """Return the bytes and drop the reference, as a request lives much longer than its body is needed."""
        content, self.content = self.content, b""
        return content


async def read_json_or_text(request: Request) -> RawBody:
    """Read the body of a JSON route: JSON or a plain-text log."""
    return await _read(request, (JSON_TYPE, TEXT_TYPE), f"Send the log as {JSON_TYPE} or {TEXT_TYPE}.")


async def read_json(request: Request) -> RawBody:
    """Read a JSON body that may be large."""
    return await _read(request, (JSON_TYPE,), f"Send {JSON_TYPE}.")


async def read_bare(request: Request) -> RawBody:
    """Read a plain-text log, whatever its Content-Type: curl declares a form by default."""
    return await _read(request, (TEXT_TYPE,), "", media_type=TEXT_TYPE)


async def read_form(request: Request) -> RawBody:
    """Read the body of a page's form."""
    return await _read(request, (MULTIPART_TYPE, FORM_TYPE), "Send the log with the form.")


async def read_limited(request: Request, limit_bytes: int, refusal: str) -> bytes:
    """Read a body that is not a log, up to a limit.

    Raises:
        TooLargeError: over the limit, with `refusal` as its message.
    """
    chunks = _limited(request, limit_bytes, lambda _size: TooLargeError(refusal))
    return b"".join([chunk async for chunk in chunks])


async def small_form(request: Request) -> dict[str, str]:
    """Dependency that reads a short URL-encoded form, of which each field counts once.

    Raises:
        TooLargeError: over the limit.
    """
    refusal = f"This form holds at most {SMALL_FORM_BYTES >> 10} KiB."
    content = await read_limited(request, SMALL_FORM_BYTES, refusal)
    return dict(parse_qsl(content.decode("utf-8", "replace")))


SmallForm = Annotated[dict[str, str], Depends(small_form)]


def media_type_of(request: Request) -> str:
    """Return the media type of a request's body, lowercase and without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def json_reader(
    model: type[Model], limit_bytes: int, noun: str
) -> Callable[[Request], Coroutine[Any, Any, Model]]:
    """Return a dependency that reads a small JSON body as a model; error messages call the body `noun`.

    Raises:
        NotTextError: not declared as JSON, which forms of other sites cannot do.
        TooLargeError: over the limit.
        RequestValidationError: a field is invalid; and what `parse_body` raises.
    """

    async def read(request: Request) -> Model:
        if media_type_of(request) != JSON_TYPE:
            raise NotTextError(f"Send the {noun} as {JSON_TYPE}.")
        refusal = f"The {noun} is over the limit of {limit_bytes >> 10} KiB."
        content = await read_limited(request, limit_bytes, refusal)
        return validated(model, parse_body(RawBody(JSON_TYPE, content)))

    return read


def validated(model: type[Model], fields: Fields, *, strict: bool = True) -> Model:
    """Validate a body's fields as a model; `strict` if the values have JSON types.

    Raises:
        RequestValidationError: a field is missing, unknown, of the wrong type or out of range.
    """
    try:
        return model.model_validate(fields, strict=strict)
    except ValidationError as error:
        errors = error.errors(include_input=False, include_url=False)
        raise RequestValidationError([_named(model, fault) for fault in errors]) from None


def _named(model: type[BaseModel], fault: ErrorDetails) -> ErrorDetails:
    """Return the error; for an unknown field, with a suggestion of the nearest known one."""
    if fault["type"] != "extra_forbidden":
        return fault
    *where, name = fault["loc"]
    near = nearest(str(name), _field_names(model))
    words = "is no field of this body" + (f"; the nearest is {near}" if near else "")
    # A name unlike any known field may be part of a log, so it is not echoed.
    return {**fault, "loc": (*where, plain_name(str(name), "a field") if near else "a field"), "msg": words}


def _field_names(model: type[BaseModel]) -> Iterator[str]:
    """Yield the field names of a body, and of the objects in its lists."""
    for name, each in model.model_fields.items():
        yield name
        for inner in get_args(each.annotation):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from _field_names(inner)


async def _read(
    request: Request, accepted: tuple[str, ...], way_out: str, *, media_type: str | None = None
) -> RawBody:
    """Read the body, up to the limit of its media type; `media_type` overrides the request's header.

    Raises:
        NotTextError: the media type or the compression is not accepted.
        TooLargeError: larger than a log of 10 MiB can be; raised before the rest is read.
        MalformedError: the multipart form is malformed.
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
    content = io.BytesIO()  # getvalue() does not copy
    async for chunk in chunks:
        content.write(chunk)
    body = RawBody(media_type, content.getvalue())
    if encoding == "gzip" and not body.content.startswith(GZIP):
        raise NotTextError("The body is not compressed by gzip, as its Content-Encoding says.")
    return body


async def _limited(
    request: Request, limit_bytes: int, refuse: Callable[[int | None], TooLargeError]
) -> AsyncGenerator[bytes, None]:
    """Yield the chunks of a body; raise if its declared size or the bytes received exceed the limit."""
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
    """Files stay in memory: uploads are never written to disk."""

    def close(self) -> None:
        """Close all files, including those of incomplete parts."""
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
    """Parse a body into fields, consuming its bytes; `text/plain` gives the single field `log`.

    An uploaded file replaces `log`.

    Raises:
        MalformedError: the JSON or form is malformed.
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
    """Return the fields with cleaned texts, emptying `fields`, so that no log is in memory twice."""
    return {name: _clean_value(name, fields.pop(name)) for name in sorted(fields, key="log".__eq__)}


def _clean_value(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name != "log":
        return clean_words(value)
    check_is_text(value)
    return clean_log(value)


def check_structure(text: str) -> None:
    """Reject JSON with too many objects, lists and entries before it is parsed.

    Parsed, each of them takes many times its size in the text.

    Raises:
        MalformedError: more than `PARTS_MAX`.
    """
    if sum(map(text.count, _PARTS)) <= PARTS_MAX:  # an upper bound, which includes characters in strings
        return
    tokens = islice(_TOKEN.finditer(text), 4 * PARTS_MAX)  # JSON has at most two strings to a part
    if sum(text[token.start()] != '"' for token in tokens) > PARTS_MAX:
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
    """Parse a JSON number; `3.0` is the integer 3."""
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
    """Percent-decode in chunks: the library needs 40 bytes per escaped byte, 2.5 GB for 30 MiB."""
    out = bytearray()
    start = 0
    while start < len(value):
        end = min(start + _STEP, len(value))
        if end < len(value) and b"%" in value[end - 2 : end]:
            end = value.rindex(b"%", end - 2, end)
        out += unquote_to_bytes(value[start:end].replace(b"+", b" "))
        start = end
    return bytes(out)
