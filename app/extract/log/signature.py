"""Signatures: a readable key for each failure, the same on every machine.

`mask` replaces the variable parts of an error message (numbers, sizes, addresses, paths, ids, shapes, some
quoted names) by `<kind>`. Equal values get equal placeholders within a message; the second distinct value of
a kind is `<kind2>`. The masks are an ordered table, `lists/masks.toml`.

The signature's text is `Type | masked message | frame < frame`, with the innermost decisive frames as
module:function without line numbers. Its id is `s1-` and the first 12 hex digits of the text's SHA-256.
Algorithm versions:

    s1  2026-11-21  type, masked message, at most two decisive frames
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from app.extract.facts import Signature, SignatureRole
from app.extract.lists import load
from app.extract.log.frames import Frame, is_plumbing
from app.extract.log.process_stream import ErrorRecord
from app.extract.rules.patterns import pattern

MAX_MESSAGE_CHARS = 400


@lru_cache(maxsize=64)
def mask(message: str) -> str:
    """Mask the variable parts of a message and collapse its whitespace."""
    text = message[:MAX_MESSAGE_CHARS]
    seen: dict[str, dict[str, str]] = {}

    table, kinds = _table()

    def placeholder(found: Any) -> str:
        kind, value = kinds[found.lastindex - 1], found.group(0)
        values = seen.setdefault(kind, {})
        position = len(values) + 1
        return values.setdefault(value, f"<{kind}>" if position == 1 else f"<{kind}{position}>")

    return " ".join(table.sub(placeholder, text).split())


@lru_cache(maxsize=1)
def _table() -> tuple[Any, tuple[str, ...]]:
    """Return all masks as one pattern with a group for each, and the kinds of the groups."""
    rows = load("masks")["rule"]
    return pattern("|".join(f"({row['pattern']})" for row in rows)), tuple(row["value"] for row in rows)


VERSION = "s1"
MAX_FRAMES = 2
MAX_TEXT_CHARS = 300
ASYNCHRONOUS = ("CUDA error", "HIP error", "NCCL error")
"""Errors that are reported asynchronously: their Python frames do not show where the failure happened."""


def make_signature(cause: ErrorRecord, role: SignatureRole = "root") -> Signature:
    places = [] if cause.type in ASYNCHRONOUS and not cause.native else decisive_places(cause.frames)
    if not places and cause.frame and cause.native:
        places = [cause.frame.split(":")[0]]
    parts = [cause.type or "error", mask(cause.message), " < ".join(places)]
    text = " | ".join(part for part in parts if part)[:MAX_TEXT_CHARS]
    return Signature(id=signature_id(text), text=text, role=role)


def signature_id(text: str) -> str:
    return f"{VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def decisive_places(frames: Sequence[Frame]) -> list[str]:
    """Return the innermost frames that are not plumbing as `module:function`, innermost first."""
    decisive = [frame for frame in reversed(frames) if not is_plumbing(frame)]
    return [f"{frame.file.removesuffix('.py')}:{frame.function}" for frame in decisive[:MAX_FRAMES]]
