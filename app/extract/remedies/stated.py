"""Decide which remedies a sentence states, by learned weights with the grammar as one input.

In: a `Sentence` and its context. Out: `RemedyStatement`s with their probability. The grammar of remedies
(`sentences.py`) does not decide: its readings, success cues and negations are hints among the features of
`app.extract.statements`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.extract.facts import Outcome
from app.extract.fields.gpu_names import find_mentions
from app.extract.fields.settings import normalise_name
from app.extract.remedies.changes import find_names, grammar, kind_of, split_clauses, trimmed
from app.extract.remedies.cues import find_cues, find_denial, is_hypothetical
from app.extract.remedies.polarity import with_polarity
from app.extract.remedies.sentences import RemedyStatement, is_readable, read_remedies
from app.extract.remedies.typed import REMOVES, command_of
from app.extract.rules.patterns import pattern
from app.extract.statements.candidates import VERBS
from app.extract.statements.features import Hint, surroundings_of
from app.extract.statements.model import Statement, may_tell, read_statements
from app.extract.statements.tokens import tokenise
from app.extract.text.document import Document
from app.extract.text.sentences import Sentence

MIN_CHANCE = 0.6
"""Minimum probability to quote a remedy. Of those from .5 to .6 a reader found one of seven clear beside its
text, of the others four of five; F1 on labelled issues is higher, too."""

MIN_FAILED_CHANCE = 0.85
MIN_SHARED_FAILED_CHANCE = 0.65
"""Applies if the grammar also reads the attempt as failed. The grammar alone was right in 3 of 12 sentences
of another engine's threads, and in 40 of 90 of vLLM's issues."""

LONG_SENTENCE_CHARS = 300
MIN_LONG_CHANCE = 0.9
"""Longer ones are lists or several sentences: of readings with a lower probability, half were right."""

SURE_READING = 0.9
READING_CHANCE = 0.85
"""Share of remedies and failed attempts with at least SURE_READING that were right, in 120 randomly drawn
labelled sentences unknown to the rules; of less sure readings a third were."""

MIN_HOPE = 0.3
"""Minimum probability of help by the weights to keep a sure reading of the grammar alone. Below it, all 25 in
labelled sentences were no remedy."""

PLAIN_READING = 0.96
PLAIN_CHANCE = 0.95
"""Of such readings with exactly one thing to type, 45 of 48 helped, 8 of them at a cost."""

STATED = "workaround.stated"
_FRAGMENTS = frozenset(["again", "and", "or", "from", "to", "as", "than", "for", "of", "we", "i"])
_DEEDS = VERBS | {"runn"}
_JOINING = frozenset(["or", "and", "with", "nor", "as", "well"])

_ALONE = pattern(r"(?i)\b(?:one|single|1)\b")
_EASES = pattern(r"(?i)\b(?:without|unless|only|works?|working|fix\w*|solved?|than)\b")
"""In a title: what it names may be what helps."""
_VALUE = pattern(
    r"(?i)(?:(--?[a-z][\w-]*|\b[a-z][a-z\d]*(?:[_-][a-z\d]+)+)(?: ?==? ?| (?:of |to |is )?)"
    r"|\b([tpde]p)(?: ?==? ?| ?))[`'\"]?(\d[\w.]*|true|false)\b"
)
"""A setting and its value."""

_OTHER_SCRIPT = pattern(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
_OUTCOMES: dict[str, Outcome] = {
    "works": "works",
    "without": "works",
    "partial": "partial",
    "fails": "fails",
}


def find_stated(document: Document, sentences: Sequence[Sentence], at: int) -> tuple[RemedyStatement, ...]:
    """Return the remedies stated in one of a document's sentences.

    Grammar readings that are Chinese are kept as is, because the labelled sentences are English.
    """
    sentence, previous = sentences[at], sentences[at - 1] if at else None
    read = read_remedies(sentence, previous)
    if not (read or may_tell(sentence.text)) or _OTHER_SCRIPT.search(sentence.text):
        return read
    hints = remedy_hints(sentence, read)
    found = read_statements(sentence.text, surroundings_of(document, sentences, at), hints)
    likely = (_remedy(sentence, item, read) for item in found if item.chance >= _least(sentence, item, read))
    stated = [item for item in likely if item.rule != STATED or _is_actionable(item.action)]
    apart = [item for item in read if all(item.end <= s.start or s.end <= item.start for s in stated)]
    hope = max((item.chance for item in found if item.label != "fails"), default=0.0 if found else 1.0)
    kept = (item for item in (_kept_reading(sentence, item, stated, hope) for item in apart) if item)
    least = MIN_LONG_CHANCE if len(sentence.text) > LONG_SENTENCE_CHARS else MIN_CHANCE
    believed = (item for item in (*kept, *stated) if item.chance >= least or item.outcome == "fails")
    judged = (with_polarity(sentence, _balanced(sentence, item)) for item in believed)
    return tuple(item for item in judged if item and _is_for_the_reader(item, document.issue.title))


def _is_for_the_reader(item: RemedyStatement, title: str) -> bool:
    """True if who has the failure can make the change: other requests or another card are no change.

    Nor is the very setting under which the title says that it fails, where another model works with it. What
    was tried in vain is told in any case.
    """
    if item.outcome == "fails":
        return True
    is_other_card = any(find_mentions(item.action)) and not _ALONE.search(item.action)
    is_left_out = item.without or REMOVES.search(item.action) is not None
    is_titled = not is_left_out and item.source != "title" and not _EASES.search(title)
    is_what_fails = is_titled and not _values(item.action).isdisjoint(_values(title))
    return not (is_other_card or is_what_fails or grammar("other_use").search(item.action))


def _values(text: str) -> frozenset[tuple[str, str]]:
    """Return the settings with a number or a truth value in a text: "TP=2" is `tensor-parallel-size`, "2"."""
    found = ((match[1] or match[2], match[3]) for match in _VALUE.finditer(text))
    return frozenset((normalise_name(name.strip("-")), value.lower()) for name, value in found)


def _least(sentence: Sentence, item: Statement, read: Sequence[RemedyStatement]) -> float:
    """Return the minimum probability at which a statement counts."""
    if item.label != "fails":
        return MIN_CHANCE
    source, start, end = sentence.span(item.start, item.end)
    is_shared = any(
        r.outcome == "fails" and r.source == source and r.start < end and start < r.end for r in read
    )
    return MIN_SHARED_FAILED_CHANCE if is_shared else MIN_FAILED_CHANCE


def _balanced(sentence: Sentence, item: RemedyStatement) -> RemedyStatement:
    """Complete or cut a span with one backtick; a new sentence after the closing one is not part of it."""
    if item.action.count("`") % 2 == 0:
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


def _kept_reading(
    sentence: Sentence, item: RemedyStatement, stated: Sequence[RemedyStatement], hope: float
) -> RemedyStatement | None:
    """Keep a grammar-only reading if it is joined to a stated one, or sure where the weights state none.

    An accepted sentence states the alternatives next to it: "X or Y fixes it".

    Args:
        hope: the weights' highest probability for help in the sentence; 1 if they know no word of it.
    """
    if not _is_failure(item.outcome):
        is_sure = _is_plain(item) or (item.chance >= SURE_READING and hope >= MIN_HOPE and not stated)
        if is_sure:
            return replace(item, chance=_measured(item))
    is_believed = bool(stated) and _is_failure(item.outcome) == _is_failure(stated[0].outcome)
    is_joined = is_believed and _is_adjacent(sentence, item, stated)
    return replace(item, chance=stated[0].chance) if is_joined else None


def _is_adjacent(sentence: Sentence, item: RemedyStatement, stated: Sequence[RemedyStatement]) -> bool:
    """True if only punctuation and conjunctions separate a change from a stated one."""
    for other in stated:
        first, last = sorted((item, other), key=lambda one: one.start)
        between = sentence.text[first.end - sentence.start : last.start - sentence.start]
        if all(token.low in _JOINING or not token.text[0].isalnum() for token in tokenise(between)):
            return True
    return False


def _is_actionable(action: str) -> bool:
    """True if a text can be a change: not just a GPU, a URL, "no output", half a phrase or a bare verb."""
    tokens = tokenise(action)
    is_address = all(token.kind == "URL" for token in tokens)
    is_card = any(token.kind == "CHIP" for token in tokens)
    is_half = not tokens or tokens[0].low in _FRAGMENTS or (len(tokens) == 1 and tokens[0].kind in _DEEDS)
    return not is_half and not is_card and not is_address and not grammar("no_trouble").search(action)


def _measured(item: RemedyStatement) -> float:
    """Return the measured precision of such grammar readings on labelled sentences unknown to the rules."""
    return PLAIN_CHANCE if _is_plain(item) else min(item.chance, READING_CHANCE)


def _is_plain(item: RemedyStatement) -> bool:
    """True if the grammar is as sure as can be that exactly one thing to type works."""
    is_sure = item.outcome == "works" and item.chance >= PLAIN_READING
    return is_sure and command_of(item.action) is not None


def _is_failure(outcome: Outcome) -> bool:
    return outcome == "fails"


def remedy_hints(sentence: Sentence, read: Sequence[RemedyStatement]) -> tuple[Hint, ...]:
    """Return the grammar's readings of a sentence as hints: remedies, success cues, negations."""
    return (*_remedies_as_hints(sentence, read), *_cues_as_hints(sentence))


