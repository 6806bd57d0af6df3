"""Features of a sentence and of a candidate in it, as plain strings: `R1=work`, `in=FLAG`, `prev=crash`.

In: tokens, spans and the sentence's context. Out: strings, which the model hashes. Sentence features apply to
all candidates of the sentence. `hints` are the remedy grammar's readings of the same sentence: one more input
with learned weight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.statements.candidates import BAD, GOOD, LINKS, NEGATIONS, TRIES, VERBS
from app.extract.statements.tokens import NAMED, Token, tokenise
from app.extract.text.document import Document
from app.extract.text.sentences import Sentence
from app.extract.versions import is_before, is_same

WINDOW_TOKENS = 8
MAX_CUE_DISTANCE = 12
MAX_PATH = 6
MAX_PREVIOUS_TOKENS = 25
MAX_NEXT_TOKENS = 15
NEGATION_REACH = 3
MOSTLY = 0.6
NEAR_CHARS = 12
MID_CHARS = 45
OFFSETS = 5
LABEL_TOKENS = 7

_IN_DUMP = pattern(
    r"(?i)vllm (?:api server |engine )?version[ :*`|(=]*v?(\d+\.\d+[\w.+]*)|LLM engine \(v?(\d+\.\d+[\w.+]*)"
)
_IN_TITLE = pattern(r"\bv?(0\.\d+(?:\.\d+)*(?:\.?(?:post|rc|dev)\d+)*)")
_FUNCTION_WORDS: frozenset[str] = frozenset(load("statements")["function_words"])
_BREAKING = frozenset(",;.:")
_CONTRASTS = frozenset(["but", "however", "while", "and"])
_CLAUSE_ENDS = frozenset(",;.")
_CLAUSE_SIGNS = _CLAUSE_ENDS | frozenset("*•|")
_LINE_SIGNS = frozenset("*•|.;!?")
_NUMBER = pattern(r"\d+(?:\.\d+)+(?:[.+-]?[A-Za-z0-9_]+)*")


@dataclass(frozen=True, slots=True)
class Hint:
    """Another reader's label for a range of the sentence, in code points of the sentence."""

    start: int
    end: int
    label: str


Sort = Literal["ours", "other", "change", "commit"]


@dataclass(frozen=True, slots=True)
class Mention:
    """A version without a leading v, a nightly build's day, `#12345` or a commit, and where it stands.

    `sort`: "ours" is a version or day of vLLM, "other" a version of another package.
    """

    value: str
    start: int
    end: int
    sort: Sort


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of a sentence."""

    title: str
    heading: str = ""
    previous: str = ""
    next: str = ""
    speaker: str = "reporter"
    reported: str = ""
    """The version that the issue is about, from its environment dump or title."""


def surroundings_of(document: Document, sentences: Sequence[Sentence], at: int) -> Surroundings:
    """Return the context of a sentence; neighbours from another source are left out."""
    sentence = sentences[at]

    def text_at(index: int) -> str:
        inside = 0 <= index < len(sentences) and sentences[index].source == sentence.source
        return sentences[index].text if inside else ""

    speaker = document.speaker.get(sentence.source, "reporter")
    return Surroundings(
        document.issue.title,
        sentence.heading[:80],
        text_at(at - 1),
        text_at(at + 1),
        speaker,
        _reported_version(document),
    )


@lru_cache(maxsize=2)
def _reported_version(document: Document) -> str:
    """Return the version from an environment dump or log header, else from the title; "" if none."""
    for text, rule in ((document.sources["body"], _IN_DUMP), (document.issue.title, _IN_TITLE)):
        if match := rule.search(text):
            return next(str(group) for group in match.groups() if group)
    return ""


def sentence_features(text: str, tokens: Sequence[Token], around: Surroundings) -> Iterator[str]:
    """Yield the features shared by all candidates of a sentence."""
    yield from own_features(text, tokens)
    yield from context_features(around)


def own_features(text: str, tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the features of a sentence by itself."""
    kinds = [token.kind for token in tokens]
    for kind in set(kinds):
        yield f"s={kind}"
    for one, other in pairwise(kinds):
        yield f"b={one}_{other}"
    for at in range(len(kinds) - 2):
        yield f"t={kinds[at]}_{kinds[at + 1]}_{kinds[at + 2]}"
    good = sum(kind in GOOD for kind in kinds)
    bad = sum(kind in BAD for kind in kinds)
    yield f"good{min(good, 3)}bad{min(bad, 3)}"
    if text.rstrip().endswith(("?", "？")):
        yield "question"
    if text.rstrip().endswith((":", "：")):
        yield "colon"
    yield f"length={min(len(tokens) // 10, 5)}"


