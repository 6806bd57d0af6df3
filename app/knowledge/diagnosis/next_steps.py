"""What to do about a failure, the most specific step first.

Steps are data: `next_steps.toml`. Their conditions hold of the log or of its message. What a step takes out
of the message, and figures that follow from it, fill its text and command.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from shlex import quote
from typing import Any

from app.extract.fields.launch import Launch
from app.extract.reader import LogReading
from app.extract.redact import redact
from app.extract.rules.patterns import pattern
from app.extract.versions import is_before
from app.knowledge.cluster.families import FailureKind
from app.knowledge.diagnosis.error_text import message_lines
from app.knowledge.diagnosis.failures import find_outcome, is_question
from app.knowledge.diagnosis.quoted_advice import advice_data
from app.knowledge.diagnosis.shapes import NextStep
from app.knowledge.launch import LEFT_OUT, OWN_COMMAND, alone, compose
from app.knowledge.remedies import Remedy, action_key

MAX_STEPS = 4
MAX_ERROR_CHARS = 8_000
DEFAULT_PORT = 8000
MIN_SHARE = 0.1
"""Of a GPU with less room no share is worth asking for: what holds the rest must go."""
OTHER_PROGRAM = "other_program"
"""The only condition of a log that vLLM did not print."""
_MISSING = pattern(r"No module named '?((?:vllm\.)?[A-Za-z]\w*)")
"""A module that was not found; of vLLM's own those that no build makes."""
_PORT = pattern(r"'port': (\d{2,5})\b|--port[ =](\d{2,5})\b|address \('[^']*', (\d{2,5})\)")
_PORT_TAKEN = pattern(r"\bport:? (\d{2,5})\b|address \('[^']*', (\d{2,5})\)")
_OPTION = pattern(r" (--[a-z][a-z-]+)")
_ON_HUB = pattern(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}")


@lru_cache(maxsize=1)
def _data() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads((files(__package__) / "next_steps.toml").read_text(encoding="utf-8"))


def rows() -> list[dict[str, Any]]:
    """The steps as they stand in the data, in the order in which they are offered."""
    return _data()["step"]


def message_conditions() -> list[dict[str, Any]]:
    """What a message may say, by the name that steps have for it."""
    return _data()["condition"]


def next_steps(
    reading: LogReading, kinds: Sequence[FailureKind], *, particular: bool = False
) -> tuple[NextStep, ...]:
    """Steps that fit what the log says and what it lacks, the most specific first.

    `particular`: only those that the very message proves, as they hold beside any remedy.
    """
    error = _message_of(reading)
    known = conditions_of(reading, kinds)
    found: list[NextStep] = []
    set_before: set[str] = set()
    main = {kind.id for kind in kinds[:1]}
    for row in sorted(rows(), key=lambda row: _rank(row, main)):
        if (particular and "pattern" not in row) or not holds(row, known):
            continue
        if OTHER_PROGRAM in known and OTHER_PROGRAM not in row["when"]:
            continue
        step = _step_of(row, error, reading)
        if step is None:
            continue
        options = set(_OPTION.findall(step.command.partition("YOUR_ARGS")[2]))
        if not (options and options <= set_before):
            found.append(step)
            set_before |= options
        if len(found) == MAX_STEPS:
            break
    return tuple(found)


def _rank(row: dict[str, Any], main: set[str]) -> int:
    """Steps that the message proves come first, then those of the kind that names the failure."""
    if "pattern" in row:
        return 0
    return 1 if any(main & set(condition.split("|")) for condition in row["when"]) else 2


def untried(
    steps: Iterable[NextStep], launch: Launch | None, remedies: Iterable[Remedy]
) -> Iterator[NextStep]:
    """Yield the steps that the command does not contain already and that did not fail in a report.

    Where a step types the caller's command among others, it is the one that the log shows.
    """
    failed = {action_key(one.action) for one in remedies if one.outcome == "fails" and not one.without}
    is_whole = launch and launch.program == "shell" and not launch.open_names
    for step in steps:
        whole = compose(launch, step.command) if launch and step.command else None
        if (whole and whole.is_there) or action_key(alone(step.command)) in failed:
            continue
        is_typed = launch and is_whole and not whole and LEFT_OUT not in step.command
        own = launch.line if launch and is_typed else OWN_COMMAND
        yield step.model_copy(update={"command": step.command.replace(OWN_COMMAND, own)})


def holds(row: dict[str, Any], known: frozenset[str]) -> bool:
    """Whether a step's conditions are met."""
    if known & set(row.get("unless", ())):
        return False
    return all(known & set(condition.split("|")) for condition in row["when"])


