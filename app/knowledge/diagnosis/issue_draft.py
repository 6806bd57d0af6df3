"""A ready-made issue for a failure that nobody has reported: vLLM's bug report, filled in from the log.

In: the reading of a log, the log masked, the answer. Out: Markdown with the form's own headings. It holds
what the log tells and names what it does not; every word of the log in it is masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from app.extract.fields.settings import Setting, read_settings
from app.extract.log.lines import LogLine
from app.extract.reader import LogReading
from app.extract.redaction.redact import BLOCK, Redacted
from app.extract.text.blocks import read_log_document
from app.knowledge.diagnosis.excerpts import without_colours
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.text.quoting import code, escape, fenced

FORM = "400-bug-report.yml"
FORM_REPO = "vllm-project/vllm"
MAX_TITLE_CHARS = 120
MAX_LINES = 60
MAX_LINE_CHARS = 400
MAX_RAW_CHARS = 10_000
"""Of one line, with its colours."""
MAX_COMMAND_CHARS = 1 << 20
"""What is read of one line on both sides of a command; of a log without line breaks that is a part of it."""
MAX_SETTINGS = 40
MAX_DUMP_CHARS = 2_000
MAX_QUESTION_CHARS = 2_000
TRACEBACK_REACH = 40
"""How far above the error its traceback may begin."""
BEFORE, AFTER, LAST = 6, 2, 20
COMMAND_LINES = 20
"""How many lines of one command, continued by backslashes, are read."""

_DUMP = "non-default args:"
_STARTS = ("vllm serve", "vllm.entrypoints", "VLLM_")
"""What a line holds that says how the server was started."""
_LABELS = (
    ("vllm", "vLLM version"),
    ("torch", "PyTorch"),
    ("cuda", "CUDA"),
    ("driver", "GPU driver"),
    ("transformers", "Transformers"),
    ("python", "Python"),
)
_WANTED = frozenset({"vLLM version", "GPU", "Model", "PyTorch", "GPU driver"})
"""Whose lack is told; the others are seldom what decides."""
_BACKENDS = {
    "attention": "Attention backend",
    "moe": "MoE backend",
    "all2all": "All2all backend",
    "quantization": "Quantization",
    "kv_cache_dtype": "KV cache type",
    "executor": "Executor",
    "structured_output": "Structured output",
    "speculative": "Speculative decoding",
    "engine": "Engine",
}
_TRACEBACK = "Traceback (most recent call last)"


def issue_draft(reading: LogReading, masked_log: Redacted, answer: Diagnosis) -> str:
    """The issue's text, under the headings of vLLM's form."""
    parts = ["### Your current environment", "", *_environment(reading, masked_log, answer)]
    parts += ["", "### Describe the bug", "", *_bug(reading, masked_log, answer)]
    parts += ["", "### Before submitting a new issue...", "", _checked(answer)]
    return "\n".join(parts) + "\n"


def new_issue_address(repo: str, diagnosis: Diagnosis) -> str:
    """GitHub's form for a new issue with a title: the error, without what a browser cannot send."""
    fields = {"template": FORM} if repo == FORM_REPO else {}
    if title := draft_title(diagnosis):
        fields["title"] = title
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
    return f"https://github.com/{repo}/issues/new" + (f"?{query}" if query else "")


def draft_title(diagnosis: Diagnosis) -> str:
    """`[Bug]: ValueError: no available memory`; empty where the log names no error."""
    cause = diagnosis.root_cause
    said = diagnosis.wrappers[0] if diagnosis.wrappers else ""
    if cause is not None:
        told = cause.type and not cause.message.startswith(cause.type)
        said = f"{cause.type}: {cause.message}" if told else cause.message
    flat = " ".join(said.split())
    if not flat:
        return ""
    title = f"[Bug]: {flat}"
    return title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1].rstrip() + "…"


def _environment(reading: LogReading, masked_log: Redacted, answer: Diagnosis) -> Iterator[str]:
    """What the log tells of the run, then what it lacks."""
    around = reading.surroundings
    versions = [(label, around.versions.get(key, "")) for key, label in _LABELS]
    count = f" × {around.gpu_count}" if around.gpu_count and len(around.gpus) == 1 else ""
    told = [
        *versions[:1],
        ("GPU", ", ".join(around.gpus) + count if around.gpus else ""),
        ("Model", ", ".join(around.models)),
        *versions[1:],
        *((label, ", ".join(around.backends.get(key, ()))) for key, label in _BACKENDS.items()),
    ]
    for label, value in told:
        if value:
            yield f"- {label}: {code(value)}"
    chosen = _settings(reading.log, masked_log)
    flags = [_flag(item) for item in chosen if item.origin in {"command", "keyword"}]
    variables = [f"{item.name}={item.value}" for item in chosen if item.origin == "variable"]
    if flags:
        yield f"- Flags: {code(' '.join(flags))}"
    if variables:
        yield f"- Variables: {code(' '.join(variables))}"
    if dump := _dump(reading.log, masked_log):
        yield f"- Non-default args: {code(dump)}"
    missing = [name for name, value in told if not value and name in _WANTED]
    if missing:
        yield (
            f"- Not in the {'question' if answer.is_question else 'log'}: {', '.join(missing)}; "
            "run `vllm collect-env` and paste what it prints here."
        )


