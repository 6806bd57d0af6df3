"""Families: groups of failures with the same error text, whatever the cause. One level above clusters.

A family's key is the first of these that is known:
1. the kind of failure or its subkind (`failure_kinds.toml`), unless the kind is a `topic`;
2. the shape of the error message: its first sentence without values;
3. the error type and the frame that raised it, if the message is uninformative;
4. without an error: the symptom that the title tells (`symptom_families.toml`), then a kind of failure
   (marked `titled`) that the title names.

A failure with none of these has no family.
"""

import re
import tomllib
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

from pydantic import Field

from app.extract.facts import ErrorFact, Facts, Frozen
from app.extract.log.messages import wrapper_rule
from app.extract.log.signature import mask
from app.extract.redact import mask_secrets
from app.extract.rules.patterns import PatternSet, pattern
from app.extract.rules.rules import load_rule_set
from app.match.search.terms import bare_title
from app.store.derived.cluster_queries import count_families, family_sizes
from app.store.github.issues import find_repository
from app.store.session import Store


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A row of `failure_kinds.toml` with compiled patterns.

    `is_own`: the operator or client can correct it. `is_topic`: its error messages vary in shape.
    `is_titled`: a title that matches `error` is of this kind where no error is known.
    `parts`: subkinds, as (name, pattern); a group of the pattern is what the family is of.
    """

    id: str
    name: str
    scene: str
    error: Any
    asked: Any
    is_own: bool
    is_topic: bool
    parts: tuple[tuple[str, Any], ...]
    is_titled: bool


@dataclass(frozen=True, slots=True)
class Symptom:
    """A row of `symptom_families.toml` with compiled patterns.

    `is_with`: the family is also of a feature, which is none of `without`.
    """

    kinds: frozenset[str]
    name: str
    title: Any
    excluded: Any
    is_with: bool
    without: frozenset[str]


@lru_cache(maxsize=1)
def failure_kinds() -> tuple[FailureKind, ...]:
    """Return all kinds, most specific first."""
    return tuple(
        FailureKind(
            row["id"],
            row["name"],
            row.get("scene", ""),
            _pattern(row, "error"),
            _pattern(row, "asked"),
            row.get("own", False),
            row.get("topic", False),
            tuple((name, pattern(text, ignore_case=True)) for name, text in row.get("parts", ())),
            row.get("titled", False),
        )
        for row in failure_rows()
    )


def _pattern(row: dict[str, Any], key: str) -> Any:
    return pattern(row[key], ignore_case=True) if key in row else None


def kinds_in(error: str) -> tuple[FailureKind, ...]:
    """Return the kinds whose pattern matches an error text, most specific first."""
    kinds, combined = _error_kinds()
    return tuple(kinds[at] for at in combined.matching(error))


@lru_cache(maxsize=1)
def _error_kinds() -> tuple[list[FailureKind], PatternSet]:
    """Return the kinds with an error pattern, and one pattern set for all of them."""
    kinds = [kind for kind in failure_kinds() if kind.error]
    return kinds, PatternSet([f"(?i){kind.error.pattern}" for kind in kinds])


@lru_cache(maxsize=1)
def failure_rows() -> list[dict[str, Any]]:
    """Return the rows of `failure_kinds.toml`."""
    return _rows("failure_kinds.toml", "failure")


def symptom_rows() -> list[dict[str, Any]]:
    """Return the rows of `symptom_families.toml`."""
    return _rows("symptom_families.toml", "symptom")


def _rows(name: str, key: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads((files(__package__) / name).read_text(encoding="utf-8"))[key]
    return rows


@lru_cache(maxsize=1)
def symptoms() -> tuple[Symptom, ...]:
    """Return all symptoms, in the order of their file."""
    return tuple(
        Symptom(
            frozenset(row["kinds"]),
            row["name"],
            _pattern(row, "title"),
            _pattern(row, "not"),
            row.get("with", False),
            frozenset(row.get("without", ())),
        )
        for row in symptom_rows()
    )


def kind_of(error: str) -> FailureKind | None:
    """Return the most specific kind that matches an error's type and message, if any."""
    return next(iter(kinds_in(error)), None)


FAMILY_CHARS = 120
NEAR_CHARS = 60
"""Distance between a symptom and a feature in a title that is one clause as a rule."""
WORDS_MIN, WORDS_MAX = 3, 9
"""Words in a message shape; one fewer if the kind is known. Later words are mostly the reporter's."""

_SENTENCE_END = re.compile(r"(?<=[a-z`'\")\]])[.!?;] |: (?=\{|\[|\()|\n")
_VALUE = re.compile(r"<\w+>|\[[^\]]{0,200}\]?|\([^)]{0,200}\)?|(?<![A-Za-z])[\w./\\:-]*[\d/\\][\w./\\:-]*")
_NAME = re.compile(
    r"'[^']{1,120}'|\"[^\"]{1,120}\"|`[^`]{1,120}`|“[^”]{1,120}”"
    r"|\S*[/_]\S*|\w+(?:\.\w+)+\S*|\b[A-Z]\w*[a-z][A-Z]\w*"
)
_UNINFORMATIVE = pattern(
    r"(?i)encountered an issue|finished unexpectedly|core initialization failed"
    r"|division (?:or modulo )?by zero|^\d+ validation errors? for \S+$"
    r"|shared memory broadcast block|\b(?:died|exited)(?: unexpectedly)?\b.{0,40}(?:exit|shutting down|$)"
)
"""Messages that only say that something failed; the cause is in another line or the frame."""
_OF_NAMES = re.compile(
    r"has no attribute|unexpected keyword|no module named|cannot import|not defined|required positional"
    r"|must be one of"
)
"""Messages that differ in their names alone."""
_WORD = re.compile(r"[A-Za-z_]{2,}")
_ENVIRONMENTS = frozenset({"a container", "the V1 engine", "Windows", "a build", "MIG", "several nodes"})
"""Conditions that describe where vLLM ran, not what failed."""


