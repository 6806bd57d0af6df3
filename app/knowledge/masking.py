"""Answers as they may be shown: every text in them is masked for secrets, with blocks of equal length."""

from __future__ import annotations

from typing import Any, TypeVar

from app.extract.facts import Frozen
from app.extract.redact import mask_secrets

Shown = TypeVar("Shown", bound=Frozen)


def masked(answer: Shown) -> Shown:
    """The same answer without secrets in any of its texts."""
    return type(answer).model_validate(_masked_value(answer.model_dump()))


def _masked_value(value: Any) -> Any:
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, dict):
        return {key: _masked_value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_masked_value(item) for item in value)
    return value
