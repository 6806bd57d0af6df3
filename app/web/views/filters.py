"""Template filters: words and icons for states, times and figures.

`_pictures.html` draws the diagrams as SVG. Meaning never depends on colour alone, nor text on a diagram.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from app.extract.facts import Outcome, Regression
from app.knowledge.labels import plural

THIN_SPACE = "\u2009"

OUTCOME_ICONS: dict[Outcome, str] = {"works": "ok", "partial": "part", "fails": "no"}


def version(text: str | None) -> str:
    """Return a version without the leading v."""
    text = text or ""
    return text[1:] if text[:1] in {"v", "V"} and text[1:2].isdigit() else text


def percent(score: float) -> str:
    """Format a probability in whole percent with a thin space; never as 0 or 100."""
    whole = round(score * 100)
    if whole < 1:
        return f"under 1{THIN_SPACE}%"
    return f"{whole}{THIN_SPACE}%" if whole < 100 else f"over 99{THIN_SPACE}%"


def share(part: float) -> str:
    """Format a fraction in whole percent with a thin space."""
    whole = round(part * 100)
    return f"{whole}{THIN_SPACE}%" if whole or not part else f"under 1{THIN_SPACE}%"


def range_words(regression: Regression) -> str:
    parts = (
        ("works in", regression.last_working),
        ("fails in", regression.first_failing),
        ("still in", ", ".join(map(version, regression.still_failing))),
        ("fixed in", regression.fixed_in),
        ("since", regression.culprit),
    )
    return ", ".join(f"{words} {version(value)}" for words, value in parts if value)


_MARKS = re.compile(
    r"!?\[([^\]]{0,200})\]\([^)]{0,400}\)|(?m:^[ \t]*(?:#{1,6} |>+ |[-*+] (?!-)))|\*\*|~~|`+"
    r"|</?(?:details|summary|br|p|b|i|em|strong|code|pre|kbd|sub|sup|img|a|div|span|t[rdh]|table|[uo]l|li|h[1-6r])"
    r"\b[^>]{0,200}>"
)


def unmarked(text: str) -> str:
    """Strip Markdown markup and join the text on one line."""
    return " ".join(_MARKS.sub(lambda found: found[1] or "", text).replace("|", " ").split())


def utc(moment: datetime) -> datetime:
    """Convert a datetime to UTC; a naive one is taken as UTC."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def stamp(moment: datetime) -> str:
    """Format a date and time for people: 3 Jun 2026, 06:00 UTC."""
    moment = utc(moment)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"


def day(moment: datetime) -> str:
    """Format a date for people: 3 Jun 2026."""
    moment = utc(moment)
    return f"{moment.day} {moment:%b %Y}"


def rfc3339(moment: datetime) -> str:
    """Format a date and time for programs (RFC 3339)."""
    return f"{utc(moment):%Y-%m-%dT%H:%M:%SZ}"


_AGES = (
    (60, 1, "second"),
    (3600, 60, "minute"),
    (86400, 3600, "hour"),
    (14 * 86400, 86400, "day"),
    (60 * 86400, 7 * 86400, "week"),
    (2 * 365 * 86400, 30.44 * 86400, "month"),
)
"""Upper bound in seconds, unit in seconds, name of the unit."""


def age(moment: datetime, now: datetime | None = None) -> str:
    """Return how long ago a moment was, in words."""
    seconds = ((now or datetime.now(UTC)) - utc(moment)).total_seconds()
    if seconds < 45:
        return "just now"
    for below, unit, name in _AGES:
        if seconds < below:
            return f"{plural(max(1, int(seconds / unit)), name)} ago"
    return f"{plural(int(seconds / (365.25 * 86400)), 'year')} ago"


def listed(items: Iterable[str]) -> str:
    return ", ".join(items)


SHADES = 5


def shade(value: int, most: int) -> int:
    """Return a cell's shade, from 0 for none to `SHADES` for the maximum, on a square-root scale."""
    return 0 if value <= 0 else max(1, round(SHADES * (value / most) ** 0.5))
