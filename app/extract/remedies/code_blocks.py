"""Remedies in blocks of code: below "Workaround" or "it runs with:", and what a working command adds.

In: a `Document`. Out: `RemedyStatement`s for the settings of short code blocks that a heading, a label or the
sentence above or below says to work, and for what a working command has that a failing one lacks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from itertools import groupby

from app.extract.facts import Outcome, WorkaroundKind
from app.extract.lists import load
from app.extract.remedies.changes import (
    MAX_ACTION_CHARS,
    ChangeSpan,
    find_changes,
    grammar,
    kind_of,
    split_clauses,
    trimmed,
)
from app.extract.remedies.commands import Attempt, SettingUse, find_difference, read_attempts, read_result
from app.extract.remedies.cues import SUCCESS, find_denial, has_success, is_wish, may_deny
from app.extract.remedies.sentences import SECTION_CHANCE, RemedyStatement
from app.extract.text.document import Block, Document
from app.extract.text.sentences import Sentence, read_sentences

MAX_LABEL_GAP = 40
"""Characters between a line and its code block: a fence with its language, no other text."""

MAX_CODE_CHARS = 600
"""A longer block is a script or a log, not a change."""

MAX_SOLUTION_CHARS = 250
"""How far below a line "Solution:" its commands stand."""

COMMAND_CHANCE = 0.75

_CODE_STARTS: tuple[str, ...] = tuple(load("workaround_sections")["code_starts"])
_WHOLE = ("export ", "pip install", "pip3 install", "uv pip", "unset ")


def find_in_code(
    document: Document, outcomes: dict[str, Outcome | None], stated: Collection[tuple[str, int]]
) -> Iterator[RemedyStatement]:
    """The remedies in short code blocks, in reading order, then those of working commands.

    Args:
        outcomes: what each heading promises of the code below it.
        stated: where sentences state remedies; what a sentence names, its code block only repeats.
    """
    sentences = {key: list(of) for key, of in groupby(read_sentences(document), lambda s: s.source)}
    solved = _solution_places(document)
    for block in document.of_kind("code"):
        if len(block.text) > MAX_CODE_CHARS:
            continue
        outcome = outcomes.get(block.heading)
        if outcome is None:
            is_below = any(source == block.source and a <= block.start < b for source, a, b in solved)
            if is_below or _is_praised(block, sentences.get(block.source, []), stated):
                outcome = "works"
        if outcome:
            yield from _of_code(document, block, outcome)
    if "workaround" in document.issue.body.lower() or "works" in document.issue.body:
        attempts = read_attempts(document)
        if any(attempt.result == "fails" or attempt.is_workaround for attempt in attempts):
            for attempt in attempts:
                if attempt.is_workaround or attempt.result == "works":
                    for use in find_difference(attempt, attempts):
                        yield _of_use(attempt, use, "works")


def states_success(sentence: Sentence) -> bool:
    """Whether a sentence states a success that nothing in it denies or only wishes for."""
    if not SUCCESS.search(sentence.text) or not has_success(sentence.text):
        return False
    if grammar("around_failure").search(sentence.text) and not has_success(sentence.text, absence_only=True):
        return False
    before = None
    for clause in split_clauses(sentence):
        if may_deny(clause.text) and find_denial(sentence, clause, before) is not None:
            return False
        if has_success(clause.text) and is_wish(sentence, clause):
            return False
        before = clause
    return True


def _is_praised(block: Block, sentences: list[Sentence], stated: Collection[tuple[str, int]]) -> bool:
    """Whether the line above or below a code block says that it works."""
    at = bisect_right(sentences, block.start, key=lambda sentence: sentence.end)
    above = sentences[at - 1] if at and block.start - sentences[at - 1].end <= MAX_LABEL_GAP else None
    if above is None or above.is_proposal or above.low.endswith("?"):
        return False
    is_announced, is_try = (grammar(name).search(above.text) for name in ("announces", "tries"))
    if not is_announced and not is_try:
        return False
    if any(source == above.source and above.start <= place < above.end for source, place in stated):
        return False
    if states_success(above):
        return bool(is_announced)
    at = bisect_left(sentences, block.end, key=lambda sentence: sentence.start)
    is_near = at < len(sentences) and sentences[at].start - block.end <= MAX_LABEL_GAP
    if not is_near or not is_try or not grammar("points").search(sentences[at].text):
        return False
    return read_result(above.text) != "fails" and states_success(sentences[at])


def _solution_places(document: Document) -> list[tuple[str, int, int]]:
    """What stands below a line "Solution:", if its writer shares what helped and does not only propose."""
    if "olution" not in document.issue.body or not grammar("shares").search(document.issue.body):
        return []
    return [
        (sentence.source, sentence.end, sentence.end + MAX_SOLUTION_CHARS)
        for sentence in read_sentences(document)
        if grammar("solution_label").search(sentence.text) and not sentence.is_proposal
    ]


def _of_code(document: Document, block: Block, outcome: Outcome) -> Iterator[RemedyStatement]:
    """What a block's command has that others lack; else its pins, exports and bare flags."""
    attempts = read_attempts(document)
    own = tuple(a for a in attempts if a.source == block.source and block.start <= a.start < block.end)
    for attempt in own:
        if uses := find_difference(attempt, tuple(a for a in attempts if a not in own)):
            yield from (_of_use(attempt, use, outcome) for use in uses)
            return
    for line in block.lines:
        text = line.text
        if not text.lstrip("$ ").startswith(_CODE_STARTS):
            continue
        for change in find_changes(text, text.lower()) or _whole_command(text):
            start, end = line.start + change.start, line.start + change.end
            action = text[change.start : change.end]
            rule = "workaround.section_code"
            yield RemedyStatement(
                action, block.source, start, end, change.kind, outcome, rule, SECTION_CHANCE
            )


def _whole_command(text: str) -> tuple[ChangeSpan, ...]:
    """A short command that sets or installs something and names no setting of its own."""
    start, end = trimmed(text, len(text) - len(text.lstrip("$ ")), len(text))
    is_one = text.startswith(_WHOLE, start) and end - start <= MAX_ACTION_CHARS
    return (ChangeSpan(start, end, kind_of(text[start:end].lower()), "thing.command"),) if is_one else ()


def _of_use(attempt: Attempt, use: SettingUse, outcome: Outcome) -> RemedyStatement:
    action = attempt.command[use.start - attempt.start : use.end - attempt.start]
    kind: WorkaroundKind = "flag" if action.startswith("-") else "env"
    rule = "workaround.command_difference"
    return RemedyStatement(action, attempt.source, use.start, use.end, kind, outcome, rule, COMMAND_CHANCE)
