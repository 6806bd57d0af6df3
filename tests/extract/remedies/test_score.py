"""The judge of remedies: learned weights, plainly added up, and the reviewed labels they come from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.extract.remedies.score import WEIGHTS_FILE, RemedyWeights, chance_of, features_of, load_weights
from app.extract.remedies.sentences import candidates_of
from app.extract.text.sentences import read_sentences
from app.train.remedy_score import HELPS, LABELS, best_threshold, same_change, scores
from tests.extract.saying import an_issue

VERDICTS = {"works", "partial", "fails", "hint", "none"}


def candidates(text: str) -> list[tuple[str, float]]:
    (sentence,) = (s for s in read_sentences(an_issue(text)) if s.source == "body")
    return [(o.sentence.text[o.change.start : o.change.end], chance_of(o)) for o in candidates_of(sentence)]


def test_the_change_itself_is_likelier_than_what_stands_beside_it() -> None:
    found = dict(candidates("When I disable speculative decoding, the same prompt works."))
    assert max(found, key=lambda text: found[text]) == "disable speculative decoding"


def test_a_denied_success_offers_nothing() -> None:
    assert candidates("The server does not seem to work properly with --enable-lora.") == []


def test_unknown_features_weigh_nothing() -> None:
    (sentence,) = (s for s in read_sentences(an_issue("--enforce-eager works.")) if s.source == "body")
    candidate = next(candidates_of(sentence))
    assert chance_of(candidate, RemedyWeights(0.0, {"shape:unheard": 9.0}, 0.5)) == 0.5
    assert "shape:strong" in features_of(candidate)


def test_the_stored_weights_tell_their_scores() -> None:
    stored = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    assert stored["scores"][2] > 0.8
    assert 0.3 <= load_weights().threshold <= 0.9


def test_reading_an_issue_loads_no_learning_library() -> None:
    code = "import sys, app.extract.remedies.workarounds; print(any(m in sys.modules for m in ('sklearn', 'scipy')))"
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_labels_are_places_and_verdicts_without_text() -> None:
    rows = [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines()]
    assert sum(row["verdict_b"] is not None for row in rows) >= 200
    for row in rows:
        assert row["verdict"] in VERDICTS
        assert 0 <= row["start"] < row["end"]
        assert all(not isinstance(value, str) or len(value) < 10 for value in row.values())
        if row["verdict"] in HELPS:
            assert row["start"] <= row["action_start"] < row["action_end"] <= row["end"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("`--enforce-eager`", "--enforce-eager", True),
        ("using a single GPU", "a single GPU", True),
        ("--enforce-eager", "--enable-lora", False),
        ("", "--enable-lora", False),
    ],
)
def test_two_spans_mean_one_change_if_one_holds_the_other(one: str, other: str, same: bool) -> None:
    assert same_change(one, other) is same


def test_the_threshold_is_where_enough_are_right() -> None:
    judged = [(0.9, True), (0.8, True), (0.5, False), (0.4, False), (0.35, True)]
    assert best_threshold(judged, 3) == 0.52
    assert scores(judged, 0.52, 3)[:2] == (1.0, pytest.approx(2 / 3))
