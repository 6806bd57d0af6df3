"""Index terms of stored issues, pasted logs and questions.

`terms_of`: the lines of a text and its errors in, `{(channel, term): count}` out. There are four channels,
each weighted differently: words of the whole text, masked words of error lines, frames, whole signatures.

`read_heading`: a title with its facts, or a question, in; terms of the `HEADING` channel out: word stems
(Snowball's English stemmer, M. F. Porter), numbers and versions unchanged, concepts (rules of `conditions`
and `symptoms`, so that "TTFT" matches "time to first token"), and facts as `name:value`. Titles have their
own channel because they are short and chosen with care, while a body holds whole logs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

from snowballstemmer.english_stemmer import EnglishStemmer

from app.extract.facts import Facts
from app.extract.fields.failure_kind import find_failure
from app.extract.fields.gpu_names import architectures_of
from app.extract.lists import load
from app.extract.log.frames import is_plumbing
from app.extract.log.lines import LogLine
from app.extract.log.process_stream import ErrorRecord
from app.extract.log.root_cause import CauseChain
from app.extract.log.signature import mask
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rule_set
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText

HEADING = 5
"""The channel of titles and facts, mainly for questions; the channels of logs are defined below."""

MAX_CHARS = 400
MAX_WORD_CHARS = 60
MEANINGS = ("conditions", "symptoms")
STOP_WORDS = frozenset(load("symptoms")["stop_words"])
NO_FAILURE = "none"

_PREFIX = pattern(r"^\s*(?:\[[^\]]{1,40}\]\s*[:：]?\s*)+")
_WORD = pattern(r"[a-z0-9_]+(?:\.[a-z0-9_]+)*|!!!+|[\x{4e00}-\x{9fff}]+")
_FAMILY = pattern(r"^([a-z]{3,})\d[\d.]*$")
_MINOR = pattern(r"\b0\.\d{1,3}\b")


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading terms of a title or a question.

    Attributes:
        words: stem to the original word.
        meanings: id of each matching concept rule, with the stems of the words that matched.
        facts: as `name:value`.
    """

    words: Mapping[str, str]
    meanings: Mapping[str, frozenset[str]]
    facts: tuple[str, ...]

    @property
    def terms(self) -> Iterator[str]:
        yield from self.words
        yield from self.meanings
        yield from self.facts


def read_heading(text: str, *, gpus: Sequence[str], version: str | None, kind: str | None) -> Heading:
    """Build the heading of a title or a question.

    Args:
        gpus: canonical names of the accelerators in use.
        version: vLLM version, if known from outside the text.
    """
    cut = text[:MAX_CHARS]
    meanings = {
        rule.id: frozenset(stems_of(match.group(0)))
        for name in MEANINGS
        for rule in load_rule_set(name).meeting(cut)
        if (match := rule.pattern.search(cut)) is not None
    }
    versions = _MINOR.findall(f"{cut} {version or ''}")
    facts = (
        *(f"gpu:{gpu}" for gpu in gpus),
        *(f"architecture:{name}" for name in sorted(architectures_of(gpus))),
        *(f"vllm:{minor}" for minor in versions),
        *([f"kind:{kind}"] if kind and kind != NO_FAILURE else []),
    )
    return Heading(dict(stemmed_words(bare_title(cut))), meanings, tuple(dict.fromkeys(facts)))


def question_heading(question: str, around: Facts) -> Heading:
    """Build a question's heading from its words, its kind of failure and its environment (`around`)."""
    _, kind, _ = find_failure(read_document(IssueText(0, question, question)), None, "")
    return read_heading(question, gpus=around.gpus, version=around.versions.get("vllm"), kind=kind)


def bare_title(title: str) -> str:
    """Strip the leading tags that issue forms add, such as `[Bug]:`."""
    return str(_PREFIX.sub("", title, count=1))


def stemmed_words(text: str) -> Iterable[tuple[str, str]]:
    """Yield (stem, word) pairs; a name that ends in a version also yields the bare name."""
    for word in _WORD.findall(text.lower()):
        if word[0] > "~":
            yield from ((one + two, one + two) for one, two in pairwise(word))
        elif word not in STOP_WORDS and len(word) <= MAX_WORD_CHARS:
            plain = word[1:] if word[0] == "v" and word[1:2].isdigit() and "." in word else word
            yield stem_of(plain), plain
            if family := _FAMILY.match(plain):
                yield stem_of(family[1]), family[1]
            if "_" in plain:
                yield from ((stem_of(part), part) for part in plain.split("_") if len(part) > 1)


