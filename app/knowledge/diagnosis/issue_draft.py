"""An issue draft for an unreported failure: vLLM's bug report form, filled in from the masked log."""

from urllib.parse import quote

from app.extract.fields.launch import Launch
from app.extract.reader import LogReading
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
MAX_QUESTION_CHARS = 2_000
TRACEBACK_REACH = 40
"""Lines above the error that are searched for the start of its traceback."""
BEFORE_LINES, AFTER_LINES, LAST_LINES = 6, 2, 20

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


def issue_draft(reading: LogReading, masked_log: str, launch: Launch | None, answer: Diagnosis) -> str:
    """Return the issue's text, under the headings of vLLM's form."""
    around = reading.surroundings
    count = f" × {around.gpu_count}" if around.gpu_count and len(around.gpus) == 1 else ""
    known = {
        "vLLM version": around.versions.get("vllm", ""),
        "GPU": ", ".join(around.gpus) + (count if around.gpus else ""),
        "Model": ", ".join(around.models),
        **{label: around.versions.get(key, "") for key, label in _VERSIONS.items()},
        **{BACKENDS[key]: ", ".join(around.backends.get(key, ())) for key in COMPARED_BACKENDS},
        "Command": launch.line if launch and launch.source == "command" else "",
        "Command, rebuilt from the log": launch.line if launch and launch.source != "command" else "",
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
