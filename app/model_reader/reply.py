"""Models of a reply, from which the JSON schema for the server is generated.

Every length is bounded, so that guided decoding always ends. The fields are described in `prompt.md`.
"""

import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.extract.facts import BackendKey, FailureKind, Outcome, WorkaroundKind

VersionRole = Literal["failing", "last_working", "first_failing", "still_failing", "fixed_in", "culprit"]
LineNumber = Annotated[int, Field(ge=1, le=9999)]
Name = Annotated[str, Field(min_length=2, max_length=60)]
Quote = Annotated[str, Field(min_length=2, max_length=160)]


class Quoted(BaseModel):
    """A part of a reply: values, and the line in which they stand."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class QuotedKind(Quoted):
    value: FailureKind
    line: LineNumber
    quote: Quote


class QuotedError(Quoted):
    type: Name | None
    message: Annotated[str, Field(min_length=1, max_length=240)]
    line: LineNumber


class QuotedModel(Quoted):
    name: Annotated[str, Field(min_length=2, max_length=100)]
    line: LineNumber


class QuotedBackend(Quoted):
    key: BackendKey
    name: Annotated[str, Field(min_length=2, max_length=40)]
    line: LineNumber


class QuotedVersion(Quoted):
    role: VersionRole
    value: Name
    line: LineNumber
    quote: Quote


class QuotedCondition(Quoted):
    what: Literal["version", "gpu", "model", "backend"]
    value: Name
    line: LineNumber


class QuotedRemedy(Quoted):
    action: Annotated[str, Field(min_length=2, max_length=200)]
    line: LineNumber
    kind: WorkaroundKind
    outcome: Outcome
    proof: Quote
    proof_line: LineNumber
    conditions: Annotated[tuple[QuotedCondition, ...], Field(max_length=3)]


class QuotedCause(Quoted):
    certainty: Literal["stated", "hypothesis"]
    line: LineNumber
    quote: Annotated[str, Field(min_length=4, max_length=240)]


class QuotedReading(Quoted):
    """One report as the model read it; nothing of it is proven yet."""

    kind: QuotedKind
    error: QuotedError | None
    models: Annotated[tuple[QuotedModel, ...], Field(max_length=4)]
    backends: Annotated[tuple[QuotedBackend, ...], Field(max_length=6)]
    versions: Annotated[tuple[QuotedVersion, ...], Field(max_length=8)]
    remedies: Annotated[tuple[QuotedRemedy, ...], Field(max_length=8)]
    causes: Annotated[tuple[QuotedCause, ...], Field(max_length=2)]


@lru_cache(maxsize=1)
def instructions() -> str:
    """Return the system message with the model's instructions."""
    return (files(__package__) / "prompt.md").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    return QuotedReading.model_json_schema()


@lru_cache(maxsize=1)
def prompt_version() -> str:
    """Return a hash of the instructions and the schema; when it changes, issues are read again."""
    text = f"{instructions()}\n{schema()}"
    return "p1-" + hashlib.sha256(text.encode()).hexdigest()[:8]


def parse_reply(text: str) -> QuotedReading | None:
    """Parse a reply; return None if it does not match the schema, such as a truncated one."""
    try:
        return QuotedReading.model_validate_json(text)
    except ValidationError:
        return None
