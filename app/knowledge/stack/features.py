"""Features that a failure requires, named in its title or in the run it reports. Pure.

`features.toml` lists them with the options and models that enable each.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import chain, zip_longest
from typing import Any

from app.extract.facts import Facts
from app.extract.fields.gpu_names import find_mentions
from app.extract.fields.settings import KNOWN_OPTIONS, normalise_name, read_settings
from app.extract.rules.patterns import pattern, pattern_set
from app.extract.text.blocks import read_log_document
from app.extract.versions import is_before
from app.knowledge.stack.stack import IRRELEVANT_OPTIONS, Stack
from app.knowledge.stack.standing import STRONG, Fit
from app.match.search.agreement import families_named

TEXT_MAX = 40_000
"""Maximum number of code points of a report searched for the options of its run."""
_OFF = frozenset({"false", "none", "null", "auto", "0"})
_UNRELEASED = pattern(r"dev|rc|\d[ab]\d|git")
FIRST_V1 = "0.8.0"
"""The first release that uses the V1 engine by default."""
_V1 = pattern(r"(?i)\bV1 (?:LLM )?(?:engine|version)|vllm/v1/|\[V1\]|VLLM_USE_V1=1|\(V1\)")
_NAMED_SETTING = pattern(r"\b[A-Z][A-Z0-9]{1,20}(?:_[A-Z0-9]{1,20}){1,6}\b")
"""An environment variable or option value, in a title."""
_CHOICE = pattern(
    r"^VLLM_|ATTN|ATTENTION|FLASH|TRITON|MLA|AITER|CUTLASS|MARLIN_[A-Z]*BACKEND|SDPA|PIECEWISE|FULL_"
)
"""Upper-case names that are variables or option values, not error constants."""
_PARAMETER = pattern(r"(?:^|[^'\"\w])([a-z]+(?:_[a-z]+)+) ?[=:] ?[\"']?\w")
"""A parameter that a title sets."""
PARSER_OPTIONS = {"tool": "tool-call-parser", "reasoning": "reasoning-parser"}
"""The option that selects a parser, by kind of parser."""
_CLAUSES = pattern(
    r"(?i)(\b(?:when(?:ever)?|if|using|under|during|while|with(?:out)?|after|unless|upon|via|through|on|for|from)\b)"
    r"|\b(?:and|but|in|to|due|because|since|despite|causes?|leads?)\b|[,.;:()\[\]]\B|[()\[\]]"
)
"""Start of a clause in a title; group 1 if the clause states a condition."""
_FILLERS = pattern(
    r"(?i)\b(?:vllm|running|runs?|serv\w+|using|loading|load(?:ed)?|models?|server|engine|inference|deploy\w*|start\w*"
    r"|updat\w+|upgrad\w+|a|an|the|it|its|this|any|some|new|latest|same|multiple|following|all|even|only|no"
    r"|when|whenever|if|under|during|while|with|without|after|upon|via|through|unless|on|for|from"
    r"|first|second|one|two|gpus?|single|\d+)\b|\W+"
)
"""Words that add no condition to such a clause."""
_SYMPTOM = pattern(
    r"(?i)error|exception|exit|\bcode\b|fail|traceback|messag|crash|assert|nan\b|warning|valu|status|support|expect"
    r"|output|probab|profil|start|init|finish"
    r"|gibber|garb|empty|wrong|missing|incorrect|invalid|unexpected|latency|slow|platform|cuda|rocm|cpu|\d\.\d"
)
"""Marks of a clause that states the symptom or version, not a condition."""
_EXPLICIT_CONDITION = pattern(
    r"(?i)\bonly (?:occurs?|happens?|happened|appears?|reproduc\w+|fails?|crashes|affects?|when|if|with)\b"
    r"[^.,;:()\n]{3,60}"
    r"|\benabl(?:e|ing) `[a-z][a-z_-]{3,40}`"
)
"""In a text: an explicit condition of the failure."""
_CONTRAST = pattern(
    r"\b(?:works?|runs?) (?:just )?(?:fine|well|correctly|properly|as expected|ok(?:ay)?)"
    r" (?:on|with|when|if|without|under)\b[^.,;:()\n]{3,60}"
    r"|\b(?:on|with) [^.,;()\n]{3,40} (?:have|has|do|does|did|can)(?:n't| ?not)"
    r" (?:seen?|happen|occur|reproduce)\b"
)
"""In a text: where it does not fail."""
_RELEASE = pattern(r"\bv?0\.\d")
_ERROR_LINE = re.compile(r"\b\w*(?:[Ee]rror|Exception)\b: ?")
_NOT_OF_THE_RUN = pattern(
    r"https?://[^\s)\]>]+|\b[\w-]+/[\w.-]+#\d+|with the command `pip install [^`\n]{1,60}`"
)
"""In a text: links, and the advice transformers prints for an unknown model."""
_OBJECT = pattern(
    r"\b((?:speculative|kv_transfer|compilation)_config)['\"]?\s{0,2}[=:]\s{0,2}(\{[^\n]{0,200})"
)

_CODE = pattern(
    r"(?s:```.*?(?:```|\z))|(?m:^\s*--?\w[^\n]*$)"
    r"|\b(?:vllm (?:serve|bench)|python3? -m|docker (?:run|compose))\b(?:[^\n]*\\\s*\n)*[^\n]*"
)
"""In a text: code blocks, commands and the options below one."""
_OPTION_IN_PROSE = pattern(r"(?:^|[\s(`'\"])--([a-z][a-z_-]+[a-z])\b")


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    text = (files(__package__) / "features.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


USUAL_OPTIONS = frozenset(_table()["run"]["usual"])
"""Options that take effect by default."""
TITLED_OPTIONS = USUAL_OPTIONS.union(_table()["run"]["options"], _table()["run"]["titled"])
PARSERS: tuple[str, ...] = tuple(_table()["run"]["parsers"])
"""Parser names that a title may use next to the word "parser"."""


@lru_cache(maxsize=1)
def _features() -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            **row,
            "title": pattern(row["title"]),
            "in_text": pattern(row["title"] if row["in_text"] is True else row["in_text"])
            if "in_text" in row
            else None,
        }
        for row in _table()["feature"]
    )


@lru_cache(maxsize=1)
def _titles() -> Any:
    return pattern_set([row["title"] for row in _table()["feature"]])


@lru_cache(maxsize=1)
def _text_features() -> tuple[tuple[dict[str, Any], ...], Any]:
    """Return the features to look for in a report's text, and their patterns as one automaton."""
    rows = tuple(row for row in _features() if row["in_text"])
    return rows, pattern_set([row["in_text"].pattern for row in rows])


