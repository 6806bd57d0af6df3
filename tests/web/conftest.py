"""The front desk with a room behind it that answers what a test says. All texts are our own."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from app.config import Settings
from app.extract.facts import (
    Cause,
    Conditions,
    ErrorFact,
    ErrorLine,
    Evidence,
    Facts,
    Fix,
    Regression,
    Signature,
    Workaround,
)
from app.extract.redact import redact
from app.knowledge.diagnosis.diagnose import DiagnosedLog, diagnose, diagnose_log
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.shapes import (
    Diagnosis,
    IndexState,
    LogEnvironment,
    Match,
    MatchLine,
    NextStep,
    OtherError,
    Redaction,
    RootCause,
    Why,
)
from app.knowledge.digest.week import FixNews
from app.knowledge.fix.shapes import FixView
from app.knowledge.freshness import Overview
from app.knowledge.home import Home, NewFailure, ReleaseFailure, ReleaseNews, TrendingCluster, home
from app.knowledge.issue.relations import Graph, GraphEdge, GraphNode, RelatedItem, likeness_of, related
from app.knowledge.issue.stored import Quote
from app.knowledge.issue.view import IssueAnswer, IssuePageData, find_findings, load_issue_page, view_issue
from app.knowledge.issue.votes import RemedyVotes
from app.knowledge.remedies import Remedy
from app.main import create_app
from app.store.session import Store
from app.web import deps
from tests.conftest import ENGINES

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette asks for another HTTP library
    from fastapi.testclient import TestClient

REPO = "vllm-project/vllm"
URL = f"https://github.com/{REPO}/issues/"
HOT = (
    "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'an illegal memory access was encountered'"
)
NOT_FIXED = FixView(state="not_fixed", for_you="not_fixed", reason="Open, and no pull request closes it.")
RANGE = Regression(
    last_working="0.18.1rc1.dev227",
    first_failing="0.18.1rc1.dev266",
    still_failing=("0.19.1rc1.dev45",),
    culprit="#36286",
)
TRITON = Remedy(
    action="--moe-backend triton",
    kind="flag",
    outcome="works",
    command="--moe-backend triton",
    conditions=Conditions(gpus=("H100",)),
    repo=REPO,
    number=39288,
    url=f"{URL}39288",
)


def a_match(number: int, title: str, score: float, band: Any, **more: Any) -> Match:
    return Match(
        number=number,
        repo=REPO,
        title=title,
        url=f"{URL}{number}",
        state="open",
        score=score,
        band=band,
        why=more.pop("why", Why(shared=("frame gpu_worker.py:load_model",))),
        **more,
    )


MATCHES = (
    a_match(
        39288,
        "FlashInfer CUTLASS MoE dies with an illegal memory access on H100 while CUDA graphs are captured",
        0.97,
        "same",
        workarounds=(TRITON,),
        fix=NOT_FIXED,
        regression=RANGE,
        why=Why(
            shared=(
                "error type CUDA error",
                "MoE backend FlashInfer CUTLASS",
                "model Qwen3-Next-80B-A3B-Instruct",
                "H100",
            ),
            differs=("yours 0.19.0; theirs 0.18.2rc1.dev54", "yours TP 4; theirs TP 8"),
        ),
    ),
    a_match(
        30579,
        "Illegal memory access with Qwen3-Next-80B-A3B-Instruct on 4 x B200",
        0.71,
        "likely",
        fix=FixView(state="closed_unresolved"),
        why=Why(shared=("same model",), differs=("yours H100; theirs B200",)),
    ),
    a_match(
        42583,
        "LoRA and TP 4 fail at start in custom_all_reduce.cuh",
        0.09,
        "related",
        fix=FixView(state="unknown"),
    ),
)

SAME = Diagnosis(
    verdict="same",
    root_cause=RootCause(
        type="CUDA error",
        message="an illegal memory access was encountered",
        frame="custom_all_reduce.cuh:455",
        process="Worker_TP3",
        line=3,
        quote=HOT,
    ),
    wrappers=("RuntimeError: Engine core initialization failed.",),
    other_errors=(OtherError(type="ValueError", message="a second thing", line=9),),
    environment=LogEnvironment(
        gpus=("H100",),
        models=("Qwen/Qwen3-Next-80B-A3B-Instruct",),
        backends={"moe": ("FlashInfer CUTLASS",)},
        versions={"vllm": "0.19.0"},
    ),
    signature=Signature(id="s1-0123456789ab", text="CUDA error|an illegal memory access was encountered"),
    redactions=(Redaction(kind="hugging_face_token", count=1), Redaction(kind="ip_address", count=2)),
    matches=MATCHES,
    workarounds=(
        TRITON,
        TRITON.model_copy(
            update={
                "action": "unset VLLM_USE_FLASHINFER_MOE_FP16",
                "command": "unset VLLM_USE_FLASHINFER_MOE_FP16",
                "kind": "env",
                "number": 30579,
            }
        ),
        TRITON.model_copy(
            update={"action": "upgrade to 0.19.1rc1.dev35", "kind": "version", "outcome": "fails"}
        ),
    ),
    index=IndexState(issues=15818, as_of=datetime(2026, 6, 3, 6, tzinfo=UTC)),
    took_ms=11.2,
    headline="You hit #39288: illegal memory access in FlashInfer CUTLASS MoE on H100, while CUDA graphs are captured.",
)

UNKNOWN = SAME.model_copy(
    update={
        "verdict": "unknown",
        "matches": (MATCHES[2],),
        "workarounds": (),
        "environment": LogEnvironment(),
        "redactions": (),
        "next_steps": (
            NextStep(
                text="Run once more so that the error stops at the kernel that caused it",
                command="CUDA_LAUNCH_BLOCKING=1 vllm serve YOUR_ARGS",
            ),
            NextStep(text="Paste the lines above the first ERROR as well"),
        ),
        "headline": "No stored issue is known to be this failure: the paste ends in an asynchronous CUDA error.",
    }
)

EXCERPT = (
    MatchLine(
        number=1,
        text="(Worker_TP0) INFO [unquantized.py:283] Using FlashInfer CUTLASS Unquantized MoE backend",
        role="before",
    ),
    MatchLine(
        number=2,
        text="Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  97%|####| 143/147",
        role="before",
    ),
    MatchLine(number=3, text=HOT, role="error"),
    MatchLine(number=5, text="RuntimeError: Engine core initialization failed.", role="wrapper"),
)

BODY = """\
GPU: NVIDIA H100 80GB HBM3
vLLM version: v0.18.2rc1.dev54

