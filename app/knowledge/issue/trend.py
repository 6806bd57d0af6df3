"""How a failure's reports are spread over time, and between which versions: what a row of a list can show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from pydantic import Field
from sqlalchemy.orm import Session

from app.extract.facts import Frozen
from app.extract.redaction.redact import mask_secrets
from app.extract.versions import ordered, plain_version
from app.store.derived.cluster_queries import reports_beside

STEPS = 12
"""Equal parts of the time between the first and the last report."""


class Trend(Frozen):
    """The reports of a failure from the first to the last."""

    reports: tuple[int, ...] = Field(description="in equal parts of the time between first and last report")
    first_version: str | None = Field(description="the lowest version of vLLM that they name")
    last_version: str | None


def trend_of(reports: Iterable[tuple[datetime | None, str | None]]) -> Trend | None:
    """The trend of reports, each with its time and version; None for fewer than two that have a time."""
    known = list(reports)
    times = sorted(at for at, _ in known if at is not None)
    if len(times) < 2:
        return None
    span = (times[-1] - times[0]).total_seconds() or 1.0
    counts = [0] * STEPS
    for at in times:
        counts[min(STEPS - 1, int((at - times[0]).total_seconds() / span * STEPS))] += 1
    named = [plain_version(text) for _, text in known if text and ordered(text) is not None]
    placed = sorted(named, key=lambda text: ordered(text) or text)
    first, last = (mask_secrets(placed[0]), mask_secrets(placed[-1])) if placed else (None, None)
    return Trend(reports=tuple(counts), first_version=first, last_version=last)


def trends(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, Trend]:
    """The trend of the failure that each of these issues reports, where others report it too."""
    found: dict[int, list[tuple[datetime | None, str | None]]] = {}
    for number, at, version in reports_beside(session, repo_id, numbers):
        found.setdefault(number, []).append((at, version))
    return {number: trend for number, reports in found.items() if (trend := trend_of(reports))}
