"""Settings: every variable, its default, unit and reason. The only reader of the environment.

In: variables with the prefix `TRIAGE_` and a `.env` file in the working directory.
Out: one frozen `Settings`. A wrong value raises `ConfigError` with the variable's name,
the fault and what is allowed; the value itself is not repeated, it may be a secret.
"""

from __future__ import annotations

import os
import re
from ipaddress import ip_address, ip_network
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.errors import ConfigError

LOG_LIMIT_BYTES = 10 * 1024 * 1024
"""Largest log accepted on any way in, in bytes of UTF-8 after decoding."""

ENGINES = ("sqlite:///", "postgresql+psycopg://")
REPO_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
"""`owner/name` as GitHub allows it."""

PUBLIC_HOST = re.compile(r"(?:[a-z0-9][a-z0-9.-]{0,252}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")
"""A name or address as the Host header has it, with or without a port."""

RATE = re.compile(r"([1-9][0-9]{0,6})/(second|minute|hour|day)")
"""Requests in a span of time, such as `120/minute`."""
NO_LIMIT = "off"
KEY_RATE = "1200/minute"
"""What a client with an API key may ask, unless its key says otherwise."""


class ApiKey(BaseModel):
    """A key that lets its holder ask more often: the name it is logged under, and its rate."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    name: str
    key: SecretStr
    rate: str = KEY_RATE


def _split(value: object) -> object:
    """The parts of a comma-separated list, without blank ones."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


def _none_if_blank(value: SecretStr | None) -> SecretStr | None:
    stripped = value.get_secret_value().strip() if value else ""
    return SecretStr(stripped) if stripped else None


def _secret(form: str, allowed: str) -> AfterValidator:
    def check(value: SecretStr | None) -> SecretStr | None:
        if value and not re.fullmatch(form, value.get_secret_value()):
            raise ValueError(f"must be {allowed}")
        return value

    return AfterValidator(check)


def _known_engine(url: str) -> str:
    if not url.startswith(ENGINES):
        raise ValueError(f"must begin with {' or '.join(ENGINES)}")
    return url


