"""Which kind of failure a log reports, what became of the program, and what to do if no issue is known.

Kinds are data: `failure_kinds.toml`. They are looked for in the words of the cause; where these name none, in
the lines that its message goes on in, then in the errors that were raised on top of it. Steps are data too:
`next_steps.toml`. A text may also be a question, and no log.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from shlex import quote
from typing import Any, Literal

from app.extract.log.messages import wrapper_rule
from app.extract.log.process_stream import ErrorRecord
from app.extract.reader import LogReading
from app.extract.redact import redact
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.extract.versions import is_before
from app.knowledge.cluster.families import FailureKind, failure_kinds, kinds_in
from app.knowledge.diagnosis.error_text import CHOICES, message_lines
from app.knowledge.diagnosis.quoted_advice import advice_data
from app.knowledge.diagnosis.shapes import Failure, NextStep, RunOutcome

Program = Literal["server", "engine", "client", "other"]
"""A server, a script that runs the engine, a command that asks a server, or no vLLM at all."""
LAST_LINES = 60
"""Where a log without an error is looked at: it stops where it went wrong."""
MAX_WORDS_CHARS = 8_000
_UP = pattern(r"Uvicorn running on|Application startup complete|Avg prompt throughput|\" 200(?: OK|$)")
_STARTING = pattern(
    r"vllm/entrypoints/|API server version|non-default args|Initializing an? (?:V\d )?LLM engine"
    r"|vllm serve|api_server|[Ff]ailed to start|initialization failed|create_engine_config"
    r"|Loading (?:model|safetensors|pt checkpoint)"
)
_SERVER = pattern(r"APIServer|api_server|vllm serve|API server|uvicorn|cli/serve\.py|vllm: error")
_CLIENT = pattern(r"vllm/benchmarks/|cli/(?:openai|benchmark\w*)[/.]|openai/_base_client")
DEFAULT_PORT = 8000
_PORT = pattern(r"'port': (\d{2,5})\b|--port[ =](\d{2,5})\b|address \('[^']*', (\d{2,5})\)")
_OPTION = pattern(r" (--[a-z][a-z-]+)")
_ENGINE = pattern(r"EngineCore|Worker|LLM engine|vllm/(?:v1/)?(?:engine|worker|executor)/")


def find_kinds(reading: LogReading) -> tuple[FailureKind, ...]:
    """The kinds that an error is of, the most specific first."""
    for words in _words_of(reading):
        if found := kinds_in(words):
            return found
    return ()


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
    if scene == "request":
        return "refused"
    before = reading.log[: cause.line.start]
    if _UP.search(before):
        return "stopped"
    return "not_started" if scene == "start" or _STARTING.search(reading.log) else "stopped"


def find_program(reading: LogReading) -> Program:
    if reading.is_vllm is False:
        return "other"
    if _CLIENT.search(reading.log) and not _ENGINE.search(reading.log):
        return "client"
    return "server" if _SERVER.search(reading.log) else "engine"


def _words_of(reading: LogReading) -> Iterator[str]:
    errors = reading.errors
    if errors.cause is None:
        words = [text for text, _ in errors.wrappers]
        if errors.apparent is not None:
            words.append(_own_words(errors.apparent))
        yield "\n".join(words or [line.text for line in reading.lines[-LAST_LINES:]])[-MAX_WORDS_CHARS:]
        return
    yield _own_words(errors.cause)
    yield _without_choices("\n".join(line.text for line in message_lines(reading)))
    for record in errors.chain:
        if wrapper_rule(f"{record.type or ''}: {record.message}") is None:
            yield _own_words(record)


def _own_words(record: ErrorRecord) -> str:
    message = _without_choices(record.message)
    return f"{record.type or ''}: {message}\n{_without_choices(record.line.text)}"


def _without_choices(text: str) -> str:
    text = text[:MAX_WORDS_CHARS]
    found = CHOICES.search(text)
    return text[: found.end()] if found else text


MAX_STEPS = 4
_MISSING = pattern(r"No module named '?((?:vllm\.)?[A-Za-z]\w*)")
"""A module that was not found; of vLLM's own those that no build makes."""
MAX_ERROR_CHARS = 8_000
MAX_QUESTION_CHARS, MAX_QUESTION_LINES = 300, 3
"""A longer text without an error is the log of something, or a story."""


@lru_cache(maxsize=1)
def rows() -> list[dict[str, Any]]:
    """The steps as they stand in the data, in the order in which they are offered."""
    text = (files(__package__) / "next_steps.toml").read_text(encoding="utf-8")
    steps: list[dict[str, Any]] = tomllib.loads(text)["step"]
    return steps


def kinds_of(reading: LogReading) -> tuple[FailureKind, ...]:
    """The kinds of the failure that a log reports, or that a question is about."""
    return asked_kinds(reading.log) if is_question(reading) else find_kinds(reading)


