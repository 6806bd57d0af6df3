"""Requests with bodies that no person meant: real error lines, broken text and broken formats, mixed at random."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes

from hypothesis import strategies as st

from tests.samples import REPO, allreduce_log, marlin_log, rope_log
from tests.served import CRASH, CRASH_NUMBER
from tests.web.attacks import ATTACKS

ADMIN = "a-token-of-the-tests"
SECRET = "a secret of the tests"
BODY_CHARS = 200_000
"""No body is longer; sizes near the limits have tests of their own."""

JSON = {"content-type": "application/json"}
TEXT = {"content-type": "text/plain"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
MCP = JSON | {"accept": "application/json, text/event-stream"}
BOUNDARY = "fuzz"
MULTIPART = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
ADMIN_JSON = JSON | {"authorization": f"Bearer {ADMIN}"}

TOOLS = (
    "diagnose_log",
    "search_issues",
    "get_issue",
    "get_fix_status",
    "known_issues_of_version",
    "compare_versions",
    "no_such_tool",
)
ARGUMENTS = ("log", "query", "number", "version", "vllm_version", "limit", "max_chars", "repo")
EVENTS = ("issues", "issue_comment", "pull_request", "release", "ping", "Issues", "")


class Sent(NamedTuple):
    """A request, and the tables that it may fill when it is a good one."""

    path: str
    headers: Mapping[str, str]
    content: bytes
    fills: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Short: Hypothesis prints its whole example, and tells how to make it again."""
        return f"Sent({self.path}, {dict(self.headers)}, {len(self.content)} bytes: {self.content[:500]!r})"


# ---- text

LINES = [line for log in (CRASH, marlin_log(), rope_log(), allreduce_log()) for line in log.splitlines()]
ODD = (
    "\x00",
    "\x00" * 40,
    "\x1b[31mERROR\x1b[0m",
    "\x1b[2J\x1b]0;x\x07",
    "\x07\x08\x0b\x0c\x7f",
    "\ufeff",
    "\ufffe\uffff",
    "\ud800",
    "\udfff\ud800",
    "\u202e\u2066",
    "\u2028\u2029\x85",
    "\r",
    "\r\n\r\n",
    "e" + "\u0301" * 90,
    "\U0010ffff",
    "\u0130\u1e9e\u0149",
    "9" * 500,
    "-1e999",
    "NaN",
    "#" + "9" * 30,
    "0x" + "f" * 200,
    "%00%ff%zz",
    "&#x0;",
    "'; DROP TABLE issue; --",
    "{{7*7}}",
    "Traceback (most recent call last):",
    '  File "',
    '  File "x", line ' + "9" * 30 + ", in f",
    "During handling of the above exception",
    "(((((((((((((((((",
    "a.b.c.d.e:" * 30,
    "=" * 300,
    "```",
    "<details>",
    "hf_" + "a" * 40,
    "Bearer " + "b" * 50,
)
TIMES = (1, 1, 1, 1, 1, 1, 2, 3, 40, 3000)

_ANY = st.text(st.characters(), max_size=60)
_PIECE = st.one_of(st.sampled_from(LINES), st.sampled_from(LINES), st.sampled_from(ODD), _ANY)
_SECTION = st.builds(
    lambda pieces, glue, times: glue.join(pieces * times)[:BODY_CHARS],
    st.lists(_PIECE, min_size=1, max_size=8),
    st.sampled_from(["\n", "\n", "\n", "", " ", "\r\n", "\r"]),
    st.sampled_from(TIMES),
)
LOGS = st.one_of(
    st.lists(_SECTION, max_size=4).map(lambda sections: "\n".join(sections)[:BODY_CHARS]),
    st.sampled_from(sorted(ATTACKS.values())),
)


def as_bytes(text: str) -> bytes:
    """UTF-8, broken wherever the text holds a lone surrogate."""
    return text.encode("utf-8", "surrogatepass")


def _spoil(content: bytes, at: int, put: bytes, cut: int) -> bytes:
    at %= len(content) + 1
    return content[:at] + put + content[at + cut :]


