"""Mask secrets with blocks of equal length, so that offsets and lines stay valid.

In: any text to be displayed, returned or stored. Out: the masked text and the number of secrets by kind. The
rules are `lists/secrets.toml`. In public issues only secrets are masked; in pasted logs also names of persons
and hosts. Each rule is applied to the original text, so that a placeholder found by one rule cannot hide a
secret from another.
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
from app.extract.rules.patterns import PatternSet, pattern

BLOCK = "█"

KEY_BLOCK = "PRIVATE KEY"
"""Text that all multi-line rules require."""

BLOCK_CHARS, NEAR_CHARS = 8_000, 1_000
"""Context masked with an excerpt, on either side: longer than any key block, and than any match of the other
rules."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A masked text of the same length, and the number of secrets by kind, sorted."""

    text: str
    counts: tuple[tuple[str, int], ...]


def redact(text: str, *, private: bool = False) -> Redacted:
    """Mask secrets.

    Args:
        private: also mask addresses of hosts and people, for a log that is not public.
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
    """Mask the secrets in a public text."""
    return redact(text).text


def mask_part(text: str, start: int, end: int) -> str:
    """Return `text[start:end]` as masked in the context of the whole public text."""
    wide = text[max(0, start - BLOCK_CHARS) : end + BLOCK_CHARS]
    around = BLOCK_CHARS if KEY_BLOCK in wide else NEAR_CHARS
    first = max(0, start - around)
    return redact(text[first : end + around]).text[start - first : end - first]


def _find_secrets(text: str, *, private: bool) -> dict[int, tuple[int, str]]:
    """Return end and kind of each secret by its start: the longest match, the kind of the first rule."""
    known = load_secret_rules()
    rules = [known.lines[at] for at in known.line_patterns.matching(text)]
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
    """Add the secrets that the rule finds."""
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


_BLANKING = frozenset("█*xX.<>$-_")
"""Characters used to blank out a value."""
_BETWEEN_WORDS = re.compile(r"[-_:. ]")
_GROUP = re.compile(r"\?P<(\w+?)(?:_\d)?>")


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One or several joined rules; `kinds` are those of its groups, exactly one of which matches."""

    pattern: Any
    kinds: tuple[str, ...]
    is_mixed: bool
    not_after: str
    spares: str


@dataclass(frozen=True, slots=True)
class SecretRules:
    """`lines`: single-line secrets; `whole`: key blocks; `private`: names of people and hosts in logs."""

    lines: tuple[SecretRule, ...]
    line_patterns: PatternSet
    whole: tuple[SecretRule, ...]
    private: tuple[SecretRule, ...]


@lru_cache(maxsize=1)
def load_secret_rules() -> SecretRules:
    rows = load("secrets")["rule"]
    lines = _joined(row for row in rows if not row.get("private") and not row.get("whole"))
    return SecretRules(
        lines,
        PatternSet(rule.pattern.pattern for rule in lines),
        _joined(row for row in rows if row.get("whole")),
        _joined(row for row in rows if row.get("private")),
    )


def _joined(rows: Iterable[dict[str, Any]]) -> tuple[SecretRule, ...]:
    """Build the rules; adjacent rows with the same `joined` name become one."""
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
    """True if a value is not a secret but a placeholder, as in defaults, examples and code."""
    if set(value) <= _BLANKING:
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
    return all(word in words or set(word) <= _BLANKING for word in _BETWEEN_WORDS.split(lowered))


@lru_cache(maxsize=1)
def _placeholder_words() -> frozenset[str]:
    return frozenset(load("secrets")["stand_in"]["words"])


Model = TypeVar("Model", bound=Frozen)

_SEPARATOR = "\n\n"
"""Separator of texts that are searched together; a match across it can only be a false positive."""


def masked(answer: Model) -> Model:
    """Mask the secrets in all texts of an answer."""
    return masked_all([answer])[0]


def masked_all(answers: Sequence[Model]) -> list[Model]:
    """Mask the secrets in all texts of the answers.

    Secrets are rare: all texts are searched together first, and one by one only if that finds any.
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
    whole = _SEPARATOR.join(texts)
    return mask_secrets(whole) != whole


def _add_texts(values: Iterable[Any], texts: dict[str, None]) -> None:
    """Collect all distinct texts in these values; many, such as a repository's name, are repeated."""
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
    """Prepare an error for a list: one line, masked, its message cut to `chars` characters."""
    if error is None:
        return None
    return ErrorLine.based_on(error, message=" ".join(mask_secrets(error.message).split())[:chars])
