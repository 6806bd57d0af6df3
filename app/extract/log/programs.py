"""Which program printed a log: vLLM, or another one. In: the log's text and lines. Out: a `Printer`.

Only a text that nowhere names vLLM can be another program's, and only by something that vLLM never prints: a
rule of `lists/programs.toml`, or a whole traceback through somebody's own files. A missing name alone proves
nothing: people paste the last lines of a server's log, or a traceback without its first frames.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.extract.log.lines import LogLine
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rule_set

PYTHON = "a Python program"
_VLLM = pattern(
    r"(?i)vllm|\((?:EngineCore|APIServer|Worker)\w* pid=|EngineCore|AsyncLLM|llm_engine|RayWorkerWrapper"
    r"|gpu[_-]memory[_-]utilization|tensor[_-]parallel[_-]size|max[_-]model[_-]len"
    r"|(?:INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w/]+\.py:\d+\]"
)
"""vLLM's name, processes, options and the prefix of its logger."""
_CLIENT = pattern(
    r"(?i)openai|litellm|xinference|(?:tool|reasoning)_parser|/v1/(?:chat/)?completions|ray::"
    r"|(?:Sampling|Pooling|BeamSearch)Params\b|\bllm(?:\.\w+\(| = )"
)
"""What asks a server, or runs an engine, of which the text does not tell whose it is."""
_MODEL_CODE = pattern(
    r"(?i)Traceback \(most recent|torch|\bcuda|\bnccl|\bxid\b|nvrm|amdgpu|python[\d.]*[\[)]|pt_main"
)
"""What vLLM may print, or the kernel about it; a Python program is told by its frames."""
_CARRIED = pattern(
    r"(?m)^(?:[\w.-]{1,60} *\| ?|\S{1,40}Z (?:stdout|stderr) [FP] |\[?pod/\S{1,200} "
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,60} [\w.@-]{1,60}(?:\[\d+\])?: ?)"
)
"""What containers and the journal write before a program's line."""
_FRAME = pattern(r'^File "([^"\n]+)", line \d+')
_NOT_OWN = pattern(
    r"(?i)^<|-packages/|/lib(?:64)?/|/bin/|/\.cache/|^/tmp/|torchinductor|(?:/|^)(?:setup|conftest)\.py$"
)
"""Files of libraries, of programs that were installed, and those that were made by one."""


@dataclass(frozen=True, slots=True)
class Printer:
    """Who printed a log.

    Attributes:
        is_vllm: vLLM, or a program that runs it; None if the log does not tell.
        name: what to call another program; empty for vLLM.
    """

    is_vllm: bool | None
    name: str = ""


UNDECIDED = Printer(is_vllm=None)


def find_printer(log: str, lines: Iterable[LogLine]) -> Printer:
    """Tell which program printed a log; `lines`: its lines without prefixes."""
    if _VLLM.search(log):
        return Printer(is_vllm=True)
    if _CLIENT.search(log):
        return UNDECIDED
    has_model_code = bool(_MODEL_CODE.search(log))
    rules = load_rule_set("programs")
    for rule in (*rules.meeting(log), *rules.meeting(_CARRIED.sub("", log))):
        if rule.extra.get("runs_models") or not has_model_code:
            return Printer(is_vllm=False, name=rule["value"])
    own = next(_own_files(line.text for line in lines), None)
    return Printer(is_vllm=False, name=f"{PYTHON} ({own})") if own else UNDECIDED


def _own_files(lines: Iterable[str]) -> Iterator[str]:
    """Yield, of each whole traceback that passes through somebody's own files, the name of the first."""
    files: list[str] | None = None
    margin = 0
    for line in lines:
        text = line.lstrip()
        indent = len(line) - len(text)
        if text.startswith("Traceback (most recent call last)"):
            files, margin = [], indent
        elif files is None or not text:
            continue
        elif found := _FRAME.match(text):
            files.append(found.group(1).replace("\\", "/"))
        elif text.rstrip() == "..." or not files:
            files = None
        elif indent <= margin:
            own = (file for file in files if file.endswith(".py") and not _NOT_OWN.search(file))
            yield from (file.rpartition("/")[2] for file in own)
            files = None
