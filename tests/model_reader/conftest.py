"""Requests to a model's server are tried again without a pause."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import stamina

from app.model_reader.connection import ATTEMPTS


@pytest.fixture(autouse=True)
def _no_pauses() -> Iterator[None]:
    stamina.set_testing(True, attempts=ATTEMPTS, cap=True)
    yield
    stamina.set_testing(False)
