"""Lists of issues: their public shapes (`GET /api/v1/issues`; texts masked), and the issues by facet values.

A filter and a facet's count read the same groups, so they agree.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Literal

from pydantic import Field
from sqlmodel import Session

from app.extract.facts import BACKEND_KEYS, FailureKind, Frozen, Outcome
from app.extract.fields.gpu_names import architecture_of, canonical_name
from app.extract.versions import is_same, ordered
from app.knowledge.fix.shapes import FixView
from app.match.search.agreement import model_family
from app.store.derived.facts import (
    REGRESSION_FIELDS,
    ColumnValue,
    Listed,
    ReadingColumn,
    column_values_of,
    field_values_of,
    listed_states,
    numbers_labelled,
)

IssueState = Literal["open", "closed"]
Sort = Literal["newest", "relevance"]
FacetName = Literal[
    "gpu",
    "arch",
    "model",
    "backend",
    "error_type",
    "kind",
    "vllm_version",
    "state",
    "has_workaround",
    "has_regression",
]


class IssueQuery(Frozen):
    """What a list is narrowed by; all of it must hold. A value that stands nowhere finds nothing."""

    q: str = Field("", description="words, an error line, a flag, or #number")
    gpu: str | None = None
    arch: str | None = Field(None, description="GPU architecture, such as Hopper")
    model: str | None = Field(None, description="a family such as qwen, or a name")
    backend: str | None = Field(None, description="any backend, quantization or platform")
    error_type: str | None = None
    kind: FailureKind | None = None
    vllm_version: str | None = Field(None, description="the version on which it is reported to fail")
    state: IssueState | None = None
    label: str | None = None
    has_workaround: bool | None = None
    has_regression: bool | None = None
    since: datetime | None = Field(None, description="opened at or after this")
    sort: Sort | None = Field(None, description="by relevance where there are words, else the newest first")


class ListedRemedy(Frozen):
    action: str
    outcome: Outcome


class ListedIssue(Frozen):
    """An issue as lists show it."""

    repo: str
    number: int
    title: str
    url: str
    state: str
    state_reason: str | None
    failure_kind: FailureKind
    labels: tuple[str, ...]
    comments: int
    reactions: int
    created_at: datetime | None
    updated_at: datetime | None
    dates_estimated: bool = Field(
        description="whether the file it came from says that its dates are estimates"
    )
    gpus: tuple[str, ...]
    models: tuple[str, ...]
    backends: tuple[str, ...]
    vllm_version: str | None
    error_type: str | None
    error: str = Field(description="the root-cause error in one line, cut; empty where none is known")
    has_regression: bool
    remedy: ListedRemedy | None = Field(description="the best that is known; none that is reported to fail")
    fix: FixView | None
    summary: str


class FacetValue(Frozen):
    """A value and how many issues there are with it, beside all other filters."""

    value: str
    count: int


class Facet(Frozen):
    name: FacetName
    values: tuple[FacetValue, ...]


class IssuePage(Frozen):
    """A part of a list. `next` and `previous` are the issues after which the neighbouring parts begin.

    `start` counts the issues before this part. `previous` is 0 for the first part, null where this is it.
    """

    items: tuple[ListedIssue, ...]
    total: int
    start: int
    next: int | None
    previous: int | None
    sort: Sort
    ignored_words: tuple[str, ...] = ()
    facets: tuple[Facet, ...] = ()


Numbers = set[int]
Groups = Mapping[str, Numbers]

YES = "true"
_GPUS, _MODELS, _VERSIONS = ("gpus",), ("models",), ("versions.vllm",)
_BACKENDS = tuple(f"backends.{key}" for key in BACKEND_KEYS)
_BLANK = re.compile(r"[\s_]+")
_NO_SIGN = re.compile(r"[\W_]+")
_CUT_OFF = re.compile(r"\.\.\.|…")


class IssueFacets:
    """A repository's issues by their values, each kind read when it is first asked for."""

    def __init__(self, session: Session, repo_id: int) -> None:
        self._session = session
        self._repo_id = repo_id
        self._values: dict[str, dict[str, Numbers]] = {}
        self._groups: dict[FacetName, Groups] = {}
        self._states: list[Listed] | None = None

    def load(self) -> None:
        """Read all that facets count, at once."""
        self._read((*_GPUS, *_MODELS, *_VERSIONS, *_BACKENDS, *REGRESSION_FIELDS))

    def listed(self, since: datetime | None = None) -> Numbers:
        """All issues, or those opened at or after a time."""
        if self._states is None or since is not None:
            self._states = listed_states(self._session, self._repo_id, since=since)
        return {number for number, _ in self._states}

    def states(self) -> list[Listed]:
        """The state of each issue that was listed."""
        if self._states is None:
            self._states = listed_states(self._session, self._repo_id)
        return self._states

    def labelled(self, label: str) -> Numbers:
        """The issues with a label."""
        return numbers_labelled(self._session, self._repo_id, label)

    def groups(self, name: FacetName) -> Groups:
        """The issues by the values of a facet."""
        if name not in self._groups:
            self._groups[name] = _GROUPED[name](self)
        return self._groups[name]

    def having(self, name: FacetName, value: str) -> Numbers:
        """The issues that have this value; none where it stands nowhere."""
        if name == "model":
            return self._of_model(value)
        if name == "gpu":
            value = canonical_name(value) or value
        same = _COMPARED.get(name, _is_same_text)
        return _union(numbers for label, numbers in self.groups(name).items() if same(label, value))

    def values(self, *fields: str) -> dict[str, Numbers]:
        """The issues by what stands under these fields, in lower case."""
        self._read(fields)
        if len(fields) == 1:
            return self._values[fields[0]]
        return _regroup(((key, found) for field in fields for key, found in self._values[field].items()), str)

    def of_issues(self, name: ReadingColumn) -> list[ColumnValue]:
        """A value of each issue as a whole."""
        return column_values_of(self._session, self._repo_id, name)

    def _read(self, fields: Iterable[str]) -> None:
        missing = [field for field in fields if field not in self._values]
        if not missing:
            return
        self._values |= {field: defaultdict(set) for field in missing}
        for field, key, number in field_values_of(self._session, self._repo_id, missing):
            self._values[field][key].add(number)

    def _of_model(self, value: str) -> Numbers:
        """A family's issues; or those of a name, whatever comes before or after it as a word of its own."""
        wanted = value.strip().lower()
        family = self.groups("model").get(wanted)
        if family is not None:
            return family
        names = self.values(*_MODELS)
        if "/" in wanted:
            return names.get(wanted, set())
        held = f"-{_BLANK.sub('-', wanted)}-"
        return _union(numbers for key, numbers in names.items() if held in _bare_name(key))


