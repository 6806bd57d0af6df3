"""Strip log prefixes: process, level and message of each line; recognise usual lines.

In: the lines of a log (or of an issue's code blocks). Out: `LogLine`s in the same order. Stripped are
container and CI timestamps, docker-compose names, terminal colours, quote marks, rank and process prefixes,
and vLLM's own `LEVEL date [file:line]`, in the formats of vLLM 0.2 to 0.33.

Usual lines, which healthy runs print, match a shape in `lists/usual_lines.txt` (made by
`app.train.usual_lines`). A shape is the first words of a line, with `#` for words that are not only letters.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.extract import lists
from app.extract.rules.patterns import pattern
from app.extract.text.document import Line

MAX_LINE_CHARS = 4_000
"""Characters read of one line; config dumps have up to 100,000."""

MAX_WRAPPINGS = 6

LOUD = frozenset({"ERROR", "CRITICAL", "FATAL"})
"""The levels of a line that is logged as an error."""

_COLOUR = pattern(r"(?:\x1b|\^\[|\\x1b|\\033)?\[\d{0,3}(?:;\d{1,3})*m|\x1b\[[0-9;?]*[A-Za-z]")
_OUTER = pattern(
    r"^(?:"
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP] ?"
    r"|\[\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*Z?\] ?(?:- )?"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*(?:Z|[+-]\d\d:?\d\d)?"
    r"(?: [\w.-]{1,60} >>| [\w.█-]{1,63} [\w.@/-]{1,60}\[\d+\]:)?(?:[ \t]*[:|-]+[ \t]?|[ \t]|$)"
    r"|\[?pod/[\w.-]{1,253}/[\w.-]{1,63}(?:\]|[ \t]) ?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.█-]{1,60} [\w.@-]{1,60}(?:\[\d+\])?: ?"
    r"|[A-Za-z][\w.]{0,40}(?:[-_][\w.-]{1,40} +| {2,})\| ?"
    r"|#\d+ \d+\.\d+ "
    r"|(?:\x1b|\^\[)?_bk;t=\d{9,16}\x07?"
    r"|[ \t\x{a0}]*[|│┃║](?:[ \t]|$)"
    r"|\d{1,4}\.\d{1,3} {1,6}"
    r"|[ \t]*> ?"
    r"|E {3,}"
    r"|`{3,}[a-z]* +"
    r"|[a-z0-9]{10,20}\[(?:info|error|warn|debug)\]"
    r")"
)
_PROCESS = pattern(
    r"^[ \t]*(?:"
    r"\(((?:\w*(?:EngineCore|Worker|APIServer|ApiServer|AsyncLLM|MainProcess|DPCoordinator)\w*)"
    r"(?: ?(?:TP|PP|DP|EP)\d[\w]*| rank=\d+)*)(?:\*)?(?:,? *(?:pid|ip|actor_id)=[^)]{0,80})?\)"
    r"|\[(rank\d+)\]:"
    r"|\((\w+) pid=\d+(?:, ip=[^)]{0,60})?\)"
    r")[ \t]?"
)
_LEVEL = pattern(
    r"^[ \t]*u?(INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL)(?:[ \t:-]+)"
    r"(?:\d{1,8}[ \t]+)?(?:\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?[ \t]+)?"
    r"(?:\[?[\w./-]{1,120}\.(?:py|cc|cpp|cu|rs):\d+\[?\]:?)?[ \t]?"
)
_BRACKETED = pattern(
    r"^\[(INFO|WARNING|ERROR|DEBUG|CRITICAL)\](?: ?\[[\w. -]{1,60}\])*(?:[ \t]*>>>)?[ \t:-]*"
)
_NAMED = pattern(
    r"^(?:- )?(?:[A-Za-z_][\w.]{1,60} (?:- |\d{1,7} )|[A-Za-z_]\w*\.[\w.]{1,60} )"
    r"(INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL)(?: - |[ \t]+)"
    r"(?:[\w./-]{1,120}\.py:\d{1,6}(?: - |:? ))?(?:\[address=[^\]]{1,80}\] ?)?"
)
"""Python's own loggers, after the time: name, perhaps process id, level, perhaps file and line."""
_LETTERED = pattern(r"^\[?([EWIF])\d{4} \d\d:\d\d:[\d.]+ +(?:\d+ )?[\w./-]{1,120}:\d+\][ \t]?")
"""Prefix of the loggers of torch, NCCL process groups and absl."""

