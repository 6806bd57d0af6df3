"""Features of sentences and candidates."""

from __future__ import annotations

import pytest

from app.extract.statements.features import (
    Hint,
    Mention,
    Surroundings,
    candidate_features,
    mention_features,
    sentence_features,
    surroundings_of,
)
from app.extract.statements.tokens import tokenise
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.extract.text.sentences import read_sentences

TEXT = "With --enforce-eager it does not work"


def test_two_flags_in_one_place_have_the_same_features() -> None:
    other = TEXT.replace("--enforce-eager", "--disable-log-stats")
    one, two = (set(candidate_features(t, tokenise(t), (1, 2), frozenset())) for t in (TEXT, other))
    assert one == two


def test_a_denied_word_of_success_is_another_one() -> None:
    plain = set(candidate_features(TEXT, tokenise(TEXT), (1, 2), frozenset()))
    praised = TEXT.replace("does not work", "does work")
    assert "gR:workn" in plain
    assert "gR:work" in set(candidate_features(praised, tokenise(praised), (1, 2), frozenset()))


def test_a_hint_counts_for_the_sentence_and_more_for_its_place() -> None:
    hints = (Hint(5, 20, "fails"),)
    at_place = set(candidate_features(TEXT, tokenise(TEXT), (1, 2), frozenset(), hints))
    beside = set(candidate_features(TEXT, tokenise(TEXT), (4, 6), frozenset(), hints))
    assert {"hint:fails", "hinted:fails", "hinted.whole:fails"} <= at_place
    assert "hint:fails" in beside
    assert "hinted:fails" not in beside


def test_the_surroundings_are_neighbours_title_and_speaker() -> None:
    text = IssueText(1, "[Bug]: hang", "It hangs at start. With V0 it works. The log is below.")
    document = read_document(text)
    sentences = read_sentences(document)
    at = next(i for i, sentence in enumerate(sentences) if "V0" in sentence.text)
    around = surroundings_of(document, sentences, at)
    assert around.previous.startswith("It hangs")
    assert around.next.startswith("The log")
    assert around.speaker == "reporter"
    assert "tag=bug" in set(sentence_features(TEXT, tokenise(TEXT), around))


def test_a_mention_is_compared_with_the_reported_version_and_the_other_mentions() -> None:
    text = "0.8.4 starts, but 0.8.5 hangs"
    tokens = tokenise(text)
    spans = [(at, at + 1) for at, token in enumerate(tokens) if token.kind == "VERSION"]
    around = Surroundings("", reported="0.8.5")
    mentions = [Mention(tokens[a].text, tokens[a].start, tokens[a].end, "ours") for a, _ in spans]
    old, new = (set(mention_features(tokens, spans, at, one, around)) for at, one in enumerate(mentions))
    assert {"m.age=older", "m.rank=l", "m.r=start"} <= old
    assert {"m.age=same", "m.rank=h", "m.r=hang"} <= new
    assert not {"m.r=hang", "m.c=hang"} & old


@pytest.mark.parametrize(
    ("title", "body", "reported"),
    [
        ("[Bug]: hang", "vLLM Version: 0.9.2\n\nIt hangs.", "0.9.2"),
        ("[Bug]: 0.9.1 hangs", "It hangs.", "0.9.1"),
        ("[Bug]: hang", "It hangs.", ""),
    ],
)
def test_the_reported_version_is_the_environments_or_the_titles(title: str, body: str, reported: str) -> None:
    document = read_document(IssueText(1, title, body))
    sentences = read_sentences(document)
    assert surroundings_of(document, sentences, len(sentences) - 1).reported == reported


def test_a_question_is_marked() -> None:
    text = "Does --enforce-eager help?"
    assert "question" in set(sentence_features(text, tokenise(text), Surroundings("")))
