"""Plain words found in one pass, and answers kept for the next who asks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.extract.once import once
from app.extract.words import Words

WORDS = ("ab", "abc", "b(", "é", "V1", ".py")


@given(st.text(alphabet="abc(éV1.py \n", max_size=80))
def test_the_words_present_are_those_the_text_holds(text: str) -> None:
    assert Words(WORDS).present(text) == {word for word in WORDS if word in text}


def test_an_answer_is_given_again_for_the_same_objects_only() -> None:
    asked: list[object] = []

    @once
    def count(thing: list[int]) -> int:
        asked.append(thing)
        return len(thing)

    first, second = [1], [1]
    assert [count(first), count(first), count(second), count(first)] == [1, 1, 1, 1]
    assert asked == [first, second, first]
    assert asked[1] is second
