"""The pages say verdict, remedy and fix state first, work without scripts, and escape all foreign text."""

from __future__ import annotations

import gzip
import html
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
import time_machine
from fastapi.testclient import TestClient
from sqlalchemy import text

from app.config import LOG_LIMIT_BYTES, Settings
from app.errors import NotFoundError, StoreError
from app.extract.facts import ErrorLine, Evidence
from app.knowledge.diagnosis import kept_logs
from app.knowledge.diagnosis.shapes import Diagnosis, MatchLine, NextStep
from app.knowledge.freshness import Overview, RunView
from app.knowledge.home import Home
from app.knowledge.issue.relations import Graph
from app.knowledge.issue.view import ClusterLine
from app.knowledge.issue.votes import RemedyVotes, remedy_id
from app.main import create_app
from app.store.people import sum_kept_logs
from app.store.session import Store
from app.web.answers.negotiate import MARKDOWN_TYPE, wants
from tests.rows import over_rows
from tests.samples import marlin_log
from tests.web.conftest import GRAPH, HOME, ISSUE, MATCHES, OVERVIEW, REPO, SAME, UNKNOWN, Room

LOG = "RuntimeError: CUDA error: an illegal memory access was encountered"
HOSTILE = "</textarea></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'{{ 7*7 }}"


class Page(HTMLParser):
    """Tags, ids, links and visible text of a page."""

    VOID = frozenset({"col", "meta", "link", "input", "br", "path", "circle", "use", "hr"})

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


def diagnosed(client: TestClient, log: str = LOG, **fields: str) -> Page:
    answer = client.post("/diagnose", data={"log": log, **fields})
    assert answer.status_code == 200, answer.text
    return checked(answer.text)


def checked(source: str) -> Page:
    """A page that keeps the rules of all pages."""
    page = Page(source)
    ids = page.values("id")
    assert not page.unbalanced
    assert not page.open
    assert len(ids) == len(set(ids))
    assert not [
        attrs for _, attrs in page.tags if any(name.startswith("on") or name == "style" for name in attrs)
    ]
    assert [attrs.get("src", "") for tag, attrs in page.tags if tag == "script"] == page.values("src")
    assert all((address or "").startswith("/static/") for address in page.values("src"))
    assert not [tag for tag, _ in page.tags if tag in {"img", "iframe", "style", "object"}]
    targets = set(ids)
    for address in page.values("href"):
        if address.startswith("#"):
            assert address[1:] in targets, f"{address} leads nowhere"
    for tag, attrs in page.tags:
        if tag == "section" and "aria-labelledby" in attrs:
            assert attrs["aria-labelledby"] in targets
    return page


def test_the_paste_box_comes_first_and_needs_no_script(client: TestClient) -> None:
    answer = client.get("/")
    page = checked(answer.text)
    forms = [attrs for tag, attrs in page.tags if tag == "form"]

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert forms[1] == {
        "class": "paste",
        "action": "/diagnose",
        "method": "post",
        "enctype": "multipart/form-data",
    }
    assert page.values("name")[-4:] == ["log", "file", "vllm_version", "keep"]
    assert answer.text.index("<textarea") < answer.text.index("Growing") < answer.text.index("New failures")
    assert "#44395" in page.text
    assert "15,818 issues of vllm-project/vllm" in page.text


def test_an_example_fills_the_box(client: TestClient) -> None:
    assert "FlashInfer CUTLASS" not in client.get("/").text
    filled = checked(client.get("/?example=1").text)

    assert "Failed: Cuda error" in filled.text


def test_the_starter_set_is_called_what_it_is(client: TestClient, room: Room) -> None:
    room.overview = OVERVIEW.model_copy(
        update={"is_starter_only": True, "as_of": None, "newest_release": None}
    )
    page = checked(client.get("/").text)

    assert page.text.count("Only the starter set of 30 known failures is here") == 1
    assert "not yet synchronised with GitHub" in page.text


BEGAN = datetime(2026, 6, 4, 7, tzinfo=UTC)
FAILED_RUN = RunView(outcome="failed", started_at=BEGAN, ended_at=BEGAN, was_cut_short=True)


def test_a_fresh_base_says_nothing_of_it_at_the_foot(client: TestClient) -> None:
    fresh = checked(client.get("/").text).text

    assert "older than a day" not in fresh
    assert "The last sync" not in fresh


def test_a_stale_base_and_a_failed_sync_say_so_at_the_foot(client: TestClient, room: Room) -> None:
    room.overview = OVERVIEW.model_copy(update={"is_stale": True, "last_run": FAILED_RUN})

    for address in ("/", "/issues/39288"):
        stale = checked(client.get(address).text).text
        assert "older than a day" in stale
        assert "The last sync, on 4 Jun 2026, 07:00 UTC, failed" in stale


def test_a_killed_sync_says_so_at_the_foot(client: TestClient, room: Room) -> None:
    room.overview = OVERVIEW.model_copy(
        update={"last_run": FAILED_RUN.model_copy(update={"outcome": "killed"})}
    )

    assert "did not come to its end" in checked(client.get("/").text).text


def test_below_the_box_stands_what_grows_what_is_new_and_what_the_newest_release_changed(
    client: TestClient,
) -> None:
    answer = client.get("/").text
    page = checked(answer)
    text = " ".join(page.text.split())

    assert '<a href="/signatures/s1-0123456789ab">#17 A MoE kernel writes out of bounds on H100</a>' in answer
    assert "growing · 4 reports, 3 this week · 7 in all" in text
    assert "81 failures in all" in text
    assert "/issues?since=2026-05-27" in page.values("href")
    assert "first fails in 0.22.0 · open" in text
    assert "fixed in 0.22.0 by #44002" in text
    assert "/regressions?version=0.22.0" in page.values("href")
    assert re.search(r"about \d+ \w+ ago", text)
    assert "these dates are estimates" in text


def test_without_growth_or_release_the_first_page_says_so(client: TestClient, room: Room) -> None:
    room.home = HOME.model_copy(update={"trending": (), "new": (), "new_total": 0, "release": None})
    page = checked(client.get("/").text)

    assert "No failure was reported twice in the last four weeks." in page.text
    assert "None is stored of this week." in page.text
    assert "No release is stored." in page.text