@lru_cache(maxsize=1)
def _features_by_label() -> Mapping[str, frozenset[int]]:
    """Return the indexes of features by label."""
    places: dict[str, set[int]] = defaultdict(set)
    for at, row in enumerate(_features()):
        for label in row.get("labels", ()):
            places[label].add(at)
    return {label: frozenset(found) for label, found in places.items()}


@lru_cache(maxsize=16_384)
def features_of(title: str, labels: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """Return the features that a failure requires according to title and labels."""
    named = set(_titles().Match(title) or ())
    for label in labels:
        named |= _features_by_label().get(label.lower(), frozenset())
    rows = [_features()[at] for at in sorted(named)]
    ids = {row["id"] for row in rows}
    return tuple(row for row in rows if row.get("unless") not in ids)


def has_feature(stack: Stack, row: dict[str, Any]) -> bool | None:
    """True if a stack has a feature; None if unknown."""
    return False if row.get("is_of_text") and _is_pooling(stack) else _has(stack, row)


@lru_cache(maxsize=256)
def _is_pooling(stack: Stack) -> bool:
    """True if a stack produces embeddings or scores instead of text."""
    return _has(stack, next(row for row in _features() if row["id"] == "pooling")) is True


def _has(stack: Stack, row: dict[str, Any]) -> bool | None:
    options, parts = stack.options, (("models", stack.model), ("gpus", stack.gpu))
    named = [(row[key], name) for key, name in parts if key in row]
    if row.get("asked") or ("off" in row and options is None):
        return None
    if options is not None and "off" in row:
        return not options.keys() & set(row["off"])
    if any(name and pattern(needed).search(name) for needed, name in named):
        return True
    found = [_is_set(options, wanted) for wanted in row.get("on", ())] if options is not None else []
    if True in found:
        return True
    if (perhaps := row.get("perhaps")) and stack.model and pattern(perhaps).search(stack.model):
        return None
    is_open = ("on" in row and options is None) or any(not name for _, name in named)
    return None if is_open or None in found else False


def _is_set(options: dict[str, str], wanted: str) -> bool | None:
    """True if an option satisfies `name`, `name=value`, `name>number` or `name~pattern`; None if unclear."""
    found = re.fullmatch(r"([\w-]+)(?:([>=~])(.*))?", wanted)
    name, sign, value = found.groups() if found else (wanted, None, "")
    if name not in options:
        return False
    given = options[name]
    if sign == "~":
        return bool(pattern(value, ignore_case=True).search(given)) if given.strip("{}'\" ") else None
    if sign == ">":
        return given.isdigit() and int(given) > int(value)
    return sign is None or given == value


# ---- the run of a report


@lru_cache(maxsize=1)
def _features_by_option() -> dict[str, tuple[dict[str, Any], ...]]:
    """Return features by the option that enables them, without common and incidental ones."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in _features():
        if not row.get("is_common") and not row.get("is_incidental"):
            for wanted in row.get("on", ()):
                found[re.split(r"[>=~]", wanted)[0]].append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def doubt_sentence(row: dict[str, Any], title: str) -> str:
    """Return the sentence for a feature that the title names and the stack may or may not have."""
    words = dict.fromkeys(found[0].replace("`", "").strip() for found in row["title"].finditer(title))
    return str(row.get("doubt") or "it matters if yours has {name}").format(
        name=row["name"], words=" and ".join(words) or row["name"]
    )


def differences_of_run(
    stack: Stack, facts: Facts, title: str, labels: tuple[str, ...], text: str
) -> Iterator[Fit]:
    """Yield the relevant differences between the reported run and a stack.

    Features that the stack is known to lack get weight 0. Settings from the report's own workarounds are not
    part of its run, and features in the title have been checked before.
    """
    text, tried = (
        _NOT_OF_THE_RUN.sub("", text[:TEXT_MAX]),
        " ".join(item.action for item in facts.workarounds),
    )
    features, given = features_of(title, labels), stack.options or {}
    named = {row["id"] for row in features}

    def is_named(name: str) -> bool:
        return any(row["title"].search(name) for row in features)

    is_software = any(row.get("is_software") for row in features)
    rows, text_matches = _text_features()
    for row in (rows[at] for at in sorted(text_matches.Match(text) or ())):
        if row["id"] not in named and not (is_software and row.get("is_of_kernels")):
            reason = f"the report speaks of {row['name']}: it matters if yours has that"
            yield from _possibly_missing(stack, row, reason)
    yield from _stated_conditions(title, text, features)
    yield from _options_in_prose(given, text, tried)
    mine = (stack.args or "").lower().replace("-", "_")
    error = facts.error.line if facts.error else ""
    for name in chain(_NAMED_SETTING.findall(title), _PARAMETER.findall(title)):
        is_choice = name.islower() or _CHOICE.search(name)
        if is_choice and name.lower() not in mine and name not in tried + error and not is_named(name):
            yield Fit("unknown", f"its title names {name}: it matters if yours has that")
    found = [*_settings(text)]
    settings = [(name, value) for name, value, _ in found if name not in tried]
    for library in ("transformers", "torch"):
        version = facts.versions.get(library, "")
        if _UNRELEASED.search(version):
            yield Fit("unknown", f"the report runs {library} {version}: it matters if yours does")
    if is_before(facts.versions.get("vllm"), FIRST_V1) and _V1.search(f"{title}\n{text}"):
        yield Fit(
            "unknown", f"it is of the V1 engine: before {FIRST_V1} it matters if yours sets VLLM_USE_V1=1"
        )
    yield from _parsers(given, named, dict(reversed(settings)))
    for name, value in settings:
        if not is_named(name):
            yield from _differences(stack, name, value)
    shown = {name for name, _, is_command in found if is_command}
    own = [f"--{name}" for name in _table()["run"]["own"] if name in given and name not in shown]
    if shown and own:
        yield Fit("unknown", f"yours sets {' and '.join(own)}, which the report does not")


def _stated_conditions(title: str, text: str, features: Collection[dict[str, Any]]) -> Iterator[Fit]:
    """Yield the first condition stated in the title and in the text that no other check covers."""
    title = _ERROR_LINE.split(title)[0]
    marks = [*_CLAUSES.finditer(title)]
    clauses = [
        ("its title", title[mark.start() : end])
        for mark, end in zip_longest(marks, [following.start() for following in marks[1:]])
        if mark[1]
    ]
    clauses += [("the report", found[0]) for found in _EXPLICIT_CONDITION.finditer(text)]
    said: dict[str, str] = {}
    for place, words in clauses:
        clause = words.strip(" `'\"-\u2014")
        is_asked = "--" in clause or any(row["title"].search(clause) for row in features)
        is_named = families_named(clause) or any(find_mentions(clause))
        if not (is_asked or is_named or _SYMPTOM.search(clause)) and _FILLERS.sub("", clause):
            said.setdefault(place, clause)
    for found in _CONTRAST.finditer(text):
        if not _RELEASE.search(found[0]):
            said.setdefault("the report", found[0])
    for place, clause in said.items():
        yield Fit("unknown", f"{place} says \u201c{clause}\u201d: it matters if that is so for you")


def _options_in_prose(given: Mapping[str, str], text: str, tried: str) -> Iterator[Fit]:
    """Yield the first option that the report discusses, and that the stack does not set."""
    known = frozenset(KNOWN_OPTIONS) - IRRELEVANT_OPTIONS
    for written in _OPTION_IN_PROSE.findall(_CODE.sub(" ", text)):
        name = normalise_name(written)
        if name.removeprefix("no-") in known and name not in given and written not in tried:
            yield Fit("unknown", f"the report speaks of --{name}: it matters if yours sets it")
            return


def _parsers(given: Mapping[str, str], named: Collection[str], settings: Mapping[str, str]) -> Iterator[Fit]:
    """Yield a parser of the reported run that differs, if the failure concerns that parser."""
    for row_id, option in (("tools", PARSER_OPTIONS["tool"]), ("reasoning", PARSER_OPTIONS["reasoning"])):
        theirs, mine = settings.get(option), given.get(option)
        if row_id in named and theirs and theirs != mine:
            reason = f"the report runs --{option} {theirs}: yours is not known to"
            yield Fit("unknown", reason, 0 if mine else STRONG)


def _possibly_missing(stack: Stack, row: dict[str, Any], reason: str) -> Iterator[Fit]:
    """Yield a feature of the reported run that the stack may lack."""
    is_on = has_feature(stack, row)
    if is_on is not True:
        yield Fit("unknown", row.get("doubt", reason), 0 if is_on is False else STRONG)


def _differences(stack: Stack, name: str, value: str) -> Iterator[Fit]:
    """Yield relevant differences for one setting of the reported run."""
    run, given = _table()["run"], stack.options or {}
    if name.startswith("VLLM_"):
        if not name.startswith(tuple(run["variables"])) and (name, value) != ("VLLM_USE_V1", "1"):
            yield Fit("unknown", f"the report sets {name}: it matters if yours does")
        return
    rows = [row for row in _features_by_option().get(name, ()) if _enables(row, name, value)]
    is_decisive = name in run["options"]
    if (rows or is_decisive) and stack.options is None:
        yield Fit("unknown", f"the report sets --{name}: your arguments are not known")
        return
    for row in rows:
        yield from _possibly_missing(stack, row, f"the report runs {row['name']}: it matters if yours does")
    is_same = name in given and value.lower().replace("true", "") == given[name].lower().replace("true", "")
    if is_decisive and not is_same and value.lower() not in _OFF:
        yield Fit("unknown", f"the report sets {f'--{name} {value}'.strip()}, which yours has not")


def _settings(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield name and value of each setting, and whether a command line or non-default list has it."""
    for item in read_settings(read_log_document(text)):
        if item.is_chosen:
            yield item.name, item.value, item.origin in {"command", "nondefault"}
    for match in _OBJECT.finditer(text):
        yield normalise_name(match[1]), match[2], False


def _enables(row: dict[str, Any], name: str, value: str) -> bool:
    """True if an option with this value enables a feature."""
    if value.strip("{}'\" ").lower() in _OFF and value not in {"", "{}"}:
        return False
    mine = [wanted for wanted in row["on"] if re.split(r"[>=~]", wanted)[0] == name]
    return any(_is_set({name: value}, wanted) is not False for wanted in mine)
