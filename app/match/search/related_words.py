"""Which words are forms of each other, and which say the same: learned from the corpus, kept as data.

In: the stem of a word. Out: how it is written, and the stems of words that stand for the same or nearly so.
The data (`related_words.json`) is made by `app.train.related_words`; small words and names of one issue are
not in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

NAME = "related_words.json"


@dataclass(frozen=True, slots=True)
class RelatedWords:
    """By stem: the forms of its word, the most common first; and related stems with how near, 0 to 1."""

    forms: Mapping[str, Sequence[str]]
    related: Mapping[str, Mapping[str, float]]


@lru_cache(maxsize=1)
def load_related_words() -> RelatedWords:
    """The words this version was measured with; read when a question is first asked."""
    data: dict[str, Any] = json.loads((files(__package__) / NAME).read_text(encoding="utf-8"))
    return RelatedWords(
        {stem: forms.split() for stem, forms in data["forms"].items()},
        {
            stem: {other: int(percent) / 100 for other, percent in (item.split(":") for item in row.split())}
            for stem, row in data["related"].items()
        },
    )
