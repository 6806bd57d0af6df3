"""A stack (version, GPU, model, arguments): reading it from URLs and logs.

In a URL the four parts are separated by `~`, in any order, each optional:
`0.21.0~H100~Qwen/Qwen3-8B~--tensor-parallel-size 4`. The kind of a part is recognised by its form; where that
is ambiguous, it has the prefix `gpu:`, `model:`, `vllm:` or `args:`.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Self

from pydantic import Field

from app.errors import InputError
from app.extract.facts import Facts, Frozen
from app.extract.fields.gpu_names import architecture_of, gpu_doubt, gpu_name
from app.extract.fields.launch import Launch, Piece, cut_command, read_launch
from app.extract.fields.settings import normalise_name
from app.extract.reader import read_log
from app.extract.redact import redact
from app.extract.versions import can_be_version, ordered
from app.match.search.agreement import model_family, model_line

MAX_CHARS = 600
PARTS = ("vllm", "gpu", "model", "args")
_SEPARATOR = "~"
IRRELEVANT_OPTIONS = frozenset(
    {"model", "m", "host", "port", "api-key", "served-model-name", "uds", "root-path", "chat-template", "u"}
    | {"ssl-keyfile", "ssl-certfile", "download-dir", "uvicorn-log-level", "tokenizer", "api-server-count"}
)
"""Options that do not affect failures, or are private."""


class Stack(Frozen):
    """What somebody runs; a part that is not known is None. `args` is "" where it is known to be empty."""

    vllm: str | None = Field(None, description="vLLM's version")
    gpu: str | None = Field(None, description="the accelerator's name")
    model: str | None = None
    args: str | None = Field(None, description="options of `vllm serve`")

    @cached_property
    def options(self) -> dict[str, str] | None:
        """The values of the arguments by name; None if unknown."""
        if self.args is None:
            return None
        pieces = cut_command(self.args)
        return {piece.name: _value_of(piece) for piece in pieces if piece.name}

    @cached_property
    def architecture(self) -> str | None:
        """The GPU's architecture, such as Hopper."""
        return architecture_of(self.gpu) if self.gpu else None

    @cached_property
    def family(self) -> str:
        """The model's family; "" without a model."""
        return model_family(self.model) if self.model else ""

    @cached_property
    def line(self) -> str:
        """The family with its generation."""
        return model_line(self.model) if self.model else ""

    def at(self, version: str) -> Self:
        """Return a copy with another version."""
        return self.model_copy(update={"vllm": version})

    def __hash__(self) -> int:
        return hash((self.vllm, self.gpu, self.model, self.args))


def _value_of(piece: Piece) -> str:
    return re.sub(r"^[^\s=]+[\s=]?", "", piece.text).strip("'\"")


def make_stack(
    vllm: str | None = None, gpu: str | None = None, model: str | None = None, args: str | None = None
) -> Stack | None:
    """Build a stack from user input; None if all parts are blank.

    Raises:
        InputError: the version is invalid, an argument is not an option, or a part contains the separator.
    """
    given = {"vllm": vllm, "gpu": gpu, "model": model}
    parts = {name: " ".join(value.split()) for name, value in given.items() if value and value.strip()}
    if args is not None and (args.strip() or parts):
        parts["args"] = " ".join(args.split()) if args.strip() else ""
    if not parts:
        return None
    if any(_SEPARATOR in value for value in parts.values()):
        raise InputError("stack: a part holds `~`, which stands between the parts.")
    if "vllm" in parts:
        if not can_be_version(parts["vllm"]):
            raise InputError(f"stack: {parts['vllm'][:40]} is no version such as 0.21.0.")
        parts["vllm"] = parts["vllm"].removeprefix("v")
    if "gpu" in parts:
        parts["gpu"] = gpu_name(parts["gpu"]) or parts["gpu"]
    if parts.get("args") and not all(piece.name for piece in cut_command(parts["args"])):
        raise InputError("stack: the arguments are options of `vllm serve`, such as --max-model-len 8192.")
    return Stack(**parts)


