"""Apply a remedy to the caller's own launch command: the full new command, and what changed. Pure functions.

Input: the `Launch` read from a log, and the change that a remedy asks for. Output: a `ComposedCommand`, or
None if the change does not apply to the command.
"""

import json
import re
import shlex
from collections.abc import Collection, Sequence
from typing import Literal

from pydantic import Field

from app.extract.facts import Frozen
from app.extract.fields.launch import Launch, LaunchSource, Piece, cut_command
from app.extract.fields.settings import normalise_name
from app.extract.lists import load
from app.knowledge.remedies import Remedy

Change = Literal["same", "added", "removed"]
SURE = 0.95
"""Least confidence for applying a remedy that removes an option; see `Workaround.command`."""

_COSTS: dict[str, str] = load("launch")["costs"]
_SERVER_ONLY = frozenset(map(normalise_name, load("launch")["server"]["names"]))
"""Options that `LLM(...)` does not take."""
_ASSIGNED = re.compile(r"(?:export )?([A-Z][A-Z0-9_]*)=([^\s'\"]+|'[^']*'|\"[^\"]*\")")
OWN_COMMAND = "vllm serve YOUR_ARGS"
"""Placeholder for the caller's command in a step."""
LEFT_OUT = f"{OWN_COMMAND} # without"
"""Placeholder for the command without the option that follows."""
_OWN_COMMAND = re.compile(rf"(?:^| ){OWN_COMMAND}(?: # without)?\b ?")
_ASSIGNING = re.compile(r"[^\s=]+[\s=]")
_INSTALL = re.compile(r"(?:uv )?pip3? install ")
_RELEASE = re.compile(r"(?:pip install vllm==|vllm/vllm-openai:v)(\d[\w.+]*)")
"""A release of vLLM, as a package or as an image."""
_IMAGE = re.compile(r"((?:^|\s)\S*\bvllm-openai:)\S+")
_FIELD_NAME = re.compile(r"(?<![\w.])(?:--)?([a-z]+(?:[_-][a-z]+)+)(?![\w(])")
_LETTERS = re.compile(r"[a-z]+")
_BOUNDS = frozenset({"max", "min", "num", "enable", "disable", "no", "use", "size", "config"})
"""Generic words in option names, without a final s."""
_CONTAINERS = frozenset({"docker", "podman"})
_SETTERS = frozenset({"sudo", "env", "export"})
"""Words that may stand before a variable that is set for a command."""


class CommandPart(Frozen):
    """A part of the command; a `removed` one is not in the new command."""

    text: str
    change: Change = "same"


class ComposedCommand(Frozen):
    """The caller's command with one change applied."""

    change: str = Field(description="the change alone, as the workaround or step states it")
    line: str = Field(description="the whole command, ready to be typed")
    parts: tuple[CommandPart, ...] = Field(
        description="`line` in parts; the parts that are not `removed`, joined, are `line`"
    )
    source: LaunchSource = Field(
        description="`command`: typed in the log; `arguments`: made of those that the program printed"
    )
    is_there: bool = Field(False, description="whether the command already contains the change")
    open_names: tuple[str, ...] = Field((), description="options whose original value the log does not print")
    cost: str | None = Field(None, description="drawback of the change; null if none is known")


def compose_all(
    launch: Launch | None, remedies: Sequence[Remedy], steps: Sequence[str], *, limit: int = 3
) -> tuple[ComposedCommand, ...]:
    """Apply each remedy, then each step's command, to the launch command; without duplicates."""
    found: dict[str, ComposedCommand] = {}
    if launch is None:
        return ()
    made = [compose_remedy(launch, remedy) for remedy in remedies]
    made += [compose(launch, step) for step in steps if step]
    for item in made:
        if item is not None:
            found.setdefault(item.line, item)
    return tuple(found.values())[:limit]


