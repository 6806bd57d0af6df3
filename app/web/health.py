"""For those who watch the service: is it alive, and can it answer?"""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter

from app import __version__
from app.store.schema import check_current
from app.store.sync_state import as_of
from app.web.deps import DeskDep
from app.web.openapi import problems
from app.web.schemas import Alive, Ready

router = APIRouter()


@router.get("/healthz", operation_id="healthz", summary="The process answers")
def healthz() -> Alive:
    """Alive; looks at nothing else."""
    return Alive(version=__version__)


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="The database answers, its schema is current, and how fresh it is",
    responses=problems(503),
)
def readyz(desk: DeskDep) -> Ready:
    """Ready to answer.

    Raises:
        SchemaError: the schema is older or newer than the program.
        StoreError: the database cannot be read.
    """
    check_current(desk.store)
    with desk.store.reading() as session:
        ended = as_of(session)
    if ended is None:
        return Ready(as_of=None, age_s=None)
    ended = ended if ended.tzinfo else ended.replace(tzinfo=UTC)
    return Ready(as_of=ended, age_s=max(0, int((datetime.now(UTC) - ended).total_seconds())))
