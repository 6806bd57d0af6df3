"""Kept logs: what their owners are told, their pages, and the links that delete them."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from pydantic import Field

from app.extract.facts import Frozen
from app.knowledge.answers import Diagnosis
from app.knowledge.issue_draft import new_issue_address
from app.knowledge.side_by_side import side_by_side
from app.web.deps import Desk, DeskDep
from app.web.render import render_page
from app.web.schemas import DiagnoseRequest
from app.web.version_line import match_stations

router = APIRouter(include_in_schema=False)

HEADERS = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}


class KeptLinks(Frozen):
    """Where a kept log is; only this answer ever tells the delete link."""

    url: str = Field(description="path of the page with the masked log and its answer, for all who have it")
    delete_url: str = Field(description="path that deletes it: with a POST, or the button of its page")
    expires_at: datetime


class KeptDiagnosis(Diagnosis):
    """The answer to a log that was kept."""

    kept: KeptLinks


def keep_answer(desk: Desk, asked: DiagnoseRequest, diagnosis: Diagnosis) -> KeptLinks:
    """Keep a log and its answer as its owner wishes."""
    kept = desk.knowledge.keep_log(
        desk.store, asked.log, diagnosis, desk.knowledge.excerpt(asked.log, diagnosis),
        days=desk.settings.keep_days, yours=asked.vllm_version,
    )  # fmt: skip
    url = f"/d/{kept.id}"
    return KeptLinks(url=url, delete_url=f"{url}/delete/{kept.delete_secret}", expires_at=kept.expires_at)


@router.api_route("/d/{key}", methods=["GET", "HEAD"])
def kept_page(key: str, desk: DeskDep) -> HTMLResponse:
    """A kept log and the answer it got."""
    kept = desk.knowledge.view_kept_log(desk.store, key)
    diagnosis = kept.diagnosis
    best = diagnosis.matches[0] if diagnosis.matches else None
    yours = kept.yours or diagnosis.environment.versions.get("vllm")
    overview = desk.knowledge.overview(desk.store, desk.settings.default_repo)
    return render_page(
        "diagnosis.html",
        headers=HEADERS,
        diagnosis=diagnosis,
        best=best,
        yours=yours,
        excerpt=kept.excerpt,
        sides=side_by_side(kept.excerpt, best),
        report_address=new_issue_address(desk.settings.default_repo, diagnosis),
        line_count=kept.line_count,
        stations=match_stations(best, desk.settings.default_repo, yours, overview.newest_release),
        markdown=desk.knowledge.markdown(diagnosis),
        curl="",
        kept=kept,
        links=None,
        overview=overview,
        repo=desk.settings.default_repo,
    )


@router.api_route("/d/{key}/delete/{secret}", methods=["GET", "HEAD"])
def ask_to_delete(key: str, secret: str, desk: DeskDep) -> HTMLResponse:
    """The button behind the delete link: a link alone may be opened by a program that only looks."""
    kept = desk.knowledge.view_kept_log(desk.store, key)
    return render_page(
        "kept_delete.html", headers=HEADERS, kept=kept, action=f"/d/{kept.id}/delete/{secret}", is_gone=False
    )


@router.post("/d/{key}/delete/{secret}")
def delete(key: str, secret: str, desk: DeskDep) -> HTMLResponse:
    """Delete a kept log."""
    desk.knowledge.forget_log(desk.store, key, secret)
    return render_page("kept_delete.html", headers=HEADERS, kept=None, action="", is_gone=True)
