"""A wrong setting stops the program with one line that names it and repeats no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import load_settings
from app.errors import ConfigError

KEY = "k3y-of-at-least-16"


def test_limits_keys_and_proxies_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGE_RATE_LIMIT", " 30/Minute ")
    monkeypatch.setenv("TRIAGE_API_KEYS", f"bot:{KEY}, ci:{KEY}2:off,oncall:{KEY}3:10/second")
    monkeypatch.setenv("TRIAGE_TRUSTED_PROXIES", "10.1.2.3, 10.0.0.7/8,fd00::/8")

    settings = load_settings()

    assert settings.rate_limit == "30/minute"
    assert [(key.name, key.rate) for key in settings.api_keys] == [
        ("bot", "1200/minute"),
        ("ci", "off"),
        ("oncall", "10/second"),
    ]
    assert settings.api_keys[1].key.get_secret_value() == f"{KEY}2"
    assert settings.trusted_proxies == ("10.1.2.3/32", "10.0.0.0/8", "fd00::/8")


def test_without_them_there_is_a_limit_no_key_and_no_trusted_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRIAGE_RATE_LIMIT")
    settings = load_settings()

    assert (settings.rate_limit, settings.api_keys, settings.trusted_proxies) == ("120/minute", (), ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRIAGE_RATE_LIMIT", "0/minute"),
        ("TRIAGE_RATE_LIMIT", "120"),
        ("TRIAGE_RATE_LIMIT", "120/week"),
        ("TRIAGE_RATE_LIMIT", "99999999/day"),
        ("TRIAGE_RATE_LIMIT", "-1/minute"),
        ("TRIAGE_RATE_LIMIT", ""),
        ("TRIAGE_API_KEYS", "secret-without-name"),
        ("TRIAGE_API_KEYS", "bot:secret"),
        ("TRIAGE_API_KEYS", f"bot:{KEY}:secret"),
        ("TRIAGE_API_KEYS", f"bot:{KEY},bot:{KEY}"),
        ("TRIAGE_API_KEYS", f"b ot:{KEY}"),
        ("TRIAGE_API_KEYS", "bot:secret of many words"),
        ("TRIAGE_TRUSTED_PROXIES", "10.0.0.0/33"),
        ("TRIAGE_TRUSTED_PROXIES", "proxy.secret"),
    ],
)
def test_a_wrong_value_is_named_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError) as caught:
        load_settings()

    assert name in caught.value.message
    assert "\n" not in caught.value.message
    assert "must" in caught.value.message
    assert KEY not in caught.value.message
    assert "secret" not in caught.value.message


TOKEN = "ghp_a_token_of_ours"


@pytest.mark.parametrize(
    ("in_environment", "in_file", "asked"),
    [
        (["TOKEN"], ["API_URL"], None),
        (["token"], ["API_URL"], None),
        (["TOKEN", "API_URL"], [], "https://ghe.example.org/api/v3"),
        ([], ["TOKEN", "API_URL"], "https://ghe.example.org/api/v3"),
        (["API_URL"], ["TOKEN"], "https://ghe.example.org/api/v3"),
        ([], ["API_URL"], "https://ghe.example.org/api/v3"),
        (["TOKEN"], [], "https://api.github.com"),
    ],
)
def test_a_file_in_the_working_folder_cannot_send_the_token_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    in_environment: list[str],
    in_file: list[str],
    asked: str | None,
) -> None:
    values = {"TOKEN": TOKEN, "API_URL": "https://ghe.example.org/api/v3", "token": TOKEN}
    for name in in_environment:
        monkeypatch.setenv(f"TRIAGE_GITHUB_{name}", values[name])
    (tmp_path / ".env").write_text("".join(f"TRIAGE_GITHUB_{name}={values[name]}\n" for name in in_file))
    monkeypatch.chdir(tmp_path)

    if asked is None:
        with pytest.raises(ConfigError, match="in one place"):
            load_settings()
    else:
        assert load_settings().github_api_url == asked


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("http://127.0.0.1:9", True),
        ("http://[::1]:9", True),
        ("http://localhost:9", True),
        ("https://ghe.example.org", True),
        ("http://ghe.example.org", False),
        ("http://10.0.0.1", False),
        ("http://127.0.0.1.example.org", False),
    ],
)
def test_a_token_goes_over_tls_unless_it_stays_on_this_machine(
    monkeypatch: pytest.MonkeyPatch, url: str, is_taken: bool
) -> None:
    monkeypatch.setenv("TRIAGE_GITHUB_API_URL", url)
    if is_taken:
        assert load_settings().github_api_url == url
    else:
        with pytest.raises(ConfigError, match="https"):
            load_settings()
