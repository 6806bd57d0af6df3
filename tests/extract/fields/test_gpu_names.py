"""The architecture of an accelerator."""

from __future__ import annotations

import pytest

from app.extract.fields.gpu_names import architecture_of, architectures_of
from app.extract.lists import load


@pytest.mark.parametrize(
    ("gpu", "architecture"),
    [
        ("H100", "Hopper"),
        ("GB300", "Blackwell"),
        ("RTX 4090 D", "Ada Lovelace"),
        ("A100", "Ampere"),
        ("RTX 3070 Laptop", "Ampere"),
        ("T4", "Turing"),
        ("V100", "Volta"),
        ("MI300X", "AMD CDNA"),
        ("CPU", "CPU only"),
        ("h200", "Hopper"),
    ],
)
def test_a_card_has_its_architecture(gpu: str, architecture: str) -> None:
    assert architecture_of(gpu) == architecture


@pytest.mark.parametrize("gpu", ["", "CUDA GPU", "H100 of a friend", "RTX..."])
def test_what_is_no_known_card_has_none(gpu: str) -> None:
    assert architecture_of(gpu) is None


@pytest.mark.parametrize("name", sorted(load("gpus")["names"]))
def test_every_card_of_the_list_has_one(name: str) -> None:
    assert architecture_of(name) is not None


def test_cards_of_one_architecture_are_one() -> None:
    assert architectures_of(["H100", "H200", "A100", "something"]) == {"Hopper", "Ampere"}
