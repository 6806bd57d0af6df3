"""Which program printed a log: vLLM, or another one. In: the log's text and lines. Out: a `Printer`.

Only a text that nowhere names vLLM can be another program's, and only by something that vLLM never prints: a
rule of `lists/programs.toml`, or a whole traceback that begins in somebody's own script. A missing name alone
proves nothing: people paste the last lines of a server's log, or a traceback without its first frames.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.extract.log.lines import LogLine
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rules

SCRIPT = "a Python script"
_VLLM = pattern(r"(?i)vllm|\((?:EngineCore|APIServer|Worker)\w* pid=|EngineCore|AsyncLLM")
_SCRIPT = pattern(
    r"(?m)^ *Traceback \(most recent call last\):\n"
    r" *File \"([^\"<>\n]*/)?([\w.-]+)\.py\", line \d+, in <module>$"
)
_INSTALLED = ("-packages/", "/bin/", "/lib/python")
_SHARED_SCRIPTS = frozenset({"setup", "__main__", "conftest"})


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
    for rule in load_rules("programs"):
        if rule.pattern.search(log):
            return Printer(is_vllm=False, name=rule["value"])
    plain = "\n".join(line.text for line in lines)
    if any(_is_own_script(found[1] or "", found[2]) for found in _SCRIPT.finditer(plain)):
        return Printer(is_vllm=False, name=SCRIPT)
    return UNDECIDED


def _is_own_script(folder: str, name: str) -> bool:
    return name not in _SHARED_SCRIPTS and not any(part in folder for part in _INSTALLED)
