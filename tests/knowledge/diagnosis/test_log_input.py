"""A pasted log on its way in."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.config import LOG_LIMIT_BYTES
from app.errors import EmptyInputError, InputError, NotTextError, TooLargeError
from app.knowledge.diagnosis.log_input import clean_log, decode_log

TEXT = "ValueError: größe 🦙\n"


@pytest.mark.parametrize(
    "data",
    [TEXT.encode(), b"\xef\xbb\xbf" + TEXT.encode(), TEXT.encode("utf-16")],
    ids=["utf-8", "utf-8 with a mark", "utf-16"],
)
def test_bytes_are_decoded(data: bytes) -> None:
    assert decode_log(data) == TEXT


def test_a_few_bytes_of_another_encoding_are_replaced() -> None:
    assert decode_log("the size (größe) is wrong".encode("latin-1")) == "the size (gr\ufffd\ufffde) is wrong"


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(TEXT.encode() * 99)[:-9],
        bytes(range(256)) * 4,
        b"\x00\x01\x02\x03" * 50,
        b"\x7fELF\x02\x01\x01" + bytes(200),
    ],
    ids=["gzip cut off", "all bytes", "numbers", "a program"],
)
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(NotTextError):
        decode_log(data)


def test_bytes_at_the_limit_are_taken() -> None:
    assert len(decode_log(b"x" * LOG_LIMIT_BYTES)) == LOG_LIMIT_BYTES


def test_bytes_over_the_limit_are_refused() -> None:
    with pytest.raises(TooLargeError):
        decode_log(b"x" * (LOG_LIMIT_BYTES + 1))


def test_text_at_the_limit_is_taken() -> None:
    assert len(clean_log("x" * LOG_LIMIT_BYTES)) == LOG_LIMIT_BYTES


@pytest.mark.parametrize(
    "text", ["x" * (LOG_LIMIT_BYTES + 1), "é" * (LOG_LIMIT_BYTES // 2 + 1), "🦙" * (LOG_LIMIT_BYTES // 4 + 1)]
)
def test_text_over_the_limit_in_bytes_is_refused(text: str) -> None:
    with pytest.raises(TooLargeError):
        clean_log(text)


@pytest.mark.parametrize("text", ["", " \t\r\n", "\x00\x08"])
def test_blank_text_is_refused(text: str) -> None:
    with pytest.raises(EmptyInputError):
        clean_log(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\x00b\x07c\x7fd", "abcd"),
        ("tab\tline\r\nescape\x1b[0m", "tab\tline\r\nescape\x1b[0m"),
        ("lone \ud83d surrogate", "lone \ufffd surrogate"),
        ("two halves \ud83e\udd99", "two halves 🦙"),
        ("größe 🦙", "größe 🦙"),
    ],
)
def test_what_no_room_can_take_is_removed_or_replaced(text: str, wanted: str) -> None:
    assert clean_log(text) == wanted


@given(st.binary(max_size=400))
def test_any_bytes_give_a_text_or_are_refused(data: bytes) -> None:
    try:
        text = clean_log(decode_log(data))
    except InputError:
        return
    assert text.encode().decode() == text


@given(st.text(st.characters(), max_size=200))
def test_cleaning_twice_changes_nothing(text: str) -> None:
    try:
        once = clean_log(text)
    except EmptyInputError:
        return
    assert clean_log(once) == once


def test_a_clean_log_is_not_copied() -> None:
    log = TEXT * 9

    assert clean_log(log) is log


@given(
    st.lists(
        st.sampled_from(["x" * 40_000, "\x00", "\x85", "é\x07", "🦙" * 9_000, "\n"]), min_size=1, max_size=8
    ).map("".join)
)
def test_a_large_log_is_cleaned_as_a_small_one(log: str) -> None:
    wanted = log.replace("\x00", "").replace("\x85", "").replace("\x07", "")
    if not wanted.strip():
        return

    assert clean_log(log) == wanted


def test_a_gzip_file_is_its_text_within_the_same_limit() -> None:
    assert decode_log(gzip.compress(TEXT.encode())) == TEXT
    with pytest.raises(TooLargeError):
        decode_log(gzip.compress(b"x" * (LOG_LIMIT_BYTES + 1)))
    with pytest.raises(TooLargeError):
        decode_log(gzip.compress(bytes(3 * LOG_LIMIT_BYTES)))
