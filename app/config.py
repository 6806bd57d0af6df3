"""Settings: every variable, its default, unit and reason. The only reader of the environment.

In: variables with the prefix `TRIAGE_` and a `.env` file in the working directory.
Out: one frozen `Settings`. A wrong value raises `ConfigError` with the variable's name,
the fault and what is allowed; the value itself is not repeated, it may be a secret.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.errors import ConfigError

LOG_LIMIT_BYTES = 10 * 1024 * 1024
"""Largest log accepted on any way in, in bytes of UTF-8 after decoding."""

REPO_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
"""`owner/name` as GitHub allows it."""


class Settings(BaseSettings):
    """What an operator can choose; see the field descriptions, which the README repeats."""

    model_config = SettingsConfigDict(
        env_prefix="TRIAGE_", env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    database_url: str = Field(
        "sqlite:///triage.db",
        description="where everything is kept: sqlite:///FILE or postgresql+psycopg://…",
    )
    repo: Annotated[tuple[str, ...], NoDecode] = Field(
        ("vllm-project/vllm",),
        description="owner/name of the repositories to know, comma-separated; the first is the default",
    )
    github_token: SecretStr | None = Field(None, description="5,000 requests an hour in place of 60")
    github_api_url: str = Field("https://api.github.com", description="GitHub's API origin")
    webhook_secret: SecretStr | None = Field(
        None, description="shared with GitHub, which signs its deliveries with it; without it none is taken"
    )
    admin_token: SecretStr | None = Field(
        None, description="lets its holder judge which issues are the same; without it nobody may"
    )
    keep_days: int = Field(30, ge=1, le=3650, description="days a kept log stays")

    @field_validator("database_url")
    @classmethod
    def _known_engine(cls, value: str) -> str:
        if not value.startswith(("sqlite:///", "postgresql+psycopg://")):
            raise ValueError("must begin with sqlite:/// or postgresql+psycopg://")
        return value

    @field_validator("repo", mode="before")
    @classmethod
    def _split_repos(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @field_validator("repo")
    @classmethod
    def _repo_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or not all(REPO_NAME.fullmatch(name) for name in value):
            raise ValueError("must be owner/name, or several with commas between")
        return tuple(dict.fromkeys(value))

    @field_validator("github_token")
    @classmethod
    def _no_blank_token(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None or not value.get_secret_value().strip():
            return None
        if not re.fullmatch(r"[\x21-\x7e]+", value.get_secret_value().strip()):
            raise ValueError("must be one word of printable ASCII")
        return SecretStr(value.get_secret_value().strip())

    @field_validator("admin_token")
    @classmethod
    def _a_long_token(cls, value: SecretStr | None) -> SecretStr | None:
        told = value.get_secret_value().strip() if value else ""
        if told and not re.fullmatch(r"[\x21-\x7e]{8,500}", told):
            raise ValueError("must be one word of 8 to 500 printable ASCII characters")
        return SecretStr(told) if told else None

    @field_validator("webhook_secret")
    @classmethod
    def _no_blank_secret(cls, value: SecretStr | None) -> SecretStr | None:
        stripped = value.get_secret_value().strip() if value else ""
        return SecretStr(stripped) if stripped else None

    @field_validator("github_api_url")
    @classmethod
    def _api_origin(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("must be an http:// or https:// address without query")
        return value.rstrip("/")

    @property
    def default_repo(self) -> str:
        """The repository that short addresses such as `/issues/1` mean."""
        return self.repo[0]


def load_settings() -> Settings:
    """Read the environment once.

    Raises:
        ConfigError: a variable has a wrong value; all faulty ones are named.
    """
    try:
        return Settings()
    except ValidationError as error:
        faults = "; ".join(
            f"TRIAGE_{str(fault['loc'][0]).upper()}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_input=False, include_url=False)
        )
        raise ConfigError(f"wrong setting: {faults}") from None
