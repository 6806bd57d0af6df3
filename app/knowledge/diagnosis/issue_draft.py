"""An issue draft for an unreported failure: vLLM's bug report form, filled in from the masked log."""

from collections.abc import Iterator
from urllib.parse import quote

from app.extract.fields.settings import Setting, read_settings
from app.extract.reader import LogReading
from app.extract.redact import BLOCK
from app.extract.text.blocks import read_log_document
from app.knowledge.diagnosis.excerpts import without_colours
from app.knowledge.diagnosis.explain import COMPARED_BACKENDS
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.labels import BACKENDS
from app.knowledge.markdown import render_markdown

FORM = "400-bug-report.yml"
FORM_REPO = "vllm-project/vllm"
MAX_TITLE_CHARS = 120
MAX_LINES = 60
MAX_LINE_CHARS = 400
MAX_RAW_CHARS = 10_000
"""Characters read of one line, including colour codes."""
MAX_COMMAND_CHARS = 1 << 20
"""Characters read of a line on either side of a command; bounds logs without line breaks."""
MAX_SETTINGS = 40
MAX_DUMP_CHARS = 2_000
MAX_QUESTION_CHARS = 2_000
TRACEBACK_REACH = 40
"""Lines above the error that are searched for the start of its traceback."""
BEFORE_LINES, AFTER_LINES, LAST_LINES = 6, 2, 20
COMMAND_LINES = 20
"""Lines read of one command that is continued with backslashes."""

_DUMP = "non-default args:"
_STARTS = ("vllm serve", "vllm.entrypoints", "VLLM_")
"""Marks of lines that show how the server was started."""
_VERSIONS = {
    "torch": "PyTorch",
    "cuda": "CUDA",
    "driver": "GPU driver",
    "transformers": "Transformers",
    "python": "Python",
}
_WANTED = ("vLLM version", "GPU", "Model", "PyTorch", "GPU driver")
"""Fields listed as missing; the others rarely matter."""
_TRACEBACK = "Traceback (most recent call last)"


def issue_draft(reading: LogReading, masked_log: str, answer: Diagnosis) -> str:
    """Return the issue's text, under the headings of vLLM's form."""
    around = reading.surroundings
    count = f" × {around.gpu_count}" if around.gpu_count and len(around.gpus) == 1 else ""
    chosen = _settings(reading.log, masked_log)
    known = {
        "vLLM version": around.versions.get("vllm", ""),
        "GPU": ", ".join(around.gpus) + (count if around.gpus else ""),
        "Model": ", ".join(around.models),
        **{label: around.versions.get(key, "") for key, label in _VERSIONS.items()},
        **{BACKENDS[key]: ", ".join(around.backends.get(key, ())) for key in COMPARED_BACKENDS},
        "Flags": " ".join(_flag(item) for item in chosen if item.origin in {"command", "keyword"}),
        "Variables": " ".join(f"{item.name}={item.value}" for item in chosen if item.origin == "variable"),
        "Non-default args": _dump(reading.log, masked_log),
    }
    is_question = answer.is_question
    lines = masked_log.strip()[:MAX_QUESTION_CHARS].splitlines() if is_question else None
    return render_markdown(
        "issue_draft.md",
        answer=answer,
        known=known,
        missing=[name for name in _WANTED if not known[name]],
        lines=_error_lines(reading, masked_log) if lines is None else lines,
    )


def new_issue_address(repo: str, diagnosis: Diagnosis) -> str:
    """Return the URL of GitHub's new-issue form with the title; the draft is too long for a URL."""
    fields = {"template": FORM} if repo == FORM_REPO else {}
    if title := draft_title(diagnosis):
        fields["title"] = title
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
    return f"https://github.com/{repo}/issues/new" + (f"?{query}" if query else "")


def draft_title(diagnosis: Diagnosis) -> str:
    """Return `[Bug]: ValueError: no available memory`; empty if the log names no error."""
    cause = diagnosis.root_cause
    words = diagnosis.wrappers[0] if diagnosis.wrappers else ""
    if cause is not None:
        is_named = not cause.type or cause.message.startswith(cause.type)
        words = cause.message if is_named else f"{cause.type}: {cause.message}"
    flat = " ".join(words.split())
    title = f"[Bug]: {flat}" if flat else ""
    return title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1].rstrip() + "…"


def _settings(log: str, masked_log: str) -> list[Setting]:
    """Return explicitly set flags and environment variables, each with its last value."""
    lines = list(_start_lines(log, masked_log))
    found = read_settings(read_log_document("\n".join(lines))) if lines else ()
    chosen = {item.name: item for item in found if item.is_chosen and item.name != "model"}
    return list(chosen.values())[:MAX_SETTINGS]


def _start_lines(log: str, masked_log: str) -> Iterator[str]:
    """Yield the lines that show how the server was started, with continuation lines."""
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
                yield masked_log[max(start, at - MAX_COMMAND_CHARS) : min(end, at + MAX_COMMAND_CHARS)]
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


def _dump(log: str, masked_log: str) -> str:
    """Return the non-default arguments that the server printed; empty if there are none."""
    at = log.rfind(_DUMP)
    if at < 0:
        return ""
    start, end = at + len(_DUMP), log.find("\n", at)
    text = masked_log[start : min(end if end >= 0 else len(log), start + MAX_RAW_CHARS)]
    return without_colours(text)[:MAX_DUMP_CHARS].strip()


def _error_lines(reading: LogReading, masked_log: str) -> list[str]:
    """Return the error's lines from the masked log, with its traceback and the first wrappers."""
    # Only some lines of a very long log are read, so look lines up by number, not by index.
    lines = {line.number: line for line in reading.lines}
    errors = reading.errors
    cause = errors.cause or errors.apparent
    numbers = {line.number for _, line in errors.wrappers[:3] if line.number in lines}
    if cause is None:
        numbers = numbers or {line.number for line in reading.lines[-LAST_LINES:]}
    else:
        hot, process = cause.line.number, cause.line.process
        own = lines[hot].process if hot in lines else ""
        starts = (
            number
            for number in range(hot, max(0, hot - TRACEBACK_REACH), -1)
            if number in lines
            and lines[number].process == own
            and lines[number].text.lstrip().startswith(_TRACEBACK)
        )
        near = range(next(starts, max(1, hot - BEFORE_LINES)), hot + AFTER_LINES + 1)
        numbers |= {at for at in near if at in lines and (not process or lines[at].process == process)}
    found: list[str] = []
    last = 0
    for number in sorted(numbers)[-MAX_LINES:]:
        if found and number != last + 1:
            found.append("[…]")
        last, line = number, lines[number]
        text = masked_log[line.start : min(line.end, line.start + MAX_RAW_CHARS)]
        found.append(without_colours(text).rstrip()[:MAX_LINE_CHARS])
    while found and not found[-1]:
        found.pop()
    return found
