"""Judgements by people: whether two issues report the same failure. They override everything derived."""

from datetime import datetime

from pydantic import Field
from sqlalchemy.orm import Session

from app.errors import InputError, NotFoundError, PullRequestError
from app.extract.facts import Frozen
from app.extract.redact import mask_secrets
from app.knowledge.cluster.update import Change, update_clusters
from app.store.github.issues import find_heads, find_repository
from app.store.people import (
    JudgementRecord,
    UndoneWhy,
    Verdict,
    list_judgements,
    save_judgement,
    undo_judgement,
)
from app.store.session import Store

DECISIONS_MAX = 500
"""Newest judgements that `judged_between` searches."""


class Judgement(Frozen):
    """A person's verdict on two issues of one repository; in force while `undone_at` is null."""

    id: int
    repo: str
    a: int = Field(description="the lower issue number")
    b: int
    verdict: Verdict
    note: str | None
    judged_at: datetime
    undone_at: datetime | None
    undone_why: UndoneWhy | None = Field(description="undone by hand or replaced; null if in force")


def judge(
    store: Store, repo: str, a: int, b: int, verdict: Verdict, note: str | None = None
) -> tuple[Judgement, bool]:
    """Save a judgement and update the clusters; return it and whether it is new.

    Raises:
        InputError: both numbers are the same.
        NotFoundError: an issue is not stored.
        PullRequestError: one of them is a pull request.
    """
    if a == b:
        raise InputError(f"#{a} stands on both sides: a judgement is of two issues.")
    with store.unit_of_work() as session:
        repo_id = find_repository(session, repo)
        heads = {head.number: head for head in find_heads(session, repo_id, [a, b])}
        for number in (a, b):
            if number not in heads:
                raise NotFoundError(f"{repo}#{number} is not stored: judge issues that are.")
            if heads[number].is_pull_request:
                raise PullRequestError(f"{repo}#{number} is a pull request: judge issues.")
        record, is_new = save_judgement(session, repo_id, a, b, verdict, note)
        update_clusters(session, record.repo_id, repo, Change(pairs=[(record.a, record.b)]))
    return _shape(record, repo), is_new


def undo(store: Store, repos: tuple[str, ...], judgement_id: int) -> Judgement:
    """Undo a judgement and update the clusters. It stays stored, with the time it was undone.

    Raises:
        NotFoundError: these repositories have no judgement with this id.
    """
    with store.unit_of_work() as session:
        names = {find_repository(session, repo): repo for repo in repos}
        record = undo_judgement(session, judgement_id)
        if record is None or record.repo_id not in names:
            raise NotFoundError(f"There is no judgement {judgement_id}.")
        pair = record.a, record.b
        update_clusters(session, record.repo_id, names[record.repo_id], Change(pairs=[pair]))
    return _shape(record, names[record.repo_id])


def judgements(
    store: Store, repo: str, *, below: int | None = None, limit: int = 50, ended: bool = False
) -> tuple[Judgement, ...]:
    """Return judgements of a repository, newest first; with `ended` also those no longer in force."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        found = list_judgements(session, repo_id, below=below, limit=limit, ended=ended)
    return tuple(_shape(record, repo) for record in found)


def judged_between(
    session: Session, repo_id: int, repo: str, start: datetime, end: datetime
) -> tuple[Judgement, ...]:
    """Return the judgements in force made in `[start, end)`, newest first."""
    found = list_judgements(session, repo_id, below=None, limit=DECISIONS_MAX, ended=False)
    return tuple(_shape(record, repo) for record in found if start <= record.judged_at < end)


def _shape(record: JudgementRecord, repo: str) -> Judgement:
    note = mask_secrets(record.note) if record.note else None
    return Judgement.based_on(record, repo=repo, note=note)
