"""Answers without secrets."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from pydantic import Field

from app.extract.facts import Frozen
from app.knowledge.text.masking import masked, masked_all
from tests.secret_shapes import SHAPES


class Note(Frozen):
    title: str
    lines: tuple[str, ...] = ()
    told: Mapping[str, str] = Field(default_factory=dict)


PLAIN = Note(title="a worker died", lines=("one", "two"), told={"url": "https://github.com/o/r/issues/7"})


def test_answers_without_secrets_stay_as_they_are() -> None:
    assert masked_all([PLAIN, PLAIN]) == [PLAIN, PLAIN]


def test_no_answers_are_no_answers() -> None:
    assert masked_all([]) == []


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_a_secret_in_one_of_many_answers_is_masked_as_if_it_stood_alone(shape: str) -> None:
    line, _ = SHAPES[shape](random.Random(shape))
    alone = masked(Note(title=line)).title

    page = masked_all([PLAIN, Note(title="x", lines=("before", line), told={"after": line}), PLAIN])

    assert [page[0], page[2]] == [PLAIN, PLAIN]
    assert (page[1].lines, page[1].told["after"]) == (("before", alone), alone)
