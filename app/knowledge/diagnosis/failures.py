"""Which kind of failure a log reports, and what became of the program; a text may also be a question.

Kinds are data: `failure_kinds.toml`. They are looked for in the words of the cause; where these name none, in
the lines that its message goes on in, then in the errors that were raised on top of it.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from app.extract.log.lines import LogLine, is_usual
from app.extract.log.messages import wrapper_rule
from app.extract.log.process_stream import ErrorRecord
from app.extract.reader import LogReading
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.knowledge.cluster.families import FailureKind, failure_kinds, kinds_in
from app.knowledge.diagnosis.error_text import CHOICES, message_lines
from app.knowledge.diagnosis.shapes import Failure, RunOutcome

Program = Literal["server", "engine", "client", "program"]
"""A server, a script that runs the engine, a command that asks a server, or one that is not told."""
LAST_LINES = 20
"""Where a log without an error is looked at: it stops where it went wrong."""
MAX_WORDS_CHARS = 8_000
ROUTINE_LEVELS = frozenset({"INFO", "DEBUG"})
HANG = "timeout"
"""The only kind that lines of a routine level report: a server that waits says so; others name a subject."""
_UP = pattern(
    r"Uvicorn running on|Application startup complete|Avg prompt throughput|\" 200(?: OK|$)"
    r"|entrypoints/llm\.py\", line \d+, in (?:generate|chat|beam_search|encode|embed|classify|reward|score)\b"
)
_STARTING = pattern(
    r"vllm/entrypoints/|API server version|non-default args|Initializing an? (?:V\d )?LLM engine"
    r"|vllm serve|api_server|[Ff]ailed to start|initialization failed|create_engine_config"
    r"|Loading (?:model|safetensors|pt checkpoint)"
)
_SERVER = pattern(r"APIServer|api_server|vllm serve|API server|uvicorn|cli/serve\.py|vllm: error")
_CLIENT = pattern(r"vllm/benchmarks/|cli/(?:openai|benchmark\w*)[/.]|openai/_base_client")
_ENGINE = pattern(r"EngineCore|Worker|LLM engine|vllm/(?:v1/)?(?:engine|worker|executor)/")


def find_kinds(reading: LogReading) -> tuple[FailureKind, ...]:
    """The kinds that an error is of, the most specific first."""
    for words in _words_of(reading):
        if found := kinds_in(words):
            return found
    if reading.errors.cause or reading.errors.wrappers or reading.errors.apparent:
        return ()
    routine = "\n".join(line.text for line in _last_lines(reading) if line.level in ROUTINE_LEVELS)
    return tuple(kind for kind in kinds_in(routine[-MAX_WORDS_CHARS:]) if kind.id == HANG)


def asked_kinds(question: str) -> tuple[FailureKind, ...]:
    """The kinds that a question in words is about."""
    words = question[:MAX_WORDS_CHARS]
    return tuple(kind for kind in failure_kinds() if kind.asked and kind.asked.search(words))


def name_failure(kinds: tuple[FailureKind, ...]) -> Failure | None:
    """The first kind, as an answer shows it."""
    return Failure(kind=kinds[0].id, name=kinds[0].name) if kinds else None


def find_outcome(reading: LogReading, kinds: Sequence[FailureKind]) -> RunOutcome:
    """What became of the program; a server that never came up is told apart from one that stopped."""
    cause = reading.errors.cause or reading.errors.apparent
    scene = kinds[0].scene if kinds else ""
    if reading.outcome != "stopped" or cause is None:
        return reading.outcome
    before = reading.log[: cause.line.start]
    if _UP.search(before):
        return "stopped"
    return "not_started" if scene == "start" or _STARTING.search(reading.log) else "stopped"


def find_program(reading: LogReading) -> Program:
    if _CLIENT.search(reading.log) and not _ENGINE.search(reading.log):
        return "client"
    if _SERVER.search(reading.log):
        return "server"
    return "engine" if reading.printer.is_vllm or _ENGINE.search(reading.log) else "program"


def _words_of(reading: LogReading) -> Iterator[str]:
    errors = reading.errors
    if errors.cause is None:
        words = [text for text, _ in errors.wrappers]
        if errors.apparent is not None:
            words.append(_own_words(errors.apparent))
        words = words or [line.text for line in _last_lines(reading) if line.level not in ROUTINE_LEVELS]
        yield "\n".join(words)[-MAX_WORDS_CHARS:]
        return
    yield _own_words(errors.cause)
    yield _without_choices("\n".join(line.text for line in message_lines(reading)))
    for record in errors.chain:
        if wrapper_rule(f"{record.type or ''}: {record.message}") is None:
            yield _own_words(record)


def _last_lines(reading: LogReading) -> list[LogLine]:
    """Those of the last lines that a healthy run does not print."""
    last = reading.lines[-LAST_LINES:]
    return [line for line in last if not is_usual(line)]


def _own_words(record: ErrorRecord) -> str:
    message = _without_choices(record.message)
    return f"{record.type or ''}: {message}\n{_without_choices(record.line.text)}"


def _without_choices(text: str) -> str:
    text = text[:MAX_WORDS_CHARS]
    found = CHOICES.search(text)
    return text[: found.end()] if found else text


MAX_QUESTION_CHARS, MAX_QUESTION_LINES = 300, 3
"""A longer text without an error is the log of something, or a story."""


def kinds_of(reading: LogReading) -> tuple[FailureKind, ...]:
    """The kinds of the failure that a log reports, or that a question is about; none of another program's."""
    if reading.printer.is_vllm is False:
        return ()
    return asked_kinds(reading.log) if is_question(reading) else find_kinds(reading)


def is_question(reading: LogReading) -> bool:
    """No error in it, no line of a program's output, and short enough to be asked."""
    if reading.errors.cause is not None or reading.errors.wrappers or reading.printer.is_vllm is False:
        return False
    if len(reading.log) > MAX_QUESTION_CHARS or len(reading.lines) > MAX_QUESTION_LINES:
        return False
    if any(line.process or line.level for line in reading.lines):
        return False
    return all(block.kind != "code" for block in read_document(IssueText(0, "", reading.log)).blocks)
