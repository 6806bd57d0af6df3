"""Families: groups of failures with the same error text, whatever the cause. One level above clusters.

A family's key is the first of these that is known:
1. the kind of failure or its subkind (`failure_kinds.toml`), unless the kind is a `topic`;
2. the shape of the error message: its first sentence without values;
3. the error type and the frame that raised it, if the message is uninformative;
4. without an error: the symptom (hang, slow, out of memory) and a condition named in the title.

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
from app.extract.log.signature import mask
from app.extract.redact import mask_secrets
from app.extract.rules.patterns import pattern, pattern_set
from app.extract.rules.rules import load_rule_set
from app.store.derived.cluster_queries import count_families, family_sizes
from app.store.github.issues import find_repository
from app.store.session import Store


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A row of `failure_kinds.toml` with compiled patterns.

    `is_own`: the operator or client can correct it. `is_topic`: its error messages vary in shape.
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
        )
        for row in failure_rows()
    )


def _pattern(row: dict[str, Any], key: str) -> Any:
    return pattern(row[key], ignore_case=True) if key in row else None


def kinds_in(error: str) -> tuple[FailureKind, ...]:
    """Return the kinds whose pattern matches an error text, most specific first."""
    kinds, combined = _error_kinds()
    return tuple(kinds[at] for at in sorted(combined.Match(error) or ()))


@lru_cache(maxsize=1)
def _error_kinds() -> tuple[list[FailureKind], Any]:
    """Return the kinds with an error pattern, and one pattern set for all of them."""
    kinds = [kind for kind in failure_kinds() if kind.error]
    return kinds, pattern_set([f"(?i){kind.error.pattern}" for kind in kinds])


@lru_cache(maxsize=1)
def failure_rows() -> list[dict[str, Any]]:
    """Return the rows of `failure_kinds.toml`."""
    rows: list[dict[str, Any]] = tomllib.loads(
        (files(__package__) / "failure_kinds.toml").read_text(encoding="utf-8")
    )["failure"]
    return rows


def kind_of(error: str) -> FailureKind | None:
    """Return the most specific kind that matches an error's type and message, if any."""
    return next(iter(kinds_in(error)), None)


FAMILY_CHARS = 120
GPU_MEMORY = "out_of_memory"
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
)
"""Messages that only say that something failed; the cause is in another line or the frame."""
_WORD = re.compile(r"[A-Za-z_]{2,}")
_SYMPTOMS = {"hang": "Hangs", "slowdown": "Is slow"}
_ENVIRONMENTS = frozenset({"a container", "the V1 engine", "Windows", "a build", "MIG", "several nodes"})
"""Conditions that describe where vLLM ran, not what failed."""
_OUTPUT_CAUSES = frozenset({"tool calls", "reasoning", "prefix caching", "LoRA", "FP8", "FP4", "GPTQ", "AWQ"})
"""Conditions under which reports of wrong output usually share a cause."""
_ABOUT_OUTPUT = pattern(
    r"(?i)output|accura|garb|gibber|result|answer|incorrect|corrupt|\bnans?\b|!!|repeat|repetit|differ|inconsisten"
    r"|quality|precision|mismatch|empty|respon|nonsense|generat|random|degrad|score|lm_?eval|输出|乱码|结果|重复|异常"
)
"""Matches a title about wrong output."""
_ABOUT_FORM = pattern(
    r"(?i)token|stream|pars|content|ignore|leak|think>|duplicat|truncat|return|stop|argument"
    r"|schema|json|call|format"
)
"""Matches a title about the form of the output, which a parser makes."""
_PARSED = frozenset({"tool calls", "reasoning"})
_OUT_OF_MEMORY = pattern(r"(?i)\booms?\b|out[ -]of[ -]memory|outofmemory|显存不足")
_HOST_MEMORY = pattern(r"(?i)\b(?:cpu|ram|host|subprocess|killer)\b")
"""In a title on memory: it may be the host's."""


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
    """Return the family key of a failure, a readable text; None if the issue says too little."""
    return family_of_error(facts.error) or _family_of_symptom(facts, title)


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
    shape = _shape(message, keeps_names=kind is None)
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
    if facts.error is not None:
        return None
    if facts.failure_kind == "oom":
        kind = next((kind for kind in failure_kinds() if kind.asked and kind.asked.search(title)), None)
        is_raised = kind is not None and kind.id == GPU_MEMORY and _OUT_OF_MEMORY.search(title)
        is_host = _HOST_MEMORY.search(title) or "CPU" in facts.gpus
        return _capitalized(kind.name) if kind and is_raised and not is_host else None
    named = [rule.extra.get("name") for rule in load_rule_set("conditions").meeting(title)]
    if facts.failure_kind == "wrong_output":
        name = next((name for name in named if name in _OUTPUT_CAUSES), None)
        is_about = _ABOUT_OUTPUT.search(title) or (name in _PARSED and _ABOUT_FORM.search(title))
        return f"Gives wrong output with {name}" if name and is_about else None
    if facts.failure_kind not in _SYMPTOMS:
        return None
    name = next((name for name in named if name and name not in _ENVIRONMENTS), None)
    return f"{_SYMPTOMS[facts.failure_kind]} with {name}" if name else None


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
