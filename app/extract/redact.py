"""Masks secrets with blocks of equal length, so that offsets and lines stay true.

In: any text that will be displayed, answered or kept. Out: the masked text and how often each kind was
masked. The rules are `lists/secrets.toml`. A public issue is masked for secrets only; a pasted log for what
names a person or a host as well. Each rule reads the text on its own: what one rule takes for a placeholder
cannot hide a secret from another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeVar

from app.extract.facts import ErrorLine, Frozen
from app.extract.lists import load
from app.extract.rules.patterns import pattern

BLOCK = "█"

KEY_BLOCK = "PRIVATE KEY"
"""What every rule that reads over many lines looks for."""

BLOCK_CHARS, NEAR_CHARS = 8_000, 1_000
"""Longer than any key block, and than what any other rule reads beyond a line: what is masked apart from its
text is masked with so much on both sides."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, of the same length, and how often each kind stood in it, by kind."""

    text: str
    counts: tuple[tuple[str, int], ...]


def redact(text: str, *, private: bool = False) -> Redacted:
    """Mask secrets.

    Args:
        private: mask addresses of hosts and people too, as is due to a log that is not public.
    """
    counts: Counter[str] = Counter()
    pieces: list[str] = []
    at = 0
    for start, (end, kind) in sorted(_find_secrets(text, private=private).items()):
        if start >= at:
            counts[kind] += 1
            pieces.append(text[at:start])
            at = start
        if end > at:
            pieces.append("\n".join(BLOCK * len(line) for line in text[at:end].split("\n")))
            at = end
    return Redacted("".join((*pieces, text[at:])) if pieces else text, tuple(sorted(counts.items())))


def mask_secrets(text: str) -> str:
    """A public text as it may be displayed."""
    return redact(text).text


def mask_part(text: str, start: int, end: int) -> str:
    """`text[start:end]` of a public text as it may be displayed: as it is masked in the whole text."""
    wide = text[max(0, start - BLOCK_CHARS) : end + BLOCK_CHARS]
    around = BLOCK_CHARS if KEY_BLOCK in wide else NEAR_CHARS
    first = max(0, start - around)
    return redact(text[first : end + around]).text[start - first : end - first]


def _find_secrets(text: str, *, private: bool) -> dict[int, tuple[int, str]]:
    """End and kind of each secret by its start: the longest, of the kind of the first rule to find it."""
    known = load_secret_rules()
    rules = [rule for group in known.lines if group.any_of.search(text) for rule in group.rules]
    if KEY_BLOCK in text:
        rules += known.whole
    if private:
        rules += known.private
    found: dict[int, tuple[int, str]] = {}
    for rule in rules:
        if rule.spares:
            for match in rule.pattern.finditer(text):
                if found.get(match.start(1), (0, ""))[1] == rule.spares:
                    del found[match.start(1)]
        else:
            _find_by(rule, text, found)
    return found


def _find_by(rule: SecretRule, text: str, found: dict[int, tuple[int, str]]) -> None:
    """Add what the rule finds."""
    is_single = len(rule.kinds) == 1
    for match in rule.pattern.finditer(text):
        group = 1 if is_single else match.lastindex
        start, end = match.span(group)
        before = found.get(start)
        if (before and before[0] >= end) or (start > 0 and text[start - 1] in rule.not_after):
            continue
        value, kind = text[start:end], rule.kinds[group - 1]
        if (not rule.is_mixed or _is_mixed(value)) and not is_placeholder(value, kind):
            found[start] = (end, before[1] if before else kind)


def _is_mixed(value: str) -> bool:
    return any(sign in "0123456789" for sign in value) and any(map(str.isalpha, value))


_HOLLOW = frozenset("█*xX.<>$-_")
"""Signs that blot a value out."""
_BETWEEN_WORDS = re.compile(r"[-_:. ]")
_GROUP = re.compile(r"\?P<(\w+?)(?:_\d)?>")


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One or several joined rules; `kinds` are those of its groups, of which one takes part in a match."""

    pattern: Any
    kinds: tuple[str, ...]
    is_mixed: bool
    not_after: str
    spares: str


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that are worth trying where `any_of`, which is all of them in one, meets."""

    any_of: Any
    rules: tuple[SecretRule, ...]