@lru_cache(maxsize=256)
def parse_stack(text: str | None) -> Stack | None:
    """Parse a stack from a URL; None if empty.

    Raises:
        InputError: it is too long, or has a duplicate or invalid part.
    """
    if not text or not text.strip():
        return None
    if len(text) > MAX_CHARS:
        raise InputError(f"stack: it has more than {MAX_CHARS} characters.")
    found: dict[str, str] = {}
    for part in map(str.strip, text.split(_SEPARATOR)):
        if not part:
            continue
        name, sign, rest = part.partition(":")
        if not (sign and name in PARTS):
            name, rest = _kind_of(part), part
        if name in found:
            raise InputError(f"stack: it has two parts that are {_ARTICLES[name]}.")
        found[name] = rest
    return make_stack(**found)


def write_stack(stack: Stack | None) -> str:
    """Return the stack in its URL form, not yet percent-encoded; "" for None."""
    parts = [(name, getattr(stack, name)) for name in PARTS if stack and getattr(stack, name) is not None]
    return _SEPARATOR.join(
        value if value and _kind_of(value) == name else f"{name}:{value}" for name, value in parts
    )


def stack_of_log(surroundings: Facts, launch: Launch | None) -> Stack | None:
    """Return the stack of a log without private names: a local model directory loses its path."""
    models = [name for name in surroundings.models if "█" not in name]
    model = models[0].rstrip("/").rpartition("/")[2] if models and models[0][0] in "/.~" else None
    args = None
    if launch is not None and launch.program == "shell":
        kept = [p for p in launch.pieces if p.text.startswith("-") and _is_relevant(p)]
        args = " ".join(piece.text for piece in kept)
    parts = {
        "vllm": surroundings.versions.get("vllm"),
        "gpu": surroundings.gpus[0] if surroundings.gpus else None,
        "model": model or (models[0] if models else None),
        "args": args.replace(_SEPARATOR, "") if args is not None else None,
    }
    try:
        stack = make_stack(**parts)
        return stack if len(write_stack(stack)) <= MAX_CHARS else make_stack(**{**parts, "args": None})
    except InputError:
        return None


def read_stack(log: str) -> Stack | None:
    """Return the stack of a log; None if the log has no information on it."""
    reading = read_log(log)
    version = reading.surroundings.versions.get("vllm")
    return stack_of_log(reading.surroundings, read_launch(redact(log, private=True).text, version))


def _is_relevant(piece: Piece) -> bool:
    is_long = (
        piece.text.startswith("--") or normalise_name(piece.text.split()[0]) != piece.text[1:].split()[0]
    )
    return (
        is_long and piece.name not in IRRELEVANT_OPTIONS and "█" not in piece.text and "<" not in piece.text
    )


def stack_words(stack: Stack) -> Iterator[tuple[str, str]]:
    """Yield its parts for display: name and value."""
    for name, value in (("vLLM", stack.vllm), ("GPU", stack.gpu), ("Model", stack.model)):
        if value:
            yield name, value
    if stack.args is not None:
        yield "Arguments", stack.args or "none but the model"


def doubtful_parts(stack: Stack, options: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for an unknown GPU and for each option that looks like a typo of one in `options`."""
    if stack.gpu and (doubt := gpu_doubt(stack.gpu)):
        yield doubt
    for name in stack.options or ():
        near = get_close_matches(name, options, n=1, cutoff=0.85)
        if near and near[0] != name and name.removeprefix("no-") not in options:
            yield f"--{name} is no known option of vLLM; the nearest is --{near[0]}."


_ARTICLES = {"vllm": "a version", "gpu": "a GPU", "model": "a model", "args": "arguments"}


def _kind_of(part: str) -> str:
    if part.startswith("-"):
        return "args"
    is_gpu = "/" not in part and gpu_name(part) is not None
    if ordered(part) is not None and ("." in part or not is_gpu):  # "v100" is no release
        return "vllm"
    return "gpu" if is_gpu else "model"
