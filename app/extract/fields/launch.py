"""Recover the command that started vLLM from a log.

In: a log. Out: a `Launch`: the command as typed if the log shows it, else rebuilt from the printed arguments
(`non-default args: {…}`, `args: Namespace(…)`).
A truncated dump is ignored: an incomplete command is worse than none.
"""

import ast
import json
import re
import shlex
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, Literal

from app.extract.fields.settings import normalise_name
from app.extract.lists import load
from app.extract.log.lines import unwrap
from app.extract.rules.patterns import pattern
from app.extract.versions import is_before

LaunchSource = Literal["command", "arguments"]
Program = Literal["shell", "python"]

MAX_DUMP_CHARS = 12_000
MAX_COMMAND_CHARS = 4_000
MAX_MATCHES, MAX_TRIED = 2_000, 20
"""How many commands or dumps are looked at, and how many of the last ones are read for one that is whole."""
OPEN = "<as you had it>"
"""Placeholder for a value that the log masks or does not print as it was typed."""

_LIST = load("launch")
_INTERNAL, _SET_BY_PYTHON = frozenset(_LIST["internal"]["names"]), frozenset(_LIST["internal"]["python"])
_DEFAULTS: dict[str, list[Any]] = _LIST["defaults"]
_OBJECTS: dict[str, list[str]] = _LIST["objects"]
_PROGRAMS = tuple(_LIST["variables"]["starts"])
_MASK = "█"
_MASKED = re.compile(f"{_MASK}+")
_DUMP = pattern(r"non-default args: ?\{|(?:([\w.-]+)\.py:\d+\] ?|\b)args: ?Namespace\(")
"""The printed arguments; a dump of all of them with the module that printed it."""
_PRINTER = "api_server"
"""vLLM's module that printed all arguments; what another one prints are those of a program of the user's."""
_ENUM = re.compile(r"<[\w.]+: ('[^'<>]*'|[^<>]*)>")
_OBJECT = re.compile(r"<[^<>]*>|\*REDACTED\*")
_MODEL = pattern(r"\bconfig: ?model='([^'\n]{1,300})'")
"""The model as the engine prints its own configuration."""
_RUNNER = (
    r"(?:(?:nohup|exec|sudo|env|timeout|nice|stdbuf|srun|numactl|taskset|uvx|uv[ \t]+(?:tool[ \t]+)?run)"
    r"[ \t]+(?:-\S+[ \t]+(?:[\w.,:-]+[ \t]+)?|\d+[smh]?[ \t]+)*"
    r"|[a-z]\w*[ \t]+run[ \t]+(?:-\S+[ \t]+(?:[\w,:-]+[ \t]+)?)*--[ \t]+)*"
)
"""Programs that run the command behind them, with their options: `uv run`, `numactl -N 0`, `x run -- `."""
_PROMPT = (
    rf"(?:\([\w.-]+\)[ \t]*)?\[?(?:[\w.{_MASK}-]+@[\w.{_MASK}-]+|{_MASK}+)[^\n$#%>]{{0,80}}[$#%>][ \t]+"
    r"|PS [^\n>]{1,120}>[ \t]+|(?:➜|❯|λ)[ \t]+(?:[^\s➜❯]{1,60}[ \t]+)?(?:[$#%>❯][ \t]+)?"
)
"""A shell's prompt, maybe after the name of a Python environment, with user or host masked."""
_COMMAND = pattern(
    rf"(?m)^[ \t]*(?:{_PROMPT}|[$>#%+][ \t]+)?"
    r"((?:(?:sudo|exec|nohup|env|export|time)[ \t]+)*(?:[A-Z][A-Z0-9_]*=\S*[ \t]+(?:&&[ \t]+|\\\n>?[ \t]*)?)*"
    rf"{_RUNNER}"
    r"(?:vllm[ \t]+serve[ \t]+[^\s\[]|(?:\S*/)?python[\d.]*[ \t]+(?:-u[ \t]+)?-m[ \t]+vllm\.entrypoints\.|"
    r"(?:docker|podman)[ \t]+run[ \t]+))"
)
_SET_TO = r"=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'`\\;&]+)"
_ASSIGNED = rf"[A-Z][A-Z0-9]*_[A-Z0-9_]+{_SET_TO}"
_ASSIGNMENT = pattern(_ASSIGNED)
_TYPED = rf"[A-Z][A-Z0-9_]+{_SET_TO}"
"""A variable that is typed before a command, where names such as `CXX` are none of the container's own."""
_TYPED_ASSIGNMENT = pattern(_TYPED)
_EXPORTED = pattern(rf"\bexport[ \t]+((?:{_TYPED}[ \t]*)+)")
_STARTED = pattern(
    rf"((?:(?:export[ \t]+)?{_TYPED}[\s\\;&]+)*)({_RUNNER})"
    r"(?:vllm[ \t]+serve\b|(?:\S*/)?python[\d.]*[ \t]+-m[ \t]+vllm\.entrypoints\.)"
)
"""A command that starts the server, which need not begin a line, after its variables and its runners."""
_FENCED = pattern(r"`{3}[a-z]*[ \t\n]+(vllm[ \t]+serve[ \t]+[^`]{3,1000}?)\s*`{3}")
"""A command that starts the server, alone between code fences."""
_SERVER_COMMAND = pattern(
    r"\bvllm[ \t]+serve[ \t]|[ \t]-m[ \t]+vllm\.entrypoints\.|\b(?:docker|podman)[ \t]+run[ \t]"
)
"""What every command that starts a server holds."""
_TRACED = pattern(rf"[ \t]*\++ (export )?((?:{_TYPED}[ \t]*)+)")
"""Variables as `set -x` prints them."""
_TRACE = re.compile(r"[ \t]*\+")
_UNQUOTED = re.compile(r"[{}()<>|;]")
"""Signs that a shell would read: some shells print values in a trace without their quotes."""
_CONTAINER = pattern(r"\b(?:docker|podman)[ \t]+(?:run|exec)\b|\benvironment:((?:\s+-\s+[^\s:]+)+)")
"""A container that is started or entered, or the variables that a Compose file lists for one."""
_APART = pattern(r"[;`\n]|[,.] ")
"""Between the start of a container and a server's command: what says that it is not typed inside."""
_CONTAINER_VARIABLE = pattern(rf"[ \t](?:-e|--env)[ \t=]+[\"']?({_ASSIGNED})")
MIN_COLUMNS, MIN_FULL_LINES = 60, 2
"""Least width of a terminal, and how many further lines that fill it show that it cuts them."""
MAX_EXPORT_CHARS = 300
"""Distance of an `export` before the command that it is for."""
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_WORD = re.compile(r"(?:[^\s\"'\\]|\\.|\"(?:[^\"\\]|\\.)*\"|'[^']*')+")
_OPTION = re.compile(r"--?[A-Za-z]")
_OPERATOR = re.compile(r"\d?>|[|&;<#]|\(APIServer")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*=.*", re.DOTALL)
_IMAGE = re.compile(r"[\w./-]*(?:vllm|rocm)[\w./-]*(?::[\w.-]+)?")
_SWITCHES = frozenset(load("commands")["switches"]["names"])
_VARIABLE_OPTIONS = frozenset({"-e", "--env"})
"""Docker options that set an environment variable."""
_VALUELESS_OPTIONS = frozenset({"-u", "-it", "-ti", "-d", "--rm", "--privileged", "--init", "-i", "-t"})
"""Options of Python and Docker that take no value."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The smallest editable part of a command: an option with its value, or a word.

    `name` is an option's long form without dashes, a variable's name, or "" for any other word.
    """

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """How the program was started; `open_names` are the options whose value is unknown or masked."""

    source: LaunchSource
    program: Program
    pieces: tuple[Piece, ...]
    open_names: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The command on one line, or the call in Python."""
        is_python = self.program == "python"
        text = (", " if is_python else " ").join(piece.text for piece in self.pieces)
        return f"LLM({text})" if is_python else text


def read_launch(log: str, vllm_version: str | None = None) -> Launch | None:
    """Return the command that started the program; None if the log does not show it.

    Args:
        log: with secrets already masked; in printed arguments they become `OPEN`.
        vllm_version: decides which printed values are defaults.
    """
    return _from_command(log) or _from_wrapped_command(log) or _from_arguments(log, vllm_version)


# ---- as typed


def _from_command(log: str) -> Launch | None:
    for match in _last(_COMMAND, log, MAX_TRIED):
        start = match.start(1)
        prompt = start - (log.rfind("\n", 0, start) + 1)
        text = _joined_lines(_without_wraps(log[start : start + MAX_COMMAND_CHARS], prompt))
        pieces = cut_command(text)
        if pieces and "vllm" in text and any(piece.name for piece in pieces):
            if _TRACE.match(log[match.start() : match.start(1)]):
                if _UNQUOTED.search(_QUOTED.sub("", text)):
                    continue
                pieces = (
                    *_traced_above(log[max(0, match.start() - MAX_EXPORT_CHARS) : match.start()]),
                    *pieces,
                )
            return Launch("command", "shell", pieces, _masked_names(pieces))
    return None


def _from_wrapped_command(log: str) -> Launch | None:
    """Return the command of a log each line of which a container, a journal or a CI has marked."""
    for match in _last(_SERVER_COMMAND, log, MAX_TRIED):
        first = max(0, match.start() - MAX_COMMAND_CHARS)
        begin = (log.find("\n", first, match.start()) + 1 or first) if first else 0
        lines = log[begin : match.end() + MAX_COMMAND_CHARS].splitlines()
        if found := _from_command("\n".join(unwrap(line)[0] for line in lines)):
            return found
    return None


def _traced_above(above: str) -> tuple[Piece, ...]:
    """Return the variables of programs that a trace printed in lines of their own, just above a command."""
    traced = takewhile(bool, map(_TRACED.fullmatch, reversed(above.splitlines())))
    values: dict[str, str] = {}
    for line in reversed(list(traced)):
        for assigned in _TYPED_ASSIGNMENT.findall(line[2]):
            if line[1] or assigned.startswith(_PROGRAMS):
                values[assigned.partition("=")[0]] = assigned
    return cut_command(" ".join(values.values()))


def _without_wraps(text: str, indent: int) -> str:
    """Join the first line with those behind it if a terminal cut them all at its width.

    Args:
        text: begins within a line.
        indent: length of what stands before it in that line.
    """
    first, *others = text.split("\n")
    width = indent + len(first)
    is_cut = width >= MIN_COLUMNS and max(map(len, others[:-1]), default=0) == width
    if not is_cut or sum(len(line) == width for line in others) < MIN_FULL_LINES:
        return text
    while others:
        line = others.pop(0)
        first += line
        if len(line) < width:
            break
    return "\n".join([first, *others])


def _joined_lines(text: str) -> str:
    """Join a command with its continuation lines, maybe after a shell's `> `; a line with `--` is one too."""
    lines = text.split("\n")
    words = [lines[0].rstrip()]
    for line in lines[1:]:
        if not words[-1].endswith("\\") and not line.lstrip().startswith("--"):
            break
        words[-1] = words[-1].removesuffix("\\").rstrip()
        words.append(line.strip().removeprefix("> ").lstrip())
    return " ".join(words).removesuffix("\\").strip()


