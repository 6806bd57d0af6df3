"""Texts that propose or wish rather than report: an RFC, a roadmap, a model somebody wants supported.

They speak of models, GPUs and engines at length, but nothing of it runs on anyone's machine. What such a text
sets in a command still counts; what its title or prose mentions does not.
"""

from __future__ import annotations

from app.extract.document import Document
from app.extract.lists import load
from app.extract.once import once
from app.extract.patterns import pattern
from app.extract.sections import windows

_LIST = load("proposal")
_PLAN = pattern(_LIST["plan"]["title"], ignore_case=True)
_GUIDE = pattern(_LIST["guide"]["title"], ignore_case=True)
_SPAM = pattern(_LIST["spam"]["title"], ignore_case=True)
_WISH = pattern(_LIST["wish"]["title"], ignore_case=True)
_FORM: str = _LIST["wish"]["form"]
_FAILS = pattern(_LIST["wish"]["unless"])


@once
def is_guide(document: Document) -> bool:
    """Whether the title says that the issue teaches: the errors it shows are examples."""
    return bool(_GUIDE.search(document.sources["title"]))


def is_spam(document: Document) -> bool:
    """Whether the title advertises getting into accounts elsewhere: nothing of it is about this project."""
    return bool(_SPAM.search(document.sources["title"]))


@once
def is_proposal(document: Document) -> bool:
    """Whether the title says that the issue plans or tracks work, or teaches."""
    return is_guide(document) or bool(_PLAN.search(document.sources["title"]))


def is_titled_wish(document: Document) -> bool:
    """Whether the title asks for something new: what it names is wanted, not had."""
    return is_proposal(document) or bool(_WISH.search(document.sources["title"]))


@once
def is_wish(document: Document) -> bool:
    """Whether it asks for something new, or plans it, and shows nothing that was run and failed."""
    if is_proposal(document):
        return True
    is_form = any(block.heading.endswith(_FORM) for block in document.of_kind("heading"))
    if not is_form and not is_titled_wish(document):
        return False
    return not any(_FAILS.search(text) for _, _, text in windows(document))