def test_foreign_text_on_the_first_page_is_escaped(client: TestClient, room: Room) -> None:
    assert HOME.release
    hostile = ErrorLine(type=None, message=HOSTILE)
    failing = HOME.release.failing[0].model_copy(update={"title": HOSTILE})
    fixed = HOME.release.fixed[0].model_copy(update={"title": HOSTILE})
    room.home = HOME.model_copy(
        update={
            "trending": (HOME.trending[0].model_copy(update={"title": HOSTILE, "text": HOSTILE}),),
            "new": (HOME.new[0].model_copy(update={"title": HOSTILE, "error": hostile}),),
            "release": HOME.release.model_copy(update={"failing": (failing,), "fixed": (fixed,)}),
        }
    )

    assert_harmless(client.get("/").text, at_least=6)


def test_an_empty_base_says_what_to_do(client: TestClient, room: Room) -> None:
    room.overview = Overview(
        issues=0, pulls=0, from_cards=0, as_of=None, newest_release=None, is_starter_only=False
    )
    room.home = Home()

    assert "triage sync" in checked(client.get("/").text).text


def test_the_answer_to_a_log_has_no_address(client: TestClient) -> None:
    answer = client.get("/diagnose")

    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_verdict_remedy_and_fix_state_come_in_that_order(client: TestClient) -> None:
    answer = client.post("/diagnose", data={"log": LOG})
    page = checked(answer.text)
    places = [
        answer.text.index(words) for words in ("Same failure", "--moe-backend", "Not fixed", "Root cause")
    ]

    assert places == sorted(places)
    assert '<a href="/issues/39288">#39288</a>: illegal memory access' in answer.text
    assert "97\u2009%" in page.text
    assert "Do this" in page.text
    assert answer.headers["cache-control"] == "no-store"


def test_what_did_not_help_comes_last_and_has_no_copy_button(client: TestClient) -> None:
    page = diagnosed(client)

    assert page.text.index("unset VLLM_USE_FLASHINFER_MOE_FP16") < page.text.index("Did not help:")
    assert page.values("data-copy") == ["r1", "r2", "md", "curl"]


def test_the_version_line_puts_the_caller_inside_the_range(client: TestClient, room: Room) -> None:
    page = diagnosed(client, vllm_version="v0.19.0")
    line = [word for word in re.split(r"\s+", page.text) if re.match(r"0\.\d+\.\d", word)]

    assert room.asked[0]["vllm_version"] == "v0.19.0"
    assert line[line.index("0.18.1rc1.dev227") :][:4] == [
        "0.18.1rc1.dev227",
        "0.18.1rc1.dev266",
        "0.19.0inside",
        "0.19.1rc1.dev45",
    ]
    assert "up to 0.22.0" in page.text


def test_the_root_cause_is_quoted_with_its_process_and_line(client: TestClient) -> None:
    answer = client.post("/diagnose", data={"log": f"{LOG}\n" * 9}).text

    assert '<li data-n="3" class="hot">Failed: Cuda error' in answer
    assert 'process <span class="m">Worker_TP3</span>, line <span class="num">3 of 9</span>' in answer
    assert "<em>wrapper, not the cause</em>" in answer


THEIRS = (
    MatchLine(
        number=40,
        text="Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  99%|####| 66/67",
        role="before",
    ),
    MatchLine(
        number=41,
        text="Failed: Cuda error csrc/custom_all_reduce.cuh:455 'an illegal memory access'",
        role="error",
    ),
    MatchLine(number=44, text="RuntimeError: Engine core initialization failed.", role="wrapper"),
)


def with_their_lines(*lines: MatchLine) -> Diagnosis:
    return SAME.model_copy(
        update={"matches": (MATCHES[0].model_copy(update={"excerpt": lines}), *MATCHES[1:])}
    )


def test_both_logs_telling_lines_stand_side_by_side_with_their_own_numbers(
    client: TestClient, room: Room
) -> None:
    room.diagnosis = with_their_lines(*THEIRS)
    answer = client.post("/diagnose", data={"log": f"{LOG}\n" * 9}).text
    page = checked(answer)

    assert (
        page.text.index("Your log")
        < page.text.index("its own text")
        < page.text.index("Marked: words that stand in both.")
    )
    assert re.findall(r'<li data-n="(\d+)" class="(\w+)">', answer) == [
        ("1", "dim"),
        ("2", "dim"),
        ("3", "hot"),
        ("5", "dim"),
        ("40", "dim"),
        ("41", "hot"),
        ("44", "dim"),
    ]
    assert '<a href="/issues/39288#orig">#39288</a>, its own text' in answer
    assert answer.count("<mark>illegal</mark> <mark>memory</mark> <mark>access</mark>") == 2
    assert answer.count("<em>wrapper, not the cause</em>") == 2


def test_foreign_lines_are_escaped_beside_each_other(client: TestClient, room: Room) -> None:
    room.diagnosis = with_their_lines(MatchLine(number=1, text=HOSTILE, role="error"))

    assert_harmless(client.post("/diagnose", data={"log": LOG}).text, at_least=1)


def test_without_their_lines_the_log_s_own_stand_alone(client: TestClient) -> None:
    page = diagnosed(client)

    assert "its own text" not in page.text
    assert "FlashInfer CUTLASS Unquantized" in page.text


DRAFT = "### Your current environment\n\n- Not in the log: GPU\n\n### Describe the bug\n\n</textarea><script>alert(1)</script>\n"


def test_an_unknown_failure_can_be_reported_with_a_text_that_is_ready(client: TestClient, room: Room) -> None:
    room.diagnosis = UNKNOWN.model_copy(update={"issue_draft": DRAFT})
    answer = client.post("/diagnose", data={"log": LOG}).text
    page = checked(answer)

    assert (
        page.text.index("Weak candidates")
        < page.text.index("Issue text, ready to send")
        < page.text.index("Copy as Markdown")
    )
    assert DRAFT in page.text
    assert "<script>alert" not in answer
    assert "draft" in page.values("data-copy")
    assert [address for address in page.values("href") if "/issues/new?" in address] == [
        (
            "https://github.com/vllm-project/vllm/issues/new?template=400-bug-report.yml"
            "&title=%5BBug%5D%3A%20CUDA%20error%3A%20an%20illegal%20memory%20access%20was%20encountered"
        )
    ]


def test_a_known_failure_is_not_to_be_reported_again(client: TestClient) -> None:
    assert "Report it" not in diagnosed(client).text


