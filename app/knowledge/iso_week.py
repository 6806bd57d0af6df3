"""ISO 8601 weeks, from Monday 00:00 UTC to the next, written `2026-W46`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from app.errors import WeekError

YEAR_MIN, YEAR_MAX = 2000, 2999
WEEK_PATTERN = r"^2[0-9]{3}-W(?:0[1-9]|[1-4][0-9]|5[0-3])$"

_WRITTEN = re.compile(r"([0-9]{4})-W([0-9]{2})")


@dataclass(frozen=True, slots=True, order=True)
class IsoWeek:
    """An ISO week; its first days may lie in the previous calendar year."""

    year: int
    number: int

    @classmethod
    def parse(cls, text: str) -> IsoWeek:
        """Parse a week such as `2026-W46`.

        Raises:
            WeekError: wrong format, year out of range, or no such week in the year.
        """
        found = _WRITTEN.fullmatch(text.strip())
        if found is None:
            raise WeekError("That is no ISO week: write the year and the week like 2026-W46.")
        year, number = int(found[1]), int(found[2])
        if not YEAR_MIN <= year <= YEAR_MAX:
            raise WeekError(f"{year} is out of range: years go from {YEAR_MIN} to {YEAR_MAX}.")
        last = date(year, 12, 28).isocalendar().week
        if not 1 <= number <= last:
            raise WeekError(f"{year} has no week {number}: its weeks go from W01 to W{last}.")
        return cls(year, number)

    @classmethod
    def of(cls, moment: date) -> IsoWeek:
        """Return the week of a date or datetime; a naive datetime is UTC."""
        if isinstance(moment, datetime):
            moment = (moment.astimezone(UTC) if moment.tzinfo else moment).date()
        calendar = moment.isocalendar()
        return cls(calendar.year, calendar.week)

    @property
    def start(self) -> datetime:
        """The first moment of the week."""
        return datetime.combine(date.fromisocalendar(self.year, self.number, 1), time(), UTC)

    @property
    def end(self) -> datetime:
        """The first moment of the next week."""
        return self.start + timedelta(weeks=1)

    @property
    def days(self) -> str:
        """The days in words, such as `9 – 15 November 2026`."""
        first, last = self.start, self.end - timedelta(days=1)
        form = "" if first.month == last.month else " %B" if first.year == last.year else " %B %Y"
        return f"{first.day}{first.strftime(form)} – {last.day} {last:%B %Y}"

    def shifted(self, weeks: int) -> IsoWeek:
        """Return the week `weeks` later; earlier if negative."""
        return IsoWeek.of(self.start + timedelta(weeks=weeks))

    def __str__(self) -> str:
        return f"{self.year}-W{self.number:02}"
