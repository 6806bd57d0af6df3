"""Remedies that a sentence states: what the learned weights make of it, the grammar being one voice.

In: a `Sentence` and what stands around it. Out: `RemedyStatement`s with the chance that they are so. The
grammar of remedies (`sentences.py`) does not decide: what it reads, its words of success and its denials are
hints among the features of `app.extract.statements`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.extract.facts import Outcome
from app.extract.lists import load
from app.extract.remedies.changes import find_names, grammar, kind_of, split_clauses, trimmed
from app.extract.remedies.cues import find_cues, find_denial, is_wish
from app.extract.remedies.sentences import RemedyStatement, is_readable, read_remedies
from app.extract.remedies.typed import command_of, is_left_out, is_unset
from app.extract.rules.patterns import pattern
from app.extract.statements.candidates import BAD, GOOD, LINKS, NEGATIONS, VERBS
from app.extract.statements.features import Hint, surroundings_of
from app.extract.statements.model import Statement, read_statements
from app.extract.statements.tokens import tokenise
from app.extract.text.document import Document
from app.extract.text.sentences import Sentence

MIN_CHANCE = 0.5
"""Least chance of a remedy that is quoted: on 1,600 sentences not learned from, those that state one were met
with precision .935 and recall .58, and 6 % of what was shown helped nothing; from .46 on .91, .59 and 8 %."""

MIN_FAILED_CHANCE = 0.85
MIN_SHARED_FAILED_CHANCE = 0.65
"""Where the grammar reads the same attempt as failed. Alone it was right in 3 of 12 sentences of another
engine's threads, and in 40 of 90 of vLLM's issues."""

LONG_SENTENCE_CHARS = 300
MIN_LONG_CHANCE = 0.9
"""A longer one is a list or a run of several: of what was read there with less chance half was fair."""

SURE_READING = 0.9
READING_CHANCE = 0.85
"""So many of the remedies that the grammar was so sure of, and of the failed attempts, were right
in labelled sentences drawn at random that no rule was made for (120); of the less sure a third."""

PLAIN_READING = 0.96
PLAIN_CHANCE = 0.95
"""Of such readings that name one thing to type 45 of 48 helped, 8 of them at a price."""

STATED = "workaround.stated"
_HALVES = frozenset(["again", "and", "or", "from", "to", "as", "than", "for", "of", "we", "i"])
_LACKING = ("without the ", "without ")
_VAGUE: frozenset[str] = frozenset(load("statements")["vague"])
_JOINING = frozenset(["or", "and", "with", "nor", "as", "well"])
_LEADS = (LINKS | {"also", "just", "even", "have", "i've", "tried", "neither", "both"}) - {
    "without",
    "instead",
    "from",
    "to",
    "as",
    "than",
}
"""Words that lead to a change and are no part of it."""

_OTHER_SCRIPT = pattern(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
_OUTCOMES: dict[str, Outcome] = {
    "works": "works",
    "without": "works",
    "partial": "partial",
    "fails": "fails",
}


def find_stated(document: Document, sentences: Sequence[Sentence], at: int) -> tuple[RemedyStatement, ...]:
    """The remedies that one of a document's sentences states.

    What the grammar finds in the sentence before ("when I remove it, …"), and in Chinese, is kept as it reads
    it: the labelled sentences are English.
    """
    sentence, previous = sentences[at], sentences[at - 1] if at else None
    read = read_remedies(sentence, previous)
    if _OTHER_SCRIPT.search(sentence.text):
        return read
    hints = remedy_hints(sentence, read)
    found = read_statements(sentence.text, surroundings_of(document, sentences, at), hints)
    likely = (_remedy(sentence, item, read) for item in found if item.chance >= _least(sentence, item, read))
    stated = [item for item in likely if item.rule != STATED or _can_be_done(item.action)]
    apart = [item for item in read if all(item.end <= s.start or s.end <= item.start for s in stated)]
    kept = (item for item in (_kept(sentence, item, stated) for item in apart) if item)
    least = MIN_LONG_CHANCE if len(sentence.text) > LONG_SENTENCE_CHARS else MIN_CHANCE
    believed = (item for item in (*kept, *stated) if item.chance >= least or item.outcome == "fails")
    return tuple(_needed(sentence, _without(sentence, _whole(sentence, item))) for item in believed)


def _least(sentence: Sentence, item: Statement, read: Sequence[RemedyStatement]) -> float:
    """From which chance on a statement counts."""
    if item.label != "fails":
        return MIN_CHANCE
    source, start, end = sentence.span(item.start, item.end)
    is_shared = any(
        r.outcome == "fails" and r.source == source and r.start < end and start < r.end for r in read
    )
    return MIN_SHARED_FAILED_CHANCE if is_shared else MIN_FAILED_CHANCE


def _whole(sentence: Sentence, item: RemedyStatement) -> RemedyStatement:
    """A remedy with both backticks of its code; what begins anew behind the closing one is no part of it."""
    if not _is_in(sentence, item) or item.action.count("`") % 2 == 0:
        return item
    text, start, end = sentence.text, item.start - sentence.start, item.end - sentence.start
    if text.count("`", 0, start) % 2:
        closing = text.index("`", start)
        if text.startswith("`", start - 1) and not text[closing + 1 : end].lstrip()[:1].isupper():
            start -= 1
        else:
            end = closing
    elif text.startswith("`", end):
        end += 1
    action = text[start:end]
    return replace(item, action=action, start=sentence.start + start, end=sentence.start + end)


def _needed(sentence: Sentence, item: RemedyStatement) -> RemedyStatement:
    """What it only fails without is the remedy: of "it hangs without --x" never "without --x"."""
    if item.outcome == "fails" or not _is_in(sentence, item) or not _only_fails(sentence):
        return item
    lead = next((word for word in _LACKING if item.action.lower().startswith(word)), "")
    if not lead and not sentence.low[: item.start - sentence.start].endswith(_LACKING):
        return item
    return replace(item, action=item.action[len(lead) :], start=item.start + len(lead), without=False)


def _only_fails(sentence: Sentence) -> bool:
    """Whether a sentence names a failure and neither a success nor a denial."""
    tokens = tokenise(sentence.text)
    kinds = {token.kind for token in tokens} - _VAGUE
    is_denied = any(token.low in NEGATIONS - {"without"} for token in tokens)
    return bool(kinds & BAD) and not kinds & GOOD and not is_denied


def _without(sentence: Sentence, item: RemedyStatement) -> RemedyStatement:
    """A remedy that the words before or behind it take away is what to leave out.

    What it fails without is none: "it hangs when --x is not set".
    """
    if item.outcome == "fails" or not _is_in(sentence, item):
        return item
    before, behind = sentence.text[: item.start - sentence.start], sentence.text[item.end - sentence.start :]
    if is_unset(behind):
        kinds = {token.kind for token in tokenise(before)}
        return replace(item, without=not kinds & BAD or bool(kinds & GOOD))
    return replace(item, without=True) if is_left_out(before) else item


def _kept(
    sentence: Sentence, item: RemedyStatement, stated: Sequence[RemedyStatement]
) -> RemedyStatement | None:
    """What the grammar reads and the weights do not: kept where the grammar is sure or the sentence believed.

    A sentence that is believed states all its choices: "X or Y fixes it".
    """
    if not _is_failure(item.outcome) and (item.chance >= SURE_READING or not _is_in(sentence, item)):
        return replace(item, chance=_measured(item))
    is_believed = bool(stated) and _is_failure(item.outcome) == _is_failure(stated[0].outcome)
    if not is_believed or (_is_failure(item.outcome) and not _is_beside(sentence, item, stated)):
        return None
    return replace(item, chance=stated[0].chance)


def _is_beside(sentence: Sentence, item: RemedyStatement, stated: Sequence[RemedyStatement]) -> bool:
    """Whether nothing but signs and joining words part a change from one that is stated."""
    for other in stated:
        first, last = sorted((item, other), key=lambda one: one.start)
        between = sentence.text[first.end - sentence.start : last.start - sentence.start]
        if all(token.low in _JOINING or not token.text[0].isalnum() for token in tokenise(between)):
            return True
    return False


def _can_be_done(action: str) -> bool:
    """Whether words can be a change: no other card, no "no output", no half phrase, bare verb or link."""
    tokens = tokenise(action)
    is_address = all(token.kind == "URL" for token in tokens)
    is_card = any(token.kind == "CHIP" for token in tokens)
    is_half = not tokens or tokens[0].low in _HALVES or (len(tokens) == 1 and tokens[0].kind in VERBS)
    return not is_half and not is_card and not is_address and not grammar("no_trouble").search(action)


def _measured(item: RemedyStatement) -> float:
    """How often such a reading of the grammar was right on labelled sentences that no rule was made for."""
    is_plain = item.outcome == "works" and item.chance >= PLAIN_READING and command_of(item.action)
    return PLAIN_CHANCE if is_plain else min(item.chance, READING_CHANCE)


def _is_failure(outcome: Outcome) -> bool:
    return outcome == "fails"


def remedy_hints(sentence: Sentence, read: Sequence[RemedyStatement]) -> tuple[Hint, ...]:
    """What the grammar reads in a sentence: remedies, words of success, denials."""
    return (*_remedies_as_hints(sentence, read), *_cues_as_hints(sentence))


def _remedies_as_hints(sentence: Sentence, read: Sequence[RemedyStatement]) -> Iterator[Hint]:
    for item in read:
        if _is_in(sentence, item):
            place = item.start - sentence.start, item.end - sentence.start
            yield Hint(*place, item.outcome)
            yield Hint(*place, f"{item.rule}:{item.outcome}")
            yield Hint(*place, f"{item.outcome}:{round(item.chance * 5)}")


def _is_in(sentence: Sentence, item: RemedyStatement) -> bool:
    return item.source == sentence.source and sentence.start <= item.start < sentence.end


def _cues_as_hints(sentence: Sentence) -> Iterator[Hint]:
    before = None
    for clause in split_clauses(sentence) if is_readable(sentence) else ():
        wish = "wish" if is_wish(sentence, clause) else ""
        for rule, (start, end) in find_cues(clause):
            place = clause.start + start, clause.start + end
            yield Hint(*place, f"cue.{rule.id}{wish}")
            yield Hint(*place, f"cue.{rule['family']}{wish}")
        denial = find_denial(sentence, clause, before)
        if denial is not None:
            yield Hint(clause.start, clause.start + len(clause.text), f"denied.{denial.is_failure}")
        before = clause


def _remedy(sentence: Sentence, item: Statement, read: Sequence[RemedyStatement]) -> RemedyStatement:
    """A statement as a remedy; the grammar's span where it means the same, since it ends with its words."""
    outcome = _OUTCOMES[item.label]
    without = item.label == "without"
    source, start, end = sentence.span(item.start, item.end)
    for other in read:
        is_same = other.source == source and other.start < end and start < other.end
        if is_same and _is_failure(other.outcome) == _is_failure(outcome) and not without:
            is_sure = other.outcome == "fails" or other.chance >= SURE_READING
            return replace(other, chance=max(item.chance, _measured(other)) if is_sure else item.chance)
    left, right = trimmed(sentence.text, _opening(sentence.text, item), item.end)
    source, start, end = sentence.span(left, right)
    text = sentence.text[left:right]
    names = find_names(text, text.lower())
    kind = names[0].kind if names else kind_of(text.lower())
    return RemedyStatement(text, source, start, end, kind, outcome, STATED, item.chance, without)


def _opening(text: str, item: Statement) -> int:
    """Where a change begins: behind the words that only lead to it ("also with", "when")."""
    inside = [token for token in tokenise(text) if item.start <= token.start and token.end <= item.end]
    while len(inside) > 1 and inside[0].low in _LEADS:
        inside = inside[1:]
    return inside[0].start if inside else item.start
