"""Read the error that people name in prose, if no log shows it.

In: a `Document` without an error in logs and tracebacks. Out: an `ErrorRecord` with its class, its message
if the text quotes one, and its frame if the sentence names a file or function. Errors that
are negated, wished for or feared do not count.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from app.extract.lists import load
from app.extract.log.lines import LogLine
from app.extract.log.messages import wrapper_rule
from app.extract.log.process_stream import ErrorRecord
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.document import Document, Line
from app.extract.text.sentences import Sentence, is_request, read_sentences

_DENIED: tuple[str, ...] = tuple(load("stated_error")["denied_before"])
WRAPPER = "said.wrapper"
"""The rule id of a wrapper that stands in for a cause that nobody names."""
WORDS_BEFORE = 6
"""Maximum number of words between a negation and the name: "should at least raise a clear ValueError"."""
MAX_MESSAGE_CHARS = 300

_FILE = pattern(
    r"(?:^|[\s`'\"(*/\[,])([\w.+-]{1,80}\.(?:pyx?|cuh?|cpp|cc|hpp))(?:(?::{1,2}|#L)([A-Za-z_]\w*|\d{1,6}))?"
)
_LOCATES = pattern(
    r"(?i)\b(?:occurs?|occurred|happens?|happened|raised|thrown|triggered|originates?|stems?|comes|arises?"
    r"|lies|located|caused by|leads? to|fails? (?:in|at|on)|crash(?:es|ed)? (?:in|at)|root cause|culprit"
    r"|modifying|line \d{1,6})\b"
)
"""Words that introduce the place of a failure."""
_FUNCTION = pattern(r"(?:^|[\s`'\"(*.])([A-Za-z_]\w{2,80})\(\)")
_QUOTED = pattern(
    r"^`?\*{0,2}[ ]?(?:(?:with|and) )?(?:the )?"
    r"(?:(?:error |exception )?(?:(?:is |was |gets )?(?:raised|thrown) )?(?:with )?(?:this |the following )?"
    r"(?:(?:error )?(?:message|text)|saying|that says|stating|reading))?[ ]?[:,(-]?[ ]?(?:`{3}\w{0,10}[ ]?)?"
    r"(?:`([^`\s][^`]{5,299})`|\"([^\"]{6,300})(?:\"|$)|'([^']{6,300})'(?:[\s).,]|$)|“([^”]{6,300})”)"
)
_COLON = pattern(r"^(?:: |：\s?)")
_CLAUSE_ENDS = (";", ":", " but ", ", then ", " then ", " and then ", "(", " — ", " – ", ". ")
_NATIVE_FILES = (".cu", ".cuh", ".cpp", ".cc", ".hpp")


def find_stated_error(document: Document, *, comments: bool = False) -> ErrorRecord | None:
    """Return the error named in the prose of title and body, or with `comments` in that of the comments.

    If only a wrapper is named ("an AsyncEngineDeadError"), its rule is `WRAPPER`.
    """
    if is_request(document):
        return None
    sources = [s for s in document.sources if s.startswith("comment:") == comments]
    found = list(_mentions(s for s in read_sentences(document) if s.source in sources))
    if not found:
        return None
    best = min(found, key=lambda item: (item.rule == WRAPPER, not item.type))
    if best.message or best.rule == WRAPPER:
        return best
    return next((item for item in found if item.message and item.type == best.type), best)


def find_stated_place(document: Document, kind: str | None) -> str | None:
    """Return where prose says that an error of this class is raised, for a log without frames."""
    for sentence in read_sentences(document) if kind else ():
        at = sentence.text.find(kind or "")
        if at >= 0 and not sentence.is_proposal and not _is_negated(sentence.low[:at]):
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
            return place
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
    yield from (cause for _, cause in sorted(kept, key=lambda item: item[0]))


def _cause(sentence: Sentence, rule: Rule, found: Any) -> ErrorRecord | None:
    start, end = found.span()
    if _is_negated(sentence.low[:start]):
        return None
    groups = found.groupdict()
    kind = rule["type"] or _class(groups.get("name") or "") or None
    after = sentence.text[end : end + MAX_MESSAGE_CHARS + 60]
    message = groups.get("message") or _quoted(after)
    if kind is None and " " not in message.strip():
        return None  # a name in quotation marks
    if sentence.source == "title" and (colon := _COLON.match(after)):
        message = message or after[colon.end() :].partition("  ")[0].strip()
    wrapper = wrapper_rule(f"{kind or ''}: {message or after.lstrip(' :-')}")
    if wrapper is not None and wrapper.extra.get("noise"):
        return None
    left, right = sentence.start + start, sentence.start + end
    if message:
        at = sentence.text.find(message, start)
        left, right = min(left, sentence.start + at), max(right, sentence.start + at + len(message))
    line = Line(sentence.text[left - sentence.start : right - sentence.start], left, right)
    return _cause_at(line, message, WRAPPER if wrapper else rule.id, kind, _place(sentence.text, start))


def _class(name: str) -> str:
    """Return `KeyError` for "key error"; a class name unchanged."""
    if name[:1].isupper() and name.endswith(("Error", "Exception")):
        return name
    return "".join(part.capitalize() for part in name.replace("-", " ").split()) + "Error" if name else ""


def _is_negated(before: str) -> bool:
    """True if the words before a name say that it did not happen here."""
    for mark in _CLAUSE_ENDS:
        before = before.rpartition(mark)[2]
    words = before.replace("`", " ").replace("*", " ").replace(",", " ").split()[-WORDS_BEFORE:]
    near = f" {' '.join(words)} "
    return any(f" {word} " in near for word in _DENIED)


def _quoted(after: str) -> str:
    """Return the message quoted right after an error's name; "" for a single word, which is a name."""
    found = _QUOTED.match(after)
    words = next((group for group in found.groups() if group), "") if found else ""
    return words.strip() if " " in words.strip() else ""


def _place(text: str, start: int, *, after: bool = False) -> str | None:
    """Return the file nearest to `start`, or with `after` the next one after it, with line or function."""
    files = list(_FILE.finditer(text))
    if not files:
        return None
    found = min(files, key=lambda item: (after and item.start(1) < start, abs(item.start(1) - start)))
    name, inside = str(found.group(1)), found.group(2)
    if inside or name.endswith(_NATIVE_FILES):
        return f"{name}:{inside}" if inside else name
    functions: list[Any] = list(_FUNCTION.finditer(text))
    if not functions:
        return name
    nearest = min(functions, key=lambda item: abs(item.start(1) - found.start(1)))
    return f"{name}:{nearest.group(1)}"
