"""The words with which a text names an issue's number, where no rule's evidence tells them."""

from __future__ import annotations

import re

from app.knowledge.report_sources import passage


def mention(text: str, number: int) -> str:
    """The passage that names the number, as `#1` or by its address; empty if none does."""
    found = re.search(rf"(?:#|/(?:issues|pull)/){number}(?!\d)", text)
    return passage(text, found.start(), found.end()) if found else ""