@lru_cache(maxsize=32_768)
def stem_of(word: str) -> str:
    """Return the stem of an ASCII word; any other token unchanged."""
    # A new stemmer for each call: it keeps the current word as state and is not thread-safe.
    return str(EnglishStemmer().stemWord(word)) if word.isalpha() and word.isascii() else word


TEXT, ERROR, FRAME, SIGNATURE = 1, 2, 3, 4

MAX_TOKENS = 3_000
"""Tokens per text; a longer text keeps its head (start-up) and its tail (failure)."""
MAX_TOKEN_CHARS = 60
MIN_TOKEN_CHARS = 3

_WORD_TERMS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}
_WORD_TERMS |= dict.fromkeys(map(ord, "\u00a0“”‘’«»„…–—•·→✅❌，。、：；！？（）「」《》【】"), " ")

Terms = Mapping[tuple[int, str], int]


def terms_of(texts: Iterable[str], errors: CauseChain) -> Terms:
    """Count the terms of titles or lines (without log prefixes) and of the errors found in them."""
    words = Counter(_grams(_tokens(texts)))
    found = Counter({(TEXT, term): count for term, count in words.items()})
    causes = [errors.cause, *errors.other] if errors.cause else []
    for cause in causes:
        for term in error_terms(cause):
            found[ERROR, term] += 1
        for term in frame_terms(cause):
            found[FRAME, term] += 1
        found[SIGNATURE, message_key(cause)] += 1
    return found


def error_terms(cause: ErrorRecord) -> Iterable[str]:
    """Yield unigrams and bigrams of the masked error message, and its type."""
    words = _tokens([mask(cause.message)])
    yield from _grams(words)
    if cause.type:
        yield f"type:{cause.type}"


def frame_terms(cause: ErrorRecord) -> Iterable[str]:
    """Yield the distinctive frames as `file:function`, single and in adjacent pairs."""
    places = [frame.place for frame in cause.frames if not is_plumbing(frame)]
    if not places and cause.frame:
        places = [cause.frame]
    yield from dict.fromkeys(places)
    yield from dict.fromkeys(f"{one} > {two}" for one, two in pairwise(places))


def message_key(cause: ErrorRecord) -> str:
    """Return type and masked message as one term."""
    return f"{cause.type or 'error'} | {mask(cause.message)}"[:300]


def grams_of(texts: Iterable[str]) -> Iterable[str]:
    """Return unigrams and bigrams of the texts, as indexed in `TEXT`."""
    return _grams(_tokens(texts))


def stems_of(text: str) -> Iterable[str]:
    """Return the stems of a text's words, as indexed in `HEADING`."""
    return (term for term, _ in stemmed_words(text[:MAX_CHARS]))


def line_texts(lines: Iterable[LogLine]) -> Iterable[str]:
    """Return the texts of lines, with installation paths stripped from `File` lines."""
    return (_without_path(line.text) for line in lines)


def words_of(text: str) -> list[str]:
    """Return the tokens of a text in order, as indexed in `TEXT`."""
    return _tokens([text])


def _without_path(text: str) -> str:
    """Shorten the path of a traceback's `File` line; return any other line unchanged."""
    at = text.find('File "')
    if at < 0:
        return text
    end = text.find('"', at + 6)
    path = text[at + 6 : end].replace("\\", "/")
    for mark in ("-packages/", "/lib/python"):
        if mark in path:
            path = path.rsplit(mark, 1)[1]
    return f"{text[:at]}{path}{text[end + 1 :]}"


def _tokens(texts: Iterable[str]) -> list[str]:
    words = "\n".join(texts).lower().translate(_WORD_TERMS).split()
    tokens = [
        word for word in words if MIN_TOKEN_CHARS <= len(word) <= MAX_TOKEN_CHARS and not word[0].isdigit()
    ]
    if len(tokens) > MAX_TOKENS:
        half = MAX_TOKENS // 2
        return tokens[:half] + tokens[-half:]
    return tokens


def _grams(tokens: Sequence[str]) -> Iterable[str]:
    return chain(tokens, map(" ".join, pairwise(tokens)))
