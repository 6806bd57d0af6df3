"""What vectors add to the search by questions, with vectors of a model that is fitted here: an LSA of the base.

    python -m tests.benchmarks.question_vectors --database sqlite:///COPY.db [--pairs PAIRS.jsonl] QUESTIONS.jsonl

The base is written to: its vectors are made by a server on the loopback, as an operator's would make them. Of pairs
of issues that are the same failure the title of the later one is a question, whose answer is the other. The weight
is learned from questions that are not held out, and from titles of even numbers. Printed, for both kinds of questions: how many have a right
candidate at all, R@1, R@5 and the mean of 1 / rank without vectors and with them. An LSA knows no words that the
corpus does not hold; a real embedding model does other things better, and its figures differ.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

from app.extract.reader import read_question
from app.knowledge.operations.embedding import embed_issues, embedded_text
from app.match.search.question_search import find_answers
from app.match.search.ranking import MEANING
from app.match.search.terms import question_heading
from app.model_reader.embeddings import Embedder, QuestionEmbedder
from app.store.derived.readings import find_facts_without_evidence
from app.store.github.issues import find_heads, find_repository, numbers_of
from app.store.schema import migrate
from app.store.session import Store, open_store
from app.train.question_ranking import asked_rows
from app.train.shared import read_rows
from tests.model_reader.vectors import embeddings_server
from tests.samples import REPO

PART = 500
MEANING_WEIGHTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""Candidate weights of semantic similarity, in nats per standard deviation."""

Scores = tuple[np.ndarray, np.ndarray, np.ndarray]
"""For the candidates of a question: word score, semantic similarity, correctness."""


def scores_of(store: Store, rows: Sequence[dict[str, Any]], embed: QuestionEmbedder) -> list[Scores]:
    """Score the candidates of each question that has a right answer."""
    found: list[Scores] = []
    for row in rows:
        if not row.get("right"):
            continue
        text = row["text"]
        heading = question_heading(text, read_question(text))
        with store.reading() as session:
            ranked = find_answers(
                session,
                text,
                heading,
                exclude=frozenset(row.get("exclude", ())),
                vector=embed(text),
            )
        near = np.array([item.scores.get(MEANING, 0.0) for item in ranked])
        words = np.array([sum(item.scores.values()) for item in ranked]) - near
        found.append((words, near, np.array([item.key[1] in row["right"] for item in ranked], dtype=bool)))
    return found


def first_right(scores: Scores, weight: float) -> int | None:
    """Return the rank of the first right answer, from 1; None if no candidate is right."""
    words, near, right = scores
    order = np.argsort(-(words + weight * near), kind="stable")
    places = np.flatnonzero(right[order])
    return int(places[0]) + 1 if len(places) else None


def learn_meaning(questions: Sequence[Scores]) -> float:
    """Return the weight of `MEANING_WEIGHTS` with the best mean reciprocal rank, the lowest among equals."""

    def mean_reciprocal_rank(weight: float) -> float:
        places = [first_right(scores, weight) for scores in questions]
        return round(sum(1 / place for place in places if place) / max(1, len(places)), 4)

    return max(MEANING_WEIGHTS, key=mean_reciprocal_rank)


def texts_of(store: Store) -> list[str]:
    """What vectors are made of, of every issue."""
    with store.reading() as session:
        repo_id = find_repository(session, REPO)
        assert repo_id
        numbers = numbers_of(session, repo_id, limit=2**31 - 1)
        found: list[str] = []
        for start in range(0, len(numbers), PART):
            part = numbers[start : start + PART]
            facts = find_facts_without_evidence(session, repo_id, part)
            heads = find_heads(session, repo_id, part)
            found += [embedded_text(issue.title, facts.get(issue.number)) for issue in heads]
    return found


def fitted(texts: Sequence[str], dimensions: int) -> Any:
    """A latent semantic analysis: words and pairs of words by their rarity, in so many dimensions."""
    words = TfidfVectorizer(
        sublinear_tf=True, min_df=2, max_df=0.2, ngram_range=(1, 2), token_pattern=r"(?u)\w[\w.]+"
    )
    return Pipeline([("words", words), ("svd", TruncatedSVD(dimensions, random_state=0))]).fit(texts)


def title_questions(store: Store, pairs: Path) -> list[dict[str, Any]]:
    """For the later issue of each pair its title as a question, and the earlier ones as right answers."""
    found: dict[int, set[int]] = {}
    for row in read_rows([pairs]):
        if row["label"] == "same_failure":
            found.setdefault(max(row["a"], row["b"]), set()).add(min(row["a"], row["b"]))
    with store.reading() as session:
        repo_id = find_repository(session, REPO)
        assert repo_id
        heads = find_heads(session, repo_id, sorted(found))
    return [
        {"text": issue.title, "right": sorted(found[issue.number]), "exclude": [issue.number]}
        for issue in heads
    ]


def line_of(name: str, questions: Sequence[Scores], weight: float) -> str:
    places = [first_right(scores, weight) for scores in questions]
    known = [place for place in places if place]
    shares = [sum(place <= most for place in known) / len(places) for most in (1, 5)]
    mean = sum(1 / place for place in known) / len(places)
    return f"{name:28} R@1 {shares[0]:.3f}  R@5 {shares[1]:.3f}  mean 1/rank {mean:.3f}"


def main() -> None:
    """Measure once."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--database", required=True)
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument(
        "--pairs", type=Path, help="lines with a, b and label; same_failure ones are questions too"
    )
    parser.add_argument("questions", nargs="+", type=Path)
    asked = parser.parse_args()
    store = open_store(asked.database)
    migrate(store)
    model = fitted(texts_of(store), asked.dimensions)
    with (
        embeddings_server(model.transform, f"lsa-{asked.dimensions}") as (url, _),
        Embedder(url, attempts=1) as client,
    ):
        began = time.process_time()
        done = embed_issues(store, REPO, client)
        print(f"{done.words} in {time.process_time() - began:.1f} s of CPU, the server's included")
        embed = QuestionEmbedder(client)
        known = scores_of(store, asked_rows(asked.questions), embed)
        unseen = scores_of(store, asked_rows(asked.questions, held_out=True), embed)
        titles = title_questions(store, asked.pairs) if asked.pairs else []
        known_titles, unseen_titles = (
            scores_of(store, [row for row in titles if row["exclude"][0] % 2 == rest], embed)
            for rest in (0, 1)
        )
    weight = learn_meaning([*known, *known_titles])
    print(f"learned from {len(known) + len(known_titles)}: {weight} nats for each standard deviation")
    sets = {
        "questions learned from": known,
        "questions held out": unseen,
        "titles learned from": known_titles,
        "titles held out": unseen_titles,
    }
    for name, questions in ((name, questions) for name, questions in sets.items() if questions):
        reached = sum(bool(right.any()) for _, _, right in questions)
        print(f"{name}: {reached} of {len(questions)} have a right candidate")
        print(line_of("  words alone", questions, 0.0))
        print(line_of("  with vectors", questions, weight))
    store.close()


if __name__ == "__main__":
    main()