def spoilt(contents: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """The same, some with other bytes put in, cut out or cut short."""
    put = st.one_of(
        st.binary(max_size=8),
        st.sampled_from([b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\x00" * 9, b"--fuzz--", b"\\ud800"]),
    )
    return st.one_of(
        contents,
        contents,
        st.builds(_spoil, contents, st.integers(0, 1 << 20), put, st.sampled_from([0, 0, 1, 9, 1 << 30])),
    )


RAW = st.one_of(
    LOGS.map(as_bytes), LOGS.map(lambda text: text.encode("utf-16", "surrogatepass")), st.binary(max_size=400)
)

# ---- JSON

_NUMBERS = st.one_of(
    st.integers(), st.sampled_from([0, -1, 2**31, 2**63, 2**64, 10**400, CRASH_NUMBER]), st.floats()
)
_LEAVES = st.one_of(st.none(), st.booleans(), _NUMBERS, LOGS, st.just(REPO))
VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_ANY, inner, max_size=4)),
    max_leaves=8,
)
DEEP = st.builds(
    lambda opening, depth, text: opening * depth + as_bytes(json.dumps(text)),
    st.sampled_from([b"[", b'{"log":', b'[{"a":', b'{"jsonrpc":"2.0","params":']),
    st.sampled_from([9, 400, 5_000, 60_000]),
    _ANY,
)


def _written(value: Any) -> bytes:
    try:
        return json.dumps(value).encode()
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return b"{}"


