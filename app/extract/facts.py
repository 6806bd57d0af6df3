"""The facts of one issue: the output models of this package.

The field names and their meaning are a public contract (JSON of `triage extract` and of
`GET /api/v1/issues/{number}`). All shapes are frozen; every extracted value has at least one
`Evidence` in `Facts.evidence` whose quote is the exact text between two code points of a source.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    computed_field,
    field_serializer,
    field_validator,
    model_validator,
)

FailureKind = Literal[
    "crash", "exception", "hang", "oom", "wrong_output", "slowdown", "install", "other", "none"
]
WorkaroundKind = Literal["flag", "env", "version", "config", "code", "hardware", "other"]
Outcome = Literal["works", "partial", "fails"]
Speaker = Literal["reporter", "maintainer", "other"]
FixState = Literal["fixed", "merged_unreleased", "in_progress", "not_fixed", "closed_unresolved", "unknown"]
SignatureRole = Literal["root", "other", "wrapper"]

BackendKey = Literal[
    "attention",
    "moe",
    "all2all",
    "quantization",
    "kv_cache_dtype",
    "executor",
    "structured_output",
    "speculative",
    "lora",
    "engine",
    "platform",
]
BACKEND_KEYS: tuple[BackendKey, ...] = get_args(BackendKey)
"""Keys of `Facts.backends`."""

VERSION_KEYS = ("vllm", "torch", "cuda", "python", "transformers", "driver")
"""Keys of `Facts.versions`."""


MAX_SUMMARY_CHARS = 300
SENTENCE_CHARS = 240
_MARKS = re.compile(r"!?\[(?=[^\]\n]{1,200}\]\()|\]\([^)\s]{1,400}\)|^\s*[-*+] |\*\*|`|(?:^|(?<=\s))#{2,} ")
"""Markdown syntax removed from quoted sentences."""
FORMER: dict[str, JsonValue] = {"deprecated": True}
"""Marks the former name of a field in the API description; it is removed in the next release."""
KIND_WORDS = {
    "crash": "Crashes",
    "exception": "Fails",
    "hang": "Hangs",
    "oom": "Runs out of memory",
    "wrong_output": "Gives wrong output",
    "slowdown": "Is slow",
    "install": "Does not install",
    "other": "Fails",
}


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def based_on(cls, source: object, /, **fields: Any) -> Self:
        """Create an object from `fields`, with attributes of `source` for those not given."""
        others = cls.model_fields.keys() - fields.keys()
        return cls(**{name: getattr(source, name) for name in others if hasattr(source, name)}, **fields)


class Evidence(Frozen):
    """An extracted value, the quoted text that states it, and the rule that matched.

    `quote == text_of(source)[start:end]` in code points. `field` is a field's name, or
    `field.key` (`backends.attention`, `versions.torch`, `error.message`).
    """

    field: str
    value: str
    quote: str
    source: str = Field(description='"title", "body", "comment:<id>", "comment:#<position>" or "card"')
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    rule: str = Field(description="id of the extraction rule, stable across releases")
    confidence: float = Field(ge=0, le=1)


class ErrorLine(Frozen):
    """An error, abbreviated for lists."""

    type: str | None
    message: str
    frame: str | None = Field(None, description="innermost distinctive frame, as file.py:function")

    @property
    def line(self) -> str:
        """Type and message in one line."""
        return ": ".join(filter(None, (self.type, self.message)))


class ErrorFact(ErrorLine):
    """The root-cause error, without wrapping errors."""

    wrappers: tuple[str, ...] = ()
    other: tuple[str, ...] = Field((), description="further distinct root-cause errors")


class Conditions(Frozen):
    """The setup in which a workaround was tried or is said to apply; empty if none is stated."""

    versions: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All conditions, as written in a sentence."""
        versions = (f"vLLM {version}" for version in self.versions)
        return (*self.gpus, *self.models, *self.backends, *versions)