def cut_command(text: str) -> tuple[Piece, ...]:
    """Split a shell command up to a pipe or redirection; empty if its quotes are unbalanced."""
    if _WORD.sub("", text).strip():
        return ()
    pieces: list[Piece] = []
    for word in _WORD.findall(text):
        last = pieces[-1] if pieces else Piece("")
        if _OPERATOR.match(word):
            break
        if _OPTION.match(word):
            pieces.append(Piece(word, normalise_name(word.partition("=")[0])))
        elif _VARIABLE.fullmatch(word) and all(piece.name and piece.text[0] != "-" for piece in pieces):
            pieces.append(Piece(word, word.partition("=")[0]))
        elif _OPTION.match(last.text) and word != "--" and _takes_value(last, word):
            name = word.partition("=")[0] if last.text in _VARIABLE_OPTIONS else last.name
            pieces[-1] = Piece(f"{last.text} {word}", name)
        else:
            pieces.append(Piece(word))
    return tuple(pieces)


def _takes_value(option: Piece, word: str) -> bool:
    """True if the word after an option is its value, not a container image or a positional argument."""
    name, _, value = option.text.partition(" ")
    if "=" in name or name in _VALUELESS_OPTIONS or (option.name in _SWITCHES and name.startswith("--")):
        return False
    return not value or (len(name) > 2 and not _IMAGE.fullmatch(word))