def compose_remedy(launch: Launch, remedy: Remedy) -> ComposedCommand | None:
    """Apply a remedy to the command; None if it failed, does not apply or is not certain enough."""
    if remedy.outcome == "fails":
        return None
    if remedy.command:
        return compose(launch, remedy.command)
    if remedy.without and remedy.confidence >= SURE:
        return compose(launch, remedy.typed, without=True)
    return None


def compose(launch: Launch, change: str, *, without: bool = False) -> ComposedCommand | None:
    """Apply a change to the command; None if it does not apply.

    Args:
        change: an option, an environment variable assignment, a release of vLLM, or a pip install, which is
            put in front.
        without: remove the option or variable instead.
    """
    without = without or LEFT_OUT in change
    change, pieces = alone(change), launch.pieces
    is_container = any(piece.text in _CONTAINERS for piece in pieces[:3])
    if _RELEASE.fullmatch(change) or _INSTALL.match(change):
        return None if without else _with_package(launch, change, is_container=is_container)
    wanted = cut_command(change.removeprefix("export "))
    is_python = launch.program == "python"
    if not wanted or not all(piece.name for piece in wanted):
        return None
    if is_python and any(_is_variable(piece) or piece.name in _SERVER_ONLY for piece in wanted):
        return None
    wanted = tuple(map(_as_keyword, wanted)) if is_python else wanted
    touched = {bare(piece.name) for piece in wanted}
    present = [piece for piece in pieces if bare(piece.name) in touched and piece.name]
    if without:
        return _composed(launch, change, _kept(pieces, touched)) if present else None
    if [value_of(piece) for piece in present] == [value_of(piece) for piece in wanted]:
        return _composed(launch, change, _kept(pieces), is_there=True)
    costs = [cost for piece in wanted if (cost := _cost(piece, present))]
    parts = _placed(pieces, wanted, is_container=is_container)
    return _composed(launch, change, parts, costs=costs)


def named_options(launch: Launch, message: str) -> tuple[Piece, ...]:
    """Return the options of the command that an error message is about.

    A message names an option by its flag or field name, or by all of the words that say what it sets:
    "Concurrent Partial Prefill" names `--max-num-partial-prefills`. One word alone is too common to count.
    """
    text = message.lower()
    fields = {name.replace("_", "-") for name in _FIELD_NAME.findall(text)}
    words = {word.removesuffix("s") for word in _LETTERS.findall(text)}
    found = []
    for piece in launch.pieces:
        if not piece.name or _is_variable(piece):
            continue
        telling = {word.removesuffix("s") for word in piece.name.split("-")} - _BOUNDS
        if bare(piece.name) in fields or (len(telling) > 1 and telling <= words):
            found.append(piece)
    return tuple(found)


def value_of(piece: Piece) -> str | None:
    """Return what an option or a variable is set to, without quotes; None for a switch."""
    found = _ASSIGNING.match(piece.text)
    if found is None:
        return piece.name if piece.name.startswith("no-") else None
    value = piece.text[found.end() :]
    try:
        return " ".join(shlex.split(value)).removeprefix(f"{piece.name}=")
    except ValueError:
        return value


def alone(change: str) -> str:
    """Return a change without the placeholder command that a step writes around it."""
    return _OWN_COMMAND.sub(" ", change.strip().strip("`")).strip()


def bare(name: str) -> str:
    """Return an option name without a `no-` prefix."""
    return name.removeprefix("no-")


def _kept(pieces: Sequence[Piece], taken: Collection[str] = ()) -> list[CommandPart]:
    return [
        CommandPart(text=piece.text, change="removed" if piece.name and bare(piece.name) in taken else "same")
        for piece in pieces
    ]