class StatedChange(Frozen):
    """What is changed: a setting, a version, a deed; `without`: `action` names what is to be left out.

    `command`: what to type, for a remedy that is believed at .95; else None.
    """

    action: str
    without: bool = Field(False, description="whether to remove `action` instead of applying it")
    command: str | None = None

    @property
    def prefix(self) -> str:
        """The words before `typed` in a sentence."""
        return "leave out " if self.without else ""

    @property
    def typed(self) -> str:
        """The command if known, else the action without Markdown syntax."""
        return self.command or _unmarked(self.action)

    @property
    def words(self) -> str:
        """The change in words that fit before "helps" and "works"."""
        return self.prefix + self.typed

    def within(self, quote: str) -> tuple[str, str, str]:
        """Shorten the quoted sentence to `SENTENCE_CHARS` around the action: before, action, after.

        If the quote does not contain the action, return only the action.
        """
        plain, stated = _unmarked(quote), _unmarked(self.action)
        before, action, after = plain.partition(stated) if stated else ("", "", "")
        if not action:
            return "", stated, ""
        room = max(SENTENCE_CHARS - len(action), 0)
        ahead = max(room // 2, room - len(after))
        if len(before) > ahead:
            before = f"…{before[len(before) - ahead :].partition(' ')[2]}"
        return before, action, _cut(after, max(room - len(before), 1))


class Workaround(StatedChange):
    """Something that was tried, and its outcome.

    `confidence`: how often statements like this one were right on labelled issues. `quote`: the sentence that
    states it. Only other people than the reporter confirm.
    """

    kind: WorkaroundKind
    outcome: Outcome
    conditions: Conditions = Conditions()
    source: str = "body"
    by: Speaker = "reporter"
    confirmed_by: int = 0
    refuted_by: int = 0
    confidence: float = 0.0
    quote: str = ""


class Regression(Frozen):
    """The versions between which it began to fail, without a leading v."""

    last_working: str | None = None
    first_failing: str | None = None
    still_failing: tuple[str, ...] = ()
    fixed_in: str | None = None
    culprit: str | None = Field(None, description="pull request as #12345, or commit")


class Cause(Frozen):
    text: str
    certainty: Literal["stated", "hypothesis"]


class Reproduction(Frozen):
    command: str
    outcome: Literal["fails", "works"]


class PullRequestName(Frozen):
    """Names a pull request: in Python as people write it, in JSON its number and that spelling."""

    pr: str | None = Field(
        None,
        description="number of the pull request; `pull_request` names its repository where it is another one",
    )

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, value: Any) -> Any:
        """Accept both JSON formats: `pr` as a number, and the former text field."""
        if not isinstance(value, Mapping) or "pull_request" not in value:
            return value
        return {
            **{key: item for key, item in value.items() if key != "pull_request"},
            "pr": value["pull_request"],
        }

    @field_serializer("pr")
    def _number(self, value: str | None) -> int | None:
        number = (value or "").rpartition("#")[2]
        return int(number) if number.isdigit() else None

    @computed_field(description="pull request as `#1` or `owner/name#1`; former value of `pr`")
    def pull_request(self) -> str | None:
        """The name as it stands in texts."""
        return self.pr


class Fix(PullRequestName):
    state: FixState
    released_in: str | None = None
    source: str | None = None


class Signature(Frozen):
    """A readable key that identifies a failure. `id` is `s1-` and 12 hex digits of the text's hash."""

    id: str
    text: str
    role: SignatureRole = "root"


class Facts(Frozen):
    """All fields of one issue.

    In JSON `backends` and `versions` always have all their keys, so that a client can ask for one without
    looking whether it is there; in Python they hold what was found.
    """

    number: int
    is_failure: bool = False
    failure_kind: FailureKind = "none"
    gpus: tuple[str, ...] = ()
    gpu_count: int | None = None
    models: tuple[str, ...] = ()
    backends: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    error: ErrorFact | None = None
    workarounds: tuple[Workaround, ...] = ()
    regression: Regression | None = None
    related: tuple[int, ...] = ()
    related_elsewhere: tuple[str, ...] = ()
    cause: tuple[Cause, ...] = ()
    reproduction: tuple[Reproduction, ...] = ()
    fix: Fix | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    signatures: tuple[Signature, ...] = ()
    summary: str = ""
    evidence: tuple[Evidence, ...] = ()

    @field_validator("backends", "versions", mode="before")
    @classmethod
    def _found_keys(cls, value: Any) -> Any:
        return {key: item for key, item in value.items() if item} if isinstance(value, Mapping) else value

    @field_serializer("backends")
    def _all_backends(self, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {key: value.get(key, ()) for key in BACKEND_KEYS}

    @field_serializer("versions")
    def _all_versions(self, value: dict[str, str]) -> dict[str, str | None]:
        return {key: value.get(key) for key in VERSION_KEYS}


def summarise(facts: Facts) -> str:
    """Summarise in one sentence what fails, where, and what helps; "" if the issue reports no failure."""
    if not facts.is_failure:
        return ""
    error = facts.error
    what = KIND_WORDS.get(facts.failure_kind, "Fails")
    if error is not None and facts.failure_kind != "slowdown":  # an error is rarely the cause of a slowdown
        words = ": ".join(part for part in (error.type, _cut(error.message, 110)) if part)
        what = f"{what} with {words}" + (f" at {error.frame}" if error.frame else "")
    where = [
        f"on {', '.join(facts.gpus[:2])}" if facts.gpus else "",
        f"with {facts.models[0]}" if facts.models else "",
        f"in vLLM {facts.versions['vllm']}" if "vllm" in facts.versions else "",
    ]
    sentence = " ".join([what, *(part for part in where if part)]) + "."
    # A change without a command is understandable only in the sentence that states it.
    helped = [
        item for item in facts.workarounds if item.outcome == "works" and (item.command or item.without)
    ]
    if helped:
        sentence += f" Helps: {_cut(helped[0].prefix + helped[0].action, 80)}."
    return _cut(sentence, MAX_SUMMARY_CHARS)


def _unmarked(text: str) -> str:
    """Return the text on one line, without Markdown syntax."""
    return " ".join(_MARKS.sub("", text).split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