def context_features(around: Surroundings) -> Iterator[str]:
    """Yield the features of what stands around a sentence."""
    previous = [token.kind for token in tokenise(around.previous)][-MAX_PREVIOUS_TOKENS:]
    behind = [token.kind for token in tokenise(around.next)][:MAX_NEXT_TOKENS]
    for kind in set(previous):
        yield f"prev={kind}"
    for kind in set(behind):
        yield f"next={kind}"
    for kind in previous[-2:]:
        yield f"before={kind}"
    if behind:
        yield f"behind={behind[0]}_{behind[1] if len(behind) > 1 else ''}"
    for word in set(around.heading.lower().split()):
        yield f"heading={word}"
    tag = around.title[1 : around.title.find("]")] if around.title.startswith("[") else ""
    yield f"tag={tag.lower().strip(': ')}"
    yield f"speaker={around.speaker}"


def candidate_features(
    text: str,
    tokens: Sequence[Token],
    span: tuple[int, int],
    title_words: frozenset[str],
    hints: Sequence[Hint] = (),
) -> Iterator[str]:
    """Yield the features of a candidate and its context in the sentence."""
    start, end = span
    kinds = [token.kind for token in tokens]

    def at(place: int) -> str:
        return kinds[place] if 0 <= place < len(kinds) else ("^" if place < 0 else "$")

    inside = kinds[start:end]
    yield f"f={at(start)}"
    yield f"f2={at(start)}_{at(start + 1)}"
    yield f"l={at(end - 1)}"
    yield f"len={min(end - start, 8)}"
    for kind in set(inside):
        yield f"in={kind}"
    named = [kind for kind in inside if kind in NAMED]
    yield f"named={min(len(named), 3)}"
    before, after = (at(start - 2), at(start - 1)), (at(end), at(end + 1))
    yield f"L1={before[1]}"
    yield f"L2={before[0]}"
    yield f"L12={before[0]}_{before[1]}"
    yield f"L3={at(start - 3)}_{before[0]}_{before[1]}"
    yield f"R1={after[0]}"
    yield f"R2={after[1]}"
    yield f"R12={after[0]}_{after[1]}"
    yield f"R3={after[0]}_{after[1]}_{at(end + 2)}"
    yield f"f+R1={at(start)}|{after[0]}"
    yield f"L1+R1={before[1]}|{after[0]}"
    for kind in set(kinds[max(0, start - WINDOW_TOKENS) : start]):
        yield f"left={kind}"
    for kind in set(kinds[end : end + WINDOW_TOKENS]):
        yield f"right={kind}"
    yield from _cue_features(tokens, kinds, start, end)
    yield f"title={min(sum(kind in title_words and len(kind) > 3 for kind in inside), 3)}"
    yield from _hint_features(
        tokens[start].start, tokens[end - 1].end, len(text), hints, _shape(tokens[start])
    )


