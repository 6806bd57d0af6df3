"""Code blocks that the line above or below says work: "it runs with:", or "in that mode it is gone".

In: a `Document`. Out: the short code blocks whose settings are remedies. What stands in them is read by
`workarounds.py`; here is only decided whether people praise them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection

from app.extract.remedies.clauses import grammar, split_clauses
from app.extract.remedies.commands import read_result
from app.extract.remedies.failed_attempts import find_denial, may_deny
from app.extract.remedies.success_cues import SIGNS, has_praise, is_wish
from app.extract.text.document import Block, Document
from app.extract.text.sentences import Sentence, read_sentences

MAX_LABEL_GAP = 40
"""Characters between a line and its code block: a fence with its language, no other text."""

MAX_SHOWN_CHARS = 600
"""A longer block is a script or a log, not a change."""

_FAILURE = grammar("around_failure")
_TRIES, _POINTS, _ANNOUNCES = grammar("tries"), grammar("points"), grammar("announces")


def find_shown(document: Document, told: Collection[tuple[str, int]]) -> tuple[Block, ...]:
    """The short code blocks that are said to work, in reading order.

    Args:
        told: where remedies are told in words; what a sentence names, its code block only repeats.
    """
    blocks = [block for block in document.of_kind("code") if len(block.text) <= MAX_SHOWN_CHARS]
    if not blocks:
        return ()
    said: dict[str, list[Sentence]] = {}
    for sentence in read_sentences(document):
        said.setdefault(sentence.source, []).append(sentence)
    return tuple(block for block in blocks if _is_praised(block, said.get(block.source, []), told))


def _is_praised(block: Block, said: list[Sentence], told: Collection[tuple[str, int]]) -> bool:
    at = bisect_right(said, block.start, key=lambda sentence: sentence.end)
    above = said[at - 1] if at and block.start - said[at - 1].end <= MAX_LABEL_GAP else None
    if above is None or above.is_proposal or above.low.endswith("?"):
        return False
    is_announced, is_try = _ANNOUNCES.search(above.text), _TRIES.search(above.text)
    if not is_announced and not is_try:
        return False
    if any(source == above.source and above.start <= place < above.end for source, place in told):
        return False
    if praises(above):
        return bool(is_announced)
    at = bisect_left(said, block.end, key=lambda sentence: sentence.start)
    below = said[at] if at < len(said) and said[at].start - block.end <= MAX_LABEL_GAP else None
    if below is None or not is_try or not _POINTS.search(below.text):
        return False
    return read_result(above.text) != "fails" and praises(below)


def praises(sentence: Sentence) -> bool:
    """Whether a sentence tells a success that nothing in it denies or only wishes for."""
    if not SIGNS.search(sentence.text) or not has_praise(sentence.text):
        return False
    if _FAILURE.search(sentence.text) and not has_praise(sentence.text, absence_only=True):
        return False
    before = None
    for clause in split_clauses(sentence):
        if may_deny(clause.text) and find_denial(sentence, clause, before) is not None:
            return False
        if has_praise(clause.text) and is_wish(sentence, clause):
            return False
        before = clause
    return True