@pytest.mark.parametrize("verdict", ["likely", "related", "unknown"])
def test_a_question_is_said_to_be_answered_by_words(client: TestClient, room: Room, verdict: str) -> None:
    room.diagnosis = UNKNOWN.model_copy(
        update={
            "verdict": verdict,
            "is_question": True,
            "root_cause": None,
            "wrappers": (),
            "signature": None,
        }
    )
    page = diagnosed(client, log="gibberish output with fp8 kv cache")

    assert "its words alone show which issues" in page.text
    assert "never that yours is the same failure" in page.text
    assert "not in the question" in page.text
    assert "not in the log" not in page.text
    assert "No error line was found" not in page.text
    assert "Same failure" not in page.text


def test_matches_show_what_is_shared_and_what_differs(client: TestClient) -> None:
    page = diagnosed(client)

    assert "MoE backend FlashInfer CUTLASS" in page.text
    assert "yours TP 4; theirs TP 8" in page.text
    assert "Closed unresolved" in page.text


def test_what_was_masked_is_told(client: TestClient) -> None:
    assert "Masked in your log: 1 × hugging face token, 2 × IP address." in diagnosed(client).text


def test_the_answer_can_be_taken_away_without_scripts(client: TestClient) -> None:
    page = diagnosed(client, vllm_version="0.19.0'; rm -rf /")

    assert "**You hit #39288" in page.text
    assert "'http://testserver/api/v1/diagnose?vllm_version=0.19.0%27%3B+rm+-rf+%2F'" in page.text


def test_a_strange_host_is_not_repeated(client: TestClient) -> None:
    answer = client.get("/", headers={"host": "evil.example';rm -rf /"})

    assert "evil" not in answer.text


def test_likely_says_try_this_and_why_it_may_differ_before_the_source(client: TestClient, room: Room) -> None:
    room.diagnosis = SAME.model_copy(
        update={"verdict": "likely", "matches": MATCHES[1:], "headline": "Probably #30579."}
    )
    page = diagnosed(client)

    assert page.text.index("Try this") < page.text.index("Why it may differ") < page.text.index("Reported by")
    assert "yours H100; theirs B200" in page.text


def test_unknown_gives_numbered_next_steps_first(client: TestClient, room: Room) -> None:
    room.diagnosis = UNKNOWN
    page = diagnosed(client)

    assert "best candidate" in page.text
    assert (
        page.text.index("1. Run once more")
        < page.text.index("2. Paste the lines")
        < page.text.index("Weak candidates")
    )
    assert "CUDA_LAUNCH_BLOCKING=1 vllm serve YOUR_ARGS" in page.text
    assert "not in the log" in page.text
    assert "Fix state" not in page.text
    assert "Masked in your log: nothing" in page.text


def test_of_a_known_failure_steps_behind_the_second_are_folded(client: TestClient, room: Room) -> None:
    steps = tuple(NextStep(text=f"Look at {n}") for n in "abcd")
    room.diagnosis = room.diagnosis.model_copy(update={"next_steps": steps})
    page = diagnosed(client).text

    assert page.index("2. Look at b") < page.index("2 more steps") < page.index("3. Look at c")


def test_where_a_related_failure_s_only_remedy_failed_no_one_was_helped(
    client: TestClient, room: Room
) -> None:
    failed = tuple(item.model_copy(update={"outcome": "fails"}) for item in room.diagnosis.workarounds[:1])
    room.diagnosis = room.diagnosis.model_copy(update={"verdict": "related", "workarounds": failed})
    page = diagnosed(client).text

    assert "No report of it names a remedy." in page
    assert "Helped others" not in page


def test_a_log_without_an_error_and_without_candidates_is_answered(client: TestClient, room: Room) -> None:
    room.diagnosis = UNKNOWN.model_copy(
        update={"matches": (), "root_cause": None, "wrappers": (), "signature": None}
    )
    page = diagnosed(client)

    assert "No error line was found in 1 line." in page.text
    assert "no candidate" in page.text


def test_no_remedy_is_said(client: TestClient, room: Room) -> None:
    room.diagnosis = SAME.model_copy(update={"workarounds": ()})

    assert "No report of it names a remedy." in diagnosed(client).text