def _remedies_as_hints(sentence: Sentence, read: Sequence[RemedyStatement]) -> Iterator[Hint]:
    for item in read:
        place = item.start - sentence.start, item.end - sentence.start
        yield Hint(*place, item.outcome)
        yield Hint(*place, f"{item.rule}:{item.outcome}")
        yield Hint(*place, f"{item.outcome}:{round(item.chance * 5)}")


def _cues_as_hints(sentence: Sentence) -> Iterator[Hint]:
    before = None
    for clause in split_clauses(sentence) if is_readable(sentence) else ():
        wish = "wish" if is_hypothetical(sentence, clause) else ""
        for rule, (start, end) in find_cues(clause):
            place = clause.start + start, clause.start + end
            yield Hint(*place, f"cue.{rule.id}{wish}")
            yield Hint(*place, f"cue.{rule['family']}{wish}")
        denial = find_denial(sentence, clause, before)
        if denial is not None:
            yield Hint(clause.start, clause.start + len(clause.text), f"denied.{denial.is_failure}")
        before = clause


def _remedy(sentence: Sentence, item: Statement, read: Sequence[RemedyStatement]) -> RemedyStatement:
    """Convert a statement to a remedy; an overlapping grammar span is preferred, as it is more exact."""
    outcome = _OUTCOMES[item.label]
    without = item.label == "without"
    source, start, end = sentence.span(item.start, item.end)
    for other in read:
        is_same = other.source == source and other.start < end and start < other.end
        if is_same and _is_failure(other.outcome) == _is_failure(outcome) and not without:
            is_sure = other.outcome == "fails" or other.chance >= SURE_READING
            chance = max(item.chance, _measured(other)) if is_sure else item.chance
            return replace(other, outcome=outcome, chance=chance)
    left, right = trimmed(sentence.text, item.start, item.end)
    source, start, end = sentence.span(left, right)
    text = sentence.text[left:right]
    names = find_names(text)
    kind = names[0].kind if names else kind_of(text.lower())
    return RemedyStatement(text, source, start, end, kind, outcome, STATED, item.chance, without)