def next_steps(reading: LogReading, kinds: Sequence[FailureKind]) -> tuple[NextStep, ...]:
    """Steps that fit what the log says and what it lacks, the most specific first."""
    known = conditions_of(reading, kinds)
    error = "\n".join(line.text for line in message_lines(reading))[:MAX_ERROR_CHARS]
    if reading.errors.cause is not None:
        error = f"{reading.errors.cause.message}\n{error}"
    found: list[NextStep] = []
    set_before: set[str] = set()
    for row in rows():
        step = _step_of(row, error, reading) if holds(row, known) else None
        if step is None:
            continue
        options = set(_OPTION.findall(step.command.partition("YOUR_ARGS")[2]))
        if not (options and options <= set_before):
            found.append(step)
            set_before |= options
        if len(found) == MAX_STEPS:
            break
    return _with_port(found, reading.log)


def holds(row: dict[str, Any], known: frozenset[str]) -> bool:
    """Whether a step's conditions are met."""
    if known & set(row.get("unless", ())):
        return False
    return all(known & set(condition.split("|")) for condition in row["when"])


def _step_of(row: dict[str, Any], error: str, reading: LogReading) -> NextStep | None:
    """The step, filled in from log and error; None if its pattern is not found there."""
    text = row["text"].replace("{unknown}", ", ".join(_unknown_of(reading).values()))
    command = _command_for(row, reading.surroundings.versions.get("vllm"))
    if "pattern" in row:
        searched = reading.log if row.get("in_log") else error
        found = pattern(row["pattern"], ignore_case=True).search(searched)
        if found is None:
            return None
        values = {name: redact(value or "", private=True).text for name, value in found.groupdict().items()}
        if module := values.get("module"):
            package = advice_data()["packages"].get(module, module.replace("_", "-"))
            values["package"] = quote(package)
        for name, value in values.items():
            text, command = text.replace(f"{{{name}}}", value), command.replace(f"{{{name}}}", value)
    return NextStep(text=text, command=command)


def _command_for(row: dict[str, Any], version: str | None) -> str:
    """What to type in the log's version of vLLM."""
    older = (one["command"] for one in row.get("older", ()) if is_before(version, one["before"]))
    command: str = next(older, row.get("command", ""))
    return command


def _with_port(steps: Sequence[NextStep], log: str) -> tuple[NextStep, ...]:
    """The steps with the server's port; the log is searched for it only if one names it."""
    if not any("port}" in step.command for step in steps):
        return tuple(steps)
    port = _port_of(log)
    return tuple(
        NextStep(
            text=step.text,
            command=step.command.replace("{port}", str(port)).replace("{other_port}", str(port + 1)),
        )
        for step in steps
    )


def _port_of(log: str) -> int:
    """The port of the server that printed a log; vLLM's default where it is not shown."""
    found = _PORT.search(log)
    return int(found.group(found.lastindex)) if found else DEFAULT_PORT


def _unknown_of(reading: LogReading) -> dict[str, str]:
    """What of the environment the log does not show, by the name of the condition."""
    around = reading.surroundings
    parts = (
        ("no_version", "version of vLLM", around.versions.get("vllm")),
        ("no_gpu", "GPU", around.gpus),
        ("no_model", "model", around.models),
    )
    return {condition: name for condition, name, value in parts if not value}


def conditions_of(reading: LogReading, kinds: Sequence[FailureKind]) -> frozenset[str]:
    """The names of the conditions that hold of a log; `next_steps.toml` says what each means."""
    found: set[str] = set()
    if is_question(reading):
        found.add("question")
    else:
        if reading.errors.cause is None:
            found.add("only_wrappers" if reading.errors.wrappers else "no_error")
        found |= {"refused", "not_started"} & {find_outcome(reading, kinds)}
    found |= {kind.id for kind in kinds}
    if "missing_package" in found:
        found.update(_origins_of_missing(reading))
    if any(kind.is_own for kind in kinds):
        found.add("own_mistake")
    if unknown := _unknown_of(reading):
        found |= {*unknown, "environment_missing"}
    return frozenset(found)


def _origins_of_missing(reading: LogReading) -> Iterator[str]:
    """Whose the module is that was not found, where that is no package's: vLLM's, or the user's own."""
    cause = reading.errors.cause
    missing = _MISSING.search(cause.message) if cause else None
    if missing is None:
        return
    if missing[1].startswith("vllm."):
        yield "moved_module"
    elif re.search(rf"(?:['\"=]|-cls ){missing[1]}\.[\w.:]{{0,200}}[A-Z]\w", reading.log):
        yield "own_code"


def is_question(reading: LogReading) -> bool:
    """No error in it, no line of a program's output, and short enough to be asked."""
    if reading.errors.cause is not None or reading.errors.wrappers:
        return False
    if len(reading.log) > MAX_QUESTION_CHARS or len(reading.lines) > MAX_QUESTION_LINES:
        return False
    if any(line.process or line.level for line in reading.lines):
        return False
    return all(block.kind != "code" for block in read_document(IssueText(0, "", reading.log)).blocks)