def _with_package(launch: Launch, change: str, *, is_container: bool) -> ComposedCommand | None:
    """Install a package before the command, or take the image of the release; None in Python."""
    release = _RELEASE.fullmatch(change)
    if is_container:
        parts = _of_release(launch.pieces, release[1]) if release else []
        return _composed(launch, change, parts) if any(part.change == "added" for part in parts) else None
    if launch.program != "shell":
        return None
    install = f"pip install vllm=={release[1]}" if release else change
    return _composed(
        launch, change, [CommandPart(text=f"{install} &&", change="added"), *_kept(launch.pieces)]
    )


def _of_release(pieces: Sequence[Piece], release: str) -> list[CommandPart]:
    """Return a container's command with vLLM's image of a release."""
    parts: list[CommandPart] = []
    for piece in pieces:
        text = _IMAGE.sub(rf"\g<1>v{release}", piece.text)
        parts.append(CommandPart(text=piece.text, change="same" if text == piece.text else "removed"))
        if text != piece.text:
            parts.append(CommandPart(text=text, change="added"))
    return parts


def _is_variable(piece: Piece) -> bool:
    return _ASSIGNED.fullmatch(piece.text) is not None


def _placed(pieces: Sequence[Piece], wanted: Sequence[Piece], *, is_container: bool) -> list[CommandPart]:
    """Insert the change in place of the old value, else variables at the front and options at the end."""
    front = next((i for i, piece in enumerate(pieces) if piece.text not in _SETTERS), 0)
    if is_container:
        front = next(i + 1 for i, piece in enumerate(pieces) if piece.text == "run")
    added: dict[int, list[CommandPart]] = {}
    for is_variable in (True, False):
        group = [piece for piece in wanted if _is_variable(piece) == is_variable]
        names = {bare(piece.name) for piece in group}
        old = (i + 1 for i, piece in enumerate(pieces) if piece.name and bare(piece.name) in names)
        at = next(old, front if is_variable else len(pieces))
        before = "-e " if is_variable and is_container else ""
        added.setdefault(at, []).extend(CommandPart(text=before + one.text, change="added") for one in group)
    parts = _kept(pieces, {bare(piece.name) for piece in wanted})
    return [one for at in range(len(parts) + 1) for one in (*added.get(at, ()), *parts[at : at + 1])]


def _composed(
    launch: Launch,
    change: str,
    parts: Sequence[CommandPart],
    *,
    is_there: bool = False,
    costs: Sequence[str] = (),
) -> ComposedCommand:
    if launch.program == "python":
        opening, between, closing = "LLM(", ", ", ")"
    else:
        opening, between, closing = "", " ", ""
    last = max((i for i, part in enumerate(parts) if part.change != "removed"), default=0)
    ends = [closing if i == last else between for i in range(len(parts))]
    listed = [
        part if part.change == "removed" else CommandPart(text=part.text + end, change=part.change)
        for part, end in zip(parts, ends, strict=True)
    ]
    listed = [CommandPart(text=opening), *listed] if opening else listed
    return ComposedCommand(
        change=change,
        line="".join(part.text for part in listed if part.change != "removed"),
        parts=tuple(listed),
        source=launch.source,
        is_there=is_there,
        open_names=launch.open_names,
        cost="; ".join(costs) or None,
    )


def _as_keyword(piece: Piece) -> Piece:
    """Return an option as a keyword argument of `LLM(...)`."""
    value, name = value_of(piece), bare(piece.name)
    if value is None or value == piece.name:
        literal = repr(value is None)
    else:
        try:
            literal = repr(json.loads(value))
        except ValueError:
            literal = repr(value)
    return Piece(f"{name.replace('-', '_')}={literal}", name)


def _cost(piece: Piece, before: Sequence[Piece]) -> str | None:
    """Return the cost of a setting; for a number, that of raising or lowering it."""
    if cost := _COSTS.get(piece.name):
        return cost
    values = [_number(value_of(item)) for item in (piece, *before[:1])]
    new, old = (values[0], values[1]) if len(values) == 2 else (values[0], None)
    if new is None or old is None or new == old:
        return None
    return _COSTS.get(f"{piece.name} {'up' if new > old else 'down'}")


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None