# ---- from the printed arguments


def _from_arguments(log: str, vllm_version: str | None) -> Launch | None:
    for match in _last(_DUMP, log, MAX_TRIED):
        if match[1] not in (None, _PRINTER):
            continue
        printed_at = match.start()
        dump = log[match.end() - (1 if log[match.end() - 1] == "{" else len("Namespace(")) :][:MAX_DUMP_CHARS]
        if arguments := read_arguments(dump):
            break
    else:
        return None
    is_all = dump.startswith("Namespace")
    named = arguments.get("model_tag") or arguments.get("model") or OPEN
    model = _model_of_engine(log) if named == OPEN else named
    if model == OPEN and (typed := _fenced_command(log[:printed_at])):
        return typed
    server, printed_whole = _LIST["server"], _LIST["printed_whole"]["names"]
    is_server = not arguments.keys().isdisjoint(server["names"]) or any(s in log for s in server["signs"])
    chosen = {
        name: _without_unset(value) if name in printed_whole and isinstance(value, dict) else value
        for name, value in arguments.items()
        if not _is_set_by_program(name, value, arguments)
        and not (is_all and _is_default(name, value, vllm_version))
    }
    if not is_server:
        return _python_launch(model, {k: v for k, v in chosen.items() if k not in _SET_BY_PYTHON})
    is_module = "model_tag" not in arguments and "subparser" not in arguments
    if is_module and (is_all or any(sign in log for sign in server["modules"])):
        start = [Piece("python3"), Piece("-m vllm.entrypoints.openai.api_server", "m")]
        start += [Piece(f"--model {shlex.quote(str(model))}", "model")]
    else:
        is_in_file = model == OPEN and "config" in chosen
        start = [Piece("vllm"), Piece("serve")]
        start += [] if is_in_file else [Piece(shlex.quote(str(model)))]
    options = [option for name, value in chosen.items() for option in _options(name, value, vllm_version)]
    pieces = [*_set_before(log[:printed_at]), *start, *options]
    return Launch("arguments", "shell", tuple(pieces), _open_names(pieces))


