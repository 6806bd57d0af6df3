"""Inverted index of a repository's issues: for each facet and value the issues that have it.

The store returns the issue numbers of a value as an array and keeps it until the next write, so that hundreds
of thousands of issues can be filtered and counted without an object per row.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from sqlalchemy.orm import Session

from app.extract.facts import BACKEND_KEYS
from app.extract.fields.gpu_names import architecture_of, canonical_name
from app.extract.versions import is_same, ordered
from app.match.search.agreement import model_family, model_line
from app.store.derived.facts import (
    REGRESSION_FIELDS,
    Numbers,
    ReadingGroup,
    numbers_by_reading,
    numbers_by_state,
    numbers_by_value,
)

FacetName = Literal[
    "gpu",
    "arch",
    "model",
    "backend",
    "error_type",
    "failure_kind",
    "kind",
    "vllm_version",
    "state",
    "has_workaround",
    "has_regression",
]
YES = "true"
Mask = npt.NDArray[np.bool_]
"""Selected issues, indexed by issue number."""
Groups = Mapping[str, Numbers]
NONE: Numbers = np.empty(0, dtype=np.int64)

_NOT_OFFERED = ("backend", "cuda")
"""Used on every machine with an NVIDIA GPU: can be filtered by, but is not offered as a facet value."""
_GPUS, _MODELS, _VERSIONS = ("gpus",), ("models",), ("versions.vllm",)
_BACKENDS = tuple(f"backends.{key}" for key in BACKEND_KEYS)
_BLANK = re.compile(r"[\s_]+")
_PUNCTUATION = re.compile(r"[\W_]+")
_TRUNCATED = re.compile(r"\.\.\.|…")


class IssueFacets:
    """A repository's issues, grouped by facet value; loaded lazily."""

    def __init__(self, session: Session, repo_id: int) -> None:
        self.session = session
        self.repo_id = repo_id
        self._groups: dict[FacetName, Groups] = {}

    @cached_property
    def states(self) -> Mapping[str, Numbers]:
        return numbers_by_state(self.session, self.repo_id)

    @cached_property
    def listed(self) -> Mask:
        size = 1 + max((int(numbers.max()) for numbers in self.states.values()), default=0)
        return self._mask(self.states.values(), size)

    def mask(self, *numbers: Numbers) -> Mask:
        """Return a mask of these issues, without those that are not in the list."""
        return self._mask(numbers, len(self.listed)) & self.listed

    @staticmethod
    def _mask(parts: Iterable[Numbers], size: int) -> Mask:
        mask = np.zeros(size, dtype=np.bool_)
        for numbers in parts:
            mask[numbers[(numbers >= 0) & (numbers < size)]] = True
        return mask

    def counts(self, name: FacetName, among: Mask) -> list[tuple[int, str]]:
        """Count the issues in `among` by value of a facet, most frequent first, without zeros."""
        counts = [
            (int(np.count_nonzero(among[numbers[numbers < len(among)]])), value)
            for value, numbers in self.groups(name).items()
            if (name, value) != _NOT_OFFERED
        ]
        return sorted((pair for pair in counts if pair[0]), key=lambda pair: (-pair[0], pair[1]))

    def groups(self, name: FacetName) -> Groups:
        """Return the issues by value of a facet."""
        if name not in self._groups:
            self._groups[name] = _GROUP_BUILDERS[name](self)
        return self._groups[name]

    def having(self, name: FacetName, value: str) -> Numbers:
        """Return the issues with this value of a facet, possibly none."""
        if name == "model":
            return self._of_model(value)
        if name == "gpu":
            value = canonical_name(value) or value
        same = _MATCHERS.get(name, _is_same_text)
        return _union(numbers for label, numbers in self.groups(name).items() if same(label, value))

    def values(self, *fields: str) -> dict[str, Numbers]:
        """Return the issues by lower-case value of these fields."""
        found = numbers_by_value(self.session, self.repo_id, fields)
        return _regroup(((key, numbers) for _, key, numbers in found), str)

    @cached_property
    def readings(self) -> Sequence[ReadingGroup]:
        """The issues by failure kind, error type and whether they have a remedy."""
        return numbers_by_reading(self.session, self.repo_id)

    def _of_model(self, value: str) -> Numbers:
        """Return the issues of a model family, or of models whose name contains `value` as whole words."""
        wanted = value.strip().lower()
        names = self.values(*_MODELS)
        family = [numbers for key, numbers in names.items() if wanted in (_line(key), _family(key))]
        if family:
            return _union(family)
        if "/" in wanted:
            return names.get(wanted, NONE)
        # Compare names without the organization, enclosed in dashes.
        held = f"-{_BLANK.sub('-', wanted)}-"
        plain = ((f"-{_BLANK.sub('-', key.rpartition('/')[2])}-", numbers) for key, numbers in names.items())
        return _union(numbers for name, numbers in plain if held in name)


