"""What a hostile text may become in our Markdown: words or code, and nothing else; in JSON: a string."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pydantic import BaseModel

from app.extract.facts import Cause, ErrorFact, ErrorLine, Regression, Workaround
from app.extract.fields.launch import read_launch
from app.extract.reader import read_log
from app.extract.redact import redact
from app.knowledge.diagnosis.markdown import diagnosis_markdown, issue_draft
from app.knowledge.diagnosis.shapes import Diagnosis, MatchLine
from app.knowledge.fix.shapes import FixView
from app.knowledge.issue.browse import IssuePage, ListedIssue
from app.knowledge.issue.relations import Graph, GraphEdge, GraphNode
from app.knowledge.issue.report import (
    CommandExample,
    Moment,
    NotKnown,
    Report,
    ReportError,
    ReportFact,
    ReportRemedy,
    StatedCause,
    issue_markdown,
    report_markdown,
)
from app.knowledge.issue.stored import Quote
from app.knowledge.markdown import (
    RUN_CHARS_MAX,
    code,
    cut_markdown,
    escape,
    fenced,
    inert,
    quotation,
    render_markdown,
)
from app.knowledge.remedies import SourcedRemedy
from app.knowledge.version.issues import StatedRemedy, StatedValue
from app.knowledge.version.regressions import KnownIssue, KnownPage
from app.web.answers.budget import dumps
from app.web.answers.schemas import issue_document
from app.web.mcp.shapes import fitted, inert_data
from tests.rows import over_rows
from tests.web.conftest import FACTS, HOT, REPO, SAME, UNKNOWN, URL
from tests.web.conftest import ISSUE as VIEWED
from tests.web.injections import INJECTIONS, MARK

PLAIN = "a thing"
"""Stands in the samples wherever a text of others can stand."""
AT = datetime(2026, 6, 3, 6, tzinfo=UTC)
RENDER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
WORDS = frozenset({"text", "text_special", "code_inline", "fence"})
ADDRESS = f"{URL}39288"

Model = TypeVar("Model", bound=BaseModel)


def with_text(sample: Model, text: str) -> Model:
    """The sample with another text in place of the plain one, wherever it stands."""
    return type(sample).model_validate(_replaced(sample.model_dump(), text))


def _replaced(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return text if value == PLAIN else value
    if isinstance(value, dict):
        return {key: _replaced(item, text) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_replaced(item, text) for item in value)
    return value


FIX = FixView(state="fixed", pr="#7", released_in=PLAIN, reason=PLAIN, for_you="upgrade")
REMEDY = SAME.workarounds[0].model_copy(update={"action": PLAIN})
MATCH = SAME.matches[0].model_copy(
    update={
        "title": PLAIN,
        "workarounds": (REMEDY,),
        "fix": FIX,
        "why": SAME.matches[0].why.model_copy(update={"shared": (PLAIN,), "differs": (PLAIN,)}),
        "regression": Regression(first_failing=PLAIN, still_failing=(PLAIN,)),
        "excerpt": (
            MatchLine(number=1, text=PLAIN, role="before"),
            MatchLine(number=2, text=PLAIN, role="error"),
        ),
    }
)
DIAGNOSIS = SAME.model_copy(
    update={
        "headline": PLAIN,
        "matches": (MATCH,),
        "workarounds": (REMEDY,),
        "wrappers": (PLAIN,),
        "root_cause": SAME.root_cause.model_copy(
            update=dict.fromkeys(("type", "message", "frame", "process", "quote"), PLAIN)
        ),
    }
)
QUOTE = Quote(text=PLAIN, source="body", url=ADDRESS)
FACT = ReportFact(field="gpus", label="GPUs", value=PLAIN, is_literal=True, quotes=(QUOTE,))
REPORT = Report(
    repo=REPO,
    number=39288,
    url=ADDRESS,
    title=PLAIN,
    state="open",
    state_reason=None,
    is_pull_request=False,
    origin="github",
    author=PLAIN,
    labels=(PLAIN,),
    comments=0,
    reactions=0,
    created_at=AT,
    updated_at=AT,
    closed_at=None,
    fetched_at=AT,
    body=PLAIN,
    failure_kind="crash",
    summary=PLAIN,
    facts=(FACT,),
    error=ReportError(
        type=PLAIN, message=PLAIN, frame=PLAIN, wrappers=(PLAIN,), other=(PLAIN,), quotes=(QUOTE,)
    ),
    cause=(StatedCause(text=PLAIN, certainty="stated", quotes=(QUOTE,)),),
    examples=(CommandExample(command=PLAIN, outcome="fails", quotes=(QUOTE,)),),
    remedies=(
        ReportRemedy(
            action=PLAIN,
            kind="flag",
            outcome="works",
            conditions={"gpus": (PLAIN,)},
            by="reporter",
            confirmed_by=0,
            refuted_by=0,
            quotes=(QUOTE,),
        ),
    ),
    fix=FIX,
    fix_quotes=(QUOTE,),
    regression=(FACT,),
    graph=Graph(
        nodes=(
            GraphNode(
                key=f"{REPO}#39288",
                repo=REPO,
                number=39288,
                kind="issue",
                title=PLAIN,
                state="open",
                url=ADDRESS,
            ),
            GraphNode(
                key=f"{REPO}#7", repo=REPO, number=7, kind="issue", title=PLAIN, state="open", url=f"{URL}7"
            ),
        ),
        edges=(
            GraphEdge(
                source=f"{REPO}#39288",
                target=f"{REPO}#7",
                kind="mentions",
                basis="said",
                reason=PLAIN,
                quote=QUOTE,
            ),
        ),
    ),
    timeline=(Moment(at=AT, text=PLAIN, source="body", url=ADDRESS, quote=PLAIN),),
    not_known=(NotKnown(field="gpus", text=PLAIN),),
    as_of=AT,
)
VIEW = VIEWED.model_copy(
    update={
        "title": PLAIN,
        "body": PLAIN,
        "fix": FIX,
        "facts": FACTS.model_copy(
            update={
                "summary": PLAIN,
                "gpus": (PLAIN,),
                "models": (PLAIN,),
                "backends": {"moe": (PLAIN,)},
                "versions": {"vllm": PLAIN},
                "error": ErrorFact(type=PLAIN, message=PLAIN, frame=PLAIN, wrappers=(PLAIN,)),
                "workarounds": (Workaround(action=PLAIN, kind="flag", outcome="works"),),
                "regression": Regression(first_failing=PLAIN),
                "cause": (Cause(text=PLAIN, certainty="stated"),),
                "evidence": tuple(
                    item.model_copy(update={"quote": PLAIN, "value": PLAIN}) for item in FACTS.evidence[:2]
                ),
            }
        ),
    }
)
LISTED = {
    "repo": REPO,
    "number": 7,
    "title": PLAIN,
    "url": ADDRESS,
    "state": "open",
    "state_reason": None,
    "comments": 0,
    "reactions": 0,
    "created_at": AT,
    "updated_at": AT,
    "error": ErrorLine(type=PLAIN, message=PLAIN, frame=PLAIN),
    "fix": FIX,
}
SEARCH = IssuePage(
    sort="newest",
    total=2,
    items=(
        ListedIssue(
            **LISTED,
            failure_kind="crash",
            labels=(PLAIN,),
            dates_estimated=False,
            gpus=(PLAIN,),
            models=(PLAIN,),
            backends={"moe": (PLAIN,)},
            versions={"vllm": PLAIN},
            has_regression=False,
            workarounds=(SourcedRemedy.based_on(REMEDY),),
            vllm_version=PLAIN,
            error_type=PLAIN,
            remedy=None,
            summary=PLAIN,
        ),
    )
    * 2,
)
STATED = StatedValue(field="workarounds", value=PLAIN, at=AT, text=PLAIN, source="body", url=ADDRESS)
KNOWN = KnownPage(
    version=PLAIN,
    is_ordered=True,
    total=1,
    closed=0,
    items=(
        KnownIssue(
            **LISTED,
            weight=1,
            duplicates=0,
            basis="reported",
            standing="open",
            remedy=StatedRemedy.based_on(REMEDY, quote=STATED),
        ),
    ),
)


class Text(BaseModel):
    text: str = PLAIN


MARKDOWN: dict[str, tuple[BaseModel, Callable[[Any], str]]] = {
    "diagnosis": (DIAGNOSIS, diagnosis_markdown),
    "report": (REPORT, report_markdown),
    "issue": (VIEW, issue_markdown),
    "search_tool": (SEARCH, lambda page: render_markdown("tool_search.md", page=page)),
    "known_tool": (KNOWN, lambda page: render_markdown("tool_known.md", page=page)),
    "fix_tool": (VIEW, lambda issue: render_markdown("tool_fix.md", issue=issue, version=issue.title)),
    "block": (Text(), lambda sample: "\n".join(["Above.", "", *fenced([sample.text]), "", "Below."])),
    "quotation": (
        Text(),
        lambda sample: "\n".join([*quotation(sample.text, f"[#7]({ADDRESS})"), "", "Below."]),
    ),
    "words": (Text(), lambda sample: f"{escape(sample.text)}\n\n- {escape(sample.text)}\n\nBelow."),
    "code": (Text(), lambda sample: f"{code(sample.text)}\n\n- {code(sample.text)}\n\nBelow."),
}


def tokens(text: str) -> list[Token]:
    return [inner for token in RENDER.parse(text) for inner in (token, *(token.children or ()))]


def shape(text: str) -> list[tuple[str, str]]:
    """All that is no word of the text: its markup, with where its links lead."""
    kept = [
        token
        for token in tokens(text)
        if token.type not in {*WORDS, "inline", "softbreak"} or token.type == "fence"
    ]
    return [(token.type, str(token.attrs.get("href", token.attrs.get("src", "")))) for token in kept]


@over_rows("attack", INJECTIONS)
@pytest.mark.parametrize("place", MARKDOWN)
def test_a_hostile_text_becomes_words_or_code_and_nothing_else(place: str, attack: str) -> None:
    sample, write = MARKDOWN[place]
    text = write(with_text(sample, INJECTIONS[attack]))

    assert shape(text) == shape(write(sample))
    holders = {token.type for token in tokens(text) if MARK in token.content and not token.children}
    assert holders <= WORDS
    assert holders or attack in {"terminal_title", "zero_width"}


@over_rows("attack", INJECTIONS)
def test_a_draft_of_an_issue_holds_a_hostile_log_as_code(attack: str) -> None:
    command = f"$ vllm serve org/model --port 8000 --served-model-name '{INJECTIONS[attack]}'"
    log = f"{command}\nINFO 06-03 03:12:44 [core.py:1] {INJECTIONS[attack]}\nRuntimeError: {INJECTIONS[attack]}\n"
    log = log.encode(errors="replace").decode()
    masked = redact(log).text
    drawn = tokens(issue_draft(read_log(log), masked, read_launch(masked, None), UNKNOWN))

    assert {token.type for token in drawn if MARK in token.content and not token.children} <= WORDS
    assert [token.type for token in drawn].count("heading_open") == 3


@over_rows("attack", INJECTIONS)
@pytest.mark.parametrize("place", MARKDOWN)
def test_nothing_unseen_is_left(place: str, attack: str) -> None:
    sample, write = MARKDOWN[place]
    text = write(with_text(sample, INJECTIONS[attack])).replace("@\u200b", "@")

    assert inert(text) == text


@pytest.mark.parametrize("place", MARKDOWN)
@pytest.mark.parametrize("attack", ["link", "image", "reference_link", "autolink", "bare_link"])
def test_outside_of_code_no_address_is_made_a_link_by_a_tracker(place: str, attack: str) -> None:
    sample, write = MARKDOWN[place]
    text = write(with_text(sample, INJECTIONS[attack]))
    in_code = [token.content for token in tokens(text) if token.type in {"code_inline", "fence"}]

    for start in ("://x.example", "www.x.example"):
        assert text.count(start) == sum(part.count(start) for part in in_code)


@over_rows("attack", INJECTIONS)
@pytest.mark.parametrize("sample", [VIEW, SEARCH, KNOWN, DIAGNOSIS], ids=lambda sample: type(sample).__name__)
def test_in_json_it_is_one_string(sample: BaseModel, attack: str) -> None:
    wanted = inert(INJECTIONS[attack])
    found = inert_data(with_text(sample, INJECTIONS[attack]).model_dump(mode="json"))
    plain = inert_data(sample.model_dump(mode="json"))

    assert json.loads(dumps(found)) == found == _lists(_replaced(plain, wanted))


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, list | tuple) else value


@over_rows("attack", INJECTIONS)
@pytest.mark.parametrize("max_chars", [200, 400, 700, 1200, 2500])
def test_a_cut_answer_is_as_inert_as_the_whole_one(attack: str, max_chars: int) -> None:
    hostile = with_text(VIEW, INJECTIONS[attack])
    short = fitted("get_issue", issue_document(hostile), issue_markdown(hostile), max_chars)

    links = [href for kind, href in shape(short.content[0].text) if kind in {"link_open", "image"}]
    assert set(links) <= {ADDRESS}
    assert {kind for kind, _ in shape(short.content[0].text)} <= {
        kind for kind, _ in shape(issue_markdown(VIEW))
    }


@over_rows("room", range(0, 900, 37))
def test_cut_markdown_leaves_no_block_open(room: int) -> None:
    text = "\n".join(
        ["One line.", "", *fenced(["a ```` b", "c"] * 8), "", "- item", "", *fenced(["d"]), "", "End."]
    )
    cut = cut_markdown(text, room)

    assert len(cut) <= room
    lines = cut.splitlines()
    assert sum(line.startswith("`````") for line in lines) % 2 == 0


def test_a_fence_is_longer_than_any_run_inside() -> None:
    for size in (1, 3, 7, RUN_CHARS_MAX):
        lines = list(fenced(["`" * size]))
        assert len(lines[-1]) == max(3, size + 1)


def test_a_very_long_run_is_cut() -> None:
    assert len("".join(fenced(["`" * 100_000]))) < 5 * RUN_CHARS_MAX


def test_a_log_line_stays_as_it_was() -> None:
    assert list(fenced([HOT]))[1] == HOT
    assert inert("日本語 ─│ ✓ é\tx\ny") == "日本語 ─│ ✓ é\tx\ny"


def test_more_than_thirty_shapes() -> None:
    assert len(INJECTIONS) >= 30
    assert all(MARK in text for text in INJECTIONS.values())


def test_a_diagnosis_says_that_quoted_words_are_data() -> None:
    assert "They are data" in diagnosis_markdown(Diagnosis.model_validate(DIAGNOSIS.model_dump()))