def _fenced_command(log: str) -> Launch | None:
    """Return the last command between code fences: what replaces a dump whose model a person took out."""
    found = _FENCED.findall(log)
    pieces = cut_command(_joined_lines(found[-1].replace("\\ ", ""))) if found else ()
    return Launch("command", "shell", pieces, _masked_names(pieces)) if pieces else None


def _set_before(log: str) -> tuple[Piece, ...]:
    """Return what stands before the last server command in a text: its variables and what runs it.

    In a container these are its variables alone. Masked values are `OPEN`.
    """
    started, container = (next(iter(_last(rule, log, 1)), None) for rule in (_STARTED, _CONTAINER))
    runner = ""
    if container and (started is None or container.end() > started.start()):
        assigned = _of_container(container, log[container.end() :][:MAX_COMMAND_CHARS])
    elif started:
        start = started.start()
        inside = log[container.end() : start].replace("\\\n", " ") if container else ""
        entered = _of_container(container, inside) if container and not _APART.search(inside) else []
        exported = " ".join(_EXPORTED.findall(log[max(0, start - MAX_EXPORT_CHARS) : start]))
        typed = _TYPED_ASSIGNMENT.findall(f"{exported} {started[1]}")
        assigned, runner = [*entered, *typed], started[2]
    else:
        return ()
    values = dict(text.split("=", 1) for text in assigned)
    variables = (
        Piece(f"{name}={OPEN if _is_masked(value) else value}", name) for name, value in values.items()
    )
    return (*variables, *cut_command(runner))


def _last(rule: Any, text: str, count: int) -> list[Any]:
    """Return the last matches of a pattern in a text, the last one first."""
    return list(deque(islice(rule.finditer(text), MAX_MATCHES), count))[::-1]


def _of_container(container: Any, options: str) -> list[str]:
    """Return the variables that a container is given: those of its options, or of a Compose file."""
    return [*_ASSIGNMENT.findall(container[1] or ""), *_CONTAINER_VARIABLE.findall(options)]


def _model_of_engine(log: str) -> str:
    found = _MODEL.search(log)
    return str(found[1]) if found and _MASK not in found[1] else OPEN


