"""A pasted log on its way in: limits, decoding, control characters; the same for every door.

In: text or bytes from a form, a file, JSON, stdin. Out: text that every room can take.
"""

import codecs
import gzip
import io
import re
import zlib

from app.config import LOG_LIMIT_BYTES
from app.errors import EmptyInputError, NotTextError, TooLargeError
from app.knowledge.markdown import without_surrogates

REPLACEMENT = "\ufffd"
ODD_SHARE = 0.3
"""A text with more control and undecodable characters than this is no text. Random bytes have 0.55,
a log in a Chinese Windows code page mostly below 0.1."""

GZIP = b"\x1f\x8b\x08"
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]+")
"""What is taken out: all control characters, the 8-bit ones too, but tab, line ends and escape."""
_ODD_BYTES = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r\x1b\x0b\x0c")
"""What speaks against a text; line and page feeds of old printers do not."""
_ODD_WIDE = re.compile(f"[\x80-\x9f{REPLACEMENT}]")


def unpacked(data: bytes) -> bytes:
    """What a gzip file holds; other bytes as they are.

    Raises:
        TooLargeError: it holds more than any text of a log of the largest size.
        NotTextError: it is damaged or cut off.
    """
    if not data.startswith(GZIP):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(2 * LOG_LIMIT_BYTES + 1)  # as UTF-16
    except (OSError, EOFError, zlib.error):
        raise NotTextError("The gzip file is damaged or cut off: send it whole, or plain text.") from None
    if len(content) > 2 * LOG_LIMIT_BYTES:
        raise too_large(None)
    return content


def decode_log(data: bytes) -> str:
    """Bytes as a log that is still to be cleaned, see `decode_text`; of a gzip file what it holds.

    Raises:
        TooLargeError: over the limit, as UTF-8.
        NotTextError: not a text.
    """
    text = decode_text(unpacked(data))
    _check_size(text)
    check_is_text(text)
    return text


def decode_text(data: bytes) -> str:
    """Text of bytes: UTF-8, or UTF-16 where its mark says so; what cannot be read becomes U+FFFD."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def check_is_text(text: str) -> None:
    """Refuse what was no text before it was decoded.

    Raises:
        NotTextError: more than three in ten characters are not text.
    """
    # bytes are counted by far the faster; a lone surrogate is none of those that count
    encoded = text.encode(errors="replace")
    odd = len(encoded) - len(encoded.translate(None, _ODD_BYTES))
    if len(encoded) != len(text):
        odd += sum(1 for _ in _ODD_WIDE.finditer(text))
    if odd > ODD_SHARE * len(text):
        raise NotTextError("This is not text. Paste or upload the log itself, as plain text in UTF-8.")


def clean_log(text: str) -> str:
    """A log as it is read: no control characters but tab, line ends and escape; no lone surrogates.

    Raises:
        TooLargeError: over the limit, as UTF-8.
        EmptyInputError: nothing but blanks.
    """
    text = without_surrogates(text)
    _check_size(text)
    cleaned = _CONTROLS.sub("", text)
    if not cleaned or cleaned.isspace():
        raise EmptyInputError("The log is empty. Paste at least the lines from the first ERROR.")
    return cleaned


def clean_words(text: str) -> str:
    """A short text beside the log: without control characters and lone surrogates."""
    return _CONTROLS.sub("", without_surrogates(text))


def too_large(size_bytes: int | None) -> TooLargeError:
    """The refusal of a log over the limit; without a size where the rest was not read."""
    limit = LOG_LIMIT_BYTES // (1024 * 1024)
    if size_bytes is None:
        return TooLargeError(f"The log is over the limit of {limit} MiB. Cut the start, keep the end.")
    # one decimal would show 10 MiB and a byte as "10.0 MiB"
    is_clear = size_bytes >= 1.05 * LOG_LIMIT_BYTES
    size = f"{size_bytes / 1024 / 1024:.1f} MiB" if is_clear else f"{size_bytes:,} bytes"
    return TooLargeError(f"{size} is over the limit of {limit} MiB. Cut the start, keep the end.")


def _check_size(text: str) -> None:
    size = len(text) if text.isascii() else len(text.encode(errors="replace"))
    if size > LOG_LIMIT_BYTES:
        raise too_large(size)