The MoE backend writes out of bounds. The same model runs with `--moe-backend triton`.
Introduced by #36286. <script>alert(1)</script>
"""


def evidence(name: str, value: str, quote: str, source: str = "body", text: str = BODY) -> Evidence:
    start = text.index(quote) if quote in text else 0
    return Evidence(
        field=name,
        value=value,
        quote=quote,
        source=source,
        start=start,
        end=start + len(quote),
        rule="test",
        confidence=1,
    )


FACTS = Facts(
    number=39288,
    is_failure=True,
    failure_kind="crash",
    gpus=("H100",),
    gpu_count=8,
    models=("Qwen/Qwen3-Next-80B-A3B-Instruct",),
    backends={"moe": ("FlashInfer CUTLASS",)},
    versions={"vllm": "0.18.2rc1.dev54", "torch": "2.9.0+cu129"},
    error=ErrorFact(
        type="CUDA error",
        message="an illegal memory access was encountered",
        frame="custom_all_reduce.cuh:455",
        wrappers=("RuntimeError: Engine core initialization failed.",),
    ),
    workarounds=(
        Workaround(
            action="--moe-backend triton", kind="flag", outcome="works", command="--moe-backend triton"
        ),
        Workaround(action="upgrade to 0.19.1rc1.dev35", kind="version", outcome="fails"),
    ),
    regression=RANGE,
    related=(36286, 30579),
    related_elsewhere=("flashinfer-ai/flashinfer#1",),
    cause=(Cause(text="The MoE backend writes out of bounds.", certainty="hypothesis"),),
    fix=Fix(state="not_fixed"),
    environment={"nccl": "2.27"},
    summary="Dies at capture step 143 of 147 with the default MoE backend; the Triton backend avoids it.",
    evidence=(
        evidence("gpus", "H100", "NVIDIA H100 80GB HBM3"),
        evidence("versions.vllm", "0.18.2rc1.dev54", "v0.18.2rc1.dev54"),
        evidence("workarounds", "--moe-backend triton", "The same model runs with `--moe-backend triton`"),
        evidence("cause", "The MoE backend writes out of bounds.", "The MoE backend writes out of bounds."),
        evidence("regression.culprit", "#36286", "Introduced by #36286"),
        evidence("related", "36286", "#36286"),
        evidence("workarounds", "upgrade to 0.19.1rc1.dev35", "dev35 did not help", source="comment:77"),
    ),
)

ISSUE = IssueAnswer(
    repo=REPO,
    number=39288,
    url=f"{URL}39288",
    title="FlashInfer CUTLASS MoE dies with an illegal memory access on H100 while CUDA graphs are captured",
    state="open",
    state_reason=None,
    is_pull_request=False,
    origin="github",
    author="someone",
    labels=("bug",),
    comments=1,
    reactions=0,
    created_at=datetime(2026, 4, 8, 9, tzinfo=UTC),
    updated_at=datetime(2026, 4, 9, 9, tzinfo=UTC),
    closed_at=None,
    fetched_at=datetime(2026, 6, 3, 6, tzinfo=UTC),
    body=BODY,
    facts=FACTS,
    fix=NOT_FIXED,
)

OVERVIEW = Overview(
    issues=15818,
    pulls=1305,
    from_cards=30,
    as_of=datetime(2026, 6, 3, 6, tzinfo=UTC),
    newest_release="0.22.0",
    is_starter_only=False,
)


def a_node(
    number: int, kind: Any = "issue", title: str = "", state: str = "open", repo: str = REPO, **more: Any
) -> GraphNode:
    return GraphNode(
        key=f"{repo}#{number}",
        repo=repo,
        number=number,
        kind=kind,
        title=title,
        state=state,
        url=f"https://github.com/{repo}/issues/{number}",
        **more,
    )


GRAPH = Graph(
    nodes=(
        a_node(39288, title=ISSUE.title),
        a_node(36286, "pull_request", "Prefer another MoE backend", "merged", released_in="0.19.0"),
        a_node(30579, title="Same model on B200", state="closed"),
        a_node(1, "unknown", state="unknown", repo="flashinfer-ai/flashinfer"),
        a_node(39025, title="Capture fails under load", state="closed"),
    ),
    edges=(
        GraphEdge(
            source=f"{REPO}#39288",
            target=f"{REPO}#36286",
            kind="introduced_by",
            basis="said",
            reason="stated in the issue's text",
            quote=Quote(text="Introduced by #36286.", source="body", url=f"{URL}39288"),
        ),
        GraphEdge(
            source=f"{REPO}#39288",
            target=f"{REPO}#30579",
            kind="mentions",
            basis="said",
            reason="stated in the issue's text",
        ),
        GraphEdge(
            source=f"{REPO}#39288",
            target="flashinfer-ai/flashinfer#1",
            kind="mentions",
            basis="said",
            reason="stated in a comment",
        ),
        GraphEdge(
            source=f"{REPO}#39288",
            target=f"{REPO}#39025",
            kind="similar",
            basis="likeness",
            reason="texts alike",
            band="likely",
            score=0.71,
        ),
    ),
)


def a_listed_failure(number: int, title: str, state: str = "open", **more: Any) -> dict[str, Any]:
    """The fields that lists of news have in common."""
    url = f"https://github.com/vllm-project/vllm/issues/{number}"
    fields = {
        "repo": "vllm-project/vllm",
        "failure_kind": "crash",
        "comments": 0,
        "reactions": 0,
        "created_at": None,
    }
    return {**fields, "number": number, "title": title, "url": url, "state": state, **more}


HOME = Home(
    trending=(
        TrendingCluster(
            id="s1-0123456789ab",
            text="CUDA error | an illegal memory access was encountered",
            canonical=17,
            title="A MoE kernel writes out of bounds on H100",
            size=7,
            lately=4,
            this_week=3,
            is_growing=True,
        ),
    ),
    since=datetime(2026, 5, 27, tzinfo=UTC),
    new=(
        NewFailure(
            **a_listed_failure(
                44395,
                "Waking up with weights only, then a forward pass",
                error=ErrorLine(type=None, message="CUDA error: an illegal memory access was encountered"),
                created_at=datetime(2026, 6, 2, tzinfo=UTC),
            ),
            has_remedy=False,
            dates_estimated=True,
        ),
        NewFailure(**a_listed_failure(44305, "Sampler JIT fails on SM120f", "closed"), has_remedy=True),
    ),
    new_total=81,
    release=ReleaseNews(
        version="0.22.0",
        is_release=True,
        failing=(ReleaseFailure(**a_listed_failure(44022, "NVFP4 does not start"), began=True),),
        failing_total=11,
        fixed=(
            FixNews(
                **a_listed_failure(44001, "Hang at shutdown", "closed"),
                how="released",
                fix=FixView(state="fixed", pr="#44002", released_in="0.22.0"),
            ),
        ),
        fixed_total=1,
    ),
)


def answer_instead(monkeypatch: pytest.MonkeyPatch, function: Any, other: Any) -> None:
    """Put another function in a function's place, in every module of `app.web` that imports it."""
    for module, name in _importers_of(function):
        monkeypatch.setattr(module, name, other)


