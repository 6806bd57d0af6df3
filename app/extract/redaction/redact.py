"""Masks secrets with blocks of equal length, so that offsets and lines stay true.

In: any text that will be displayed, answered or kept. Out: the masked text and how often each kind was
masked. The rules are `lists/secrets.toml`. A public issue is masked for secrets only; a pasted log for what
names a person or a host as well. Each rule reads the text on its own: what one rule takes for a placeholder
cannot hide a secret from another.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from app.extract.redaction.secret_rules import SecretRule, is_placeholder, load_secret_rules

BLOCK = "█"

KEY_BLOCK = "PRIVATE KEY"
"""What every rule that reads over many lines looks for."""

AROUND_CHARS = 8_000
"""Longer than any key block: what is masked apart from its text is masked with so much on both sides."""


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
    first = max(0, start - AROUND_CHARS)
    return redact(text[first : end + AROUND_CHARS]).text[start - first : end - first]


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
