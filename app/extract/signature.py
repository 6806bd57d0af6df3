"""A failure's readable key.

The text is `Type | masked message | frame < frame`: the error's type, its message with the variable
parts masked, and the innermost telling frames as module:function without line numbers. The id is
`s1-` and the first 12 hex digits of the text's SHA-256. Algorithm versions:

    s1  2026-11-21  type, masked message, at most two telling frames
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from app.extract.facts import Signature, SignatureRole
from app.extract.normalise import mask
from app.extract.rootcause import Cause, is_plumbing
from app.extract.tracebacks import Frame

VERSION = "s1"
MAX_FRAMES = 2
MAX_TEXT_CHARS = 300
ASYNCHRONOUS = ("CUDA error", "HIP error", "NCCL error")
"""Errors that are reported late: their Python frame is where the program was, not where it failed."""


def make_signature(cause: Cause, role: SignatureRole = "root") -> Signature:
    """The signature of an error."""
    places = [] if cause.type in ASYNCHRONOUS and not cause.native else telling_places(cause.frames)
    if not places and cause.frame and cause.native:
        places = [cause.frame.split(":")[0]]
    parts = [cause.type or "error", mask(cause.message), " < ".join(places)]
    text = " | ".join(part for part in parts if part)[:MAX_TEXT_CHARS]
    return Signature(id=signature_id(text), text=text, role=role)


def signature_id(text: str) -> str:
    """The id of a signature's text."""
    return f"{VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def telling_places(frames: Sequence[Frame]) -> list[str]:
    """The innermost frames that are no plumbing, as module:function, innermost first."""
    telling = [frame for frame in reversed(frames) if not is_plumbing(frame)]
    return [f"{frame.file.removesuffix('.py')}:{frame.function}" for frame in telling[:MAX_FRAMES]]
