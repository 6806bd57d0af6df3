"""Masks secrets with blocks of equal length, so that offsets and lines stay true.

In: any text that will be displayed, answered or kept. Out: the masked text and how often each kind was
masked. The rules are `lists/secrets.toml`. A public issue is masked for secrets only; a pasted log for what
names a person or a host as well. Each rule reads the text on its own: what one rule takes for a placeholder
cannot hide a secret from another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from app.extract.redaction.secret_rules import SecretRule, is_placeholder, load_secret_rules

BLOCK = "█"

KEY_BLOCK = "PRIVATE KEY"
"""What every rule that reads over many lines looks for."""

AROUND_CHARS = 8_000
"""Longer than any key block: what is masked apart from its text is masked with so much on both sides."""

Span = tuple[int, int, str]
"""Start, end and kind of a secret."""


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
    for start, end, kind in sorted(_find_secrets(text, private=private), key=lambda span: span[0]):
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


def _find_secrets(text: str, *, private: bool) -> list[Span]:
    """All secrets, rule by rule; they overlap where several rules find the same."""
    known = load_secret_rules()
    rules: list[SecretRule] = []
    if KEY_BLOCK in text:
        rules += known.whole
    if any(rule.search(text) for rule in known.any_of):
        rules += known.lines
    if private:
        rules += known.private
    subject = text.encode() if text.isascii() else text  # in bytes RE2 counts no characters: half the time
    found: list[Span] = []
    for rule in rules:
        if rule.spares:
            spared = {match.start(1) for match in rule.pattern.finditer(subject)}
            found = [span for span in found if span[2] != rule.spares or span[0] not in spared]
        else:
            found += _find_by(rule, text, subject)
    return found


def _find_by(rule: SecretRule, text: str, subject: str | bytes) -> Iterator[Span]:
    is_single = len(rule.kinds) == 1
    for match in rule.pattern.finditer(subject):
        group = 1 if is_single else match.lastindex
        start, end = match.span(group)
        value, kind = text[start:end], rule.kinds[group - 1]
        is_part = start > 0 and text[start - 1] in rule.not_after
        if not is_part and (not rule.is_mixed or _is_mixed(value)) and not is_placeholder(value, kind):
            yield start, end, kind


def _is_mixed(value: str) -> bool:
    return any(sign in "0123456789" for sign in value) and any(map(str.isalpha, value))