def mention_features(
    tokens: Sequence[Token],
    spans: Sequence[tuple[int, int]],
    index: int,
    mention: Mention,
    around: Surroundings,
) -> Iterator[str]:
    """Yield features that compare a mention with the others of its sentence, and those of its clause.

    Args:
        spans: the token ranges of all mentions of the sentence, in reading order.
        index: the index of this mention.
        mention: this mention.
    """
    start, end = spans[index]
    own = _version_of(tokens[start:end])
    others = [_version_of(tokens[a:b]) for at, (a, b) in enumerate(spans) if at != index]
    age = age_of(own, around.reported)
    low = any(is_before(own, other) for other in others)
    high = any(is_before(other, own) for other in others)
    rank = f"{'l' if low else ''}{'h' if high else ''}" or ("same" if others else "only")
    place = "first" if index == 0 else "last" if index == len(spans) - 1 else "inner"
    yield f"m.age={age}"
    yield f"m.rank={rank}"
    yield f"m.age={age}|{rank}"
    yield f"m.place={place}{min(len(spans), 4)}"
    yield f"m.rank={rank}|{place}"
    left, right = _clause_around(tokens, start, end)
    before = [token.kind for token in tokens[left:start]]
    behind = [token.kind for token in tokens[end:right]]
    for side, kinds in (("l", before), ("r", behind)):
        for kind in set(kinds):
            yield f"m.{side}={kind}"
        for one, other in pairwise(kinds):
            yield f"m.{side}b={one}_{other}"
    clause = {*before, *behind}
    for kind in clause:
        yield f"m.c={kind}"
        yield f"m.c={kind}|{age}"
        yield f"m.c={kind}|{mention.sort}"
    denied = any(token.low in NEGATIONS for token in (*tokens[left:start], *tokens[end:right]))
    cues = f"m.clause={bool(clause & GOOD):d}{bool(clause & BAD):d}{denied:d}"
    yield from (cues, f"{cues}|{rank}", f"{cues}|{age}")
    row = [*before, "@", *behind]
    yield from (f"m.t={row[at]}_{row[at + 1]}_{row[at + 2]}" for at in range(len(row) - 2))
    yield from _place_features(tokens, spans, index)
    sort = mention.sort
    yield f"m.sort={sort}"
    yield f"m.title={mention.value in around.title}|{sort}"
    for token in tokens:
        yield f"m.s={token.kind}|{sort}"
    for word in around.heading.lower().split()[:6]:
        yield f"m.heading={word}|{sort}"


def _place_features(tokens: Sequence[Token], spans: Sequence[tuple[int, int]], index: int) -> Iterator[str]:
    """Yield features of the words next to a mention, of its label, and of those up to the next mention."""
    kinds = ["^"] * OFFSETS + [token.kind for token in tokens] + ["$"] * OFFSETS
    start, end = spans[index]
    for step in range(1, OFFSETS + 1):
        yield f"m.-{step}={kinds[OFFSETS + start - step]}"
        yield f"m.+{step}={kinds[OFFSETS + end + step - 1]}"
    begin = start
    while begin > max(0, start - LABEL_TOKENS) and tokens[begin - 1].text not in _LINE_SIGNS:
        begin -= 1
    label = [token.kind for token in tokens[begin:start]]
    yield f"m.label={'_'.join(label)}"
    yield f"m.lead={'_'.join(label[-3:])}"
    last = next(
        (token.low for token in reversed(tokens[max(0, start - 3) : start]) if token.low[0].isalpha()), "-"
    )
    yield f"m.word={last}"
    if index + 1 < len(spans):
        yield f"m.tonext={'_'.join(t.kind for t in tokens[end : spans[index + 1][0]][:OFFSETS])}"
    if index:
        yield f"m.tolast={'_'.join(t.kind for t in tokens[spans[index - 1][1] : start][-OFFSETS:])}"


def _clause_around(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int]:
    """Return the clause around a span, up to punctuation or a contrast on both sides."""
    while start > 0 and not _is_edge(tokens[start - 1], _CLAUSE_SIGNS):
        start -= 1
    while end < len(tokens) and not _is_edge(tokens[end], _CLAUSE_ENDS):
        end += 1
    return start, end


def _is_edge(token: Token, signs: frozenset[str]) -> bool:
    return token.text in signs or token.low in _CONTRASTS


def _version_of(tokens: Sequence[Token]) -> str:
    """Return the bare version number in tokens; "" if none."""
    match = _NUMBER.search(" ".join(token.text for token in tokens))
    return match.group(0) if match else ""


