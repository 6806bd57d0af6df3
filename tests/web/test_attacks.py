"""Texts made to run, to load or to choke become text, in little time."""

from __future__ import annotations

import time
from html.parser import HTMLParser

from app.web.views.evidence import (
    SHOWN_BYTES,
    TEXT_LIMIT,
    EvidenceSpan,
    mark_text,
    render_markdown,
    shown_part,
)
from tests.rows import over_rows
from tests.web.attacks import ATTACKS, MARK, MARKUP, NESTINGS

ALLOWED = {
    "a": {"href", "rel"},
    "mark": {"id", "data-n"},
    "ol": {"start"},
    "pre": {"class"},
    "th": set(),
    "td": set(),
    **{
        name: set()
        for name in (
            "blockquote",
            "br",
            "code",
            "del",
            "em",
            "h3",
            "h4",
            "h5",
            "h6",
            "hr",
            "li",
            "p",
            "s",
            "strong",
            "table",
            "tbody",
            "thead",
            "tr",
            "ul",
        )
    },
}
RENDERED_WITHIN_S = 0.3


class Elements(HTMLParser):
    """Every element and attribute of a page, and what stands between them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED:
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            if name not in ALLOWED.get(tag, set()):
                self.faults.append(f"<{tag} {name}>")
            if name == "href" and not (value or "").startswith(("http://", "https://")):
                self.faults.append(f"<{tag} href={value}>")

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.faults.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.faults.append("declaration")


def read(html: str) -> Elements:
    found = Elements()
    found.feed(html)
    found.close()
    return found


def test_there_are_forty_of_them() -> None:
    assert len(ATTACKS) >= 40
    assert len(set(ATTACKS.values())) == len(ATTACKS)


@over_rows("name", MARKUP)
def test_as_markdown_nothing_is_left_that_runs_or_loads(name: str) -> None:
    began = time.perf_counter()
    found = read(str(render_markdown(MARKUP[name])))

    assert found.faults == []
    assert MARK in found.text
    assert time.perf_counter() - began < RENDERED_WITHIN_S


@over_rows("name", MARKUP)
def test_with_marks_it_is_the_text_and_nothing_else(name: str) -> None:
    text = MARKUP[name]
    marked = str(
        mark_text(text, [EvidenceSpan(0, len(text), 1), EvidenceSpan(3, 9, 2), EvidenceSpan(5, 40, 3)])
    )

    assert read(marked).faults == []
    assert set(read(marked).text) >= set(MARK)
    assert marked.count("<") == marked.count("<mark ") + marked.count("</mark>")


@over_rows("name", NESTINGS)
def test_five_megabytes_of_nesting_are_cut_and_take_no_time(name: str) -> None:
    text = NESTINGS[name]
    began = time.perf_counter()
    rendered, marked = str(render_markdown(text)), str(mark_text(text, [EvidenceSpan(0, len(text), 1)]))

    assert time.perf_counter() - began < RENDERED_WITHIN_S
    assert max(map(len, (rendered, marked))) < 6 * TEXT_LIMIT
    assert read(rendered).faults == read(marked).faults == []


@over_rows("name", MARKUP | NESTINGS)
def test_a_page_holds_no_more_of_a_text_than_it_has_room_for(name: str) -> None:
    text = (MARKUP | NESTINGS)[name]
    part = shown_part(text)

    assert text.startswith(part)
    assert len(part) > 0
    assert len(str(mark_text(part, [])).encode("utf-8", "replace")) <= SHOWN_BYTES
    assert part == text or len(part) > SHOWN_BYTES // 6 or "\n" in text
