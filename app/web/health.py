"""For those who watch the service: is it alive, and can it answer?"""

from __future__ import annotations

from fastapi import APIRouter

from app import __version__
from app.knowledge.freshness import freshness
from app.store.schema import check_current
from app.store.sync_lock import sync_holder
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
    found = tuple(freshness(desk.store, repo) for repo in desk.settings.repo)
    return Ready(
        as_of=found[0].as_of, age_s=found[0].age_s, is_stale=found[0].is_stale,
        is_syncing=sync_holder(desk.store) is not None, repositories=found,
    )  # fmt: skip
