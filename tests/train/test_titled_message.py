"""Which spans of a title teach that they are a program's message."""

from __future__ import annotations

from app.train.titled_message import LabelledTitle, examples_of, judge, learn, share_of

TITLE = LabelledTitle("[Bug]: with two hosts, list index is out of range", "list index is out of range (7)")


def test_a_span_is_measured_by_what_the_title_quotes() -> None:
    start = TITLE.text.index("list")

    assert share_of(TITLE, (start, len(TITLE.text))) == 1.0
    assert share_of(TITLE, (start, start + len("list index"))) < 0.6
    assert share_of(LabelledTitle(TITLE.text, "the list of all hosts is empty now"), (0, 20)) == 0.0


def test_spans_that_are_neither_the_message_nor_another_text_teach_nothing() -> None:
    examples = list(examples_of(TITLE))

    assert any(one.is_message for one in examples)
    assert any(not one.is_message for one in examples)
    assert not any(one.is_message for one in examples_of(LabelledTitle(TITLE.text, "")))


def test_what_was_learned_tells_messages_from_descriptions() -> None:
    told = [
        LabelledTitle(
            f"[Bug]: with {count} hosts, index {count} is out of range", f"index {count} is out of range"
        )
        for count in range(30)
    ]
    described = [
        LabelledTitle(f"[Bug]: with {count} hosts, the server waits for all", "") for count in range(30)
    ]
    used = learn([example for title in (*told, *described) for example in examples_of(title)])

    assert all(is_found and is_right for _, is_found, is_right in judge(told, used))
    assert not any(is_found for _, is_found, _ in judge(described, used))
