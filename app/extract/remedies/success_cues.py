"""Words of success: where a text holds them, and whether they are denied, hoped for or guessed.

In: a `Clause` of people's prose. Out: yes or no, and the cues that count. What was changed is looked for
around them by `helped.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.extract.lists import load
from app.extract.remedies.clauses import Clause, grammar
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set, load_rules
from app.extract.text.sentences import Sentence

MAX_CUES = 4
MAX_DENIAL_REACH = 40

_LIST = load("helped")


def _any_of(name: str) -> str:
    return "|".join(_LIST[name])


SIGNS = pattern("|".join(f"(?:{rule.pattern.pattern})" for rule in load_rules("helped")))
"""A sentence without one of these tells no success."""

_DENIED = pattern(f"(?i)(?:{_any_of('denied')})(?: [\\w-]+){{0,3}}[\\s*_`]*$")
_HEDGE = pattern(f"(?i)(?:^|[^\\w])(?:{_any_of('hedges')})")
_GUESS = pattern(f"(?i)(?:^|[^\\w])(?:{_any_of('guesses')})")
_ASIDE = pattern(r"\([^()\n]{0,40}\)")
"""A guess in brackets is about something else: "it went fine with 24.02 or any lower version (I guess)"."""

_NEGATIVE_CUES = frozenset({"helped.no_failure", "helped.unless"})
_NO_CUE = {True: ("not only",), False: ("not ", "never ", "cannot ")}
_PRAISE = ("state", "absence", "act")


def find_cues(clause: Clause) -> Iterator[tuple[Rule, tuple[int, int]]]:
    """The words of success in a clause that nothing right before them denies."""
    for rule in load_rule_set("helped").meeting(clause.text):
        is_negative = rule.id in _NEGATIVE_CUES
        for count, match in enumerate(rule.pattern.finditer(clause.text)):
            if count >= MAX_CUES:
                break
            is_turned = clause.low.startswith(_NO_CUE[is_negative], match.start())
            if is_turned or _lacks(rule, clause, match.end()):
                continue
            if is_negative or not _is_denied(clause, match.start()):
                yield rule, match.span()


def _lacks(rule: Rule, clause: Clause, end: int) -> bool:
    """Whether a rule needs more behind its words, and that is not there."""
    needed = rule.extra.get("needs")
    return needed is not None and not grammar(needed).search(clause.text[end:])


def has_praise(text: str, *, absence_only: bool = False) -> bool:
    """Whether a text holds a word of success, or of a failure gone, that nothing right before it denies."""
    families = ("absence",) if absence_only else _PRAISE
    return any(rule["family"] in families for rule, _ in find_cues(Clause(text, text.lower(), 0, ())))


def is_wish(sentence: Sentence, clause: Clause) -> bool:
    """Whether a clause asks, guesses, or hopes up to the comma behind its last word of success.

    "It can be solved by X, it is a problem if you want to have Y" tells of X though it wants something.
    """
    told = _without_asides(clause.low)
    if sentence.low.rstrip(" *`)").endswith(("?", "？")) or _GUESS.search(told):
        return True
    ends = [match.end() for match in SIGNS.finditer(clause.text)]
    stop = clause.low.find(", ", max(ends)) if ends else -1
    return bool(ends) and bool(_HEDGE.search(_without_asides(clause.low[:stop]) if stop >= 0 else told))


def _without_asides(text: str) -> str:
    return str(_ASIDE.sub(" ", text)) if "(" in text else text


def _is_denied(clause: Clause, start: int) -> bool:
    """Whether a word of success is denied by what stands right before it: "does not really work"."""
    before = clause.text[max(0, start - MAX_DENIAL_REACH) : start]
    return bool(_DENIED.search(before[max(map(before.rfind, ",;:.，。")) + 1 :]))