def _bare_name(key: str) -> str:
    """A model's name without its organisation, a dash before and behind."""
    return f"-{_BLANK.sub('-', key.rpartition('/')[2])}-"


@lru_cache(maxsize=8192)
def _family(key: str) -> str:
    return model_family(key)


def _gpu_name(key: str) -> str:
    """The name of a GPU as people write it; empty for a name that a table cut off."""
    return "" if _CUT_OFF.search(key) else canonical_name(key) or key.upper()


def _backends(facets: IssueFacets) -> Groups:
    """By name, however it is spelled; what is only known to be in use goes by its role."""
    spelled: dict[str, str] = {}
    pairs = [
        (field.rpartition(".")[2] if key == YES else key, numbers)
        for field in _BACKENDS
        for key, numbers in facets.values(field).items()
    ]
    return _regroup(pairs, lambda key: spelled.setdefault(_NO_SIGN.sub("", key), key))


def _version_name(key: str) -> str:
    return "" if _CUT_OFF.search(key) else str(ordered(key) or key)


_GROUPED: dict[FacetName, Callable[[IssueFacets], Groups]] = {
    "state": lambda facets: _grouped((state, number) for number, state in facets.states()),
    "has_workaround": lambda facets: {YES: {number for _, number in facets.of_issues("has_remedy")}},
    "has_regression": lambda facets: {YES: _union(facets.values(*REGRESSION_FIELDS).values())},
    "kind": lambda facets: _grouped(facets.of_issues("failure_kind")),
    "error_type": lambda facets: _grouped(facets.of_issues("error_type")),
    "arch": lambda facets: _regroup(facets.groups("gpu").items(), lambda gpu: architecture_of(gpu) or ""),
    "gpu": lambda facets: _regroup(facets.values(*_GPUS).items(), _gpu_name),
    "model": lambda facets: _regroup(facets.values(*_MODELS).items(), _family),
    "backend": _backends,
    "vllm_version": lambda facets: _regroup(facets.values(*_VERSIONS).items(), _version_name),
}
FACETS: tuple[FacetName, ...] = tuple(_GROUPED)


def _is_same_text(one: str, other: str) -> bool:
    return _NO_SIGN.sub("", one.casefold()) == _NO_SIGN.sub("", other.casefold()) != ""


def _names_one_of(label: str, text: str) -> bool:
    """Whether a text is a label or one of its words: "ada" for "Ada Lovelace"."""
    return any(_is_same_text(part, text) for part in (label, *label.split()))


_COMPARED: dict[FacetName, Callable[[str, str], bool]] = {"vllm_version": is_same, "arch": _names_one_of}


def _regroup(pairs: Iterable[tuple[str, Numbers]], name_of: Callable[[str], str]) -> dict[str, Numbers]:
    """The same numbers under other names; what gets no name is left out."""
    found: dict[str, Numbers] = defaultdict(set)
    for key, numbers in pairs:
        if name := name_of(key):
            found[name] |= numbers
    return found


def _grouped(pairs: Iterable[tuple[str, int]]) -> dict[str, Numbers]:
    found: dict[str, Numbers] = defaultdict(set)
    for name, number in pairs:
        found[name].add(number)
    return found


def _union(sets: Iterable[Numbers]) -> Numbers:
    return set().union(*sets)
