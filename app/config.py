"""Settings: every variable, its default, unit and reason. The only reader of the environment.

In: variables with the prefix `TRIAGE_` and a `.env` file in the working directory; `TRIAGE_…_FILE` names a
file that holds the value.
Out: one frozen `Settings`. A wrong value raises `ConfigError` with the variable's name,
the fault and what is allowed; the value itself is not repeated, it may be a secret.
"""

import os
import re
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.errors import ConfigError

LOG_LIMIT_BYTES = 10 * 1024 * 1024
"""Largest log accepted on any way in, in bytes of UTF-8 after decoding."""

PREFIX = "TRIAGE_"
SERVER_VARIABLE = "TRIAGE_URL"
"""Read by client commands; not a setting of the server."""
ENV_FILE = Path(".env")
ENGINES = ("sqlite:///", "postgresql+psycopg://")
BASE_HERE = Path("triage.db")
"""A database in the working folder takes precedence over the one in the platform's data folder."""
REPO_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
"""`owner/name`, by GitHub's rules."""

PUBLIC_HOST = re.compile(r"(?:[a-z0-9][a-z0-9.-]{0,252}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")
"""Host name or address as in a Host header, with an optional port."""

ROOT_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,99}){1,9}")
"""Path prefix added by a proxy."""

RATE = re.compile(r"([1-9][0-9]{0,6})/(second|minute|hour|day)")
"""Requests per time span, such as `120/minute`."""
NO_LIMIT = "off"
KEY_RATE = "1200/minute"
"""Default rate limit of API keys."""


