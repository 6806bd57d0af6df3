"""Merge workarounds of several issues into one ranked list without duplicates, failed ones last.

Remedies that change the same thing are one action; those of other issues confirm or refute it.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Generic, TypeVar

from pydantic import Field

from app.extract.facts import Conditions, Facts, Outcome, Speaker, StatedChange, WorkaroundKind
from app.extract.rules.rules import load_rules
from app.extract.versions import is_before, is_same

OUTCOME_RANK = {"works": 0, "partial": 1, "fails": 2}
SPEAKER_RANK = {"maintainer": 0, "reporter": 1, "other": 2}


class ReportedRemedy(StatedChange):
    """A workaround and how it went; `conditions` are empty if none are stated."""

    kind: WorkaroundKind
    outcome: Outcome
    conditions: Conditions = Conditions()
    by: Speaker = "reporter"
    confirmed_by: int = 0
    refuted_by: int = 0
    confidence: float = 0.0


class SourcedRemedy(ReportedRemedy):
    """A workaround with the issue it comes from. Quoted only, if it has no `command`."""

    repo: str
    number: int
    url: str


class Remedy(SourcedRemedy):
    """A remedy with the sentence that states it."""

    quote: str = ""
    gone: str | None = Field(None, description="setting in it that the caller's vLLM version no longer has")


def remedies_of(facts: Facts, *, repo: str, url: str) -> tuple[Remedy, ...]:
    """Return an issue's workarounds, best first; unstated conditions default to the reported run."""
    tried_on = Conditions(
        versions=tuple(facts.versions[key] for key in ("vllm",) if key in facts.versions),
        gpus=facts.gpus,
        models=facts.models,
        backends=facts.backends.get("moe", ()),
    )
    found = [
        Remedy.based_on(
            item,
            conditions=tried_on if item.conditions == Conditions() else item.conditions,
            repo=repo,
            number=facts.number,
            url=url,
        )
        for item in facts.workarounds
    ]
    return rank_remedies(found)


def for_version(remedies: Iterable[Remedy], version: str | None) -> tuple[Remedy, ...]:
    """Mark remedies whose setting this vLLM version no longer has, and drop their commands.

    They sort after all that may help.
    """
    marked = [
        remedy.model_copy(update={"gone": gone, "command": None})
        if not remedy.without and (gone := gone_setting(remedy.typed, version))
        else remedy
        for remedy in remedies
    ]
    return tuple(sorted(marked, key=lambda one: 2 if one.outcome == "fails" else one.gone is not None))


def gone_setting(words: str, version: str | None) -> str | None:
    """Return the first variable or flag in the text that a vLLM version is known to have removed."""
    for found in _SETTING.finditer(words):
        written = found[0]
        name = written if written.isupper() else written.replace("_", "-").replace("--no-", "--")
        since = _gone_since().get(name)
        if since is not None and (is_same(since, version) or is_before(since, version)):
            return name
    return None


@lru_cache(maxsize=1)
def _gone_since() -> dict[str, str]:
    data: dict[str, list[str]] = tomllib.loads(
        (files(__package__) / "gone_settings.toml").read_text(encoding="utf-8")
    )
    return {name: since for since, names in data.items() for name in names}


def rank_remedies(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Return remedies in the order in which to try them, one for each action.

    Ties keep the input order: pass the likelier issue's remedies first.
    """
    return tuple(action.best for action in rank_actions(remedies))


R = TypeVar("R", bound=SourcedRemedy)


@dataclass(frozen=True, slots=True)
class RankedAction(Generic[R]):
    """One action with its remedies, best first."""

    remedies: tuple[R, ...]

    @property
    def best(self) -> R:
        return self.remedies[0]

    def issues(self, *, fails: bool) -> tuple[int, ...]:
        """Return the issues in which it failed, or those in which it helped at least partly."""
        numbers = (item.number for item in self.remedies if (item.outcome == "fails") == fails)
        return tuple(dict.fromkeys(numbers))


def rank_actions(
    remedies: Iterable[R], backing: Mapping[tuple[int, str], int] | None = None
) -> tuple[RankedAction[R], ...]:
    """Like `rank_remedies`, with all remedies of each action; `backing`: net votes by issue and action."""
    groups: dict[tuple[str, bool], list[R]] = {}

    def order(remedy: R) -> tuple[int, bool, int, int]:
        doubt = remedy.refuted_by - remedy.confirmed_by
        return OUTCOME_RANK[remedy.outcome], remedy.command is None, doubt, SPEAKER_RANK[remedy.by]

    for remedy in sorted(remedies, key=order):
        groups.setdefault((action_key(remedy.action), remedy.without), []).append(remedy)
    actions = [RankedAction(tuple(group)) for group in groups.values()]
    known = backing or {}
    return tuple(sorted(actions, key=lambda action: _rank(action, known)))


def action_key(action: str) -> str:
    """Return a key for what an action changes: a rule id, or the normalised text."""
    same = next((rule.id for rule in load_rules("same_change") if rule.pattern.search(action)), None)
    return same or " ".join(_SPELLING.sub(" ", action.lower().replace("_", "-")).split())


_SETTING = re.compile(r"\bVLLM_[A-Z0-9_]+\b|--[a-z][a-z0-9_-]+")
_SPELLING = re.compile(r"[\s=`'\"]+")
"""Separators within a setting: `--flag=value`, `--flag value`, `flag="value"`."""


def _rank(action: RankedAction[R], backing: Mapping[tuple[int, str], int]) -> tuple[int, int, bool, int]:
    best = action.best
    doubt = sum(item.refuted_by - item.confirmed_by for item in action.remedies)
    doubt -= sum(backing.get((item.number, item.action), 0) for item in action.remedies)
    others = [number for number in action.issues(fails=False) if number != best.number]
    against = [number for number in action.issues(fails=True) if number != best.number]
    weight = doubt + len(against) - len(others)
    return OUTCOME_RANK[best.outcome], weight, best.command is None, SPEAKER_RANK[best.by]