def age_of(version: str, reported: str) -> str:
    """Compare a version with the reported one: same, older, newer, other or unknown."""
    if not version or not reported:
        return "unknown"
    if is_same(version, reported):
        return "same"
    return "older" if is_before(version, reported) else "newer" if is_before(reported, version) else "other"


def _cue_features(tokens: Sequence[Token], kinds: Sequence[str], start: int, end: int) -> Iterator[str]:
    """Yield features of the nearest success, failure, attempt and negation words to the left and right."""
    first = _shape(tokens[start])
    for name, words in (("g", GOOD), ("x", BAD), ("t", TRIES), ("n", NEGATIONS)):
        for side, place, step in (("R", end, 1), ("L", start - 1, -1)):
            cue = _nearest(tokens, kinds, place, step, words)
            if cue is None:
                yield f"{name}{side}=-"
                continue
            low, high = (end, cue) if side == "R" else (cue + 1, start)
            between = tokens[low:high]
            cut = "c" if any(token.text in _BREAKING for token in between) else ""
            turn = "b" if any(token.low in _CONTRASTS for token in between) else ""
            other = "o" if any(token.kind in NAMED for token in between) else ""
            near = tokens[max(0, cue - NEGATION_REACH) : cue]
            denied = "n" if name in "gx" and any(token.low in NEGATIONS for token in near) else ""
            yield f"{name}{side}={_bucket(abs(cue - place) + 1)}{cut}{turn}{denied}"
            yield f"{name}{side}~{first}{other}{cut}{denied}"
            yield f"{name}{side}:{kinds[cue]}{denied}"
            yield f"{name}{side}+f={kinds[start]}{denied}"
            if name in "gx":
                path = _path(between)
                yield f"P{side}{name}:{path}{denied}"
                yield f"P{side}{kinds[cue]}:{path}"
                yield f"A{first}{side}{name}:{path}{denied}"
                yield f"B{first}{side}{kinds[cue]}{denied}"


def _nearest(
    tokens: Sequence[Token], kinds: Sequence[str], place: int, step: int, words: frozenset[str]
) -> int | None:
    for distance in range(MAX_CUE_DISTANCE):
        at = place + step * distance
        if not 0 <= at < len(kinds):
            return None
        if kinds[at] in words or tokens[at].low in words:
            return at
    return None


def _shape(token: Token) -> str:
    if token.low in NEGATIONS:
        return "NOT"
    if token.low in LINKS:
        return token.low
    if token.kind in NAMED:
        return "NAME"
    return "VERB" if token.kind in VERBS else "word"


def _path(between: Sequence[Token]) -> str:
    """Return the path from a candidate to a cue: function words verbatim, other words by class."""
    path: list[str] = []
    for token in between:
        if token.low in _FUNCTION_WORDS:
            step = token.low
        elif token.low in NEGATIONS:
            step = "NOT"
        elif token.kind in NAMED:
            step = "NAME"
        else:
            step = "VERB" if token.kind in VERBS else "word"
        if not path or path[-1] != step:
            path.append(step)
    return "_".join(path[:MAX_PATH])


def _bucket(distance: int) -> int:
    return next((i for i, limit in enumerate((1, 2, 4, 7)) if distance <= limit), 4)


def _hint_features(start: int, end: int, length: int, hints: Sequence[Hint], first: str) -> Iterator[str]:
    for hint in hints:
        if hint.start >= length or hint.end <= 0:
            continue
        yield f"hint:{hint.label}"
        if hint.label.startswith("cue"):
            side = "R" if hint.start >= end else "L" if hint.end <= start else "I"
            gap = max(hint.start - end, start - hint.end, 0)
            reach = "near" if gap <= NEAR_CHARS else "mid" if gap <= MID_CHARS else "far"
            yield f"{hint.label}:{side}{reach}"
            yield f"{hint.label}:{side}:{first}"
            continue
        shared = min(end, hint.end) - max(start, hint.start)
        if shared > 0:
            yield f"hinted:{hint.label}"
            if shared > MOSTLY * (max(end, hint.end) - min(start, hint.start)):
                yield f"hinted.whole:{hint.label}"