def test_a_nine_mib_log_goes_through_the_form(client: TestClient, room: Room) -> None:
    log = "INFO nothing happened here\n" * (9 * 1024 * 1024 // 27)

    assert client.post("/diagnose", data={"log": log}, files={"file": ("", b"")}).status_code == 200
    assert room.asked[0]["log"].count("\n") == log.count("\n")


def test_an_uploaded_file_is_diagnosed(client: TestClient, room: Room) -> None:
    client.post("/diagnose", data={"log": ""}, files={"file": ("crash.log", LOG.encode())})

    assert room.asked[0]["log"] == LOG


@pytest.mark.parametrize(
    ("log", "status", "words"),
    [
        (b"", 422, "The log is empty. Paste at least the lines from the first ERROR."),
        (b" \n ", 422, "The log is empty."),
        (b"x" * (LOG_LIMIT_BYTES + 1), 413, "10,485,761 bytes is over the limit of 10 MiB."),
        (bytes(range(256)) * 99, 415, "This is not text."),
    ],
)
def test_a_log_that_cannot_be_used_gives_a_page_with_the_way_out(
    client: TestClient, log: bytes, status: int, words: str
) -> None:
    answer = client.post("/diagnose", files={"file": ("f", log)})

    assert answer.status_code == status
    assert words in checked(answer.text).text


def test_a_version_that_is_too_long_gives_a_page(client: TestClient) -> None:
    answer = client.post("/diagnose", data={"log": LOG, "vllm_version": "9" * 500})

    assert answer.status_code == 422
    assert "vllm_version" in checked(answer.text).text
    assert LOG.splitlines()[0] in checked(answer.text).text, "the log stands in the box again"


def test_foreign_text_of_a_log_is_escaped_everywhere(client: TestClient, room: Room, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    assert SAME.root_cause
    room.diagnosis = SAME.model_copy(
        update={
            "headline": f"You hit #39288: {HOSTILE}",
            "root_cause": SAME.root_cause.model_copy(
                update={"type": HOSTILE, "frame": HOSTILE, "process": HOSTILE}
            ),
            "wrappers": (HOSTILE,),
            "matches": (MATCHES[0].model_copy(update={"title": HOSTILE, "state": HOSTILE}),),
            "environment": SAME.environment.model_copy(update={"gpus": (HOSTILE,), "models": (HOSTILE,)}),
            "workarounds": (SAME.workarounds[0].model_copy(update={"action": HOSTILE}),),
        }
    )
    monkeypatch.setattr("tests.web.conftest.EXCERPT", (MatchLine(number=1, text=HOSTILE, role="error"),))

    assert_harmless(
        client.post("/diagnose", data={"log": LOG, "vllm_version": "9<script>"}).text, at_least=10
    )


def test_foreign_text_of_an_issue_is_escaped_everywhere(client: TestClient, room: Room) -> None:
    assert ISSUE.facts
    output = Evidence(
        field="gpus", value="H100", quote=HOSTILE, source="comment:9", start=0, end=9, rule="r", confidence=1
    )
    room.issue = ISSUE.model_copy(
        update={
            "title": HOSTILE,
            "body": f"{ISSUE.body}{HOSTILE}",
            "labels": (HOSTILE,),
            "author": HOSTILE,
            "facts": ISSUE.facts.model_copy(
                update={"summary": HOSTILE, "gpus": (HOSTILE,), "evidence": (*ISSUE.facts.evidence, output)}
            ),
        }
    )

    assert_harmless(client.get("/issues/39288", params={"vllm_version": f"9{HOSTILE}"}).text, at_least=7)


def assert_harmless(source: str, at_least: int) -> None:
    page = checked(source)
    assert "<script>alert" not in source
    assert source.count(html.escape("<script>alert(1)</script>")) >= at_least
    assert "{{ 7*7 }}" in page.text


def test_an_issue_page_leads_every_statement_to_its_sentence(client: TestClient) -> None:
    answer = client.get("/issues/39288").text
    page = checked(answer)

    assert '<mark id="e1" data-n="1">NVIDIA H100 80GB HBM3</mark>' in answer
    assert re.search(r'H100 × 8<a class="ev" href="#e1"', answer)
    assert "The same model runs with" in page.text
    assert "#issuecomment-77" in answer
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in answer
    assert "A hypothesis, not proven:" in page.text
    assert page.text.index("Remedies") < page.text.index("Fix state") < page.text.index("Original text")


def test_what_belongs_to_an_issue_is_drawn_and_listed_with_state_and_release(client: TestClient) -> None:
    answer = client.get("/issues/39288").text
    page = checked(answer)
    text = " ".join(page.text.split())

    assert "introduced by #36286 Prefer another MoE backend merged, in 0.19.0" in text
    assert re.search(r'merged, in 0.19.0</span><a class="ev" href="#e\d+"', answer)
    assert "flashinfer-ai/flashinfer#1 not stored" in text
    assert "texts alike · 71" in text
    assert text.index("Pull requests") < text.index("Named by people") < text.index("Similar issues")


def test_an_issue_that_stands_alone_has_no_graph(client: TestClient, room: Room) -> None:
    room.graph = Graph(nodes=GRAPH.nodes[:1])
    page = checked(client.get("/issues/39288").text)

    assert "#rel" not in page.values("href")


def test_a_remedy_shows_whom_it_helped_and_the_visitor_s_own_vote(client: TestClient, room: Room) -> None:
    assert ISSUE.facts
    action = next(item.action for item in ISSUE.facts.workarounds if item.outcome != "fails")
    room.remedy_votes = {remedy_id(action): RemedyVotes(up=3, down=1, yours=1)}
    answer = client.get("/issues/39288").text

    assert 'aria-pressed="true">Worked for me <b class="num">3</b>' in answer
    assert 'aria-pressed="false">Did not <b class="num">1</b>' in answer


def test_an_issue_says_how_often_its_failure_is_reported(client: TestClient, room: Room) -> None:
    line = ClusterLine(id="s1-0123456789ab", text=HOSTILE, canonical=953, size=7)
    room.issue = ISSUE.model_copy(update={"cluster": line})
    answer = client.get("/issues/39288").text

    assert 'One of <a href="/signatures/s1-0123456789ab">7 reports</a>' in answer
    assert_harmless(answer, at_least=1)
    room.issue = ISSUE.model_copy(update={"cluster": line.model_copy(update={"size": 1})})
    assert "One of" not in checked(client.get("/issues/39288").text).text


def test_github_s_figures_and_estimated_dates_are_told(client: TestClient, room: Room) -> None:
    room.issue = ISSUE.model_copy(update={"participants": 2, "reactions": 5, "dates_estimated": True})
    page = checked(client.get("/issues/39288").text)

    assert "1 comment · 2 participants · 5 reactions" in page.text
    assert re.search(r"opened about \d+ \w+ ago", page.text)
    assert "says that its dates are estimates" in page.text
    room.issue = ISSUE
    assert "estimates" not in checked(client.get("/issues/39288").text).text


def test_evidence_that_is_not_at_its_place_is_quoted_and_marks_nothing(
    client: TestClient, room: Room
) -> None:
    room.issue = ISSUE.model_copy(update={"body": "x" + ISSUE.body})
    answer = client.get("/issues/39288").text

    checked(answer)
    assert ">NVIDIA H100 80GB HBM3</mark> <span" in answer


def test_what_an_issue_does_not_tell_is_said(client: TestClient, room: Room) -> None:
    assert ISSUE.facts
    bare = ISSUE.facts.model_copy(
        update={
            "gpus": (),
            "models": (),
            "versions": {},
            "workarounds": (),
            "regression": None,
            "evidence": (),
        }
    )
    room.issue = ISSUE.model_copy(update={"facts": bare})
    page = checked(client.get("/issues/39288").text)

    assert page.text.count("Not known") >= 4
    assert "This issue names no remedy." in page.text
    assert "A remedy: none is reported to help." not in page.text


def test_a_sentence_with_two_remedies_is_quoted_once(client: TestClient, room: Room) -> None:
    assert ISSUE.facts
    quote = "Set --one or, if that is too slow, --two."
    both = tuple(
        ISSUE.facts.workarounds[0].model_copy(
            update={"action": flag, "command": None, "outcome": "works", "quote": quote}
        )
        for flag in ("--one", "--two")
    )
    room.issue = ISSUE.model_copy(update={"facts": ISSUE.facts.model_copy(update={"workarounds": both})})
    page = checked(client.get("/issues/39288").text)

    assert page.text.count("if that is too slow") == 1
    assert "“--two”" in page.text


def test_an_issue_that_was_not_read_yet_is_shown_all_the_same(client: TestClient, room: Room) -> None:
    room.issue = ISSUE.model_copy(update={"facts": None, "body": "", "origin": "card", "created_at": None})

    assert "Nothing has been read out of this text yet." in checked(client.get("/issues/39288").text).text


def test_a_cards_log_is_shown_as_it_stands(client: TestClient, room: Room) -> None:
    assert ISSUE.facts
    facts = ISSUE.facts.model_copy(update={"evidence": ()})
    room.issue = ISSUE.model_copy(
        update={"origin": "card", "body": "# no heading\n* no list", "facts": facts}
    )
    answer = client.get("/issues/39288").text

    assert '<div class="orig"># no heading\n* no list</div>' in answer
    assert "not fetched yet" in checked(answer).text


def test_an_issue_is_seen_from_a_version(client: TestClient, room: Room) -> None:
    page = checked(client.get("/issues/39288?vllm_version=0.19.0").text)

    assert room.asked[0]["vllm_version"] == "0.19.0"
    assert "seen from 0.19.0" in page.text


def test_a_text_too_long_for_a_page_is_cut_and_what_is_cut_off_is_quoted(
    client: TestClient, room: Room
) -> None:
    assert ISSUE.facts is not None
    body = ISSUE.body + "'filler' & more\n" * 6000 + "Seen on GB200 too."
    late = Evidence(
        field="gpus",
        value="GB200",
        quote="Seen on GB200 too.",
        source="body",
        start=len(body) - 18,
        end=len(body),
        rule="t",
        confidence=1,
    )
    facts = ISSUE.facts.model_copy(update={"evidence": (*ISSUE.facts.evidence, late)})
    room.issue = ISSUE.model_copy(update={"body": body, "facts": facts})
    source = client.get("/issues/39288").text
    page = checked(source)

    assert len(source.encode()) < 70_000
    assert re.search(r"The last [\d,]+ characters are not shown here", page.text)
    assert page.text.count("Seen on GB200 too.") == 1
    assert "The MoE backend writes out of bounds." in page.text


def test_an_issue_of_another_repository_has_the_long_address(client: TestClient, room: Room) -> None:
    room.issue = ISSUE.model_copy(update={"repo": "other/thing"})
    answer = client.get("/r/other/thing/issues/39288").text

    assert 'href="/api/v1/repos/other/thing/issues/39288"' in answer


def test_an_issue_that_is_not_stored_gives_a_page_with_the_way_out(client: TestClient, room: Room) -> None:
    room.failure = NotFoundError("no")
    answer = client.get("/issues/7")

    assert answer.status_code == 404
    assert "#7 of vllm-project/vllm is not stored yet." in checked(answer.text).text
    assert '<input type="hidden" name="url" value="vllm-project/vllm#7">' in answer.text


@pytest.mark.parametrize("path", ["/static/style.css", "/static/app.js", "/static/icon.svg"])
def test_the_pages_own_files_are_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 200
    assert path in client.get("/").text


def test_nothing_on_a_page_comes_from_elsewhere(client: TestClient) -> None:
    for path in ("/", "/issues/39288", "/static/style.css", "/static/app.js"):
        source = client.get(path).text
        assert not re.search(r"(src|@import|url\()\s*=?\s*[\"']?(https?:)?//", source)


TEXT = {"content-type": "text/plain"}


def test_a_log_as_json_is_diagnosed_with_all_that_was_asked(client: TestClient, room: Room) -> None:
    answer = client.post(
        "/api/v1/diagnose",
        json={
            "log": LOG,
            "vllm_version": " 0.19.0 ",
            "gpu": "H100",
            "model": "",
            "limit": 3,
            "exclude": [5, 5],
        },
    )

    assert answer.status_code == 200
    assert answer.json()["verdict"] == "same"
    assert answer.json()["workarounds"][0]["number"] == 39288
    assert room.asked == [
        {
            "log": LOG,
            "repos": (REPO,),
            "vllm_version": "0.19.0",
            "gpu": "H100",
            "model": None,
            "limit": 3,
            "exclude": frozenset({5}),
            "embed": None,
        },
    ]


def test_a_log_as_plain_text_takes_its_options_from_the_address(client: TestClient, room: Room) -> None:
    answer = client.post(
        "/api/v1/diagnose?limit=2&exclude=1&exclude=2&vllm_version=0.19.0", content=LOG, headers=TEXT
    )

    assert answer.status_code == 200
    assert (room.asked[0]["limit"], room.asked[0]["vllm_version"]) == (2, "0.19.0")
    assert room.asked[0]["exclude"] == frozenset({1, 2})


def test_the_limit_is_ten_unless_told(client: TestClient, room: Room) -> None:
    client.post("/api/v1/diagnose", json={"log": LOG})

    assert room.asked[0]["limit"] == 10


def test_markdown_is_given_to_who_accepts_it(client: TestClient) -> None:
    answer = client.post("/api/v1/diagnose", json={"log": LOG}, headers={"accept": "text/markdown"})

    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "Accept" in answer.headers["vary"]
    assert answer.text.startswith("**You hit #39288")


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("text/markdown", True),
        ("TEXT/MARKDOWN;q=0.9, */*;q=0.1", True),
        ("*/*", False),
        ("", False),
        ("application/json, text/markdown;q=0.5", False),
        ("text/markdown;q=0", False),
        ("text/markdown;q=x", False),
        ("text/markdown;q=nan", False),
        (",;,;", False),
    ],
)
def test_the_accept_header_is_weighed(accept: str, wanted: bool) -> None:
    assert wants(accept, MARKDOWN_TYPE) is wanted


