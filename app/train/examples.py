"""Training examples from labelled sentences: candidates, their classes and features.

In: documents, with labels as spans (`labels/sentences.jsonl`) or from synthetic sentences (`phrasings.py`).
Out: `Labelled` examples of remedies and of roles, from which `statements.py` learns.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.extract.prose.regression import read_mentions
from app.extract.remedies.sentences import read_remedies
from app.extract.remedies.stated import remedy_hints
from app.extract.statements.candidates import find_spans, may_state
from app.extract.statements.features import (
    Surroundings,
    candidate_features,
    sentence_features,
    surroundings_of,
)
from app.extract.statements.model import REMEDY_CLASSES, ROLE_CLASSES, LocatedMention, rows_of, title_words
from app.extract.statements.tokens import NAMED, Token, tokenise
from app.extract.text.blocks import read_document
from app.extract.text.document import Document
from app.extract.text.sentences import Sentence, read_sentences
from app.train.phrasings import make_issues

COVERED_MIN = 0.8
"""Minimum share of a sentence that its label covers."""

OVERLAP_MIN = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """One sentence: its candidates with their classes (None: no class), and the indices of its features.

    For roles, each mention is a separate example with one candidate.
    """

    number: int
    use: str
    """`held`: test set; `dev`: development set, used only for the final fit; `made`: synthetic; else ""."""

    is_unsure: bool
    tokens: tuple[Token, ...]
    spans: tuple[tuple[int, int], ...]
    classes: tuple[int | None, ...]
    shared: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    gold: tuple[tuple[int, int, str], ...]


def read_examples(
    documents: Iterable[tuple[int, Document]], labels: Iterable[dict[str, Any]]
) -> tuple[list[Labelled], list[Labelled], list[Surroundings]]:
    """Build examples of remedies and roles from the labelled sentences; also return training contexts."""
    by_number: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in labels:
        by_number[row["number"]].append(row)
    remedies: list[Labelled] = []
    roles: list[Labelled] = []
    learned: list[Surroundings] = []
    for number, document in documents:
        if number not in by_number:
            continue
        sentences = read_sentences(document)
        for at, sentence in enumerate(sentences):
            label = _label_of(sentence, by_number[number])
            if label is not None:
                around = surroundings_of(document, sentences, at)
                previous = sentences[at - 1] if at else None
                remedies += _remedy_example(number, sentence, previous, around, label)
                if not _use_of(label):
                    learned.append(around)
        roles += _role_examples(number, document, by_number[number])
    return remedies, roles, learned


def _label_of(sentence: Sentence, labels: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    for label in labels:
        shared = min(sentence.end, label["end"]) - max(sentence.start, label["start"])
        if label["source"] == sentence.source and shared >= COVERED_MIN * (sentence.end - sentence.start):
            return label
    return None


def _use_of(label: dict[str, Any]) -> str:
    return label.get("use") or next((use for use in ("held", "dev") if label.get(use)), "")


def _remedy_example(
    number: int,
    sentence: Sentence,
    previous: Sentence | None,
    around: Surroundings,
    label: dict[str, Any],
) -> Iterator[Labelled]:
    tokens = tokenise(sentence.text)
    gold = [
        (start - sentence.start, end - sentence.start, "without" if without else outcome)
        for start, end, outcome, without in label.get("remedies", ())
        if sentence.start <= start < sentence.end
    ]
    spans = find_spans(tokens) if may_state(tokens) else []
    if not spans and not gold:
        return
    words, hints = title_words(around.title), remedy_hints(sentence, read_remedies(sentence, previous))
    yield Labelled(
        number,
        _use_of(label),
        bool(label.get("unsure")),
        tokens,
        tuple(spans),
        _classes_of(tokens, spans, gold),
        tuple(rows_of(sentence_features(sentence.text, tokens, around))),
        tuple(
            tuple(rows_of(candidate_features(sentence.text, tokens, span, words, hints))) for span in spans
        ),
        tuple(gold),
    )


def _classes_of(
    tokens: Sequence[Token], spans: Sequence[tuple[int, int]], gold: Sequence[tuple[int, int, str]]
) -> tuple[int | None, ...]:
    """Assign each candidate the class of the labelled change with which it overlaps most.

    If no candidate of a change overlaps enough, those with the highest overlap get its class.
    """
    closest: list[tuple[float, int | None]] = [(0.0, None)] * len(spans)
    for start, end, outcome in gold:
        meant = {at for at, token in enumerate(tokens) if token.start < end and start < token.end}
        shares = [_share(tokens, set(range(*span)), meant) for span in spans]
        least = min(OVERLAP_MIN, max(shares, default=0.0))
        for at, share in enumerate(shares):
            if share and share >= least and share > closest[at][0]:
                is_left_out = outcome == "without" and tokens[spans[at][0]].kind in LEAVING
                closest[at] = share, REMEDY_CLASSES.index("works" if is_left_out else outcome)
    return tuple(index for _, index in closest)


def _share(tokens: Sequence[Token], inside: set[int], meant: set[int]) -> float:
    """Return the Jaccard overlap of two token sets; 0 if the label has named tokens and none is shared."""
    both = inside & meant
    named = {at for at in meant if tokens[at].kind in NAMED}
    is_other = bool(named) and not named & both
    return 0.0 if is_other else len(both) / len(inside | meant)


LEAVING = frozenset(["without", "remov", "disabl", "no", "not", "drop", "unset", "omit", "turn", "uninstall"])


def made_examples(count: int, around: Sequence[Surroundings]) -> tuple[list[Labelled], list[Labelled]]:
    """Build examples from synthetic sentences, each in the context of a real one.

    A statement about a version may also be a remedy, so sentences about versions are examples of roles only.
    """
    made = list(make_issues(count, around))
    documents = ((text.number, read_document(text)) for text, _ in made)
    remedies, roles, _ = read_examples(documents, (label for _, label in made))
    of_versions = {text.number for text, label in made if label["versions"]}
    return [example for example in remedies if example.number not in of_versions], roles


def _role_examples(number: int, document: Document, labels: Sequence[dict[str, Any]]) -> list[Labelled]:
    """Return an example for each mention in a labelled sentence.

    Readers labelled a value once per sentence: where it stands there again, it is no example.
    """
    sentences, said = read_mentions(document, with_others=True)
    known = {at: _label_of(sentence, labels) for at, (sentence, _) in sentences.items()}
    found = [
        ((one.sentence, one.mention.value), _role_example(number, one, sentences[one.sentence][0], label))
        for one in said
        if (label := known[one.sentence])
    ]
    told = {place for place, example in found if example.gold}
    return [example for place, example in found if example.gold or place not in told]


def _role_example(number: int, one: LocatedMention, sentence: Sentence, label: dict[str, Any]) -> Labelled:
    start, end = one.mention.start, one.mention.end
    role = ""
    for left, right, stated in label.get("versions", ()):
        if left - sentence.start < end and start < right - sentence.start:
            role = stated
    return Labelled(
        number,
        _use_of(label),
        bool(label.get("unsure")),
        (),
        ((0, 1),),
        (ROLE_CLASSES.index(role) if role else None,),
        (),
        (one.rows,),
        ((start, end, role),) if role else (),
    )
