"""Validate and clean a submitted log: size limits, decoding, control characters.

In: text or bytes from a form, a file, JSON or stdin. Out: clean text.
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
"""Share of control and undecodable characters above which input is not text. Random bytes have 0.55,
a log in a Chinese Windows code page mostly below 0.1."""

GZIP = b"\x1f\x8b\x08"
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]+")
"""Characters removed: all control characters, including C1, except tab, line ends and escape."""
_ODD_BYTES = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r\x1b\x0b\x0c")
"""Bytes that count as not text; vertical tabs and form feeds do not."""
_ODD_WIDE = re.compile(f"[\x80-\x9f{REPLACEMENT}]")


def unpacked(data: bytes) -> bytes:
    """Decompress a gzip file; return other bytes unchanged.

    Raises:
        TooLargeError: the content exceeds twice the log limit.
        NotTextError: the file is damaged or truncated.
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
    """Decode bytes, or a gzip file's content, to a log that is not yet cleaned; see `decode_text`.

    Raises:
        TooLargeError: over the limit, as UTF-8.
        NotTextError: not text.
    """
    text = decode_text(unpacked(data))
    _check_size(text)
    check_is_text(text)
    return text


def decode_text(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 if there is a byte order mark; undecodable bytes become U+FFFD."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def check_is_text(text: str) -> None:
    """Refuse decoded binary data.

    Raises:
        NotTextError: over 30% of the characters are control or undecodable ones.
    """
    # Counting bytes is much faster; lone surrogates are not counted.
    encoded = text.encode(errors="replace")
    odd = len(encoded) - len(encoded.translate(None, _ODD_BYTES))
    if len(encoded) != len(text):
        odd += sum(1 for _ in _ODD_WIDE.finditer(text))
    if odd > ODD_SHARE * len(text):
        raise NotTextError("This is not text. Paste or upload the log itself, as plain text in UTF-8.")


def clean_log(text: str) -> str:
    """Remove lone surrogates and all control characters except tab, line ends and escape.

    Raises:
        TooLargeError: over the limit, as UTF-8.
        EmptyInputError: the log is blank.
    """
    text = without_surrogates(text)
    _check_size(text)
    cleaned = _CONTROLS.sub("", text)
    if not cleaned or cleaned.isspace():
        raise EmptyInputError("The log is empty. Paste at least the lines from the first ERROR.")
    return cleaned


def clean_words(text: str) -> str:
    """Remove control characters and lone surrogates from a short text, such as a GPU's name."""
    return _CONTROLS.sub("", without_surrogates(text))


def too_large(size_bytes: int | None) -> TooLargeError:
    """Return the error for a log over the limit; `size_bytes` is None if the log was not read to its end."""
    limit = LOG_LIMIT_BYTES // (1024 * 1024)
    if size_bytes is None:
        return TooLargeError(f"The log is over the limit of {limit} MiB. Cut the start, keep the end.")
    # With one decimal, 10 MiB and one byte would read "10.0 MiB".
    is_clear = size_bytes >= 1.05 * LOG_LIMIT_BYTES
    size = f"{size_bytes / 1024 / 1024:.1f} MiB" if is_clear else f"{size_bytes:,} bytes"
    return TooLargeError(f"{size} is over the limit of {limit} MiB. Cut the start, keep the end.")


def _check_size(text: str) -> None:
    size = len(text) if text.isascii() else len(text.encode(errors="replace"))
    if size > LOG_LIMIT_BYTES:
        raise too_large(size)
