"""JSON rows out of a file, one by one, with the line each stands on; memory does not grow with the file.

Read are JSON lines, a JSON array, several arrays one after another (what `gh api --paginate` prints) and
arrays of arrays (`--slurp`); each plain or gzipped, detected by the content. Of JSON lines, a line that
cannot be read is reported and skipped; an array with such a fault ends there, since nobody knows where its
next row begins.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any, TextIO

from app.errors import InputError

LONGEST_ROW = 64 * 1024 * 1024
CHUNK_BYTES = 256 * 1024
BAD_LINES_AT_START = 200
"""When so many lines in a row are no JSON and none was before, the file is none."""

_GZIP = b"\x1f\x8b"
_GAP = re.compile(r"[ \t\r\n,]*")
"""What stands between the values of an array."""


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
        buffered: Any = source if isinstance(source, io.BufferedReader) else io.BufferedReader(source)
        plain: Any = gzip.GzipFile(fileobj=buffered) if buffered.peek(2)[:2] == _GZIP else buffered
        # What is no UTF-8 becomes lone surrogates, so that one such line does not hide the others.
        text = io.TextIOWrapper(plain, encoding="utf-8-sig", errors="surrogateescape", newline="\n")
        try:
            yield from _rows(text, name)
        finally:
            text.detach()
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{name}: is a broken gzip file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or type(error).__name__}") from None


def _rows(text: TextIO, name: str) -> Iterator[FileRow]:
    lines = enumerate(_lines(text, name), 1)
    number, line = next((pair for pair in lines if pair[1].strip()), (0, ""))
    if line.lstrip().startswith("[") or line.strip() == "{":
        yield from _array_rows(text, line, number, name)
    else:
        yield from _line_rows(chain([(number, line)], lines), name)


def _lines(text: TextIO, name: str) -> Iterator[str]:
    while line := text.readline(LONGEST_ROW):
        if len(line) == LONGEST_ROW:
            raise InputError(f"{name}: holds a line of more than {LONGEST_ROW >> 20} MiB")
        yield line


def _is_text(chunk: str) -> bool:
    try:
        chunk.encode()
    except UnicodeEncodeError:
        return False
    return True


def _line_rows(lines: Iterator[tuple[int, str]], name: str) -> Iterator[FileRow]:
    bad: list[FileRow] = []
    has_good = False
    for number, line in lines:
        if not line.strip():
            continue
        row = _line_row(line, number)
        has_good = has_good or row.fault is None
        bad.append(row)
        if has_good:
            for item in bad:
                yield from _flat(item)
            bad = []
        elif len(bad) >= BAD_LINES_AT_START:
            break
    if bad:
        raise InputError(f"{name}: is not JSON; wanted are JSON lines or a JSON array")


def _line_row(line: str, number: int) -> FileRow:
    if not _is_text(line):
        return FileRow(number, fault="is no UTF-8 text")
    try:
        return FileRow(number, json.loads(line, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return FileRow(number, fault="is no JSON")


def _flat(row: FileRow) -> Iterator[FileRow]:
    if isinstance(row.value, list):
        for item in row.value:
            yield from _flat(FileRow(row.line, item))
    else:
        yield row


def _checked(chunk: str, name: str) -> str:
    if not _is_text(chunk):
        raise InputError(f"{name}: is no UTF-8 text")
    return chunk


def _array_rows(text: TextIO, window: str, line: int, name: str) -> Iterator[FileRow]:
    """Rows of arrays and of objects in a row; `window` holds what is read and not yet taken."""
    at = depth = 0
    size, window = CHUNK_BYTES, _checked(window, name)
    while True:
        gap = _GAP.match(window, at)
        end = gap.end() if gap else at
        line += window.count("\n", at, end)
        at, value, is_whole = end, None, False
        if at < len(window) and window[at] in "[]":
            depth += 1 if window[at] == "[" else -1
            if not 0 <= depth <= 2:
                raise InputError(f"{name}:{line}: is no JSON array")
            at += 1
            continue
        if at < len(window):
            try:
                value, end = _DECODER.raw_decode(window, at)
                is_whole = True
            except (ValueError, RecursionError):
                pass
        if not is_whole or (end == len(window) and window[-1] not in '"}'):  # a number may go on
            chunk = _checked(text.read(size), name) if len(window) - at <= LONGEST_ROW else ""
            if chunk:
                window, at, size = window[at:] + chunk, 0, size * 2
                continue
            if at == len(window):
                break
            if not is_whole:
                raise InputError(f"{name}:{line}: the JSON is broken here")
        yield FileRow(line, value)
        line += window.count("\n", at, end)
        at, size = end, CHUNK_BYTES
    if depth:
        raise InputError(f"{name}:{line}: the JSON array breaks off")
