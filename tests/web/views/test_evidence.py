"""An issue's own words come out as safe HTML, with the marks where the evidence stands."""

from __future__ import annotations

import html
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.views.evidence import EvidenceSpan, mark_text, render_markdown


def plain(marked: str) -> str:
    return html.unescape(re.sub(r'</mark>|<mark id="e\d+" data-n="\d+">', "", marked))


def marked_words(marked: str) -> dict[str, str]:
    """What stands inside each mark, nested marks taken off."""
    found: dict[str, str] = {}
    stack: list[tuple[str, int]] = []
    for piece in re.finditer(r'<mark id="e(\d+)" data-n="\d+">|</mark>', marked):
        if piece[1]:
            stack.append((piece[1], piece.end()))
        else:
            number, start = stack.pop()
            found[number] = plain(marked[start : piece.start()])
    assert not stack
    return found


def test_a_mark_stands_round_its_words() -> None:
    text = "GPU: 8 x H100 <b>\nfails & dies"
    marked = mark_text(text, [EvidenceSpan(9, 13, 1), EvidenceSpan(18, 23, 2)])

    assert marked == (
        'GPU: 8 x <mark id="e1" data-n="1">H100</mark> &lt;b&gt;\n<mark id="e2" data-n="2">fails</mark> &amp; dies'
    )


def test_offsets_count_code_points() -> None:
    text = "😀 内存 H100"

    assert marked_words(mark_text(text, [EvidenceSpan(text.index("H"), len(text), 1)])) == {"1": "H100"}


def test_spans_may_nest_and_share_an_end() -> None:
    assert marked_words(
        mark_text("abcdef", [EvidenceSpan(0, 6, 1), EvidenceSpan(2, 6, 2), EvidenceSpan(0, 2, 3)])
    ) == {
        "1": "abcdef",
        "2": "cdef",
        "3": "ab",
    }


def test_of_two_that_overlap_the_second_ends_where_the_first_ends() -> None:
    assert marked_words(mark_text("abcdef", [EvidenceSpan(0, 4, 1), EvidenceSpan(2, 6, 2)])) == {
        "1": "abcd",
        "2": "cd",
    }


def test_a_span_outside_the_text_leaves_an_empty_mark_to_lead_to() -> None:
    assert marked_words(mark_text("abc", [EvidenceSpan(7, 9, 1), EvidenceSpan(2, 2, 2)])) == {
        "1": "",
        "2": "",
    }


@given(
    st.text(alphabet="ab<>&\"'\n😀", max_size=30),
    st.lists(st.tuples(st.integers(0, 32), st.integers(0, 32)), max_size=8),
)
def test_any_spans_leave_the_text_as_it_is_and_every_mark_once(
    text: str, places: list[tuple[int, int]]
) -> None:
    spans = [EvidenceSpan(min(place), max(place), number) for number, place in enumerate(places, 1)]
    marked = mark_text(text, spans)

    assert plain(marked) == text
    assert sorted(map(int, marked_words(marked))) == [span.number for span in spans]
    assert "<" not in re.sub(r'</mark>|<mark id="e\d+" data-n="\d+">', "", marked)


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "<a href=javascript:x>",
        "![x](https://elsewhere.example/p.png)",
        "<style>*{}</style>",
        "[x](data:text/html,hi)",
        "<iframe src=//x>",
        "`<script>`",
        '<https://a.example/"onclick=1>',
        "<div style=color:red>",
        '!["><script>](http://a.example/)',
    ],
)
def test_hostile_markdown_becomes_harmless(hostile: str) -> None:
    rendered = render_markdown(f"text\n\n{hostile}\n")

    assert not re.search(
        r"<(script|img|style|iframe|div)|<[^>]*\s(on\w+|style|src)=|href=\"(?!https?:)", rendered, re.I
    )


def test_links_carry_rel_and_images_become_links() -> None:
    rendered = render_markdown("# Head\n\n[a](https://a.example/) ![pic](https://b.example/p.png)")

    assert '<a href="https://a.example/" rel="nofollow ugc noopener">a</a>' in rendered
    assert '<a href="https://b.example/p.png" rel="nofollow ugc noopener">Image: pic</a>' in rendered
    assert "<h3>Head</h3>" in rendered


def test_an_address_that_meant_a_place_on_github_leads_nowhere_on_our_page() -> None:
    rendered = render_markdown("[a](/issues/1) [b](../pull/2 'title') [c](//b.example/)")

    assert "href" not in rendered
    assert "title" not in rendered


@pytest.mark.parametrize(
    "unit", ["[", "*a ", "`", "> ", "<", "![", "|a", "- \n", "**a*", "[a](", "&", "_a_ *"]
)
def test_text_made_to_be_slow_is_rendered_in_time(unit: str) -> None:
    began = time.perf_counter()
    render_markdown((unit * 65536)[:65536])
    render_markdown((unit * 20000)[:20000])

    assert time.perf_counter() - began < 4
