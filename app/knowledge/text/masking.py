"""Answers as they may be shown: every text in them is masked for secrets, with blocks of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from app.extract.facts import ErrorLine, Frozen
from app.extract.redaction.redact import mask_secrets

Model = TypeVar("Model", bound=Frozen)

_APART = "\n\n"
"""Between texts that are searched together; a rule that reads on past it finds too much, never too little."""


def masked(answer: Model) -> Model:
    """The same answer without secrets in any of its texts."""
    return masked_all([answer])[0]


def masked_all(answers: Sequence[Model]) -> list[Model]:
    """The same answers without secrets in any of their texts.

    Hardly any text holds one, so all are searched in one go, and each by itself only where that finds any.
    """
    dumped = [answer.model_dump() for answer in answers]
    if not _holds_secret(dumped):
        return list(answers)
    return [
        type(answer).model_validate(_masked_value(value))
        for answer, value in zip(answers, dumped, strict=True)
    ]


def _holds_secret(values: Iterable[Any]) -> bool:
    texts: dict[str, None] = {}
    _add_texts(values, texts)
    whole = _APART.join(texts)
    return mask_secrets(whole) != whole


def _add_texts(values: Iterable[Any], texts: dict[str, None]) -> None:
    """Add all texts in these values; many, such as a repository's name, stand in each of them."""
    for value in values:
        if isinstance(value, str):
            texts[value] = None
        elif isinstance(value, dict):
            _add_texts(value.values(), texts)
        elif isinstance(value, tuple | list):
            _add_texts(value, texts)


def _masked_value(value: Any) -> Any:
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, dict):
        return {key: _masked_value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_masked_value(item) for item in value)
    return value


def listed_error(error: ErrorLine | None, chars: int = 160) -> ErrorLine | None:
    """An error as a list has room for: on one line, masked, its message cut to so many characters."""
    if error is None:
        return None
    return ErrorLine.based_on(error, message=" ".join(mask_secrets(error.message).split())[:chars])
