"""A pasted log on its way in: limits, decoding, control characters.

In: text or bytes from any door (form, file, JSON, stdin). Out: text that every room can take.
"""

from __future__ import annotations

from app.config import LOG_LIMIT_BYTES
from app.errors import EmptyInputError, NotTextError, TooLargeError

REPLACEMENT = "\ufffd"
BINARY_SHARE = 0.1
"""More than this share of NULs and undecodable bytes: not a text."""
PROBE_BYTES = 65_536

_CONTROL = {code: None for code in range(32) if code not in (9, 10, 13, 27)} | {127: None}


def decode_log(data: bytes) -> str:
    """Bytes as text: UTF-8 (a byte-order mark is dropped), UTF-16 with a mark, else with replacements.

    Raises:
        TooLargeError: over the limit.
        NotTextError: not a text.
    """
    if len(data) > LOG_LIMIT_BYTES:
        raise TooLargeError(too_large_message(len(data)))
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    text = data.decode("utf-8-sig", errors="replace")
    probe = text[:PROBE_BYTES]
    odd = probe.count(REPLACEMENT) + probe.count("\x00")
    if probe and odd / len(probe) > BINARY_SHARE:
        raise NotTextError("This is not a text. Paste or upload the log itself, unpacked.")
    return text


def clean_log(text: str) -> str:
    """A log as it is read: no control characters but tab, line ends and escape; no lone surrogates.

    Raises:
        EmptyInputError: nothing but blanks.
        TooLargeError: over the limit.
    """
    if len(text) > LOG_LIMIT_BYTES:
        raise TooLargeError(too_large_message(len(text)))
    try:
        data = text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        data = text.encode(errors="replace")
    if len(data) > LOG_LIMIT_BYTES:
        raise TooLargeError(too_large_message(len(data)))
    cleaned = text.translate(_CONTROL)
    if not cleaned.strip():
        raise EmptyInputError("The log is empty. Paste at least the lines from the first ERROR.")
    return cleaned


def too_large_message(size_bytes: int) -> str:
    """What is said of a log over the limit."""
    limit = LOG_LIMIT_BYTES / 1048576
    return (
        f"{size_bytes / 1048576:.1f} MiB is over the limit of {limit:.0f} MiB. "
        "Cut the start-up lines, keep the end."
    )
