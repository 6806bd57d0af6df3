"""Secrets are masked, and offsets stay true."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.redact import BLOCK, mask_secrets, redact

HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
RULES = tomllib.loads((files("app.extract.lists") / "secrets.toml").read_text("utf-8"))["rule"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["id"])
def test_every_rule_masks_its_example(rule: dict[str, str]) -> None:
    masked = redact(rule["hit"], private=True)

    assert BLOCK in masked.text
    assert len(masked.text) == len(rule["hit"])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["id"])
def test_every_rule_leaves_its_counter_example_alone(rule: dict[str, str]) -> None:
    assert redact(rule["miss"], private=True).text == rule["miss"]


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.get("private")], ids=lambda rule: rule["id"])
def test_a_public_text_keeps_hosts_and_people(rule: dict[str, str]) -> None:
    assert redact(rule["hit"]).text == rule["hit"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"HF_TOKEN={HUB} vllm serve", f"HF_TOKEN={BLOCK * len(HUB)} vllm serve"),
        (f"--hf-token {HUB}", f"--hf-token {BLOCK * len(HUB)}"),
        ("api_key='tok-abc123456', model='x'", f"api_key='{BLOCK * 13}', model='x'"),
        ("api_key=['tok-abc123456']", f"api_key=['{BLOCK * 13}']"),
        ("'VLLM_API_KEY': 'tok-abc123456'", f"'VLLM_API_KEY': '{BLOCK * 13}'"),
        ("--api-key tok-abc123456", f"--api-key {BLOCK * 13}"),
        ("password: correct-horse", f"password: {BLOCK * 13}"),
        ("aws_secret_access_key=wJalrXUtnFEMI", f"aws_secret_access_key={BLOCK * 13}"),
        ("http://user:pass123@proxy:8080/x", f"http://{BLOCK * 12}@proxy:8080/x"),
        ("Authorization: Bearer abc123def456", f"Authorization: Bearer {BLOCK * 12}"),
    ],
)
def test_only_the_secret_itself_is_masked(text: str, wanted: str) -> None:
    assert mask_secrets(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "api_key=None, model='x'", "api_key='EMPTY'", "api_key='token-abc123'", "api_key=<redacted>",
        "api_key=xxxxxxxx", "max_tokens=100000", "secrets are kept elsewhere", "tokenizer_mode=autotokenizer",
        "skip-tokenizer-init", "task-queue-of-some-length",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask_secrets(text) == text


def test_secrets_are_counted_by_kind() -> None:
    text = f"{HUB} {HUB} api_key='tok-abc123456' (pid=1, ip=10.1.2.3) tcp 192.168.1.2:5000"

    assert redact(text, private=True).counts == (("hugging_face_token", 2), ("ip_address", 2), ("named_secret", 1))


def test_a_text_without_secrets_is_the_same_and_counts_nothing() -> None:
    assert redact("ValueError: no", private=True) == redact("ValueError: no")
    assert redact("ValueError: no").counts == ()


def test_masking_twice_changes_nothing() -> None:
    once = redact(f"api_key='tok-abc123456' {HUB}", private=True)

    assert redact(once.text, private=True) == type(once)(once.text, ())


PIECES = [
    HUB, "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "api_key=", "'tok-abc123456'", "Bearer ", "AKIAIOSFODNN7EXAMPLE", "é🦙",
    "http://", "user:pass@", "10.1.2.3:8000", "jane@example.com", "/home/jane/", "\n", " ", "-----BEGIN PRIVATE KEY-----",
    "-----END", BLOCK, "=", ":",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.booleans())
def test_every_character_is_kept_in_its_place_or_masked(text: str, private: bool) -> None:
    masked = redact(text, private=private).text

    assert len(masked) == len(text)
    assert [(old, new) for old, new in zip(text, masked, strict=True) if new not in (old, BLOCK)] == []


@given(st.text(max_size=300))
def test_any_text_keeps_its_length(text: str) -> None:
    assert len(redact(text, private=True).text) == len(text)


@given(st.text(st.characters(codec="utf-8"), max_size=40), st.text(st.characters(codec="utf-8"), max_size=40))
def test_a_token_never_survives_between_blanks(before: str, after: str) -> None:
    assert HUB not in mask_secrets(f"{before} {HUB} {after}")


@pytest.mark.parametrize("text", ["HF_TOKEN=$HF_TOKEN", "HF_TOKEN=your_token_here", "api_key=os.environ['KEY']"])
def test_what_only_stands_in_for_a_secret_stays(text: str) -> None:
    assert mask_secrets(text) == text