_LETTERS = {"E": "ERROR", "W": "WARNING", "I": "INFO", "F": "FATAL"}
_LEVELS = ("INFO", "WARN", "ERROR", "DEBUG", "CRITICAL", "FATAL")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: `number` counts from 1, `text` is the message, `start`..`end` the span of the raw line."""

    number: int
    text: str
    process: str
    level: str
    start: int
    end: int
    raw: str


def read_lines(lines: Iterable[Line]) -> Iterator[LogLine]:
    """Strip prefixes; number the lines from 1."""
    return read_numbered(enumerate(lines, 1))


def read_numbered(lines: Iterable[tuple[int, Line]]) -> Iterator[LogLine]:
    """Strip prefixes of lines that already have numbers, possibly with gaps."""
    for number, line in lines:
        text, process, level = unwrap(line.text[:MAX_LINE_CHARS])
        yield LogLine(number, text, process, level, line.start, line.end, line.text)


def unwrap(line: str) -> tuple[str, str, str]:
    """Return a line's message, the process that printed it ("" if unknown) and its level ("" if none)."""
    text = line
    if "[" in text and "m" in text and ("\x1b" in text or "[0" in text or "[1" in text or "[3" in text):
        text = _COLOUR.sub("", text)
    process, level, rule = "", "", None
    for _ in range(MAX_WRAPPINGS):
        head = text[:1] if text[:1] > " " else text.lstrip(" \t\xa0")[:1]
        before, rule = rule, _rule_for(head, text, level) if head else None
        if rule is None and before is _OUTER and not level:
            rule = _NAMED
        found = rule.match(text) if rule is not None else None
        if found is None or found.end() == 0:
            break
        text = text[found.end() :]
        if rule is _PROCESS:
            process = _process_of(found)
        elif rule in (_LEVEL, _BRACKETED, _NAMED):
            level = found.group(1)
        elif rule is _LETTERED:
            level = level or _LETTERS[found.group(1)]
    return text.removesuffix("^M").removesuffix("\\n"), process, level


def _rule_for(head: str, text: str, level: str) -> Any:
    """Choose the pattern to try by the first characters of a line, which is far cheaper than matching."""
    if head == "(" or (head == "[" and "[rank" in text[:20]):
        return _PROCESS
    mark = text[1:3] if head == "[" else text[:2]
    if mark[:1] in _LETTERS and mark[1:].isdigit():
        return _LETTERED
    if head == "[":
        return _BRACKETED if not level and text[1:2] in "IWEDC" else _OUTER
    if head in "uIWEDCF" and not level and text.lstrip(" \tu").startswith(_LEVELS):
        return _LEVEL
    dated = text[3:4] == text[6:7] == " " or (head == "E" and "E   " in text[:8])
    is_console = text[:10].isalnum() and "]" in text[15:27]
    if is_console or dated or head in "0123456789>|│┃║#_^`\x1bp" or "| " in text[:44]:
        return _OUTER
    return None


def _process_of(found: Any) -> str:
    """Return a process's stable name: `EngineCore_DP0`, `Worker_TP3`, `rank0`."""
    process = next(group for group in found.groups() if group)
    return "_".join(process.replace("rank=", "TP").split())


def first_hits(lines: Sequence[LogLine], wanted: Any) -> Iterator[tuple[LogLine, Any]]:
    """Yield the lines that a pattern meets, with its first match; one pass over the text is cheapest."""
    at, end, last = -1, 0, -1
    for hit in wanted.finditer("\n".join(line.text for line in lines)):
        while end <= hit.start():
            at += 1
            end += len(lines[at].text) + 1
        if at > last:
            last = at
            yield lines[at], hit


SHAPE_WORDS = 8
MAX_WORD_CHARS = 30


def is_usual(line: LogLine) -> bool:
    """True if a healthy run prints such a line; always False for lines logged as errors."""
    return line.level not in LOUD and shape_of(line.text) in _usual_shapes()


def shape_of(text: str) -> str:
    """Return the shape of a line: `loading weights took # seconds`."""
    words = text[:400].lower().split(maxsplit=SHAPE_WORDS)[:SHAPE_WORDS]
    return " ".join(_plain(word) for word in words)


def _plain(word: str) -> str:
    bare = word.strip(".,:;()[]'\"`")
    return bare if bare.replace("_", "").replace("-", "").isalpha() and len(bare) <= MAX_WORD_CHARS else "#"


@lru_cache(maxsize=1)
def _usual_shapes() -> frozenset[str]:
    return frozenset(lists.read_lines("usual_lines"))