def read_arguments(dump: str) -> dict[str, Any] | None:
    """Return the arguments of a dump that begins with `{` or `Namespace(`; None if it is truncated.

    Masked values and values that are not literals become `OPEN`.
    """
    end = _closing_index(dump)
    if end is None:
        return None
    text = _OBJECT.sub("None", _ENUM.sub(r"\1", dump[:end]).replace("*REDACTED*", repr(OPEN)))
    for candidate in (text, text.replace("\r", "").replace("\n", "")):
        try:
            node = ast.parse(candidate.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if isinstance(node, ast.Call):
            return {word.arg: _value(word.value) for word in node.keywords if word.arg}
        if isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            found = {str(k): _value(v) for k, v in zip(keys, node.values, strict=True) if k is not None}
            return {"".join(name.split()): _without_ends(value) for name, value in found.items()}
    return None


def _without_ends(value: Any) -> Any:
    """Return a text without the blanks around it, which a terminal adds where it wraps a line."""
    return value.strip() if isinstance(value, str) else value


def _closing_index(text: str) -> int | None:
    depth, quote, skip = 0, "", False
    for at, char in enumerate(text):
        if skip:
            skip = False
        elif quote:
            skip, quote = char == "\\", "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
    return None


def _value(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _object_value(node)
    return _unmasked(value) if isinstance(value, str) else OPEN if _is_masked(str(value)) else value


def _unmasked(value: str) -> str:
    """Return a text with `OPEN` for what is not shown of it: all of it, or a user's name in a path."""
    is_path = "/" in value and value.strip(_MASK) == value
    return _MASKED.sub(OPEN, value) if is_path else OPEN if _is_masked(value) else value


def _is_masked(value: str) -> bool:
    """True if a value stands for one that is not shown: `***`, `xxxx`, an ellipsis, what was masked here."""
    is_filler = bool(value) and not value.strip("*xX.…")
    return is_filler or _MASK in value or OPEN in value


def _object_value(node: ast.expr) -> Any:
    """Return a known configuration as what was chosen in it, and a LoRA module; `OPEN` for other objects.

    A module is `name=path`, or JSON if it has a base model. A type of torch is its name: `bfloat16`.
    """
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
        return node.attr
    if isinstance(node, ast.List):
        return [_value(item) for item in node.elts]
    words = node.keywords if isinstance(node, ast.Call) else ()
    fields = {word.arg: _value(word.value) for word in words}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _OBJECTS:
        return {name: fields[name] for name in _OBJECTS[node.func.id] if fields.get(name)}
    if not ("path" in fields and "name" in fields):
        return OPEN
    if fields.get("base_model_name"):
        return _json({name: fields[name] for name in ("name", "path", "base_model_name")})
    return f"{fields['name']}={fields['path']}"


def _is_set_by_program(name: str, value: Any, arguments: dict[str, Any]) -> bool:
    """True if the program set this argument itself."""
    if name == "api_server_count" and value in (1, arguments.get("data_parallel_size")):
        return True
    return name in _INTERNAL or value is None


def _is_default(name: str, value: Any, version: str | None) -> bool:
    if version and name in _LIST["unset_since"] and not is_before(version, _LIST["unset_since"][name]):
        return False
    # A list of "" was a list of "*", which Markdown took for emphasis.
    return value in ("", [], [""], {}, 0, False) or value in _DEFAULTS.get(name, ())


def _options(name: str, value: Any, version: str | None) -> Iterator[Piece]:
    flag = f"--{name.replace('_', '-')}"
    key = normalise_name(flag)
    if value is True:
        yield Piece(flag, key)
    elif value is False:
        yield Piece(f"--no-{flag[2:]}", f"no-{key}")
    elif isinstance(value, dict) and is_before(version, _LIST["pairs_before"].get(name)):
        pairs = ",".join(f"{key}={item}" for key, item in value.items())
        yield Piece(f"{flag} {shlex.quote(pairs)}", key)
    elif isinstance(value, dict):
        yield Piece(f"{flag} {shlex.quote(_json(value))}", key)
    elif isinstance(value, list | tuple):
        if name in _LIST["json_lists"]["names"]:
            yield Piece(f"{flag} {shlex.quote(_json(value))}", key)
        else:
            yield Piece(" ".join([flag, *(shlex.quote(str(item)) for item in value)]), key)
    else:
        yield Piece(f"{flag} {shlex.quote(_plain(value))}", key)


def _without_unset(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a configuration that are set and can be, also of those within it."""
    found = {
        name: _without_unset(value) if isinstance(value, dict) else value for name, value in fields.items()
    }
    own = _LIST["printed_whole"]["program"]
    return {name: value for name, value in found.items() if name not in own and value not in (None, "", {})}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _plain(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _python_launch(model: Any, chosen: dict[str, Any]) -> Launch:
    first = [Piece(f"model={model!r}", "model")]
    pieces = [Piece(f"{name}={value!r}", normalise_name(name)) for name, value in chosen.items()]
    pieces = [*first, *pieces]
    return Launch("arguments", "python", tuple(pieces), _open_names(pieces))


def _open_names(pieces: Sequence[Piece]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(piece.name or "model" for piece in pieces if OPEN in piece.text))


def _masked_names(pieces: Sequence[Piece]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(piece.name for piece in pieces if _MASK in piece.text and piece.name))
