"""JSON rows out of a file, one by one, with the line each stands on; memory does not grow with the file.

Read are JSON lines, a JSON array, several arrays one after another (what `gh api --paginate` prints) and
arrays of arrays (`--slurp`); each plain or gzipped, told by the content. Of JSON lines, a line that cannot
be read is passed by; an array with such a fault ends there, for nobody knows where its next row begins.
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from app.errors import InputError

LONGEST_ROW_BYTES = 64 * 1024 * 1024
CHUNK_BYTES = 256 * 1024
BAD_LINES_AT_START = 200
"""When so many lines in a row are no JSON and none was before, the file is none."""

_GZIP = b"\x1f\x8b"
_BLANKS = b" \t\r\n"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


@dataclass(frozen=True, slots=True)
class FileRow:
    """One JSON value with its line, or the fault of a line that holds none."""

    line: int
    value: Any = None
    fault: str | None = None


def read_rows(source: IO[bytes], name: str) -> Iterator[FileRow]:
    """The rows of an open file.

    Args:
        source: opened for bytes.
        name: how messages call it.

    Raises:
        InputError: it is no JSON, no text, a broken gzip, or an array that breaks off.
    """
    try:
        plain: Any = _Rejoined(head := source.read(2), source)
        if head == _GZIP:
            plain = gzip.GzipFile(fileobj=plain)
        yield from _plain_rows(plain, name)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{name}: is a broken gzip file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or type(error).__name__}") from None


def _plain_rows(source: Any, name: str) -> Iterator[FileRow]:
    start = bytes(source.read(CHUNK_BYTES))
    while start and not start.removeprefix(codecs.BOM_UTF8).strip(_BLANKS):
        more = source.read(CHUNK_BYTES)
        if not more:
            return
        start += more
        if len(start) > LONGEST_ROW_BYTES:
            raise InputError(f"{name}: is not JSON")
    rest = _Rejoined(start.removeprefix(codecs.BOM_UTF8), source)
    text = start.removeprefix(codecs.BOM_UTF8).lstrip(_BLANKS)
    pretty = text.startswith(b"{") and text[1:].split(b"\n", 1)[0].strip(_BLANKS) == b"" and b"\n" in text
    yield from _array_rows(rest, name) if text.startswith(b"[") or pretty else _line_rows(rest, name)


# ---- JSON lines


def _line_rows(source: _Rejoined, name: str) -> Iterator[FileRow]:
    line, good = 0, False
    bad: list[FileRow] = []
    for content in source.lines(name):
        line += 1
        if not content.strip():
            continue
        row = _line_row(content, line)
        good = good or row.fault is None
        if good:
            yield from bad
            bad = []
            yield from _flat(row)
            continue
        bad.append(row)
        if len(bad) >= BAD_LINES_AT_START:
            break
    if bad:
        raise InputError(f"{name}: is not JSON; wanted are JSON lines or a JSON array")


def _line_row(content: bytes, line: int) -> FileRow:
    try:
        return FileRow(line, json.loads(content.decode(), parse_constant=_no_constant))
    except UnicodeDecodeError:
        return FileRow(line, fault="is no UTF-8 text")
    except (ValueError, RecursionError):
        return FileRow(line, fault="is no JSON")


def _flat(row: FileRow) -> Iterator[FileRow]:
    if isinstance(row.value, list):
        for item in row.value:
            yield from _flat(FileRow(row.line, item)) if isinstance(item, list) else [FileRow(row.line, item)]
    else:
        yield row


# ---- arrays


def _array_rows(source: _Rejoined, name: str) -> Iterator[FileRow]:
    """Rows of arrays and of objects in a row; commas and brackets around them are only stepped over."""
    text = _Text(source, name)
    depth = 0
    while (sign := text.next_sign()) is not None:
        if sign == "[":
            depth += 1
        elif sign == "]":
            depth -= 1
        elif sign != ",":
            yield FileRow(text.line, text.take_value())
            continue
        if depth < 0 or depth > 2:
            raise InputError(f"{name}:{text.line}: is no JSON array")
        text.step()
    if depth:
        raise InputError(f"{name}:{text.line}: the JSON array breaks off")


class _Text:
    """A window on the decoded file: what is not yet taken, and its line."""

    def __init__(self, source: _Rejoined, name: str) -> None:
        self.line = 1
        self._source, self._name = source, name
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._window = ""
        self._at = 0
        self._ended = False

    def next_sign(self) -> str | None:
        """The next character that is no blank, not yet taken; None at the end."""
        while True:
            while self._at < len(self._window) and self._window[self._at] in " \t\r\n":
                self.line += self._window[self._at] == "\n"
                self._at += 1
            if self._at < len(self._window):
                return self._window[self._at]
            if not self._more(CHUNK_BYTES):
                return None

    def step(self) -> None:
        self._at += 1

    def take_value(self) -> Any:
        """The JSON value that begins here."""
        wanted = CHUNK_BYTES
        while True:
            try:
                value, end = _DECODER.raw_decode(self._window, self._at)
            except (ValueError, RecursionError):
                if len(self._window) - self._at > LONGEST_ROW_BYTES or not self._more(wanted):
                    raise InputError(f"{self._name}:{self.line}: the JSON is broken here") from None
                wanted *= 2
                continue
            if end == len(self._window) and not self._ended and self._window[end - 1] not in '"}]':
                self._more(CHUNK_BYTES)  # a number may go on
                continue
            self.line += self._window.count("\n", self._at, end)
            self._at = end
            return value

    def _more(self, size: int) -> bool:
        if self._ended:
            return False
        content = self._source.read(size)
        try:
            text = self._decoder.decode(content, final=not content)
        except UnicodeDecodeError:
            raise InputError(f"{self._name}: is no UTF-8 text") from None
        self._ended = not content
        self._window = self._window[self._at :] + text
        self._at = 0
        return not self._ended


class _Rejoined:
    """A stream with the bytes that were read ahead of it put back."""

    def __init__(self, head: bytes, source: Any) -> None:
        self._head, self._source = head, source

    def read(self, size: int = -1) -> bytes:
        if self._head:
            if size < 0:
                head, self._head = self._head, b""
                return head + bytes(self._source.read())
            part, self._head = self._head[:size], self._head[size:]
            return part + bytes(self._source.read(size - len(part))) if len(part) < size else part
        return bytes(self._source.read(size))

    def lines(self, name: str) -> Iterator[bytes]:
        """Lines without their end; memory is bounded by the longest."""
        kept = bytearray()
        while chunk := self.read(CHUNK_BYTES):
            parts = (bytes(kept) + chunk).split(b"\n") if b"\n" in chunk else None
            if parts is None:
                kept += chunk
            else:
                kept = bytearray(parts.pop())
                yield from parts
            if len(kept) > LONGEST_ROW_BYTES:
                raise InputError(f"{name}: holds a line of more than {LONGEST_ROW_BYTES >> 20} MiB")
        if kept:
            yield bytes(kept)
