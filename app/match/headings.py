"""What an issue is called and where it happens, as terms by which a question in words finds it.

In: an issue's title and facts, or a question and what it tells. Out: terms of the channel `HEADING`: the
stems of the words (Snowball's English stemmer, M. F. Porter), numbers and versions as they stand, what the
words mean (rules of `conditions` and `symptoms`, so that "TTFT" meets "time to first token"), and facts as
`name:value`. A title is short and written to be found; the text below it holds all words of a machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from snowballstemmer.english_stemmer import EnglishStemmer

from app.extract.architecture import architectures_of
from app.extract.document import IssueText
from app.extract.kind import find_failure
from app.extract.lists import load
from app.extract.patterns import pattern
from app.extract.reader import LogReading
from app.extract.rule_sets import load_rule_set
from app.extract.sections import read_document
from app.match.views import bare_title

HEADING = 5
"""The channel beside those of `app.match.terms`, which a log is searched by."""

MAX_CHARS = 400
MAX_WORD_CHARS = 60
MEANINGS = ("conditions", "symptoms")
_STOP_WORDS = frozenset(load("symptoms")["stop_words"])
NO_FAILURE = "none"

_WORD = pattern(r"[a-z0-9_]+(?:\.[a-z0-9_]+)*|!!!+|[\x{4e00}-\x{9fff}]+")
_FAMILY = pattern(r"^([a-z]{3,})\d[\d.]*$")
_MINOR = pattern(r"\b0\.\d{1,3}\b")


@dataclass(frozen=True, slots=True)
class Heading:
    """A text as it is called by; `words` gives for each term of a word the word as it was written."""

    words: Mapping[str, str]
    meanings: tuple[str, ...]
    facts: tuple[str, ...]

    @property
    def terms(self) -> Iterator[str]:
        """All terms."""
        yield from self.words
        yield from self.meanings
        yield from self.facts


def read_heading(text: str, *, gpus: Sequence[str], version: str | None, kind: str | None) -> Heading:
    """The heading of a title or a question.

    Args:
        text: the title, or the question.
        gpus: canonical names of the accelerators in use.
        version: vLLM's, as far as it is told beside the text.
        kind: the kind of failure.
    """
    said = text[:MAX_CHARS]
    met = (rule.id for name in MEANINGS for rule in load_rule_set(name).meeting(said))
    versions = _MINOR.findall(f"{said} {version or ''}")
    facts = (
        *(f"gpu:{gpu}" for gpu in gpus),
        *(f"architecture:{name}" for name in sorted(architectures_of(gpus))),
        *(f"vllm:{minor}" for minor in versions),
        *([f"kind:{kind}"] if kind and kind != NO_FAILURE else []),
    )
    return Heading(dict(_words(bare_title(said))), tuple(dict.fromkeys(met)), tuple(dict.fromkeys(facts)))


def question_heading(reading: LogReading) -> Heading:
    """What a question is about: its words, and the machine, version and failure that it names."""
    document = read_document(IssueText(0, reading.log, reading.log))
    _, kind, _ = find_failure(document, None, "")
    around = reading.surroundings
    return read_heading(reading.log, gpus=around.gpus, version=around.versions.get("vllm"), kind=kind)


def _words(text: str) -> Iterable[tuple[str, str]]:
    """Terms with the words they are of; a name with a version in it gives the name, too."""
    for word in _WORD.findall(text.lower()):
        if word[0] > "~":
            yield from ((one + two, one + two) for one, two in pairwise(word))
        elif word not in _STOP_WORDS and len(word) <= MAX_WORD_CHARS:
            plain = word[1:] if word[0] == "v" and word[1:2].isdigit() and "." in word else word
            yield stem_of(plain), plain
            if family := _FAMILY.match(plain):
                yield stem_of(family[1]), family[1]
            if "_" in plain:
                yield from ((stem_of(part), part) for part in plain.split("_") if len(part) > 1)


@lru_cache(maxsize=32_768)
def stem_of(word: str) -> str:
    """A word without its ending; one with digits in it as it stands."""
    # Made anew each time: a stemmer keeps the word at hand in itself, and threads share it.
    return str(EnglishStemmer().stemWord(word)) if word.isalpha() and word.isascii() else word
