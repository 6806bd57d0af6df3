"""Read the error that people name in prose, if no log shows it.

In: a `Document` without an error in logs and tracebacks. Out: an `ErrorRecord` with its class, its message
if the text quotes one, and its frame if the sentence names a file or function. Errors that are negated,
wished for, feared, or of another failure do not count.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from app.extract.lists import load
from app.extract.log.lines import LogLine
from app.extract.log.messages import first_sentence, wrapper_rule
from app.extract.log.process_stream import ErrorRecord
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.document import Document, Line
from app.extract.text.sentences import Sentence, is_request, read_sentences

_LIST = load("stated_error")
WORDS_BEFORE = 6
"""Maximum number of words between a negation and the name: "should at least raise a clear ValueError"."""
WORDS_CLOSE = 3
CHARS_BEHIND = 40
MAX_MESSAGE_CHARS = 300
MAX_ANNOUNCED_LINES = 3
MIN_MESSAGE_WORDS = 5

_FILE = pattern(
    r"(?:^|[\s`'\"(*/\[,])([\w.+-]{1,80}\.(?:pyx?|cuh?|cpp|cc|hpp))(?:(?::{1,2}|#L)([A-Za-z_]\w*|\d{1,6}))?"
)
_LINE = pattern(r"(?i)\bline (\d{1,6})\b")
_LOCATES = pattern(
    r"(?i)\b(?:occurs?|occurred|happens?|happened|raised|thrown|triggered|originates?|stems?|comes|arises?"
    r"|lies|located|caused by|leads? to|fails? (?:in|at|on)|crash(?:es|ed)? (?:in|at)|root cause|culprit"
    r"|modifying|line \d{1,6})\b"
)
"""Words that introduce the place of a failure."""
_INTRODUCES_ERROR = pattern(
    r"(?i)\b(?:following|this|below|the|an|with|next) (?:\w+ )?(?:error|exception|error message|failure)s?\b"
    r"[^.]{0,80}[:：][ \t*]*$"
)
_TAGS = pattern(r"^(?:\[[^\]]{1,40}\][ :]*)+")
_REFUSAL = pattern(
    r"(?i)\bnot (?:yet |currently )?(?:supported|implemented|available|allowed|compatible)|\bunsupported\b"
    r"|\bmust be\b|\bcannot be\b"
)
_FUNCTION = pattern(r"(?:^|[\s`'\"(*.])([A-Za-z_]\w{2,80})\(\)")
_AFTER_PREPOSITION = pattern(
    r"(?:^|\s)(?:at|in|from|inside|by|of|during)\s+(?:the\s+)?`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`"
)
_QUOTED = pattern(
    r"^`?\*{0,2}[ ]?(?:(?:with|and) )?(?:the )?"
    r"(?:(?:error )?(?:message|text)|saying|that says|stating|reading)?[ ]?[:,(-]?[ ]?"
    r"(?:`([^`]{6,300})`|\"([^\"]{6,300})(?:\"|$)|'([^']{6,300})'(?:[\s).,]|$)|“([^”]{6,300})”)"
)
_HTTP_ERROR = pattern(
    r"\"POST [^\"\n]{1,200}\" ((?:400|422|5\d\d) [A-Z][\w -]{3,40})|(500 Internal Server Error)"
)
"""A failed POST or any 500: a refused page (GET) or missing route (404) is no failure of the engine."""
_CLAUSE_ENDS = (";", ":", " but ", ", then ", " then ", " and then ", "(", " — ", " – ", ". ")
_NATIVE_FILES = (".cu", ".cuh", ".cpp", ".cc", ".hpp")
_LIST_SIZE = 3
"""A sentence that names this many errors is a list, not a report."""


def find_stated_error(document: Document, *, comments: bool = False) -> ErrorRecord | None:
    """Return the error named in the prose of title and body, or with `comments` in that of the comments."""
    if is_request(document):
        return None
    sources = [s for s in document.sources if s.startswith("comment:") == comments]
    found = list(_mentions(s for s in read_sentences(document) if s.source in sources))
    if not found:
        return None
    best = min(found, key=lambda item: (not item.type, item.rule == "said.class_apart"))
    if best.frame is None:
        same = next((item for item in found if item.type == best.type and item.frame), None)
        best = same or best
    if not best.message:
        best = next((i for i in found if i.type == best.type and i.message and i.frame == best.frame), best)
    return best


def find_stated_place(document: Document, kind: str | None) -> str | None:
    """Return where prose says that an error of this class is raised, for a log without frames."""
    for sentence in read_sentences(document) if kind else ():
        at = sentence.text.find(kind or "")
        if at >= 0 and not sentence.is_proposal and not _is_negated(sentence.low[:at], ""):
            place = _place(sentence.text, at)
            if place is not None:
                return place
    return _located_failure(document)


def _located_failure(document: Document) -> str | None:
    """Return the file in which, according to the report, the failure happens."""
    for sentence in read_sentences(document):
        if sentence.source.startswith("comment:") or sentence.is_proposal or sentence.low.endswith("?"):
            continue
        found = _LOCATES.search(sentence.text) if _FILE.search(sentence.text) else None
        place = _place(sentence.text, found.start(), after=True) if found is not None else None
        if place is not None:
            line = _LINE.search(sentence.text)
            return f"{place}:{line.group(1)}" if line is not None and ":" not in place else place
    return None


def find_announced_error(document: Document) -> ErrorRecord | None:
    """Return a message alone in a code block below "we get the following error:"."""
    if is_request(document):
        return None
    above = ""
    for block in document.of_source("body"):
        if block.kind == "code" and _INTRODUCES_ERROR.search(above):
            lines = [line for line in block.lines if line.text.strip(" \t`\r")]
            if 0 < len(lines) <= MAX_ANNOUNCED_LINES and _is_message(lines[0].text):
                message = first_sentence(lines[0].text.strip()[:MAX_MESSAGE_CHARS])
                return _cause_at(lines[0], message, "said.block")
        above = block.text.rstrip()[-200:].rpartition("\n")[2]
    return _repeated_title(document)


def _repeated_title(document: Document) -> ErrorRecord | None:
    """Return a refusal ("… is not supported") that is the title and also a line of the body."""
    title = _TAGS.sub("", document.issue.title).strip()
    if not _REFUSAL.search(title) or not _is_message(title):
        return None
    for block in document.of_source("body"):
        for line in block.lines:
            if line.text.strip() == title and block.kind != "heading":
                return _cause_at(line, title, "said.title_again")
    return None


def _is_message(text: str) -> bool:
    """True if a line is a message in words, neither code nor a command."""
    words = text.split()
    plain = sum(word.strip(".,:;!()'\"").replace("'", "").isalpha() for word in words)
    return len(words) >= MIN_MESSAGE_WORDS and plain >= 0.6 * len(words) and wrapper_rule(text) is None


def find_served_error(document: Document) -> ErrorRecord | None:
    """Return the HTTP status that the server answered with; the last resort."""
    for text in document.sources.values():
        found = _HTTP_ERROR.search(text) if '"POST ' in text or "500 Internal" in text else None
        if found is not None:
            words = next(group for group in found.groups() if group)
            start = text.find(words, found.start())
            return _cause_at(Line(words, start, start + len(words)), words, "served.status")
    return None


def _cause_at(
    line: Line, message: str, rule: str, kind: str | None = None, frame: str | None = None
) -> ErrorRecord:
    logged = LogLine(0, line.text, "", "", line.start, line.end, line.text)
    return ErrorRecord(kind, message, logged, frame=frame, rule=rule)


def _mentions(sentences: Iterable[Sentence]) -> Iterator[ErrorRecord]:
    for sentence in sentences:
        if sentence.is_proposal or (sentence.is_heading and sentence.source != "title"):
            continue
        if not sentence.low.endswith("?"):
            yield from _of_sentence(sentence)


def _of_sentence(sentence: Sentence) -> Iterator[ErrorRecord]:
    kept: list[tuple[int, ErrorRecord]] = []
    for rule in load_rule_set("stated_error").meeting(sentence.text):
        for found in rule.pattern.finditer(sentence.text):
            cause = _cause(sentence, rule, found)
            if cause is not None:
                kept.append((found.start(), cause))
    if len({cause.type for _, cause in kept}) < _LIST_SIZE:
        yield from (cause for _, cause in sorted(kept, key=lambda item: item[0]))


def _cause(sentence: Sentence, rule: Rule, found: Any) -> ErrorRecord | None:
    start, end = found.span()
    if _is_negated(sentence.low[:start], sentence.low[end : end + CHARS_BEHIND]):
        return None
    groups = found.groupdict()
    kind = rule["type"] or _class(groups.get("name") or "") or None
    after = sentence.text[end : end + MAX_MESSAGE_CHARS + 60]
    message = groups.get("message") or _quoted(after)
    if sentence.source == "title" and after.startswith(": "):
        message = message or after[2:].partition("  ")[0].strip()
    if kind is not None and wrapper_rule(f"{kind}: {message or after.lstrip(' :-')}") is not None:
        return None
    left, right = sentence.start + start, sentence.start + end
    if message:
        at = sentence.text.find(message, start)
        left, right = min(left, sentence.start + at), max(right, sentence.start + at + len(message))
    line = Line(sentence.text[left - sentence.start : right - sentence.start], left, right)
    return _cause_at(line, message, rule.id, kind, _place(sentence.text, start))


def _class(name: str) -> str:
    """Return `KeyError` for "key error"; a class name unchanged."""
    if name[:1].isupper() and name.endswith(("Error", "Exception")):
        return name
    return "".join(part.capitalize() for part in name.replace("-", " ").split()) + "Error" if name else ""


def _is_negated(before: str, after: str) -> bool:
    """True if the words around a name say that it did not happen here."""
    for mark in _CLAUSE_ENDS:
        before = before.rpartition(mark)[2] if mark in before else before
    words = before.replace("`", " ").replace("*", " ").replace(",", " ").split()[-WORDS_BEFORE:]
    near = f" {' '.join(words)} "
    close = f" {' '.join(words[-WORDS_CLOSE:])} "
    if _has_word(near, _LIST["denied_before"]) or _has_word(close, _LIST["ended_before"]):
        return not any(word in near for word in _LIST["report_before"])
    return any(word in after for word in _LIST["denied_behind"])


def _has_word(near: str, words: Iterable[str]) -> bool:
    return any(f" {word} " in near for word in words)


def _quoted(after: str) -> str:
    """Return the message quoted right after an error's name; "" for a single word, which is a name."""
    found = _QUOTED.match(after)
    words = next((group for group in found.groups() if group), "") if found else ""
    return words.strip() if " " in words.strip() else ""


def _place(text: str, start: int, *, after: bool = False) -> str | None:
    """Return the file nearest to `start`, or with `after` the next one after it, with line or function."""
    files = [item for item in _FILE.finditer(text) if not _in_log_prefix(text, item.start(1))]
    if not files:
        return None
    found = min(files, key=lambda item: (after and item.start(1) < start, abs(item.start(1) - start)))
    name, inside = str(found.group(1)), found.group(2)
    if inside or name.endswith(_NATIVE_FILES):
        return f"{name}:{inside}" if inside else name
    functions: list[Any] = [*_FUNCTION.finditer(text), *_AFTER_PREPOSITION.finditer(text)]
    functions = [item for item in functions if not item.group(1).endswith((".py", "Error"))]
    if not functions:
        return name
    nearest = min(functions, key=lambda item: abs(item.start(1) - found.start(1)))
    return f"{name}:{nearest.group(1).rsplit('.', 1)[-1]}"


def _in_log_prefix(text: str, start: int) -> bool:
    """True if a file is in a logger's brackets, which name the logging code and not what failed."""
    return text.rfind("[", 0, start) > text.rfind(" ", 0, start) and text.find("]", start) >= 0
