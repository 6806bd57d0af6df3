"""What goes in as a body comes out as clean text, or is refused with the fitting status."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from app.config import LOG_LIMIT_BYTES
from app.errors import EmptyInputError, NotTextError, TooLargeError
from app.knowledge.diagnosis.log_input import clean_log
from app.web.body import (
    FORM_TYPE,
    JSON_TYPE,
    MULTIPART_TYPE,
    PARTS_MAX,
    TEXT_TYPE,
    MalformedError,
    RawBody,
    check_structure,
    parse_body,
    read_form,
)


def text(content: bytes) -> str:
    return str(parse_body(RawBody(TEXT_TYPE, content))["log"])


def fields(value: object) -> dict[str, object]:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return parse_body(RawBody(JSON_TYPE, content))


def form(content: bytes) -> dict[str, object]:
    return parse_body(RawBody(FORM_TYPE, content))


def sent_form(content_type: str, content: bytes, step: int = 1 << 16) -> dict[str, object]:
    chunks = [content[at : at + step] for at in range(0, len(content), step)] or [b""]

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}

    headers = [(b"content-type", content_type.encode())]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
    return parse_body(asyncio.run(read_form(request)))


def multipart(*parts: tuple[str, bytes, str | None], boundary: str = "xx") -> dict[str, object]:
    lines = []
    for name, value, filename in parts:
        extra = f'; filename="{filename}"' if filename is not None else ""
        lines += [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n'.encode(),
            value,
            b"\r\n",
        ]
    content = b"".join(lines) + f"--{boundary}--\r\n".encode()
    return sent_form(f"{MULTIPART_TYPE}; boundary={boundary}", content)


@pytest.mark.parametrize("content", [b"", b"   \n\t\r\n", b"\x00\x00", b"\xef\xbb\xbf", " \u3000".encode()])
def test_nothing_but_blanks_is_empty(content: bytes) -> None:
    with pytest.raises((EmptyInputError, NotTextError)):
        text(content)


def test_a_log_of_just_the_limit_is_read_and_one_byte_more_is_not() -> None:
    assert len(text(b"x" * LOG_LIMIT_BYTES)) == LOG_LIMIT_BYTES
    with pytest.raises(TooLargeError, match="10,485,761 bytes is over the limit of 10 MiB"):
        text(b"x" * (LOG_LIMIT_BYTES + 1))


def test_the_limit_counts_utf8_and_not_characters() -> None:
    with pytest.raises(TooLargeError):
        clean_log("é" * (LOG_LIMIT_BYTES // 2 + 1))


def test_escapes_do_not_count_against_the_limit() -> None:
    escaped = b'{"log": "' + b"\\u0041" * (LOG_LIMIT_BYTES - 1) + b'"}'
    assert len(str(fields(escaped)["log"])) == LOG_LIMIT_BYTES - 1


@pytest.mark.parametrize(
    "content",
    [
        random.Random(1).randbytes(5000),
        bytes(range(256)) * 40,
        b"\x1f\x8b\x08\x00" + random.Random(2).randbytes(3000),
        b"\x7fELF\x02\x01\x01" + b"\x00" * 500,
        "ERROR in UTF-16 without a mark".encode("utf-16-le"),
    ],
)
def test_binary_is_told_apart_from_text(content: bytes) -> None:
    with pytest.raises(NotTextError):
        text(content)


def test_a_log_with_some_bytes_of_another_code_page_is_read() -> None:
    content = b"RuntimeError: CUDA error in /home/user\n" * 5 + "内存不足".encode("gbk")
    assert text(content).startswith("RuntimeError")
    assert "\ufffd" in text(content)


def test_marks_of_byte_order_are_taken_off() -> None:
    assert text("\ufeffERROR".encode()) == "ERROR"
    assert text("ERROR: naïve".encode("utf-16")) == "ERROR: naïve"


def test_control_characters_go_and_newline_tab_return_and_escape_stay() -> None:
    assert text(b"a\x00b\x07c\x7f\n\t\r\x1b[0m and so on") == "abc\n\t\r\x1b[0m and so on"


def test_lone_surrogates_become_replacement_characters() -> None:
    assert fields(b'{"log": "error here: \\ud800 and \\ud83d\\ude00", "gpu": "H\\udfff"}') == {
        "log": "error here: \ufffd and 😀",
        "gpu": "H\ufffd",
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"log"',
        b"1",
        b'{"log": NaN}',
        b'{"limit": Infinity}',
        b'{"log": "a", "log": "b"}',
        b'{"limit": ' + b"9" * 5000 + b"}",
        b"[" * 200_000,
        b'{"a":' * 100_000,
    ],
)
def test_broken_json_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedError):
        fields(content)


def test_a_log_of_another_json_type_is_left_for_the_schema_to_refuse() -> None:
    assert fields({"log": 5}) == {"log": 5}


def test_a_urlencoded_form_is_decoded() -> None:
    assert form(b"log=CUDA+error%3A%0A100%25+%C3%A9&vllm_version=0.19.0") == {
        "log": "CUDA error:\n100% é",
        "vllm_version": "0.19.0",
    }


@given(st.text(min_size=1, max_size=300).filter(lambda value: value.strip(" ") != ""))
def test_urlencoding_is_the_inverse_of_the_library_that_encodes(value: str) -> None:
    logged = f"ERROR {value}" * 3 + "x" * 600
    assert form(urlencode({"log": logged}).encode())["log"] == clean_log(logged)


def test_percent_codes_on_the_border_of_a_step_are_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for step in range(3, 12):
        monkeypatch.setattr("app.web.body._STEP", step)
        assert form(b"log=ab%41%42c%2Bd+%C3%A9%25&x=")["log"] == "abABc+d é%"


def test_a_nine_mib_field_of_a_multipart_form_is_read() -> None:
    log = b"line of a log\r\n" * (9 * 1024 * 1024 // 15)
    assert multipart(("log", log, None))["log"] == log.decode()


def test_a_file_takes_the_place_of_the_box_and_an_empty_one_does_not() -> None:
    assert multipart(("log", b"box", None), ("file", b"file", "c.log"))["log"] == "file"
    assert multipart(("log", b"box", None), ("file", b"", ""))["log"] == "box"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"junk",
        b"--xx\r\n\r\n",
        b"--xx--\r\n",
        b"--yy\r\nContent-Disposition: form-data\r\n\r\nx\r\n--yy--",
    ],
)
def test_a_broken_multipart_form_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedError):
        sent_form(f"{MULTIPART_TYPE}; boundary=xx", content)


@pytest.mark.parametrize(
    "content_type",
    [MULTIPART_TYPE, f"{MULTIPART_TYPE}; boundary=", f"{MULTIPART_TYPE}; boundary={'b' * 400}"],
)
def test_a_multipart_form_without_a_usable_boundary_is_malformed(content_type: str) -> None:
    with pytest.raises(MalformedError):
        sent_form(content_type, b"--\r\n\r\n")


def test_forms_with_too_many_fields_are_malformed() -> None:
    with pytest.raises(MalformedError):
        form(b"a=1&" * 100)
    with pytest.raises(MalformedError):
        multipart(*[(f"f{number}", b"x", None) for number in range(50)])


@given(st.binary(max_size=600))
def test_any_bytes_give_text_or_a_refusal(content: bytes) -> None:
    for read in (text, form, fields):
        try:
            read(content)
        except (EmptyInputError, NotTextError, TooLargeError, MalformedError):
            continue
    with contextlib.suppress(EmptyInputError, NotTextError, MalformedError):
        sent_form(f"{MULTIPART_TYPE}; boundary=xx", b"--xx\r\n" + content)


def test_the_bytes_of_a_body_are_held_no_longer_than_needed() -> None:
    body = RawBody(TEXT_TYPE, b"ValueError: no")

    assert parse_body(body) == {"log": "ValueError: no"}
    assert body.content == b""


def test_a_file_of_many_chunks_is_read_whole() -> None:
    log = "ValueError: no\r\n--x is no boundary\r\n" * 9
    part = 'Content-Disposition: form-data; name="file"; filename="a.log"\r\n\r\n'
    content = f"--xx\r\n{part}{log}\r\n--xx--\r\n".encode()

    assert sent_form(f"{MULTIPART_TYPE}; boundary=xx", content, step=7) == {"log": log}


def test_the_bytes_of_a_field_are_decoded_as_those_of_a_file() -> None:
    log = "ERROR: naïve".encode("utf-16")
    part = b'--xx\r\nContent-Disposition: form-data; name="log"\r\n\r\n'
    for charset in ("", "; charset=utf-8"):
        read = sent_form(f"{MULTIPART_TYPE}; boundary=xx{charset}", part + log + b"\r\n--xx--\r\n")
        assert read == {"log": "ERROR: naïve"}


@pytest.mark.parametrize("part", ["[],", "{},", '"",', "0,"])
def test_json_of_too_many_parts_is_refused_before_it_is_parsed(part: str) -> None:
    with pytest.raises(MalformedError, match="entries"):
        check_structure('{"log":"x","a":[' + part * (PARTS_MAX + 1) + "0]}")


@pytest.mark.parametrize("padding", range(4))
def test_marks_in_strings_are_no_parts_wherever_a_step_ends(
    padding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.body._STEP", 7)
    monkeypatch.setattr("app.web.body.PARTS_MAX", 5)
    value = {"log": " " * padding + '\\"[,{\\\\' * 9 + "\n", "b": '"', "c": ",\\"}
    check_structure(json.dumps(value))
    with pytest.raises(MalformedError):
        check_structure(json.dumps({**value, "d": [1, 2, 3]}))