def _settings(log: str, masked_log: Redacted) -> list[Setting]:
    """Flags and variables that somebody chose, each once, the last value of each; read only where told."""
    lines = list(_start_lines(log, masked_log))
    if not lines:
        return []
    found = read_settings(read_log_document("\n".join(lines)))
    chosen = {item.name: item for item in found if item.is_chosen and item.name != "model"}
    return list(chosen.values())[:MAX_SETTINGS]


def _dump(log: str, masked_log: Redacted) -> str:
    """The server's own list of what was not left at its default."""
    at = log.rfind(_DUMP)
    if at < 0:
        return ""
    start, end = at + len(_DUMP), log.find("\n", at)
    text = masked_log.text[start : min(end if end >= 0 else len(log), start + MAX_RAW_CHARS)]
    return without_colours(text)[:MAX_DUMP_CHARS].strip()


def _start_lines(log: str, masked_log: Redacted) -> Iterator[str]:
    """The lines that say how the server was started, a command's continued ones too."""
    seen: set[int] = set()
    for mark in _STARTS:
        at = log.find(mark)
        for _ in range(COMMAND_LINES):
            if at < 0:
                break
            start = log.rfind("\n", 0, at) + 1
            end = _end_of_command(log, at)
            if start not in seen:
                seen.add(start)
                first, last = max(start, at - MAX_COMMAND_CHARS), min(end, at + MAX_COMMAND_CHARS)
                yield masked_log.text[first:last]
            at = log.find(mark, end)


def _end_of_command(log: str, at: int) -> int:
    for _ in range(COMMAND_LINES):
        end = log.find("\n", at)
        if end < 0:
            return len(log)
        if not log[at:end].rstrip().endswith("\\"):
            return end
        at = end + 1
    return at


def _flag(item: Setting) -> str:
    value = "…" if item.value and set(item.value) <= {BLOCK} else item.value
    return f"--{item.name} {value}".rstrip()


def _bug(reading: LogReading, masked_log: Redacted, answer: Diagnosis) -> Iterator[str]:
    """The error in one sentence, the lines that tell it, and what only the reporter can add."""
    cause = answer.root_cause
    if cause is not None:
        where = f", in process {code(cause.process)}" if cause.process else ""
        where += f", at {code(cause.frame)}" if cause.frame else ""
        said = f"{cause.type}: {cause.message}" if cause.type else cause.message
        yield f"It fails with {code(said)}{where}."
    elif answer.is_question:
        yield from fenced(masked_log.text.strip()[:MAX_QUESTION_CHARS].splitlines())
        yield ""
        yield "(Add the command or script that shows it, what you got, and what you expected.)"
        return
    elif answer.wrappers:
        yield "The log holds only lines that report another error; its cause is not among them."
    else:
        yield "The log holds no error line. (Say what happened, and what you expected.)"
    yield ""
    yield from fenced(_telling(reading, masked_log))
    yield ""
    yield "(Add the request or script that triggers it, and whether it happens every time.)"


def _telling(reading: LogReading, masked_log: Redacted) -> list[str]:
    """The error's lines as they stand in the masked log, with its traceback and the first wrappers."""
    # Of a very long log only some lines are read, so a line is found by its number, not by its place.
    read = {line.number: line for line in reading.lines}
    numbers = sorted(_numbers(reading, read))[-MAX_LINES:]
    told: list[str] = []
    for position, number in enumerate(numbers):
        if position and number != numbers[position - 1] + 1:
            told.append("[…]")
        line = read[number]
        text = masked_log.text[line.start : min(line.end, line.start + MAX_RAW_CHARS)]
        told.append(without_colours(text).rstrip()[:MAX_LINE_CHARS])
    while told and not told[-1]:
        told.pop()
    return told


def _numbers(reading: LogReading, read: Mapping[int, LogLine]) -> set[int]:
    errors = reading.errors
    cause = errors.cause or errors.apparent
    wrappers = {line.number for _, line in errors.wrappers[:3] if line.number in read}
    if cause is None:
        return wrappers or {line.number for line in reading.lines[-LAST:]}
    hot = cause.line.number
    first = _traceback_start(read, hot)
    if first is None:
        first = max(1, hot - BEFORE)
    process = cause.line.process
    near = [read[number] for number in range(first, hot + AFTER + 1) if number in read]
    return wrappers | {line.number for line in near if not process or line.process == process}


def _traceback_start(read: Mapping[int, LogLine], hot: int) -> int | None:
    """The line that opens the error's traceback, if it stands near enough."""
    process = read[hot].process if hot in read else ""
    for number in range(hot, max(0, hot - TRACEBACK_REACH), -1):
        line = read.get(number)
        if line is not None and line.process == process and line.text.lstrip().startswith(_TRACEBACK):
            return number
    return None


def _checked(answer: Diagnosis) -> str:
    index = answer.index
    when = f", as of {index.as_of:%Y-%m-%d}" if index.as_of else ""
    said = f"Checked against {index.issues:,} stored issues{when}: no known same failure."
    if answer.verdict == "unknown" or not answer.matches:
        return said
    best = answer.matches[0]
    return f"{said} Closest: [#{best.number}]({best.url}) {escape(best.title)} ({best.score:.0%})."