@over_rows(
    "fields",
    [
        {},
        {"log": None},
        {"log": 5},
        {"log": ["a"]},
        {"log": {"a": 1}},
        {"log": ""},
        {"log": " \n"},
        {"log": "\u0000"},
        {"log": LOG, "limit": 0},
        {"log": LOG, "limit": 51},
        {"log": LOG, "limit": "ten"},
        {"log": LOG, "limit": True},
        {"log": LOG, "limit": 1.5},
        {"log": LOG, "exclude": 5},
        {"log": LOG, "exclude": ["5"]},
        {"log": LOG, "exclude": [0]},
        {"log": LOG, "exclude": [2**63]},
        {"log": LOG, "vllm_version": 0.19},
        {"log": LOG, "vllm_version": "9" * 101},
        {"log": LOG, "vllm_version": "banana"},
        {"log": LOG, "vllm_version": "0.99banana"},
        {"log": LOG, "vllm_verson": "0.21.0"},
        {"log": LOG, "gpu": ["H100"]},
        {"log": LOG, "model": {}},
    ],
)
def test_fields_that_cannot_be_used_are_422(client: TestClient, fields: dict[str, object]) -> None:
    answer = client.post(
        "/api/v1/diagnose", content=json.dumps(fields), headers={"content-type": "application/json"}
    )

    assert answer.status_code in ({422, 415} if fields.get("log") == "\u0000" else {422})
    assert_problem(answer, answer.status_code)


