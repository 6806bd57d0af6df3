"""Answers as they may be shown: every text in them is masked for secrets, with blocks of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from app.extract.facts import Frozen
from app.extract.redact import mask_secrets

Shown = TypeVar("Shown", bound=Frozen)

_APART = "\n\n"
"""Between texts that are searched together; a rule that reads on past it finds too much, never too little."""


def masked(answer: Shown) -> Shown:
    """The same answer without secrets in any of its texts."""
    return masked_all([answer])[0]


def masked_all(answers: Sequence[Shown]) -> list[Shown]:
    """The same answers without secrets in any of their texts.

    Hardly any text holds one, so all are searched in one go, and each by itself only where that finds any.
    """
    told = [answer.model_dump() for answer in answers]
    if not _holds_secret(text for value in told for text in _texts(value)):
        return list(answers)
    return [
        type(answer).model_validate(_masked_value(value))
        for answer, value in zip(answers, told, strict=True)
    ]


def _holds_secret(texts: Iterable[str]) -> bool:
    whole = _APART.join(texts)
    return mask_secrets(whole) != whole


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _texts(item)


def _masked_value(value: Any) -> Any:
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, dict):
        return {key: _masked_value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_masked_value(item) for item in value)
    return value
