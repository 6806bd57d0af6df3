"""The address by which this server was called, to be told to others."""

from __future__ import annotations

import re

from fastapi import Request

_PLAIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]{1,260}/[A-Za-z0-9._~/-]{0,200}")
LOCAL = "http://localhost:8000/"


def base_address(request: Request) -> str:
    """Its base with a slash at the end; a Host header that is no plain name is not repeated."""
    base = str(request.base_url)
    return base if _PLAIN.fullmatch(base) else LOCAL