def test_a_misspelt_field_is_refused_with_the_nearest(client: TestClient) -> None:
    answer = client.post("/api/v1/diagnose", json={"log": LOG, "vllm_verson": "0.21.0"})
    batch = client.post("/api/v1/diagnose/batch", json={"logs": [{"log": LOG, "modle": "x"}]})

    assert answer.json()["detail"] == "vllm_verson: is no field of this body; the nearest is vllm_version."
    assert batch.json()["detail"] == "logs.0.modle: is no field of this body; the nearest is model."


def test_plain_text_keeps_its_budget(client: TestClient) -> None:
    headers = {"accept": "text/plain", "content-type": "text/plain"}
    answer = client.post("/api/v1/diagnose?max_chars=300", content=LOG, headers=headers)

    assert len(answer.text) <= 300
    assert answer.text.endswith(" more lines: ask with a larger max_chars]\n")


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "exclude=-1", "exclude=9999999999999999999999", "limit=51"]
)
def test_query_parameters_out_of_range_are_422(client: TestClient, query: str) -> None:
    assert_problem(client.post(f"/api/v1/diagnose?{query}", content=LOG, headers=TEXT), 422)


@over_rows(
    ("content", "headers", "status"),
    [
        (b"", TEXT, 422),
        (b"x" * (LOG_LIMIT_BYTES + 1), TEXT, 413),
        (bytes(range(256)) * 40, TEXT, 415),
        (b"log=x", {"content-type": "application/x-www-form-urlencoded"}, 415),
        (b"x", {"content-type": "image/png"}, 415),
        (b"x", {}, 415),
        (b"x", {"content-type": "text/plain", "content-encoding": "gzip"}, 415),
        (gzip.compress(b"x"), {"content-type": "application/json", "content-encoding": "gzip"}, 415),
        (b"{", {"content-type": "application/json"}, 400),
        (b"x", {"content-type": "text/plain", "content-length": "99999999999"}, 413),
    ],
)
def test_bodies_that_cannot_be_used_are_told_apart(
    client: TestClient, content: bytes, headers: dict[str, str], status: int
) -> None:
    answer = client.post("/api/v1/diagnose", content=content, headers=headers)

    assert_problem(answer, status)


@pytest.mark.parametrize("encoding", [{}, {"content-encoding": "gzip"}])
def test_a_packed_log_is_read(client: TestClient, encoding: dict[str, str]) -> None:
    sent = {"content": gzip.compress(LOG.encode()), "headers": TEXT | encoding}
    packed, plain = (
        client.post("/api/v1/diagnose", **sent),
        client.post("/api/v1/diagnose", content=LOG, headers=TEXT),
    )

    assert packed.json()["root_cause"]
    assert packed.json()["root_cause"] == plain.json()["root_cause"]


def test_a_body_without_a_declared_length_is_refused_while_it_streams(client: TestClient) -> None:
    sent = 0

    def endless():  # type: ignore[no-untyped-def]
        nonlocal sent
        for _ in range(30):
            sent += 1
            yield b"x" * (1024 * 1024)

    assert_problem(client.post("/api/v1/diagnose", content=endless(), headers=TEXT), 413)


def test_an_issue_is_given_with_facts_and_evidence(client: TestClient, room: Room) -> None:
    answer = client.get("/api/v1/issues/39288?vllm_version=0.19.0").json()

    assert (answer["repo"], answer["number"], answer["fix"]["state"]) == (REPO, 39288, "not_fixed")
    assert answer["evidence"][0]["quote"] == "NVIDIA H100 80GB HBM3"
    assert room.asked == [{"repo": REPO, "number": 39288, "vllm_version": "0.19.0", "versions_of": REPO}]


def test_an_issue_of_any_repository_has_a_long_address(client: TestClient, room: Room) -> None:
    assert client.get("/api/v1/repos/other/thing.py/issues/7").status_code == 200
    assert room.asked[0]["repo"] == "other/thing.py"


def test_an_issue_that_is_not_stored_is_404(client: TestClient, room: Room) -> None:
    room.failure = NotFoundError("#7 of vllm-project/vllm is not stored")
    problem = assert_problem(client.get("/api/v1/issues/7"), 404)

    assert problem["detail"] == "#7 of vllm-project/vllm is not stored"
    assert problem["type"] == "urn:vllm-triage:problem:not-found"


@over_rows("number", ["abc", "0", "-1", "1.5", "99999999999999999999", "9" * 5000, "%00", "1%20or"])
def test_what_is_no_issue_number_is_a_problem(client: TestClient, number: str) -> None:
    assert_problem(client.get(f"/api/v1/issues/{number}"), 422)


def test_a_database_that_fails_is_503_and_its_words_stay_inside(client: TestClient, room: Room) -> None:
    room.failure = StoreError("the database refused: connection to 10.1.2.3 failed for user admin")
    answer = client.post("/api/v1/diagnose", json={"log": LOG})

    assert "10.1.2.3" not in assert_problem(answer, 503)["detail"]
    assert answer.headers["retry-after"] == "30"


