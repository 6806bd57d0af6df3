"""The starter cards: each one's shape, and that its log from another machine finds it first."""

from __future__ import annotations

import re
import runpy
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from app.extract.facts import Facts
from app.knowledge.diagnosis.diagnose import diagnose
from app.paths import cards_dir, release_table
from app.starter.card import (
    REPO,
    Card,
    CardError,
    card_facts,
    parse_card,
    read_card,
    read_cards,
    read_release_table,
)
from app.store.session import Store, open_store
from tests.rows import over_rows
from tests.starter_base import starter_file

CARDS = read_cards(cards_dir())
LINES: dict[str, dict[str, str]] = tomllib.loads(
    (Path(__file__).parent / "lines.toml").read_text(encoding="utf-8")
)
"""For each card a line that is its failure on another server, and a near one that is not."""
SEEDS = (1, 2, 3, 4)
HUMAN = re.compile(r"\b(I|we|my|our|me)\b", re.I)

every_card = over_rows("card", CARDS, label=lambda card: str(card.number))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Nothing but the starter cards."""
    path = tmp_path_factory.mktemp("cards") / "triage.db"
    shutil.copyfile(starter_file(), path)
    store = open_store(f"sqlite:///{path}")
    yield store
    store.close()


@pytest.fixture(scope="module")
def mutate(shared: Path) -> Callable[[str, int], str]:
    found: Callable[[str, int], str] = runpy.run_path(str(shared / "eval" / "mutate_logs.py"))["mutate"]
    return found


def first(store: Store, log: str) -> int | None:
    found = diagnose(store, log, repos=(REPO,))
    return found.matches[0].number if found.matches else None


def on_another_machine(log: str) -> str:
    """The log with other folders, line numbers, processes, times and addresses."""
    log = re.sub(r"/[\w./+@-]*(?:site|dist)-packages", "/srv/jane/.venv/lib/python3.10/site-packages", log)
    log = re.sub(r"\bline \d+", "line 4321", log)
    log = re.sub(r"\bpid=\d+", "pid=90125", log)
    log = re.sub(r"\b\d\d-\d\d \d\d:\d\d:\d\d\b", "11-02 23:59:01", log)
    log = re.sub(r"\b0x[0-9a-f]{6,}\b", "0x00007f1122334455", log)
    return "".join(f"2026-03-14T09:26:53.5Z stdout F {line}\n" for line in log.strip().splitlines())


# Finding


NOT_TOLD = frozenset({10478, 21640, 26525, 36237, 38916})
"""Known to be wrong: logs of a death, a slowdown or an error that many faults share, with few lines beside it,
are found first but not called likely, even word for word."""


@every_card
def test_a_card_s_log_finds_it_first(base: Store, card: Card) -> None:
    assert first(base, card.log) == card.number


@every_card
def test_a_card_s_log_is_told_at_least_likely(base: Store, card: Card) -> None:
    is_told = diagnose(base, card.log, repos=(REPO,)).verdict in {"same", "likely"}

    assert is_told == (card.number not in NOT_TOLD)


@every_card
def test_a_card_s_log_from_another_machine_finds_it_first(base: Store, card: Card) -> None:
    assert first(base, on_another_machine(card.log)) == card.number


@pytest.mark.long
@every_card
@over_rows("seed", SEEDS)
def test_a_card_s_log_as_the_evaluation_rewrites_it_finds_it_first(
    base: Store, mutate: Callable[[str, int], str], card: Card, seed: int
) -> None:
    assert first(base, mutate(card.log.strip(), seed)) == card.number


@every_card
def test_a_card_s_telling_line_alone_finds_it_first(base: Store, card: Card) -> None:
    assert first(base, LINES[str(card.number)]["hit"]) == card.number


@every_card
def test_a_near_line_of_another_failure_is_not_taken_for_it(base: Store, card: Card) -> None:
    found = diagnose(base, LINES[str(card.number)]["miss"], repos=(REPO,))

    assert card.number not in [match.number for match in found.matches if match.band != "related"]


def test_each_card_has_its_lines_and_no_two_the_same() -> None:
    assert set(LINES) == {str(card.number) for card in CARDS}
    assert len({lines["hit"] for lines in LINES.values()}) == len(CARDS)


# Shape


def test_there_are_eighty_cards() -> None:
    assert len(CARDS) == 80


def test_the_cards_cover_all_kinds_of_failures() -> None:
    assert {card.failure_kind for card in CARDS} >= {"crash", "exception", "hang", "oom", "slowdown"}


@pytest.mark.parametrize(
    "words",
    [
        "CUDA error",
        "NCCL",
        "memory",
        "MoE|experts|moe",
        "attention|MLA|flash",
        "quant|FP8|AWQ|GPTQ|NVFP4",
        "node",
        "ROCm|MI3",
        "tool",
        "xgrammar|guided|structured",
        "VL|vision|video|image",
        "start",
    ],
)
def test_the_cards_cover_the_field(words: str) -> None:
    assert [card.number for card in CARDS if re.search(words, card.text)] != []


@every_card
def test_a_card_s_file_is_named_by_its_number(card: Card) -> None:
    assert [path.name for path in cards_dir().glob(f"{card.number}-*.toml")] != []


@every_card
def test_a_card_speaks_in_nobody_s_name(card: Card) -> None:
    assert HUMAN.search(f"{card.title} {card.summary}") is None


@every_card
def test_a_card_is_written_in_plain_sentences(card: Card) -> None:
    assert card.summary.endswith((".", "!"))
    assert not card.title.endswith(".")


@every_card
def test_every_value_of_a_card_has_evidence_in_its_file(card: Card) -> None:
    facts = card_facts(card)
    cited = {(item.field.partition(".")[0], item.value) for item in facts.evidence}

    assert {(name, value) for name, value in values_of(facts) if (name, value) not in cited} == set()
    assert [item for item in facts.evidence if card.text[item.start : item.end] != item.quote] == []


@every_card
def test_a_card_s_pull_requests_are_numbers(card: Card) -> None:
    named = [card.fix.pr] if card.fix and card.fix.pr else []
    named += [card.regression.culprit] if card.regression and card.regression.culprit else []

    assert [name for name in named if not re.fullmatch(r"#\d{3,6}|[0-9a-f]{7,40}", name)] == []


@every_card
def test_a_card_s_related_numbers_are_others(card: Card) -> None:
    assert card.number not in card.related


def values_of(facts: Facts) -> set[tuple[str, str]]:
    found = {("gpus", value) for value in facts.gpus} | {("models", value) for value in facts.models}
    found |= {("backends", value) for held in facts.backends.values() for value in held}
    found |= {("versions", value) for value in facts.versions.values()}
    found |= {("workarounds", item.action) for item in facts.workarounds}
    found |= {("related", str(number)) for number in facts.related}
    if facts.regression is not None:
        answer = facts.regression.model_dump(exclude_none=True).values()
        found |= {
            ("regression", one)
            for value in answer
            for one in (value if isinstance(value, tuple) else (value,))
        }
    return found


# Reading

GOOD = """\
number = 7
title = "A card of our own for this test"
state = "open"
created = 2026-04-08
failure_kind = "crash"
summary = "It stops on start, every time it is tried."
log = '''
RuntimeError: Engine core initialization failed.
ValueError: no such head size
'''
[error]
type = "ValueError"
message = "no such head size"
"""


def test_a_card_is_read() -> None:
    card = parse_card(GOOD)

    assert (card.number, card.error.type, card.url, card.text) == (
        7,
        "ValueError",
        "https://github.com/vllm-project/vllm/issues/7",
        GOOD,
    )


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("number = 7", "number = 0", "number: "),
        ("number = 7", "", "number: "),
        ("number = 7", "number = ", "Invalid value"),
        ('state = "open"', 'state = "gone"', "state: "),
        ("A card of our own for this test", "x" * 121, "title: "),
        ("It stops on start, every time it is tried.", "x" * 301, "summary: "),
        ('failure_kind = "crash"', 'failure_kind = "bad"', "failure_kind: "),
        ('message = "no such head size"', 'message = "another"', "log does not hold: another"),
        (
            'message = "no such head size"',
            'message = "no such head size"\nwrappers = ["gone"]',
            "log does not hold: gone",
        ),
        ("state =", "colour = 'red'\nstate =", "colour: "),
        ("state =", "backends = { engine_room = ['x'] }\nstate =", "unknown key: engine_room"),
        ("state =", "versions = { java = '1' }\nstate =", "unknown key: java"),
        ("[error]", "[fix]\nstate = 'fixed'\n[error]", "a fix needs its merged pull request"),
        (
            "ValueError: no such head size\n",
            "ValueError: no such head size\n" * 41,
            "log has 42 lines; 1 to 40 are allowed",
        ),
    ],
)
def test_a_faulty_card_is_named_with_its_fault(old: str, new: str, fault: str) -> None:
    with pytest.raises(CardError, match=f"^own.toml: .*{re.escape(fault)}") as caught:
        parse_card(GOOD.replace(old, new, 1), "own.toml")
    assert "\n" not in caught.value.message


def test_a_card_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CardError, match=r"^gone\.toml: "):
        read_card(tmp_path / "gone.toml")


def test_a_card_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(CardError, match=r"^odd\.toml: "):
        read_card(tmp_path / "odd.toml")


def test_cards_come_by_number(tmp_path: Path) -> None:
    for number in (9, 3):
        (tmp_path / f"{number}.toml").write_text(GOOD.replace("number = 7", f"number = {number}"))

    assert [card.number for card in read_cards(tmp_path)] == [3, 9]


def test_two_cards_of_one_number_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(GOOD)

    with pytest.raises(CardError, match="two starter cards have the number 7"):
        read_cards(tmp_path)


def test_a_card_s_workaround_for_other_versions_needs_no_hardware() -> None:
    text = GOOD.replace("[error]", "gpus = ['H100']\n[error]") + _WORKAROUNDS

    assert [item.conditions.gpus for item in card_facts(parse_card(text)).workarounds] == [("H100",), ()]


_WORKAROUNDS: Any = """
[[workarounds]]
action = "--enforce-eager"
kind = "flag"
outcome = "works"
[[workarounds]]
action = "pip install vllm==0.9.1"
kind = "version"
outcome = "works"
"""


TABLE = read_release_table(release_table())


def test_each_pull_request_has_one_release() -> None:
    assert len(TABLE.first_release) > 10_000
    assert (TABLE.first_release[1], TABLE.first_release[27420]) == ("v0.1.0", "v0.11.1")
    assert not any(Version(tag).is_prerelease for tag in set(TABLE.first_release.values()))


def test_a_revert_names_what_it_takes_back_and_comes_before_the_table() -> None:
    assert (8521, 8593) in {(item.number, item.by) for item in TABLE.reverted}
    assert all(item.number < item.by and item.at <= TABLE.as_of for item in TABLE.reverted)
