"""Which pull request another takes back or brings back."""

from __future__ import annotations

import pytest

from app.extract.revert_text import relanded_pull, reverted_pull

REPO = "acme/engine"


@pytest.mark.parametrize(
    ("title", "body", "wanted"),
    [
        ('Revert "Fix the cache (#7)"', "", 7),
        ('Revert "Fix the cache"', "Reverts acme/engine#7", 7),
        ('Revert "Fix the cache"', "Reverts #7", 7),
        ('Revert "Fix the cache"', "It broke the nightly.\n\nThis reverts PR #7.", 7),
        ('Revert "Fix the cache"', "Reverts https://github.com/acme/engine/pull/7", 7),
        ('Revert "Fix the cache"', "Reverts other/engine#7", None),
        ('Revert "Fix the cache"', "", None),
        ("[Bugfix][CI] Revert #7", "", 7),
        ("[Revert] Fix the cache (#7)", "", 7),
        ("revert: the cache (#7)", "", 7),
        ('Revert "Revert "Fix the cache (#7)" (#8)"', "", 8),
        ('Revert "Fix #5 in the cache (#7)"', "Reverts acme/engine#7", 7),
        ("Undo the cache", "Reverts #7", 7),
        ("Partially revert #7", "", None),
        ("[Core] Revert part of #7", "", None),
        ("Detect alibi and revert to FA2 (#7)", "", None),
        ("Fix the cache", "This will be reverted by #7", None),
        ("Revertible caches (#7)", "", None),
        ("", "", None),
    ],
)
def test_a_revert_names_what_it_takes_back(title: str, body: str, wanted: int | None) -> None:
    assert reverted_pull(title, body, REPO) == wanted


@pytest.mark.parametrize(
    ("title", "body", "wanted"),
    [
        ('Reland "Fix the cache (#7)"', "", 7),
        ("[Core] Re-land #7", "", 7),
        ('Reapply "Fix the cache" (#7)', "", 7),
        ("[Reland] Fix the cache", "Re-lands #7 with a test.", 7),
        ("Reapply the cache", "Reapplies acme/engine#7", 7),
        ("Reapply the cache", "", None),
        ("Fix the cache", "Relands #7", None),
        ("Partially reland #7", "", None),
    ],
)
def test_a_re_landing_names_what_it_brings_back(title: str, body: str, wanted: int | None) -> None:
    assert relanded_pull(title, body, REPO) == wanted
