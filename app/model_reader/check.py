"""Verify a reply: keep values whose quote is at the cited line and that our own parsers accept.

Input: a `Prompt`, the texts it was built from, and a reply. Output: a `ProvenReading` with values that point
into the texts, and counts of dropped values by reason. Nothing else of a reply is used.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.extract.evidence import cite
from app.extract.facts import BACKEND_KEYS, Cause, Conditions, ErrorFact, Evidence, Workaround
from app.extract.fields.backends import known_value
from app.extract.fields.gpu_names import canonical_name
from app.extract.fields.models import is_model, name_in
from app.extract.lists import load
from app.extract.redact import BLOCK
from app.extract.remedies.changes import find_names
from app.extract.rules.patterns import pattern
from app.extract.text.claims import versions_in
from app.extract.text.document import Document, Span
from app.extract.text.sentences import Sentence, lower
from app.extract.versions import can_be_version, plain_version
from app.model_reader.prompt import Prompt
from app.model_reader.reply import QuotedCondition, QuotedError, QuotedReading, QuotedRemedy, QuotedVersion

QUOTE_LINES = 3
"""A quote may extend over this many lines, as people wrap their sentences."""
ACTION_WORDS_MAX = 32
QUOTE_CHARS_MIN = 2
"""Shorter quotes occur in any text."""
QUOTE_CHARS = 300
"""Maximum length of a remedy's quote on a page."""

_CHANGE = pattern(r"#?(\d{3,6})$|/(?:pull|issues)/(\d{1,6})|^[Pp][Rr][ #]{0,2}(\d{3,6})$")
_SETTING = pattern(r"--?[A-Za-z]|[A-Za-z0-9]_[A-Za-z0-9]|[a-z0-9]-[a-z0-9]")
_GOES_ON = re.compile(r"[-_]\w|[/.]\w")
"""Matches after a name that is only a part of a longer one."""
_COMMIT = pattern(r"^[0-9a-f]{7,40}$")
_DANGER = pattern(
    r"\b(?:curl|wget|sudo|rm -|chmod|mkfs|eval|base64)\b|\|\s*(?:ba)?sh\b|https?://", ignore_case=True
)
_OTHERS = {key: pattern(text) for key, text in load("model_reader")["backends"].items()}
_ERROR_TYPE = pattern(r"^[A-Za-z_][\w. ]{1,58}$")


