"""Two logs' telling lines side by side, the words that stand in both of them marked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.knowledge.answers import Match, MatchLine, Why
from app.knowledge.excerpt import ExcerptLine
from app.knowledge.side_by_side import SideLine, Sides, side_by_side
from tests.samples import REPO

PREFIX = "(EngineCore_DP0 pid=314) ERROR 03-14 09:26:54 [core.py:20] "


def a_match(*texts: str) -> Match:
    lines = tuple(MatchLine(number=at, text=text, role="error" if at == 1 else "wrapper") for at, text in enumerate(texts, 1))
    return Match(number=7, repo=REPO, title="t", url="u", state="open", score=0.9, band="same", why=Why(), excerpt=lines)


def sides(ours: str, theirs: str) -> Sides:
    found = side_by_side((ExcerptLine(6, ours, "hot", "a remark"),), a_match(theirs))
    assert found is not None
    return found


def marked(line: SideLine) -> list[str]:
    return [piece.text for piece in line.pieces if piece.is_common]


def test_what_both_say_is_marked_and_what_differs_is_not() -> None:
    found = sides("ValueError: output_size = 4544 is not divisible by 64", "ValueError: output_size = 2112 is not divisible by 64")

    assert marked(found.ours[0]) == marked(found.theirs[0]) == ["ValueError: output_size", "divisible"]


def test_what_a_program_puts_before_its_words_is_never_marked() -> None:
    found = sides(PREFIX + "KeyError: 'rope'", PREFIX + "KeyError: 'rope'")

    assert marked(found.ours[0]) == ["KeyError: 'rope"]


def test_words_of_every_traceback_are_not_marked_alone() -> None:
    found = sides('  File "/opt/venv/lib/python3.12/site-packages/a.py", line 20, in x', '  File "/opt/venv/lib/python3.12/site-packages/b.py", line 20, in y')

    assert marked(found.ours[0]) == []


def test_numbers_roles_and_remarks_stay_with_their_lines() -> None:
    found = side_by_side((ExcerptLine(6, "a", "hot", "a remark"),), a_match("b", "c"))

    assert found is not None
    assert [(line.number, line.role, line.remark) for line in (*found.ours, *found.theirs)] == [
        (6, "hot", "a remark"), (1, "hot", ""), (2, "dim", "wrapper, not the cause")
    ]  # fmt: skip


def test_a_terminal_s_colours_are_not_shown() -> None:
    [line] = sides("\x1b[1;36mValueError: no room\x1b[0;0m", "ValueError: no room").ours

    assert "".join(piece.text for piece in line.pieces) == "ValueError: no room"


def test_with_one_side_only_nothing_is_shown() -> None:
    lines = (ExcerptLine(6, "a", "hot"),)

    assert (side_by_side(lines, None), side_by_side(lines, a_match()), side_by_side((), a_match("b"))) == (None, None, None)


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_pieces_of_a_line_are_the_line(ours: str, theirs: str) -> None:
    found = sides(ours.replace("\x1b", ""), theirs)

    assert "".join(piece.text for piece in found.ours[0].pieces) == ours.replace("\x1b", "")