@dataclass(frozen=True, slots=True)
class SecretRules:
    """`lines` read lines, `whole` key blocks, `private` names of people and hosts in logs."""

    lines: tuple[RuleGroup, ...]
    whole: tuple[SecretRule, ...]
    private: tuple[SecretRule, ...]


@lru_cache(maxsize=1)
def load_secret_rules() -> SecretRules:
    rows = load("secrets")["rule"]
    groups: list[list[dict[str, Any]]] = [[]]
    for row in rows:
        if row.get("apart"):
            groups.append([])
        if not row.get("private") and not row.get("whole"):
            groups[-1].append(row)
    return SecretRules(
        tuple(
            RuleGroup(pattern("|".join(_GROUP.sub("?:", row["pattern"]) for row in group)), _joined(group))
            for group in groups
        ),
        _joined(row for row in rows if row.get("whole")),
        _joined(row for row in rows if row.get("private")),
    )


def _joined(rows: Iterable[dict[str, Any]]) -> tuple[SecretRule, ...]:
    """The rules; those that stand next to each other and are `joined` by the same name as one."""
    groups = groupby(rows, key=lambda row: row.get("joined") or row["id"])
    return tuple(_one_rule(list(group)) for _, group in groups)


def _one_rule(rows: list[dict[str, Any]]) -> SecretRule:
    text = "|".join(row["pattern"] for row in rows)
    return SecretRule(
        pattern(_GROUP.sub("", text)),
        tuple(_GROUP.findall(text)),
        rows[0].get("mixed", False),
        rows[0].get("not_after", ""),
        rows[0].get("spares", ""),
    )


@lru_cache(maxsize=4096)
def is_placeholder(value: str, kind: str) -> bool:
    """Whether a value of a kind is no secret but what stands in its place in defaults, examples and code."""
    if set(value) <= _HOLLOW:
        return True
    known = load("secrets")["stand_in"]
    lowered = value.lower()
    if (names := known["names"].get(kind)) is not None:
        return all(word.partition("@")[0] in names for word in lowered.split())
    if kind == "ip_address":
        return pattern(known["addresses"]).fullmatch(value) is not None
    if kind == "email":
        return lowered.startswith("git@")
    if lowered in known["whole"] or pattern(known["reference"]).fullmatch(lowered) is not None:
        return True
    words = _placeholder_words()
    return all(word in words or set(word) <= _HOLLOW for word in _BETWEEN_WORDS.split(lowered))


@lru_cache(maxsize=1)
def _placeholder_words() -> frozenset[str]:
    return frozenset(load("secrets")["stand_in"]["words"])


Model = TypeVar("Model", bound=Frozen)

_APART = "\n\n"
"""Between texts that are searched together; a rule that reads on past it finds too much, never too little."""


def masked(answer: Model) -> Model:
    """The same answer without secrets in any of its texts."""
    return masked_all([answer])[0]


def masked_all(answers: Sequence[Model]) -> list[Model]:
    """The same answers without secrets in any of their texts.

    Hardly any text holds one, so all are searched in one go, and each by itself only where that finds any.
    """
    dumped = [answer.model_dump() for answer in answers]
    if not _holds_secret(dumped):
        return list(answers)
    return [
        type(answer).model_validate(_masked_value(value))
        for answer, value in zip(answers, dumped, strict=True)
    ]


def _holds_secret(values: Iterable[Any]) -> bool:
    texts: dict[str, None] = {}
    _add_texts(values, texts)
    whole = _APART.join(texts)
    return mask_secrets(whole) != whole


def _add_texts(values: Iterable[Any], texts: dict[str, None]) -> None:
    """Add all texts in these values; many, such as a repository's name, stand in each of them."""
    for value in values:
        if isinstance(value, str):
            texts[value] = None
        elif isinstance(value, dict):
            _add_texts(value.values(), texts)
        elif isinstance(value, tuple | list):
            _add_texts(value, texts)


def _masked_value(value: Any) -> Any:
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, dict):
        return {key: _masked_value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_masked_value(item) for item in value)
    return value


def listed_error(error: ErrorLine | None, chars: int = 160) -> ErrorLine | None:
    """An error as a list has room for: on one line, masked, its message cut to so many characters."""
    if error is None:
        return None
    return ErrorLine.based_on(error, message=" ".join(mask_secrets(error.message).split())[:chars])