class Family(Frozen):
    """Failures with the same error text."""

    text: str = Field(description="key of the family: failure kind, or error type with message or frame")
    reports: int
    clusters: int = Field(description="number of signatures among the reports")
    open_count: int
    first_seen: datetime | None
    last_seen: datetime | None
    recent: int = Field(description="reports of the newest 28 days of the stored data")


class FamilyPage(Frozen):
    """A page of a repository's families, most reported first."""

    items: tuple[Family, ...]
    total: int
    reports: int = Field(description="number of failures that are in a family")
    failures: int = Field(description="number of failures of the repository")


def family_of(facts: Facts, title: str) -> str | None:
    """Return the family key of a failure, a readable text; None if the issue says too little.

    Args:
        title: of the issue, with its tag, such as `[CI Failure]: `.
    """
    if facts.error is None or facts.failure_kind == "slowdown":  # what is slow has not ended with its error
        return _family_of_symptom(facts, title) or _family_of_title(title)
    is_wrapper = wrapper_rule(facts.error.line) is not None
    told = _family_of_symptom(facts, title) if is_wrapper else None  # the title says more than a wrapper
    return told or family_of_error(facts.error) or _family_of_title(title)


def family_of_error(error: ErrorFact | None) -> str | None:
    """Return the family key of an error; None if it says too little."""
    if error is None:
        return None
    axes = {rule["axis"] for rule in load_rule_set("generic").meeting(error.message)}
    message = "" if "mute" in axes or _UNINFORMATIVE.search(error.message) else error.message
    kind = kind_of(f"{error.type or ''}: {message}")
    for name, rule in kind.parts if kind else ():
        if found := rule.search(message):
            subject = next(filter(None, found.groups()), "")
            return _capitalized(f"{name}: {subject}" if subject else name)[:FAMILY_CHARS]
    if kind is not None and not kind.is_topic and not kind.parts:
        return _capitalized(kind.name)
    shape = _shape(message, keeps_names=kind is None or _OF_NAMES.search(message.lower()) is not None)
    is_common = kind is None and bool(load_rule_set("common_errors").meeting(message))
    family = None
    if not is_common and len(_WORD.findall(shape)) >= WORDS_MIN - bool(kind):
        head = _capitalized(kind.name) if kind else error.type
        family = f"{head}: {shape}" if head else shape
    elif error.type and error.frame:
        family = f"{error.type} at {error.frame}"
    elif kind is not None and message:
        family = _capitalized(kind.name)
    return mask_secrets(family)[:FAMILY_CHARS].strip() if family else None


def _family_of_symptom(facts: Facts, title: str) -> str | None:
    for symptom in symptoms():
        found = symptom.title.search(title) if facts.failure_kind in symptom.kinds else None
        if found and not (symptom.excluded and symptom.excluded.search(title)):
            return _with_feature(symptom, title, found.start()) if symptom.is_with else symptom.name
    return None


def _with_feature(symptom: Symptom, title: str, start: int) -> str | None:
    """Return the family of a symptom and the first feature that stands near it in the title."""
    for rule in load_rule_set("conditions").meeting(title):
        name = rule.extra.get("name")
        if name is None or name in _ENVIRONMENTS or name in symptom.without:
            continue
        if any(abs(found.start() - start) <= NEAR_CHARS for found in rule.pattern.finditer(title)):
            return f"{symptom.name} with {name}"
    return None


def _family_of_title(title: str) -> str | None:
    """Return the family of the kind of failure that a title names; its errors say the same in a title."""
    title = bare_title(title)
    kind = next((kind for kind in kinds_in(title) if kind.is_titled), None)
    if kind is None:
        return None
    part = next((name for name, rule in kind.parts if not rule.groups and rule.search(title)), kind.name)
    return _capitalized(part)


def _shape(message: str, *, keeps_names: bool) -> str:
    """Return the first sentence of a message with `…` for values and, unless `keeps_names`, for names."""
    first = _SENTENCE_END.split(mask(message), maxsplit=1)[0]
    shape = _VALUE.sub("…", first if keeps_names else _NAME.sub("…", first))
    shape = re.sub(r"…(?:[ ,.:]*…)+", "…", " ".join(shape.split()[:WORDS_MAX]))
    return shape.strip(" :,.")


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def families(store: Store, repo: str, *, after: int = 0, limit: int = 50) -> FamilyPage:
    """Return up to `limit` families of a repository, starting at offset `after`."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        sizes = family_sizes(session, repo_id)
        names = [name for name in sizes if name]
        listed = count_families(session, repo_id, names[after : after + limit])
    return FamilyPage(
        items=tuple(map(Family.based_on, listed)),
        total=len(names),
        reports=sum(sizes[name] for name in names),
        failures=sum(sizes.values()),
    )
