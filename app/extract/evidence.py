"""Quotes: every extracted value points at the words that say it."""

from __future__ import annotations

from app.extract.document import Document
from app.extract.facts import Evidence


def cite(
    document: Document,
    field: str,
    value: str,
    span: tuple[str, int, int],
    rule: str,
    confidence: float = 0.9,
) -> Evidence:
    """Evidence for one value.

    Args:
        field: the field's name, or `field.key`.
        span: source name, start and end in code points of that source.
        rule: id of the rule that read it.
        confidence: chance that the value is right, 0 to 1.
    """
    source, start, end = span
    return Evidence(
        field=field, value=value, quote=document.sources[source][start:end], source=source,
        start=start, end=end, rule=rule, confidence=confidence,
    )  # fmt: skip