def _repo_names(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or not all(map(REPO_NAME.fullmatch, names)):
        raise ValueError("must be owner/name, or several with commas between")
    return tuple(dict.fromkeys(names))


def _host_names(names: tuple[str, ...]) -> tuple[str, ...]:
    hosts = tuple(dict.fromkeys(map(str.lower, names)))
    if not all(map(PUBLIC_HOST.fullmatch, hosts)):
        raise ValueError("must be host names such as triage.example.org, comma-separated, without scheme")
    return hosts


def _networks(parts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(str(ip_network(part, strict=False)) for part in parts)
    except ValueError:
        raise ValueError("must be addresses or networks such as 10.0.0.0/8, comma-separated") from None


def _api_origin(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be an http:// or https:// address without query")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise ValueError("must be an https:// address: the token goes there")
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _rate(text: str) -> str:
    rate = text.strip().lower()
    if rate != NO_LIMIT and not RATE.fullmatch(rate):
        raise ValueError("must be `off`, or a number per second, minute, hour or day such as 120/minute")
    return rate


def _api_keys(value: object) -> object:
    """The keys of a comma-separated list; values that are no text are left to their type."""
    if not isinstance(value, str):
        return value
    keys = [_api_key(part.strip()) for part in value.split(",") if part.strip()]
    if len({key.name for key in keys}) < len(keys):
        raise ValueError("must not hold a name twice")
    return tuple(keys)


def _api_key(text: str) -> ApiKey:
    found = re.fullmatch(r"([A-Za-z0-9_.-]{1,60}):([\x21-\x2b\x2d-\x39\x3b-\x7e]{16,200})(?::(.+))?", text)
    if found is None:
        raise ValueError(
            "must be name:key or name:key:1200/minute, comma-separated; "
            "a key is 16 to 200 printable ASCII characters without comma and colon"
        )
    return ApiKey(name=found[1], key=SecretStr(found[2]), rate=_rate(found[3] or KEY_RATE))


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Secret = Annotated[SecretStr | None, AfterValidator(_none_if_blank)]


class Settings(BaseSettings):
    """What an operator can choose; see the field descriptions, which the README repeats."""

    model_config = SettingsConfigDict(
        env_prefix="TRIAGE_", env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    database_url: Annotated[str, AfterValidator(_known_engine)] = Field(
        "sqlite:///triage.db",
        description="where everything is kept: sqlite:///FILE or postgresql+psycopg://…",
    )
    repo: Annotated[Words, AfterValidator(_repo_names)] = Field(
        ("vllm-project/vllm",),
        description="owner/name of the repositories to know, comma-separated; the first is the default",
    )
    github_token: Annotated[Secret, _secret(r"[\x21-\x7e]+", "one word of printable ASCII")] = Field(
        None, description="5,000 requests an hour in place of 60"
    )
    github_api_url: Annotated[str, AfterValidator(_api_origin)] = Field(
        "https://api.github.com", description="GitHub's API origin"
    )
    webhook_secret: Secret = Field(
        None, description="shared with GitHub, which signs its deliveries with it; without it none is taken"
    )
    admin_token: Annotated[
        Secret, _secret(r"[\x21-\x7e]{8,500}", "one word of 8 to 500 printable ASCII characters")
    ] = Field(None, description="lets its holder judge which issues are the same; without it nobody may")
    public_hosts: Annotated[Words, AfterValidator(_host_names)] = Field(
        (), description="names by which others reach this server, comma-separated: /mcp answers to no other"
    )
    cross_origin: bool | None = Field(
        None,
        description="whether pages of any site may read answers; where not set, with public hosts only",
    )
    keep_days: int = Field(30, ge=1, le=3650, description="days a kept log stays")
    rate_limit: Annotated[str, AfterValidator(_rate)] = Field(
        "120/minute", description="requests of one client without an API key, per process; `off` for no limit"
    )
    api_keys: Annotated[tuple[ApiKey, ...], NoDecode, BeforeValidator(_api_keys)] = Field(
        (), description="name:key or name:key:1200/minute, comma-separated: clients that may ask more often"
    )
    trusted_proxies: Annotated[Words, AfterValidator(_networks)] = Field(
        (), description="addresses or networks of proxies whose X-Forwarded-For is believed, comma-separated"
    )

    @property
    def is_cross_origin(self) -> bool:
        """Whether pages of any site may read answers, and so carry those of a closed network out of it."""
        return bool(self.public_hosts) if self.cross_origin is None else self.cross_origin

    @property
    def default_repo(self) -> str:
        """The repository that short addresses such as `/issues/1` mean."""
        return self.repo[0]


_METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The name that the metrics library reads, in each worker, as it is loaded."""


def shared_metrics_folder() -> str | None:
    """Where the workers of one server count together; None for a process that counts alone."""
    return os.environ.get(_METRICS_FOLDER) or None


def share_metrics(folder: str) -> None:
    """Let the worker processes that are started from now on count together in an empty folder."""
    os.environ[_METRICS_FOLDER] = folder


def isolate_children() -> None:
    """Let every Python that is started from now on leave the working folder out of what it imports from.

    Without it a file there, such as `app/__init__.py` or `random.py`, runs in place of ours or Python's own.
    """
    os.environ["PYTHONSAFEPATH"] = "1"


def load_settings() -> Settings:
    """Read the environment once.

    Raises:
        ConfigError: a variable has a wrong value; all faulty ones are named.
    """
    try:
        settings = Settings()
    except ValidationError as error:
        faults = "; ".join(
            f"TRIAGE_{str(fault['loc'][0]).upper()}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_input=False, include_url=False)
        )
        raise ConfigError(f"wrong setting: {faults}") from None
    given = {name.upper() for name in os.environ}
    is_from_file = "github_api_url" in settings.model_fields_set and "TRIAGE_GITHUB_API_URL" not in given
    if settings.github_token and "TRIAGE_GITHUB_TOKEN" in given and is_from_file:
        raise ConfigError(
            "TRIAGE_GITHUB_API_URL stands in the file .env, the token in the environment: set both in one "
            "place, or a folder could have the token sent anywhere"
        )
    return settings
