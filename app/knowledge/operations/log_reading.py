"""Values that the operator's language model adds to the diagnosis of a pasted log, verified against the log.

Runs only if the operator allows it and the caller requests it. Some lines of the masked log are sent. The
reply is checked like the reading of an issue; values that the diagnosis already has are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.errors import ReaderError
from app.extract.facts import Evidence
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.extract.versions import is_same
from app.knowledge.diagnosis.diagnose import DiagnosedLog
from app.knowledge.diagnosis.shapes import Diagnosis, ModelReading, ModelValue
from app.model_reader.check import ProvenReading, check_reply
from app.model_reader.prompt import make_prompt
from app.model_reader.reply import parse_reply

if TYPE_CHECKING:
    from app.model_reader.client import ReaderClient

CHARS_MAX = 24_000
"""Limit for the lines sent: about 8,000 tokens, which a model reads in a second or two."""
EDGE_LINES = 40
"""Lines sent from the start of the log, where version and arguments are, and from its end."""
LINES_BEFORE, LINES_AFTER = 60, 30
"""Lines sent around the root cause."""
LINE_CHARS = 500


@dataclass(frozen=True, slots=True)
class _Sent:
    """The lines of a log that are sent, with their line numbers."""

    text: str
    numbers: tuple[int, ...]

    def line_at(self, position: int) -> tuple[int, str]:
        """Return number and text of the line at a character position of `text`."""
        at = self.text.count("\n", 0, position)
        return self.numbers[at], self.text.split("\n")[at].strip()


def read_log_by_model(found: DiagnosedLog, client: ReaderClient) -> DiagnosedLog:
    """Add the model's values to a diagnosis, or the reason for none; a question in words is unchanged."""
    if found.diagnosis.is_question:
        return found
    return with_model_reading(found, _read(found, client))


def with_model_reading(found: DiagnosedLog, reading: ModelReading) -> DiagnosedLog:
    """Return the diagnosis with a model's reading."""
    return DiagnosedLog(
        found.diagnosis.model_copy(update={"model_reading": reading}), found.excerpt, found.masked_log
    )


def _read(found: DiagnosedLog, client: ReaderClient) -> ModelReading:
    sent = _chosen_lines(found.masked_log, found.diagnosis)
    issue = IssueText(0, "", sent.text)
    prompt = make_prompt(issue, CHARS_MAX, is_log=True)
    try:
        model = client.served_model()
        answer = client.ask(model, prompt.content)
    except ReaderError as error:
        return ModelReading(fault=error.message)
    reply = parse_reply(answer.text) if answer.kind == "complete" else None
    if reply is None:
        return ModelReading(model=model.identity, fault="the model gave no answer of use")
    proven = check_reply(read_document(issue), prompt, reply)
    values = []
    for item, how in _values(proven):
        if item.source == "body" and _is_news(item, found.diagnosis):
            number, line = sent.line_at(item.start)
            values.append(
                ModelValue(field=item.field, value=item.value, quote=line, line=number, certainty=how)
            )
    return ModelReading(model=model.identity, values=tuple(values))


def _chosen_lines(log: str, diagnosis: Diagnosis) -> _Sent:
    lines = log.split("\n")
    wanted = {*range(EDGE_LINES), *range(len(lines) - EDGE_LINES, len(lines))}
    if diagnosis.root_cause is not None:
        at = diagnosis.root_cause.line - 1
        wanted |= set(range(at - LINES_BEFORE, at + LINES_AFTER))
    kept = [at for at in sorted(wanted) if 0 <= at < len(lines)]
    return _Sent("\n".join(lines[at][:LINE_CHARS] for at in kept), tuple(at + 1 for at in kept))


def _values(proven: ProvenReading) -> Iterator[tuple[Evidence, str]]:
    """Yield each value; for a cause with the certainty with which the log states it."""
    if proven.error is not None:
        yield proven.error[1], ""
    yield from ((item, cause.certainty) for cause, item in proven.causes)
    yield from ((item, "") for item in (*proven.versions, *proven.models, *proven.backends))


def _is_news(item: Evidence, diagnosis: Diagnosis) -> bool:
    """True if the diagnosis does not have the value yet."""
    around = diagnosis.environment
    name, _, key = item.field.partition(".")
    if name == "error":
        cause = diagnosis.root_cause
        return cause is None or (item.value not in cause.quote and cause.message not in item.value)
    if name == "versions":
        return not is_same(item.value, around.versions.get(key, ""))
    if name == "models":
        return item.value not in around.models
    return name != "backends" or not around.backends.get(key)