def test_the_description_has_stable_operation_ids_and_the_one_error_shape(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    operations = {
        operation["operationId"]: operation
        for path in described["paths"].values()
        for operation in path.values()
    }

    expected = {"diagnose", "get_issue", "get_repo_issue", "list_related_issues", "healthz", "readyz"}
    assert expected <= set(operations)
    assert {"400", "413", "415", "422", "503"} <= set(operations["diagnose"]["responses"])
    assert {"404", "422", "503"} <= set(operations["get_issue"]["responses"])
    body = operations["diagnose"]["requestBody"]["content"]
    assert set(body) == {"application/json", "text/plain"}
    schemas = described["components"]["schemas"]
    assert schemas["DiagnoseRequest"]["properties"]["log"]["minLength"] == 1
    assert schemas["DiagnoseRequest"]["properties"]["log"]["pattern"] == r"\S"
    assert {"type", "title", "status", "detail"} <= set(schemas["Problem"]["required"])
    for operation in operations.values():
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"]


def test_every_reference_of_the_description_leads_somewhere(client: TestClient) -> None:
    described = client.get("/openapi.json").text
    schemas = json.loads(described)["components"]["schemas"]
    references = {part.split('"')[0] for part in described.split("#/components/schemas/")[1:]}

    assert references <= set(schemas)
    assert "HTTPValidationError" not in schemas


def assert_problem(answer, status: int) -> dict[str, object]:  # type: ignore[no-untyped-def]
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert {"type", "title", "status", "detail"} <= set(problem)
    assert problem["status"] == status
    assert "Traceback" not in answer.text
    return dict(problem)


def test_relations_are_a_list_and_the_pair_asked_for_is_alone(client: TestClient, room: Room) -> None:
    everything = client.get("/api/v1/issues/39288/related?limit=7").json()
    pair = client.get("/api/v1/issues/39288/related?with=30579").json()

    assert set(everything) == {"items", "next_cursor", "total"}
    assert pair["total"] == len(pair["items"])
    assert room.asked == [
        {"repo": REPO, "number": 39288, "limit": 7},
        {"repo": REPO, "number": 39288, "with": 30579},
    ]


HUB = "hf" + "_" + "abcdefghij1234567890" * 2
LOG_KEPT = f"(pid=1, ip=10.20.30.40) ERROR boom\nValueError: token {HUB}\n"


def rows(store: Store) -> int:
    with store.engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM kept_log")).scalar_one())


def keep(client: TestClient, log: str = LOG_KEPT) -> dict[str, str]:
    kept: dict[str, str] = client.post("/api/v1/diagnose", json={"log": log, "keep": True}).json()["kept"]
    return kept


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.post("/api/v1/diagnose", json={"log": LOG_KEPT}),
        lambda client: client.post("/api/v1/diagnose", json={"log": LOG_KEPT, "keep": False}),
        lambda client: client.post(
            "/api/v1/diagnose", content=LOG_KEPT, headers={"content-type": "text/plain"}
        ),
        lambda client: client.post("/diagnose", data={"log": LOG_KEPT}),
    ],
)
def test_a_log_is_not_kept_unless_asked_for(
    client: TestClient, store: Store, ask: Callable[..., object]
) -> None:
    ask(client)

    assert rows(store) == 0


def test_the_answer_without_keeping_has_no_such_key(client: TestClient) -> None:
    assert "kept" not in client.post("/api/v1/diagnose", json={"log": LOG_KEPT}).json()


def test_a_kept_log_has_an_address_and_a_delete_link_of_128_bits_each(client: TestClient) -> None:
    answer = client.post("/api/v1/diagnose", json={"log": LOG_KEPT, "keep": True}).json()

    assert re.fullmatch(r"/d/[0-9a-f]{32}", answer["kept"]["url"])
    assert re.fullmatch(rf"{answer['kept']['url']}/delete/[0-9a-f]{{32}}", answer["kept"]["delete_url"])
    assert answer["verdict"] == SAME.verdict


def test_its_page_shows_the_answer_and_the_masked_log_and_is_not_to_be_indexed(client: TestClient) -> None:
    page = client.get(keep(client)["url"])

    assert page.status_code == 200
    assert (page.headers["x-robots-tag"], page.headers["cache-control"]) == ("noindex", "no-store")
    assert 'name="robots" content="noindex"' in page.text
    assert "#39288" in page.text
    assert f"ValueError: token {'█' * len(HUB)}" in page.text
    assert "10.20.30.40" not in page.text


def test_a_form_keeps_with_a_tick_and_only_its_answer_tells_the_delete_link(
    client: TestClient, store: Store
) -> None:
    page = client.post("/diagnose", data={"log": LOG_KEPT, "keep": "1"}).text
    found = re.search(r'href="(/d/[0-9a-f]{32})/delete/([0-9a-f]{32})"', page)

    assert found is not None
    assert "no permalink" not in page
    assert found[2] not in client.get(found[1]).text
    assert rows(store) == 1


def test_plain_text_and_markdown_keep_too(client: TestClient) -> None:
    headers = {"content-type": "text/plain", "accept": "text/markdown"}
    found = client.post("/api/v1/diagnose?keep=1", content=LOG_KEPT, headers=headers).text

    assert re.search(
        r"Kept until \d{4}-\d\d-\d\d: /d/[0-9a-f]{32}\. To delete it: /d/[0-9a-f]{32}/delete/", found
    )


def test_the_delete_link_asks_first_and_its_button_deletes(client: TestClient, store: Store) -> None:
    kept = keep(client)
    asked = client.get(kept["delete_url"])

    assert (asked.status_code, rows(store)) == (200, 1)
    assert f'action="{kept["delete_url"]}" method="post"' in asked.text
    assert client.post(kept["delete_url"]).status_code == 200
    assert (client.get(kept["url"]).status_code, rows(store)) == (404, 0)
    assert client.post(kept["delete_url"]).status_code == 404


def test_another_secret_deletes_nothing(client: TestClient, store: Store) -> None:
    kept = keep(client)

    assert client.post(f"{kept['url']}/delete/{'0' * 32}").status_code == 404
    assert rows(store) == 1


def test_the_secret_itself_is_not_stored(client: TestClient, store: Store) -> None:
    secret = keep(client)["delete_url"].rpartition("/")[2]
    with store.engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM kept_log")).one()

    assert secret not in str(row)


@over_rows("key", ["0" * 32, "x", "A" * 32, "0" * 33, "%00", "é"])
def test_there_is_nothing_under_another_address(client: TestClient, key: str) -> None:
    assert client.get(f"/d/{key}").status_code == 404


def test_a_kept_log_goes_when_its_time_is_over(client: TestClient, store: Store, settings: Settings) -> None:
    kept = keep(client)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=settings.keep_days, seconds=1)):
        assert client.get(kept["url"]).status_code == 404
        assert rows(store) == 1
        keep(client)
        assert rows(store) == 1


def test_a_start_of_the_server_forgets_what_is_over(
    client: TestClient, store: Store, settings: Settings
) -> None:
    keep(client)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=31)), TestClient(create_app(settings, store)):
        assert rows(store) == 0


def test_of_a_long_log_start_and_end_are_kept(client: TestClient) -> None:
    log = "".join(f"line {number} of a long log\n" for number in range(60_000))
    page = client.get(keep(client, log)["url"]).text

    assert "line 0 of" in page
    assert "line 59999 of" in page
    assert "lines are not kept" in page
    assert len(page) < 1.1 * kept_logs.KEPT_BYTES


def test_of_a_log_of_long_signs_no_more_bytes_are_kept(client: TestClient, store: Store) -> None:
    keep(client, "🦙 and 龙\n" * 300_000)

    with store.reading() as session:
        assert sum_kept_logs(session)[1] < 1.1 * kept_logs.KEPT_BYTES