def as_json(values: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Documents, with lone surrogates escaped; some spoilt, some nested past every need."""
    written = values.map(_written)
    return st.one_of(written, written, written, spoilt(written), DEEP, RAW)


def fields(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with these fields, of which some lack, are of another type or unknown."""
    told = st.fixed_dictionaries(known)
    odd = st.dictionaries(st.one_of(st.sampled_from(sorted(known)), _ANY), VALUES, max_size=2)
    some = st.fixed_dictionaries({}, optional=known)
    return st.one_of(told, told, some, st.builds(lambda told, odd: told | odd, told, odd))


def _not_true(document: dict[str, Any]) -> dict[str, Any]:
    """To keep a log is what `keep` is for; here nothing may be stored."""
    return document | {"keep": "true"} if document.get("keep") is True else document


# ---- forms

_PART_HEADS = (
    'Content-Disposition: form-data; name="log"',
    'Content-Disposition: form-data; name="file"; filename="a.log"',
    'Content-Disposition: form-data; name="log"\r\nContent-Type: text/plain; charset=utf-16',
    "Content-Disposition: form-data",
    'Content-Disposition: form-data; name="' + "n" * 5000 + '"',
    "X: y",
    "",
    'Content-Disposition: form-data; name="max_chars"',
)


def _multipart(parts: list[tuple[str, bytes]], end: str) -> bytes:
    found = b"".join(f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode() + body + b"\r\n" for head, body in parts)
    return found + end.encode()


MULTIPARTS = spoilt(
    st.builds(
        _multipart,
        st.lists(st.tuples(st.sampled_from(_PART_HEADS), RAW), max_size=3),
        st.sampled_from([f"--{BOUNDARY}--\r\n", f"--{BOUNDARY}--", "", f"--{BOUNDARY}"]),
    )
)


def forms(*names: str) -> st.SearchStrategy[bytes]:
    """Urlencoded forms, some with names twice, unknown names or broken escapes."""
    pair = st.builds(
        lambda name, value, is_quoted: (
            name.encode() + b"=" + (quote_from_bytes(value).encode() if is_quoted else value)
        ),
        st.sampled_from([*names, *names, "x", ""]),
        RAW,
        st.sampled_from([True, True, False]),
    )
    return spoilt(st.lists(pair, max_size=4).map(b"&".join))


# ---- what is sent where

_NUMBER = st.sampled_from([CRASH_NUMBER, CRASH_NUMBER, 1, 0, -1, 2**40])
_VOTES = frozenset({"vote", "secret"})
_JUDGEMENTS = frozenset({"judgement"})

_DIAGNOSE = fields(
    log=LOGS,
    limit=st.sampled_from([0, 1, 5, 5, 9, 10**9]),
    keep=st.just(False),
    vllm_version=st.sampled_from(["0.9.1", "0.19.0", "x"]),
).map(_not_true)
_CALL = st.fixed_dictionaries(
    {
        "jsonrpc": st.sampled_from(["2.0", "2.0", "1.0", 2]),
        "id": st.one_of(st.just(1), VALUES),
        "method": st.sampled_from(
            ["tools/call", "tools/call", "tools/call", "initialize", "resources/read", "x"]
        ),
        "params": st.one_of(
            st.builds(
                lambda name, arguments: {"name": name, "arguments": arguments},
                st.sampled_from(TOOLS),
                fields(**{name: st.one_of(LOGS, _NUMBERS) for name in ARGUMENTS}),
            ),
            VALUES,
        ),
    }
)
_VOTE = fields(
    signal=st.sampled_from(["works", "helpful", "same", "x"]), value=st.sampled_from([1, -1, 0, 2, True, "1"])
)
_JUDGEMENT = fields(
    a=_NUMBER,
    b=_NUMBER,
    verdict=st.sampled_from(["same", "different", "x"]),
    note=LOGS,
    repo=st.sampled_from([REPO, "a/b"]),
)
_ROW = fields(
    number=_NUMBER,
    title=LOGS,
    body=LOGS,
    id=_NUMBER,
    user=VALUES,
    labels=VALUES,
    created_at=_ANY,
    html_url=LOGS,
)
_DELIVERY = fields(
    action=_ANY,
    issue=_ROW,
    comment=_ROW,
    pull_request=_ROW,
    release=_ROW,
    repository=st.just({"full_name": REPO}),
)
_ADDRESSES = st.one_of(
    RAW,
    st.sampled_from(
        [f"https://github.com/{REPO}/issues/1".encode(), b"http://127.0.0.1:1/", b"file:///etc/passwd", b"1"]
    ),
)


def _sign(content: bytes, event: str, is_true: bool) -> Sent:
    proof = hmac.new(SECRET.encode(), content, hashlib.sha256).hexdigest()
    signature = f"sha256={proof}" if is_true else f"sha256={'0' * 64}"
    headers = JSON | {
        "x-github-event": event,
        "x-github-delivery": proof[:36],
        "x-hub-signature-256": signature,
    }
    return Sent("/webhooks/github", headers, content)


def _to(
    path: str,
    headers: Mapping[str, str],
    contents: st.SearchStrategy[bytes],
    fills: frozenset[str] = frozenset(),
) -> st.SearchStrategy[Sent]:
    return contents.map(lambda content: Sent(path, headers, content, fills))


_VOTE_FORM = st.one_of(forms("vote"), st.sampled_from([b"vote=works:1", b"vote=works:9", b"vote=:", b"vote"]))
ROUTES: dict[str, st.SearchStrategy[Sent]] = {
    "diagnose as JSON": _to("/api/v1/diagnose", JSON, as_json(_DIAGNOSE)),
    "diagnose as text": _to("/api/v1/diagnose", TEXT, spoilt(RAW)),
    "the page's form": _to("/diagnose", FORM, forms("log", "max_chars", "url")),
    "the page's file": _to("/diagnose", MULTIPART, MULTIPARTS),
    "report": _to(
        "/report",
        FORM,
        st.one_of(forms("url"), _ADDRESSES.map(lambda address: b"url=" + quote_from_bytes(address).encode())),
    ),
    "MCP": _to("/mcp", MCP, as_json(st.one_of(_CALL, st.lists(_CALL, max_size=3)))),
    "vote": _to(f"/api/v1/issues/{CRASH_NUMBER}/votes", JSON, as_json(_VOTE), _VOTES),
    "vote by form": _to(f"/issues/{CRASH_NUMBER}/votes", FORM, _VOTE_FORM, _VOTES),
    "judgement": _to("/api/v1/judgements", ADMIN_JSON, as_json(_JUDGEMENT), _JUDGEMENTS),
    "judgement without a token": _to("/api/v1/judgements", JSON, as_json(_JUDGEMENT)),
    "webhook": st.builds(_sign, as_json(_DELIVERY), st.sampled_from(EVENTS), st.booleans()),
}
ANY_REQUEST = st.one_of(*ROUTES.values())
