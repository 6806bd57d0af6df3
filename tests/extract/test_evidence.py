"""How sure a value is."""

from __future__ import annotations

from app.extract.evidence import Calibration, calibrated, learned, with_confidence
from app.extract.facts import Evidence

TABLE = Calibration(fields={"gpus": 0.8}, rules={"gpus|gpus.prose": 0.6})


def test_a_rule_that_was_measured_has_its_share_of_right_values() -> None:
    assert calibrated(TABLE, "gpus", "gpus.prose", 0.99) == 0.6


def test_a_new_rule_is_drawn_to_its_field() -> None:
    assert calibrated(TABLE, "gpus", "gpus.new", 1.0) == 0.9


def test_a_field_nobody_measured_keeps_what_the_rule_says() -> None:
    assert calibrated(TABLE, "cause", "cause.because", 0.7) == 0.7


def test_a_remedy_keeps_the_chance_its_judge_gave_it() -> None:
    assert (
        calibrated(
            Calibration({"workarounds": 0.9}, {"workarounds|helped.it": 0.9}), "workarounds", "helped.it", 0.5
        )
        == 0.5
    )


def test_what_was_learned_are_chances() -> None:
    table = learned()

    assert all(0 <= chance <= 1 for chance in (*table.fields.values(), *table.rules.values()))
    assert {"gpus", "versions", "error"} <= table.fields.keys()


def test_only_the_confidence_of_evidence_changes() -> None:
    item = Evidence(
        field="gpus",
        value="H100",
        quote="H100",
        source="body",
        start=0,
        end=4,
        rule="gpus.none",
        confidence=0.5,
    )

    assert with_confidence(item).model_copy(update={"confidence": 0.5}) == item
