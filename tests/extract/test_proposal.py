"""Texts that propose or wish rather than report."""

from __future__ import annotations

import pytest

from app.extract.document import IssueText
from app.extract.proposal import is_guide, is_proposal, is_titled_wish, is_wish
from app.extract.sections import read_document


@pytest.mark.parametrize(
    "title", ["[RFC]: a scheduler", "[Roadmap] Q3", "v0.9 Release Tracker", "Release v0.9.1"]
)
def test_plans_and_trackers_are_proposals(title: str) -> None:
    document = read_document(IssueText(1, title, "ValueError: x"))
    assert is_proposal(document)
    assert is_wish(document)


@pytest.mark.parametrize(
    "title", ["[Bug]: the release stops", "[Feature]: a flag", "Supporting files are missing"]
)
def test_reports_and_features_are_no_plans(title: str) -> None:
    assert not is_proposal(read_document(IssueText(1, title, "")))


def test_a_feature_is_a_wish_until_something_failed() -> None:
    assert is_wish(read_document(IssueText(1, "[Feature]: a flag", "It would help.")))
    assert not is_wish(read_document(IssueText(1, "[Feature]: a flag", "I get KeyError: 'x'")))
    assert not is_wish(read_document(IssueText(1, "[Bug]: a flag", "It stops.")))


@pytest.mark.parametrize("title", ["Qwen9 Usage Guide", "Deployment guide", "A multi-node tutorial"])
def test_a_guide_teaches(title: str) -> None:
    assert is_guide(read_document(IssueText(1, title, "ValueError: x")))
    assert not is_guide(read_document(IssueText(1, f"{title} is wrong", "")))


def test_the_form_for_features_is_a_wish_without_a_tag_too() -> None:
    form = "### 🚀 The feature, motivation and pitch\n\nIt would help on an H100."
    assert is_wish(read_document(IssueText(1, "A flag for all", form)))
    assert not is_wish(read_document(IssueText(1, "A flag for all", form + "\nKeyError: 'x'")))


def test_what_a_title_wishes_for_is_wanted() -> None:
    assert is_titled_wish(read_document(IssueText(1, "[Feature]: CUDA 13.0", "KeyError: 'x'")))
    assert not is_titled_wish(read_document(IssueText(1, "[Bug]: CUDA 13.0", "")))
