"""Which stored issues a question in words asks about."""

from __future__ import annotations

import pytest

from app.match.search import question_search as questions
from app.match.search.log_search import Candidate
from app.match.search.question_search import find_answers
from app.match.search.terms import HEADING, TEXT, read_heading, words_of
from app.store.derived.search_index import hash_terms, index_terms
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from tests.samples import REPO, an_issue

FILLER = dict.fromkeys(range(50, 60), ("lora adapters", "an account of something else"))


def keep(store: Store, issues: dict[int, tuple[str, str]], *gpus: str, repo: str = REPO) -> int:
    """Stores issues by number: title and text."""
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        save_issues(session, repo_id, [an_issue(number) for number in issues])
        index_terms(
            session, repo_id, {number: hash_terms(terms(*found, *gpus)) for number, found in issues.items()}
        )
    return repo_id


def terms(title: str, text: str, *gpus: str) -> dict[tuple[int, str], int]:
    named = read_heading(title, gpus=gpus, version=None, kind=None).terms
    return {
        **{(TEXT, word): 1 for word in words_of(f"{title} {text}")},
        **{(HEADING, term): 0 for term in named},
    }


def ask(store: Store, text: str, *gpus: str, **options: object) -> list[Candidate]:
    heading = read_heading(text, gpus=gpus, version=None, kind=None)
    with store.reading() as session:
        return find_answers(session, text, heading, **options)  # type: ignore[arg-type]


def numbers(found: list[Candidate]) -> list[int]:
    return [item.key[1] for item in found]


def test_an_empty_base_has_no_answer(store: Store) -> None:
    assert ask(store, "why is it slow") == []


def test_a_question_without_a_word_has_no_answer(store: Store) -> None:
    keep(store, FILLER)

    assert ask(store, "…") == []


def test_the_title_counts_more_than_the_text(store: Store) -> None:
    keep(store, {**FILLER, 1: ("engine report", "whisper"), 2: ("whisper report", "engine")})

    assert numbers(ask(store, "whisper"))[:2] == [2, 1]


def test_another_form_of_the_word_is_found(store: Store) -> None:
    keep(store, {**FILLER, 1: ("transcribing is wrong", "x")})

    assert numbers(ask(store, "wrong transcribed texts"))[0] == 1


def test_other_words_for_the_same_are_found(store: Store) -> None:
    keep(store, {**FILLER, 1: ("TTFT tripled", "x")})

    assert numbers(ask(store, "long time to first token")) == [1]


def test_a_short_name_counts_as_much_as_the_words_it_is_short_for(store: Store) -> None:
    keep(store, FILLER)
    keep(store, {1: ("whisper with TP > 1", "x"), 2: ("a parallel whisper", "x")})

    assert numbers(ask(store, "whisper with tensor parallel"))[0] == 1


def test_an_issue_that_meets_all_words_comes_before_one_that_is_about_one_of_them(store: Store) -> None:
    keep(store, {**FILLER, 1: ("whisper whispers", "whisper " * 9), 2: ("whisper", "penguins")})

    assert numbers(ask(store, "whisper penguins"))[0] == 2


def test_of_like_titles_the_one_on_the_same_card_comes_first(store: Store) -> None:
    keep(store, FILLER)
    keep(store, {1: ("whisper stalls", "x")}, "A100")
    keep(store, {2: ("whisper stalls", "x")}, "H200")

    assert numbers(ask(store, "whisper stalls", "H200"))[:2] == [2, 1]


def test_an_excluded_issue_is_no_answer(store: Store) -> None:
    repo_id = keep(store, {**FILLER, 1: ("whisper stalls", "x")})

    assert numbers(ask(store, "whisper stalls", exclude={1})) == []
    assert numbers(ask(store, "whisper stalls", exclude={(repo_id, 1)})) == []


def test_other_repositories_are_not_asked(store: Store) -> None:
    here = keep(store, FILLER)
    keep(store, {1: ("whisper stalls", "x")}, repo="other/engine")

    assert numbers(ask(store, "whisper stalls", repo_ids=[here])) == []


def test_what_is_shared_is_told_in_the_words_of_the_question(store: Store) -> None:
    keep(store, {**FILLER, 1: ("garbled output", "x")})

    found = ask(store, "garbled outputs")[0]

    assert {word for _, word, _ in found.shared} == {"garbled", "outputs", "garbage"}


def test_one_word_covers_little_of_a_question(store: Store) -> None:
    keep(store, {**FILLER, 1: ("whisper", "x")})

    assert ask(store, "whisper")[0].shares["title"] < 0.6


def test_the_rarest_terms_are_looked_up_within_the_budget(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(store, {**FILLER, 1: ("whisper lora", "x")})
    monkeypatch.setattr(questions, "POSTINGS_MAX", {HEADING: 5, TEXT: 5})

    assert numbers(ask(store, "whisper lora")) == [1]