@pytest.mark.parametrize(("name", "most"), [("KEPT_LOGS_MAX", 102), ("KEPT_TOTAL_BYTES", 500_000)])
def test_a_client_that_keeps_its_share_is_refused_and_others_are_not(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(kept_logs, name, most)
    asked = settings.model_copy(update={"trusted_proxies": ("127.0.0.1",)})
    with TestClient(create_app(asked, store), client=("127.0.0.1", 1)) as client:

        def keep_as(address: str) -> tuple[int, str]:
            document = {"log": LOG_KEPT, "keep": True}
            headers = {"x-forwarded-for": address}
            answer = client.post("/api/v1/diagnose", json=document, headers=headers)
            return answer.status_code, answer.text

        mine = [keep_as("203.0.113.1") for _ in range(9)]
        others = [keep_as(f"203.0.113.{at}")[0] for at in (2, 3)]

    kept = [status for status, _ in mine].count(200)
    assert 1 <= kept < 9
    assert mine[-1][0] == 429
    assert "without keeping it" in mine[-1][1]
    assert others == [200, 200]


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_sign_that_no_address_has_is_no_fault(client: TestClient, engine: str) -> None:
    """PostgreSQL's texts hold no NUL."""
    addresses = ["/d/%00", "/d/a%00b/delete/%00"]

    assert [client.get(address).status_code for address in addresses] == [404, 404]
    assert client.post(addresses[1]).status_code == 404


def test_curl_at_the_first_page_gets_text_for_a_terminal(client: TestClient) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}  # as curl says of --data-binary
    plain = client.post("/", content=LOG, headers=form)
    coloured = client.post("/?color&vllm_version=0.9.1", content=LOG, headers=form).text

    assert (plain.status_code, plain.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert plain.text.startswith("SAME FAILURE 97%")
    assert "\x1b" not in plain.text
    assert len(plain.text.splitlines()) <= 40
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain.text != coloured


def test_text_is_chosen_at_the_json_route_too(client: TestClient) -> None:
    accept = {"accept": "text/plain", "content-type": "text/plain"}
    answer = client.post("/api/v1/diagnose", content=LOG, headers=accept)

    assert answer.text.startswith("SAME FAILURE 97%")
    assert answer.headers["vary"].startswith("Accept")


def test_a_fault_of_curl_is_one_line(client: TestClient) -> None:
    answer = client.post("/", content="  ")

    assert (answer.status_code, answer.text.count("\n")) == (422, 1)


def test_each_log_has_its_line_in_order_also_one_at_fault(client: TestClient, room: Room) -> None:
    logs = [{"log": f"{LOG} {n}", "limit": n + 1} for n in range(3)] + [
        {"log": "\x01 \x02"},
        {"log": ""},
        {"log": LOG},
    ]
    answer = client.post("/api/v1/diagnose/batch", json={"logs": logs})
    lines = [json.loads(line) for line in answer.text.splitlines()]

    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert [asked["log"] for asked in room.asked] == [f"{LOG} {n}" for n in range(3)] + [LOG]
    assert [line.get("verdict") for line in lines] == ["same", "same", "same", None, None, "same"]
    assert {line["status"] for line in lines[3:5]} <= {415, 422}


def test_a_batch_is_refused_whole_where_its_shape_is_wrong(client: TestClient, room: Room) -> None:
    for body in ({"logs": []}, {"logs": [{"log": LOG}] * 101}, {"logs": [{}]}, {}):
        assert client.post("/api/v1/diagnose/batch", json=body).status_code == 422
    assert client.post("/api/v1/diagnose/batch", content=LOG).status_code == 415
    assert not room.asked


def test_an_entry_with_a_wrong_field_has_its_line_and_the_others_their_answers(client: TestClient) -> None:
    answer = client.post("/api/v1/diagnose/batch", json={"logs": [{"log": LOG}, {"log": LOG, "modle": "x"}]})
    lines = [json.loads(line) for line in answer.text.splitlines()]

    assert (lines[0]["verdict"], lines[1]["status"]) == ("same", 422)
    assert lines[1]["detail"] == "logs.1.modle: is no field of this body; the nearest is model."


def test_a_log_with_a_version_that_is_none_has_its_line_and_the_others_their_answers(store: Store) -> None:
    with TestClient(create_app(Settings(_env_file=None), store)) as client:  # type: ignore[call-arg]
        logs = [{"log": LOG, "vllm_version": version} for version in ("banana", "0.9.0")]
        answer = client.post("/api/v1/diagnose/batch", json={"logs": logs})
    lines = [json.loads(line) for line in answer.text.splitlines()]

    assert (lines[0]["status"], lines[1]["verdict"]) == (422, "unknown")
    assert lines[0]["detail"] == "vllm_version: banana is no version such as 0.19.0, and no commit."


def test_each_log_counts_against_the_limit(store: Store) -> None:
    settings = Settings(rate_limit="5/hour", _env_file=None)  # type: ignore[call-arg]
    with TestClient(create_app(settings, store)) as client:
        first = client.post("/api/v1/diagnose/batch", json={"logs": [{"log": LOG}] * 4})
        second = client.post("/api/v1/diagnose/batch", json={"logs": [{"log": LOG}] * 2})

    assert (first.status_code, second.status_code) == (200, 429)
    assert "Each log counts" in second.json()["detail"]


COMMENT_ROUTE = "/api/v1/comment"
REPORT_BODY = f"It dies.\n\n```text\n{marlin_log()}\n```"


def opened_event(body: str = REPORT_BODY, action: str = "opened") -> str:
    issue = {"number": 77, "title": "[Bug]: it dies", "body": body}
    return json.dumps({"action": action, "issue": issue, "repository": {"full_name": REPO}})


def write_comment(client: TestClient, text: str) -> object:
    answer = client.post(COMMENT_ROUTE, content=text, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()["body"]


def test_a_known_failure_gets_a_comment(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.routes.diagnose.diagnose", lambda *_, **__: SAME)

    assert f"#{SAME.matches[0].number}" in str(write_comment(client, opened_event()))


def test_there_is_nothing_to_say_of_the_unknown_and_of_other_events(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.routes.diagnose.diagnose", lambda *_, **__: UNKNOWN)

    assert write_comment(client, opened_event()) is None
    assert write_comment(client, opened_event(action="closed")) is None
    assert write_comment(client, opened_event("Thanks for this.")) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", "{", "\\ud800", "[" * 100_000])
def test_what_is_no_event_is_refused(client: TestClient, content: str) -> None:
    answer = client.post(COMMENT_ROUTE, content=content, headers={"content-type": "application/json"})

    assert answer.status_code in {400, 422}, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