def conditions_of(reading: LogReading, kinds: Sequence[FailureKind]) -> frozenset[str]:
    """The names of the conditions that hold of a log; `next_steps.toml` says what each means."""
    found: set[str] = set()
    if reading.printer.is_vllm is False:
        return frozenset({OTHER_PROGRAM})
    if is_question(reading):
        found.add("question")
    else:
        if reading.errors.cause is None:
            found.add("only_wrappers" if reading.errors.wrappers else "no_error")
        found |= {"refused", "not_started"} & {find_outcome(reading, kinds)}
    found |= {kind.id for kind in (kinds[:1] if kinds and kinds[0].is_own else kinds)}
    error = _message_of(reading)
    found |= {
        row["id"]
        for row in message_conditions()
        if _find(row["pattern"], reading.log if row.get("in_log") else error)
    }
    if "missing_package" in found:
        found.update(_origins_of_missing(reading))
    if any(kind.is_own for kind in kinds):
        found.add("own_mistake")
    if unknown := _unknown_of(reading):
        found |= {*unknown, "environment_missing"}
    return frozenset(found)


def _message_of(reading: LogReading) -> str:
    return "\n".join(line.text for line in message_lines(reading))[:MAX_ERROR_CHARS]


def _find(expression: str, text: str) -> Any:
    return pattern(expression, ignore_case=True).search(text)


def _step_of(row: dict[str, Any], error: str, reading: LogReading) -> NextStep | None:
    """The step, filled in from log and error; None if these lack what it needs."""
    values = {"unknown": ", ".join(_unknown_of(reading).values())}
    figures = row.get("figures", {})
    if "pattern" in row:
        found = _find(row["pattern"], reading.log if row.get("in_log") else error)
        if found is None:
            return None
        values |= {name: redact(value or "", private=True).text for name, value in found.groupdict().items()}
        if module := values.get("module"):
            package = advice_data()["packages"].get(module, module.replace("_", "-"))
            values["package"] = quote(package)
    text, command = row["text"], _command_for(row, reading.surroundings.versions.get("vllm"))
    if "{port}" in command or any("port" in needed for needed in figures.values()):
        values["port"] = _port_of(error, reading.log)
    for name, (figure, *needed) in figures.items():
        value = FIGURES[figure](*(values[key] for key in needed))
        if value is None:
            return None
        values[name] = value
    for name, value in values.items():
        text, command = text.replace(f"{{{name}}}", value), command.replace(f"{{{name}}}", value)
    model = next(filter(_ON_HUB.fullmatch, reading.surroundings.models), "YOUR_MODEL")
    return NextStep(text=text, command=command.replace("YOUR_MODEL", model))


def _command_for(row: dict[str, Any], version: str | None) -> str:
    """What to type in the log's version of vLLM."""
    older = (one["command"] for one in row.get("older", ()) if is_before(version, one["before"]))
    command: str = next(older, row.get("command", ""))
    return command


def _port_of(error: str, log: str) -> str:
    """The port that the error names, else the server's; vLLM's default where the log shows none."""
    found = _PORT_TAKEN.search(error) or _PORT.search(log)
    return str(found[found.lastindex] if found else DEFAULT_PORT)


def _share(free: str, total: str) -> str | None:
    """How much of a memory is free, rounded down."""
    share = int(100 * float(free) / float(total)) / 100 if float(total) else 0.0
    return f"{share:.2f}" if MIN_SHARE <= share < 1 else None


def _next(number: str) -> str:
    return str(int(number) + 1)


def _divisor(number: str, limit: str) -> str | None:
    """The greatest power of two below a limit that divides a number, or else its greatest divisor there."""
    below = [size for size in range(min(int(number), int(limit) - 1), 0, -1) if int(number) % size == 0]
    powers = (size for size in below if size > 1 and size & (size - 1) == 0)
    return next(map(str, (*powers, *below)), None)


def _size(number: str) -> str:
    """A number of bytes in GiB; one with a unit as it is."""
    return f"{float(number) / 2**30:.3g} GiB" if number.isdigit() else number


FIGURES: dict[str, Callable[..., str | None]] = {
    "share": _share,
    "next": _next,
    "divisor": _divisor,
    "size": _size,
}
"""What can be worked out of the values of a message; None: nothing sensible."""


def _unknown_of(reading: LogReading) -> dict[str, str]:
    """What of the environment the log does not show, by the name of the condition."""
    around = reading.surroundings
    parts = (
        ("no_version", "version of vLLM", around.versions.get("vllm")),
        ("no_gpu", "GPU", around.gpus),
        ("no_model", "model", around.models),
    )
    return {condition: name for condition, name, value in parts if not value}


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