@dataclass(frozen=True, slots=True)
class ProvenReading:
    """The verified values of a reply.

    Attributes:
        kind: the failure kind, with its quote.
        versions: fields are `versions.vllm` and `regression.<part>`.
        dropped: number of dropped values, by reason.
    """

    kind: Evidence | None = None
    error: tuple[ErrorFact, Evidence] | None = None
    models: tuple[Evidence, ...] = ()
    backends: tuple[Evidence, ...] = ()
    versions: tuple[Evidence, ...] = ()
    remedies: tuple[tuple[Workaround, Evidence], ...] = ()
    causes: tuple[tuple[Cause, Evidence], ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def values(self) -> int:
        lists = (self.models, self.backends, self.versions, self.remedies, self.causes)
        return sum(map(len, lists)) + (self.kind is not None) + (self.error is not None)


def find_quote(document: Document, prompt: Prompt, number: int, quote: str) -> Span | None:
    """Return the span of a quote that starts in line `number` and may extend into the next lines, or None."""
    words = quote.split()
    if not words or not 1 <= number <= len(prompt.lines):
        return None
    line = last = prompt.lines[number - 1]
    for following in prompt.lines[number : number + QUOTE_LINES - 1]:
        last = following if following.source == line.source else last
    text = document.sources[line.source]
    wanted = re.compile(_whole(r"\s+".join(map(re.escape, words)), quote.strip()))
    found = wanted.search(text, line.start, line.end) or wanted.search(text, line.start, last.end)
    if found is None or found.start() >= line.end:
        return None
    return line.source, found.start(), found.end()


class _UnprovenError(Exception):
    """A value is dropped; the message is the reason."""


def check_reply(document: Document, prompt: Prompt, reply: QuotedReading) -> ProvenReading:
    """Return the values that the texts prove."""
    return _Check(document, prompt).read(reply)


class _Check:
    """Checks one reply, counting dropped values."""

    def __init__(self, document: Document, prompt: Prompt) -> None:
        self._document = document
        self._prompt = prompt
        self._dropped: Counter[str] = Counter()

    def read(self, reply: QuotedReading) -> ProvenReading:
        kind = self._try(self._kind, reply.kind)
        found = {
            "models": self._all(self._model, reply.models),
            "backends": self._all(self._backend, reply.backends),
            "versions": self._all(self._version, reply.versions),
            "remedies": self._all(self._remedy, reply.remedies),
            "causes": self._all(self._cause, reply.causes),
        }
        error = self._try(self._error, reply.error) if reply.error is not None else None
        return ProvenReading(kind=kind, error=error, **found, dropped=dict(self._dropped))

    def _try(self, read: Any, quoted: Any) -> Any:
        try:
            return read(quoted)
        except _UnprovenError as why:
            self._dropped[str(why)] += 1
            return None

    def _all(self, read: Any, quoted: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(value for item in quoted if (value := self._try(read, item)) is not None)

    def _place(self, number: int, quote: str) -> Span:
        if number > len(self._prompt.lines):
            raise _UnprovenError("no such line")
        if BLOCK in quote or len("".join(quote.split())) < QUOTE_CHARS_MIN:
            raise _UnprovenError("quote of nothing")
        found = find_quote(self._document, self._prompt, number, quote)
        if found is None:
            raise _UnprovenError("quote not at its line")
        return found

    def _inside(self, span: Span, value: str) -> Span:
        """Return the span of a value inside a quote, as a whole word."""
        source, start, end = span
        text = self._document.sources[source]
        found = re.compile(rf"(?<![A-UW-Za-uw-z0-9_.]){re.escape(value)}(?!\w|\.\w)").search(text, start, end)
        if found is None:
            raise _UnprovenError("value not in its quote")
        return source, found.start(), found.end()

    def _cite(self, name: str, value: str, span: Span, rule: str) -> Evidence:
        return cite(self._document, name, value, span, f"model.{rule}", 0.5)

    def _kind(self, quoted: Any) -> Evidence:
        return self._cite(
            "failure_kind", quoted.value, self._place(quoted.line, quoted.quote), "failure_kind"
        )

    def _error(self, quoted: QuotedError) -> tuple[ErrorFact, Evidence]:
        span = self._place(quoted.line, quoted.message)
        if quoted.type is not None:
            text = self._document.sources[span[0]]
            if not _ERROR_TYPE.search(quoted.type) or quoted.type not in text:
                raise _UnprovenError("no error class of the text")
        message = self._text(span)
        kind = quoted.type.rpartition(".")[2] if quoted.type else None
        return ErrorFact(type=kind, message=message), self._cite("error.message", message, span, "error")

    def _text(self, span: Span) -> str:
        return self._document.sources[span[0]][span[1] : span[2]]

    def _model(self, quoted: Any) -> Evidence:
        source, start, end = self._place(quoted.line, quoted.name)
        named = name_in(quoted.name)
        is_part = _GOES_ON.match(self._document.sources[source], end) is not None
        if named is None or is_part or not is_model(named[0]):
            raise _UnprovenError("no model's name")
        begin = start + named[1]
        span = source, begin, begin + len(named[0])
        return self._cite("models", self._text(span), span, "models")

    def _backend(self, quoted: Any) -> Evidence:
        span = self._place(quoted.line, quoted.name)
        value = _known(quoted.key, quoted.name)
        if value is None:
            raise _UnprovenError("no known backend")
        return self._cite(f"backends.{quoted.key}", value, span, "backends")

    def _version(self, quoted: QuotedVersion) -> Evidence:
        span = self._inside(self._place(quoted.line, quoted.quote), quoted.value)
        value = self._version_name(quoted, span)
        name = "versions.vllm" if quoted.role == "failing" else f"regression.{quoted.role}"
        rule = "versions" if quoted.role == "failing" else "regression"
        return self._cite(name, value, span, rule)

    def _version_name(self, quoted: QuotedVersion, span: Span) -> str:
        """Return the version, `#number` or commit in the form that the rules use."""
        change = _CHANGE.search(quoted.value)
        if change and quoted.role == "culprit":
            number = change.group(1) or change.group(2) or change.group(3)
            if int(number) != self._document.issue.number:
                return f"#{int(number)}"
        plain = plain_version(quoted.value)
        is_commit = bool(_COMMIT.search(plain)) and not plain.isdigit() and not plain.isalpha()
        if is_commit and quoted.role != "fixed_in":
            return plain
        if quoted.role == "culprit" or not can_be_version(plain) or "." not in plain:
            raise _UnprovenError("no version or change")
        if quoted.role != "failing" and not self._is_of_vllm(span):
            raise _UnprovenError("another product's version")
        return plain

    def _is_of_vllm(self, span: Span) -> bool:
        source, start, end = span
        text = self._document.sources[source]
        first = max(0, text.rfind("\n", 0, start) + 1, start - QUOTE_CHARS)
        words = text[first : end + 40].split("\n")[0]
        sentence = Sentence(words, lower(words), source, first, first + len(words), "")
        return any(first + item.start <= start < first + item.end for item in versions_in(sentence))

    def _remedy(self, quoted: QuotedRemedy) -> tuple[Workaround, Evidence]:
        source, start, end = self._place(quoted.line, quoted.action)
        proof = self._place(quoted.proof_line, quoted.proof)
        action = self._text((source, start, end))
        self._can_be_done(quoted, action)
        conditions = dict[str, list[str]]()
        for item in self._all(self._condition, quoted.conditions):
            conditions.setdefault(item[0], []).append(item[1])
        kind, value = quoted.kind, " ".join(action.split())
        workaround = Workaround(
            action=value,
            kind=kind,
            outcome=quoted.outcome,
            conditions=Conditions(**{name: tuple(found) for name, found in conditions.items()}),
            source=source,
            by=self._document.speaker.get(source, "other"),
            confidence=0.5,
            quote=self._line_of(proof),
        )
        return workaround, self._cite("workarounds", value, (source, start, end), "remedies")

    def _can_be_done(self, quoted: QuotedRemedy, action: str) -> None:
        """Reject actions that are dangerous to run, name no flag or variable, or describe no change."""
        if _DANGER.search(action):
            raise _UnprovenError("nothing to type")
        is_named = bool(_SETTING.search(action) or find_names(action))
        if quoted.kind in ("flag", "env") and not is_named:
            raise _UnprovenError("no flag or variable")
        words = action.split()
        if not any(map(str.isalnum, action)) or len(words) > ACTION_WORDS_MAX:
            raise _UnprovenError("no change")

    def _line_of(self, span: Span) -> str:
        """Return the line with the proof, for display."""
        source, start, end = span
        text = self._document.sources[source]
        first = max(text.rfind("\n", 0, start) + 1, end - QUOTE_CHARS)
        stop = text.find("\n", end)
        words = text[first : min(stop if stop >= 0 else len(text), first + QUOTE_CHARS)]
        return " ".join(words.split())

    def _condition(self, quoted: QuotedCondition) -> tuple[str, str]:
        span = self._place(quoted.line, quoted.value)
        value = self._text(span)
        if quoted.what == "version" and can_be_version(value):
            return "versions", plain_version(value)
        if quoted.what == "gpu" and (name := canonical_name(value)):
            return "gpus", name
        if quoted.what == "model" and (named := name_in(value)):
            return "models", named[0]
        if quoted.what == "backend" and (name := next(_backends_named(value), None)):
            return "backends", name
        raise _UnprovenError("no known condition")

    def _cause(self, quoted: Any) -> tuple[Cause, Evidence]:
        span = self._place(quoted.line, quoted.quote)
        words = " ".join(self._text(span).split())
        return Cause(text=words, certainty=quoted.certainty), self._cite("cause", words, span, "causes")


def _whole(expression: str, quote: str) -> str:
    """Return the pattern with word boundaries; a version may follow its "v".

    Only ASCII letters count as word characters, as Chinese text has no spaces between words.
    """
    first, last = (bool(re.match("[A-Za-z0-9_]", quote[at])) for at in (0, -1))
    before = r"(?<![A-UW-Za-uw-z0-9_])" if quote[0].isdigit() else r"(?<![A-Za-z0-9_])"
    return (before if first else "") + expression + (r"(?![A-Za-z0-9_])" if last else "")


def _known(key: str, value: str) -> str | None:
    """Return a backend's canonical name, or None if it is unknown."""
    if key in _OTHERS:
        return value if _OTHERS[key].search(value) else None
    return known_value(key, value)


def _backends_named(value: str) -> Iterator[str]:
    return (name for key in BACKEND_KEYS if (name := _known(key, value)) is not None)
