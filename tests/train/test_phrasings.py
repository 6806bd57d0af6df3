"""Sentences of our own words, from which the ways of telling are learned."""

from __future__ import annotations

from app.extract.statements.features import Surroundings
from app.train.examples import made_examples
from app.train.phrasings import SHARES, make_issues

AROUND = [Surroundings("[Bug]: hangs with two GPUs", previous="I start it as below.", next="Thank you!")]


def test_every_frame_s_label_stands_in_its_text() -> None:
    made = list(make_issues(400, AROUND))

    assert made == list(make_issues(400, AROUND))
    for issue, label in made:
        assert "{" not in issue.body[label["start"] : label["end"]].replace("={", "")
        assert issue.body.startswith(AROUND[0].previous)
        assert issue.body.endswith(AROUND[0].next)
        for start, end, *_ in (*label["remedies"], *label["versions"]):
            assert label["start"] <= start < end <= label["end"]


def test_outcomes_and_roles_are_all_among_them() -> None:
    remedies, roles = made_examples(400, AROUND)
    taught = {outcome for example in (*remedies, *roles) for *_, outcome in example.gold}

    assert taught >= set(SHARES) - {"nothing", "mixed", "no_role"}
    assert any(not example.gold for example in remedies)
    assert any(not example.gold for example in roles)