class ApiKey(BaseModel):
    """A key that lets its holder ask more often: the name it is logged under, and its rate."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    name: str
    key: SecretStr
    rate: str = KEY_RATE


def _split(value: object) -> object:
    """Return the non-blank parts of a comma-separated list."""
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


def data_folder() -> Path:
    """Return this program's folder in the platform's user data directory."""
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/vllm-triage"
    data_home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data_home) if data_home.startswith("/") else Path.home() / ".local/share") / "vllm-triage"


def _default_database() -> str:
    return f"sqlite:///{BASE_HERE if BASE_HERE.is_file() else data_folder() / BASE_HERE}"


def database_address(url: str) -> str:
    """Normalize a database URL for SQLAlchemy; `postgres://` and `postgresql://` get our driver.

    Raises:
        ValueError: the engine is not supported.
    """
    url = re.sub(r"^postgres(?:ql)?://", ENGINES[1], url)
    if not url.startswith(ENGINES):
        raise ValueError("must begin with sqlite:/// or postgresql://")
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


def _root_path(path: str) -> str:
    found = path.strip().rstrip("/")
    if found and not ROOT_PATH.fullmatch(found):
        raise ValueError("must be a path such as /triage, without the host")
    return found


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
        raise ValueError("must be an https:// address, or this machine's own: a token is sent there")
    return url.rstrip("/")


def _server_address(url: str | None) -> str | None:
    if url is None or not url.strip():
        return None
    parts = urlsplit(url.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be an http:// or https:// address without query, such as http://gpu-1:8000")
    if parts.username or parts.password:
        raise ValueError("must hold no password: TRIAGE_READER_KEY is for that")
    return url.strip().rstrip("/")


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


def _duration(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"[1-9]\d{0,5}[smh]", text):
        raise ValueError("must be a number and s, m or h, such as 15m")
    return text


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


LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "text", "json"]
Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Secret = Annotated[SecretStr | None, AfterValidator(_none_if_blank)]


class Settings(BaseSettings):
    """What an operator can choose; see the field descriptions, which the README repeats."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    database_url: Annotated[str, AfterValidator(database_address)] = Field(
        default_factory=_default_database,
        description="where everything is kept: sqlite:///FILE or postgresql://…",
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
    host: str = Field("127.0.0.1", min_length=1, max_length=253, description="address to listen on")
    port: int = Field(8000, ge=1, le=65535, description="port to listen on")
    workers: int = Field(1, ge=1, le=64, description="processes that answer")
    root_path: Annotated[str, AfterValidator(_root_path)] = Field(
        "", description="where below its host the service is reached, such as /triage"
    )
    sync_every: Annotated[str | None, AfterValidator(_duration)] = Field(
        None, description="how often to sync beside serving, such as 15m; without it not at all"
    )
    reader_url: Annotated[str | None, AfterValidator(_server_address)] = Field(
        None, description="your own OpenAI-compatible server, such as vLLM: it reads issues too"
    )
    reader_model: str | None = Field(
        None, max_length=200, description="the model's name there; without it the first that it serves"
    )
    reader_key: Annotated[Secret, _secret(r"[\x21-\x7e]+", "one word of printable ASCII")] = Field(
        None, description="sent to that server as a bearer token"
    )
    reader_tokens_per_day: int = Field(
        20_000_000, ge=1, description="prompts and replies of one day (UTC); then reading waits for the next"
    )
    reader_parallel: int = Field(8, ge=1, le=256, description="requests to that server at a time")
    reader_logs: bool = Field(
        False, description="whether it also reads a pasted log, masked, where the caller asks for that"
    )
    embeddings_url: Annotated[str | None, AfterValidator(_server_address)] = Field(
        None, description="your own server of /v1/embeddings: questions also find issues of like meaning"
    )
    embeddings_model: str | None = Field(
        None, max_length=200, description="the model's name there; without it the first that it serves"
    )
    embeddings_key: Annotated[Secret, _secret(r"[\x21-\x7e]+", "one word of printable ASCII")] = Field(
        None, description="sent to that server as a bearer token"
    )
    digest_url: Secret = Field(
        None, description="the webhook of a chat channel, to which `triage digest --send` posts"
    )
    snapshot_url: str | None = Field(
        None, description="where an empty base is filled from: what `triage publish` wrote, by http or https"
    )
    keep_days: int = Field(30, ge=1, le=3650, description="days a kept log stays")
    log_level: LogLevel = Field("info", description="the least level that is logged")
    log_format: LogFormat = Field(
        "auto", description="text or json; auto: text on a terminal, JSON elsewhere"
    )
    rate_limit: Annotated[str, AfterValidator(_rate)] = Field(
        "120/minute", description="requests of one client without an API key; `off` for no limit"
    )
    redis_url: Annotated[Secret, _secret(r"rediss?://\S+", "redis://… or rediss://…")] = Field(
        None, description="where all workers and hosts count requests together; else each process alone"
    )
    api_keys: Annotated[tuple[ApiKey, ...], NoDecode, BeforeValidator(_api_keys)] = Field(
        (), description="name:key or name:key:1200/minute, comma-separated: clients that may ask more often"
    )
    trusted_proxies: Annotated[Words, AfterValidator(_networks)] = Field(
        (), description="addresses or networks of proxies whose X-Forwarded-For is believed, comma-separated"
    )

    @property
    def is_cross_origin(self) -> bool:
        """True if pages of any origin may read answers, which could leak them out of a private network."""
        return bool(self.public_hosts) if self.cross_origin is None else self.cross_origin

    @property
    def sync_every_s(self) -> float | None:
        """Interval of the background sync, in seconds."""
        unit_s = {"s": 1, "m": 60, "h": 3600}
        return float(self.sync_every[:-1]) * unit_s[self.sync_every[-1]] if self.sync_every else None

    @property
    def default_repo(self) -> str:
        """The repository of short URLs such as `/issues/1`."""
        return self.repo[0]


_METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Variable that prometheus_client reads when it is imported in a worker."""


def shared_metrics_folder() -> str | None:
    """Return the folder in which a server's workers share metrics; None for a single process."""
    return os.environ.get(_METRICS_FOLDER) or None


def share_metrics(folder: str) -> None:
    """Make worker processes started from now on share metrics in an empty folder."""
    os.environ[_METRICS_FOLDER] = folder


def isolate_children() -> None:
    """Exclude the working folder from the import path of Python processes started from now on.

    Otherwise a file there, such as `app/__init__.py` or `random.py`, would shadow our or Python's module.
    """
    os.environ["PYTHONSAFEPATH"] = "1"