@cache
def _importers_of(function: Any) -> list[tuple[ModuleType, str]]:
    """The modules of `app.web` that import it, all of which `app.main` has loaded, and under which name."""
    modules = [module for name, module in sys.modules.items() if name.startswith("app.web.")]
    return [(module, name) for module in modules for name, value in vars(module).items() if value is function]


@dataclass
class Room:
    """What the room behind the desk answers, and what it was asked."""

    diagnosis: Diagnosis = SAME
    issue: IssueAnswer = ISSUE
    overview: Overview = OVERVIEW
    home: Home = HOME
    graph: Graph = GRAPH
    remedy_votes: dict[str, RemedyVotes] = field(default_factory=dict)
    failure: Exception | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)

    def furnish(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put these answers in place of the knowledge that `app.web` calls."""
        answer_instead(monkeypatch, diagnose, self._diagnose)
        answer_instead(monkeypatch, diagnose_log, self._diagnose_log)
        answer_instead(monkeypatch, view_issue, self._view_issue)
        monkeypatch.setattr(deps, "overview", lambda _s, _r: self.overview)
        answer_instead(monkeypatch, home, lambda _s, _r: self.home)
        answer_instead(monkeypatch, load_issue_page, self._see_issue)
        answer_instead(monkeypatch, related, self._related)
        answer_instead(monkeypatch, likeness_of, self._likeness_of)
        answer_instead(monkeypatch, diagnosis_markdown, lambda d: f"**{d.headline}**\n")

    def _diagnose_log(self, store: Store, log: str, **options: Any) -> DiagnosedLog:
        return DiagnosedLog(self._diagnose(store, log, **options), EXCERPT, redact(log, private=True).text)

    def _diagnose(self, _store: Store, log: str, **options: Any) -> Diagnosis:
        self.asked.append({"log": log, **options})
        if self.failure:
            raise self.failure
        return self.diagnosis

    def _related(self, _store: Store, repo: str, number: int, *, limit: int) -> tuple[RelatedItem, ...]:
        self.asked.append({"repo": repo, "number": number, "limit": limit})
        return ()

    def _likeness_of(self, _store: Store, repo: str, number: int, other: int) -> tuple[RelatedItem, ...]:
        self.asked.append({"repo": repo, "number": number, "with": other})
        return ()

    def _view_issue(self, _store: Store, repo: str, number: int, **options: Any) -> IssueAnswer:
        self.asked.append({"repo": repo, "number": number, **options})
        if self.failure:
            raise self.failure
        return self.issue

    def _see_issue(
        self, store: Store, repo: str, number: int, *, cookie: str | None = None, **options: Any
    ) -> IssuePageData:
        issue = self._view_issue(store, repo, number, **options)
        found = find_findings(issue.body, issue.facts)
        return IssuePageData(issue.model_copy(update={"findings": found}), self.graph, self.remedy_votes)


ON_BOTH_ENGINES = {
    "test_faults",
    "test_health",
    "test_judgements",
    "test_kept",
    "test_regressions",
    "test_report",
}
"""Modules whose routes ask the archive itself; what stands before a made-up room is tested on one engine."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = any("engine" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    module = metafunc.module.__name__.rpartition(".")[2]
    if "engine" in metafunc.fixturenames and module in ON_BOTH_ENGINES and not chosen:
        metafunc.parametrize("engine", ENGINES)


ASK_MCP = {"test_fuzz", "test_origins", "test_rate_limits", "test_server", "test_service"}
"""Modules that ask `/mcp`. To the others its server is not started: that takes most of an application's start."""


@pytest.fixture(autouse=True)
def _without_mcp(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.module.__name__.rpartition(".")[2] not in ASK_MCP:
        monkeypatch.setattr("app.main.mcp_server.speaking", lambda _services: nullcontext())


@pytest.fixture
def engine() -> str:
    """What the archive is kept in."""
    return "sqlite"


@pytest.fixture
def store(request: pytest.FixtureRequest, engine: str) -> Store:
    """A migrated, empty archive."""
    opened: Store = request.getfixturevalue(f"{engine}_store")
    return opened


@pytest.fixture
def settings(store: Store) -> Settings:
    url = store.engine.url.render_as_string(hide_password=False)
    return Settings(database_url=url, repo=(REPO,), _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def client(
    settings: Settings, store: Store, room: Room, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    room.furnish(monkeypatch)
    app = create_app(settings, store)
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as opened:
        yield opened
