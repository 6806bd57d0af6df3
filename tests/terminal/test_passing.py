"""What is kept of a stream: its last bytes, from the start of a line on."""

from __future__ import annotations

import pytest

from app.terminal.passing import Tail


@pytest.mark.parametrize(
    ("chunks", "kept"),
    [
        ([], b""),
        ([b"one\n", b"two\n"], b"one\ntwo\n"),
        ([b"first line\n", b"second\n", b"third\n"], b"third\n"),
        ([b"no line end at all in this stream"], b"end at all in this stream"[-12:]),
    ],
)
def test_the_last_bytes_are_kept_from_the_start_of_a_line(chunks: list[bytes], kept: bytes) -> None:
    tail = Tail(limit=12)
    for chunk in chunks:
        tail.add(chunk)

    assert tail.read() == kept
    assert tail.total == sum(map(len, chunks))