def _given() -> dict[str, tuple[str, str]]:
    """Return (value, source) of every variable with our prefix, by field name."""
    in_file = dotenv_values(ENV_FILE) if ENV_FILE.is_file() else {}
    places: tuple[tuple[str, Mapping[str, str | None]], ...] = (
        (".env", in_file),
        ("environment", os.environ),
    )
    return {
        name.upper().removeprefix(PREFIX).lower(): (value, place)
        for place, values in places
        for name, value in values.items()
        if value is not None and name.upper().startswith(PREFIX)
    }


def _values() -> dict[str, tuple[str, str]]:
    """Return (value, source) of the settings given; `…_FILE` variables are replaced by the file's content."""
    given = _given()
    for name in [name for name in given if name.removesuffix("_file") in Settings.model_fields]:
        setting = name.removesuffix("_file")
        if setting == name:
            continue
        variable, (path, place) = PREFIX + name.upper(), given[name]
        if setting in given:
            raise ConfigError(f"{variable} and {PREFIX}{setting.upper()} are both set: keep one")
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            fault = error.strerror if isinstance(error, OSError) else "it is no text"
            raise ConfigError(f"{variable}: its file cannot be read: {fault}") from None
        given[setting] = value, f"{variable} ({place})"
    return {name: given[name] for name in Settings.model_fields if name in given}


def setting_sources() -> dict[str, str]:
    """Return the source of each setting that is not at its default, by field name."""
    return {name: place for name, (_value, place) in _values().items()}


def address_without_password(url: str) -> str:
    return re.sub(r"(?<=:)[^:/@]*(?=@)", "…", url)


def settings_text(settings: Settings) -> list[str]:
    """Return each setting's value in field order; secrets are shown as "…"."""
    lines = []
    for name in Settings.model_fields:
        value = getattr(settings, name)
        if name == "database_url":
            value = address_without_password(value)
        elif name == "api_keys":
            value = ",".join(f"{key.name}:…:{key.rate}" for key in value)
        elif isinstance(value, SecretStr):
            value = "…"
        lines.append(",".join(value) if isinstance(value, tuple) else "" if value is None else str(value))
    return lines


def server_address() -> str | None:
    """Return the server URL that the environment sets for client commands, or None."""
    return os.environ.get(SERVER_VARIABLE) or None


def unknown_variables() -> dict[str, str | None]:
    """Return unknown variables with our prefix, each with the most similar known one, or None."""
    known = [*Settings.model_fields, *(f"{name}_file" for name in Settings.model_fields)]
    unknown = sorted(name for name in _given() if name not in known and name != "url")
    near = {name: next(iter(get_close_matches(name, known, n=1)), None) for name in unknown}
    return {PREFIX + name.upper(): PREFIX + found.upper() if found else None for name, found in near.items()}


def override(**options: object) -> None:
    """Override settings of the environment, for this process and its children; None leaves one as it is."""
    for name, value in options.items():
        if value is not None:
            os.environ.pop(f"{PREFIX}{name.upper()}_FILE", None)
            os.environ[PREFIX + name.upper()] = str(value)


def load_settings() -> Settings:
    """Read the environment once.

    Raises:
        ConfigError: variables have invalid values; the message names all of them.
    """
    values = _values()
    try:
        settings = Settings.model_validate({name: value for name, (value, _place) in values.items()})
    except ValidationError as error:
        faults = "; ".join(
            f"TRIAGE_{str(fault['loc'][0]).upper()}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_input=False, include_url=False)
        )
        raise ConfigError(f"wrong setting: {faults}") from None
    url_place, token_place = (values.get(name, ("", ""))[1] for name in ("github_api_url", "github_token"))
    if ".env" in url_place and "environment" in token_place:
        raise ConfigError(
            "TRIAGE_GITHUB_API_URL stands in the file .env, the token in the environment: set both in one "
            "place, or a folder could have the token sent anywhere"
        )
    return settings
