"""Wrong results we know of: (input, wanted, actual).

A test fails when a result changes, be it for the better: then take the row out, or tell the new result.
Nothing is hidden here, and nothing here is a promise.
"""

from __future__ import annotations

import pytest

from app.extract.log.root_cause import read_errors
from app.extract.log.signature import mask
from app.extract.redact import BLOCK, mask_secrets
from app.extract.remedies.workarounds import find_workarounds
from tests.extract.saying import an_issue

Found = tuple[str | None, str, str | None]

CAUSES: list[tuple[str, str, Found | None, Found | None]] = [
    (
        "an optional import that failed is a cause although vLLM went on",
        "WARNING 03-14 09:26:54 [x.py:1] ImportError: no module of that kernel\n",
        None,
        ("ImportError", "no module of that kernel", None),
    ),
    (
        "a sentence of a person that begins like an error line is one",
        "ValueError: I get this one every time I start it, what can I do?\n",
        None,
        ("ValueError", "I get this one every time I start it, what can I do?", None),
    ),
]

MASKS: list[tuple[str, str, str]] = [
    ("built for torch2.4.0", "built for torch<n>", "built for torch2<layer><layer2>"),
    ("cannot read s3://b/x/y", "cannot read <path>", "cannot read s3:/<path>"),
    ("no answer from node7:29500", "no answer from <host>", "no answer from node7:<n>"),
]

SECRETS: list[tuple[str, str, str]] = [
    ("the key abcdef1234567890abcdef", f"the key {BLOCK * 22}", "the key abcdef1234567890abcdef"),
]


Told = list[tuple[str, str]]

REMEDIES: list[tuple[str, Told, Told]] = [
    ("This works when guided decoding is not enabled.", [("guided decoding is not enabled", "works")], []),
    (
        "I can start the server with `--tensor-parallel-size 4` only.",
        [("--tensor-parallel-size 4", "works")],
        [],
    ),
    (
        "However, everything went fine using image24.02 (any older one too, I guess).",
        [("image24.02", "works")],
        [],
    ),
    (
        "After adding an entry to the registry, I was able to serve the model.",
        [("adding an entry to the registry", "works")],
        [],
    ),
]


def cause(log: str) -> Found | None:
    found = read_errors(log)[1].cause
    return (found.type, found.message, found.frame) if found else None


@pytest.mark.parametrize(
    ("log", "wanted", "actual"), [row[1:] for row in CAUSES], ids=[row[0] for row in CAUSES]
)
def test_a_cause_is_still_wrong(log: str, wanted: Found | None, actual: Found | None) -> None:
    assert cause(log) != wanted
    assert cause(log) == actual


@pytest.mark.parametrize(("message", "wanted", "actual"), MASKS)
def test_a_mask_is_still_wrong(message: str, wanted: str, actual: str) -> None:
    assert mask(message) != wanted
    assert mask(message) == actual


@pytest.mark.parametrize(("text", "wanted", "actual"), SECRETS)
def test_a_secret_s_mask_is_still_wrong(text: str, wanted: str, actual: str) -> None:
    assert mask_secrets(text) != wanted
    assert mask_secrets(text) == actual


@pytest.mark.parametrize(("said", "wanted", "actual"), REMEDIES)
def test_a_remedy_is_still_wrong(said: str, wanted: Told, actual: Told) -> None:
    found = find_workarounds(an_issue(said, title="EngineCore stops at startup"))
    assert [(item.action, item.outcome) for item, _ in found] == actual
    assert actual != wanted