_family = lru_cache(maxsize=8192)(model_family)
_line = lru_cache(maxsize=8192)(model_line)


def _gpu_name(key: str) -> str:
    """Return the usual name of a GPU; "" for one truncated in a table such as nvidia-smi's."""
    return "" if _TRUNCATED.search(key) else canonical_name(key) or key.upper()


def _backends(facets: IssueFacets) -> Groups:
    """Group by backend name, ignoring spelling; a backend only known to be in use is named by its role."""
    spelled: dict[str, str] = {}
    pairs = [
        (field.rpartition(".")[2] if key == YES else key, numbers)
        for field in _BACKENDS
        for key, numbers in facets.values(field).items()
    ]
    return _regroup(pairs, lambda key: spelled.setdefault(_PUNCTUATION.sub("", key), key))


def _version_name(key: str) -> str:
    return "" if _TRUNCATED.search(key) else str(ordered(key) or key)


_GROUP_BUILDERS: dict[FacetName, Callable[[IssueFacets], Groups]] = {
    "state": lambda facets: facets.states,
    "has_workaround": lambda facets: {
        YES: _union(group.numbers for group in facets.readings if group.has_remedy)
    },
    "has_regression": lambda facets: {
        YES: np.setdiff1d(
            _union(facets.values(*REGRESSION_FIELDS).values()),
            facets.groups("failure_kind").get("none", NONE),
        )
    },
    "failure_kind": lambda facets: _regroup(
        ((group.failure_kind or "", group.numbers) for group in facets.readings), str
    ),
    "error_type": lambda facets: _regroup(
        ((group.error_type or "", group.numbers) for group in facets.readings), str
    ),
    "arch": lambda facets: _regroup(facets.groups("gpu").items(), lambda gpu: architecture_of(gpu) or ""),
    "gpu": lambda facets: _regroup(facets.values(*_GPUS).items(), _gpu_name),
    "model": lambda facets: _regroup(facets.values(*_MODELS).items(), _line),
    "backend": _backends,
    "vllm_version": lambda facets: _regroup(facets.values(*_VERSIONS).items(), _version_name),
}
FACET_NAMES = tuple(_GROUP_BUILDERS)


def _is_same_text(one: str, other: str) -> bool:
    return _PUNCTUATION.sub("", one.casefold()) == _PUNCTUATION.sub("", other.casefold()) != ""


def _is_label_or_word(label: str, text: str) -> bool:
    """True if a text is the label or one of its words: "ada" for "Ada Lovelace"."""
    return any(_is_same_text(part, text) for part in (label, *label.split()))


_MATCHERS: dict[FacetName, Callable[[str, str], bool]] = {"vllm_version": is_same, "arch": _is_label_or_word}


def _regroup(pairs: Iterable[tuple[str, Numbers]], name_of: Callable[[str], str]) -> dict[str, Numbers]:
    """Merge the numbers by `name_of(key)`; an empty name drops them."""
    found: dict[str, list[Numbers]] = defaultdict(list)
    for key, numbers in pairs:
        if name := name_of(key):
            found[name].append(numbers)
    return {name: _union(parts) for name, parts in found.items()}


def _union(parts: Iterable[Numbers]) -> Numbers:
    held = list(parts)
    if len(held) == 1:
        return held[0]
    if not held:
        return NONE
    ascending = np.sort(np.concatenate(held), kind="stable")  # of sorted parts: faster than np.unique
    is_new: Mask = np.append(True, ascending[1:] != ascending[:-1])
    return ascending[is_new]
