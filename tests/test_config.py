"""A wrong setting stops the program with one line that names it and repeats no secret."""

from __future__ import annotations

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
