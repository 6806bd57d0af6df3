"""Who may change what all see: the holder of TRIAGE_ADMIN_TOKEN."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.errors import TriageError
from app.web.deps import settings as get_settings

CHALLENGE = {"WWW-Authenticate": "Bearer"}


class AdminTokenError(TriageError):
    """No admin token, or not the right one."""

    status = 401


class NoAdminError(TriageError):
    """No admin token is set, so nobody may."""

    status = 403


_bearer = HTTPBearer(auto_error=False, scheme_name="admin", description="TRIAGE_ADMIN_TOKEN")


async def require_admin(
    request: Request, told: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> None:
    """Let only the holder of the admin token pass; compared in constant time.

    Raises:
        NoAdminError: the operator has set none.
        AdminTokenError: none is sent, or another.
    """
    token = (await get_settings(request)).admin_token
    if token is None:
        raise NoAdminError("Nobody may change this here: the operator sets TRIAGE_ADMIN_TOKEN.")
    if told is None:
        raise AdminTokenError("Send the admin token: Authorization: Bearer TOKEN.")
    sent = told.credentials.encode("utf-8", errors="replace")
    if not hmac.compare_digest(sent, token.get_secret_value().encode()):
        raise AdminTokenError("This is not the admin token.")
