"""The answer for one stored issue: GitHub's data, facts with evidence; for its page also graph and votes.

Secrets are masked in all texts.
"""

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal

from pydantic import Field
from sqlalchemy.orm import Session

from app.extract.facts import Evidence, Facts, Frozen
from app.extract.fields.gpu_names import find_mentions
from app.extract.redact import mask_secrets, masked
from app.extract.rules.patterns import pattern
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states
from app.knowledge.issue.relations import Graph, issue_graph
from app.knowledge.issue.stored import StoredIssue, load_issue
from app.knowledge.issue.votes import RemedyVotes, Signal, VoteCount, count_remedy_votes, vote_counts
from app.store.derived.clusters import cluster_of, find_clusters, members_of
from app.store.records import CARD
from app.store.session import Store


class GitHubFacts(Frozen):
    """An issue's data from GitHub; `body` is masked for display."""

    repo: str
    number: int
    url: str
    title: str
    state: str
    state_reason: str | None
    is_pull_request: bool
    origin: Literal["card", "github"]
    author: str | None
    labels: tuple[str, ...]
    comments: int
    reactions: int
    created_at: datetime | None
    updated_at: datetime | None
    closed_at: datetime | None
    fetched_at: datetime | None
    gone_at: datetime | None = None
    gone_reason: str | None = None
    participants: int | None = Field(
        None, description="number of authors, comments included; null unless all comments are stored"
    )
    dates_estimated: bool = Field(
        False, description="whether the dates are estimates, according to the imported file"
    )
    body: str


class ClusterLine(Frozen):
    """The cluster of an issue; `size` counts its reports, including this one."""

    id: str
    text: str
    canonical: int
    size: int


class Measurement(Frozen):
    """A measured change in a report of a slowdown."""

    metric: str = Field(description="measured quantity, such as TTFT P99")
    change: str = Field(description="amount of the change, as written")
    quote: str


class PartialFix(Frozen):
    """A fix that works on some GPUs but not on others."""

    fixed_on: tuple[str, ...]
    not_on: tuple[str, ...]
    quote: str


class Findings(Frozen):
    """Statements in the issue's text beyond the facts; fields are empty if there are none."""

    measurements: tuple[Measurement, ...] = ()
    partial_fix: PartialFix | None = None
    proposal: str | None = Field(None, description="beginning of a fix that the report proposes; unconfirmed")


class IssueAnswer(GitHubFacts):
    """One issue: GitHub's data, and facts with evidence. All texts are masked for display."""

    facts: Facts | None
    fix: FixView
    findings: Findings = Field(default_factory=Findings, description="what the text states beside the facts")
    cluster: ClusterLine | None = Field(None, description="null if the issue reports no failure")
    votes: dict[Signal, VoteCount] = Field(
        default_factory=dict, description="votes for and against, by signal"
    )


ALIKE_MAX = 4
DATES_ESTIMATED = "x_dates_estimated"
"""Key in the raw JSON of an imported issue whose dates are interpolated."""


@dataclass(frozen=True, slots=True)
class IssuePageData:
    """One issue, its graph, and the votes on its remedies including the visitor's."""

    issue: IssueAnswer
    graph: Graph
    remedy_votes: dict[str, RemedyVotes]


def load_issue_page(
    store: Store,
    repo: str,
    number: int,
    *,
    cookie: str | None = None,
    vllm_version: str | None = None,
    versions_of: str | None = None,
) -> IssuePageData:
    """Load the data of an issue page, as `view_issue` does; `cookie` is that of `vote_on_remedy`."""
    with store.reading() as session:
        stored = load_issue(session, repo, number)
        issue = build_answer(session, stored, vllm_version=vllm_version, versions_of=versions_of)
        votes = count_remedy_votes(session, stored.repo_id, repo, number, cookie=cookie)
        graph = issue_graph(session, stored, stored.sources(), alike_max=ALIKE_MAX)
        return IssuePageData(issue, graph, votes)


def view_issue(
    store: Store, repo: str, number: int, *, vllm_version: str | None = None, versions_of: str | None = None
) -> IssueAnswer:
    """Return everything known about one issue.

    Args:
        versions_of: the repository that `vllm_version` belongs to; by default the issue's own.

    Raises:
        NotFoundError: the issue is not stored.
    """
    with store.reading() as session:
        stored = load_issue(session, repo, number)
        return build_answer(session, stored, vllm_version=vllm_version, versions_of=versions_of)


def build_answer(
    session: Session, stored: StoredIssue, *, vllm_version: str | None = None, versions_of: str | None = None
) -> IssueAnswer:
    """Build the answer of `view_issue` for a loaded issue."""
    repo, repo_id, issue, facts = stored.repo, stored.repo_id, stored.issue, stored.facts
    number = issue.number
    fixes = fix_states(
        session,
        repo_id,
        repo,
        [issue],
        {number: facts} if facts else {},
        vllm_version=vllm_version,
        versions_of=versions_of,
    )
    texts = {"title": mask_secrets(issue.title), "body": mask_secrets(issue.body)}
    return IssueAnswer.based_on(
        issue,
        repo=repo,
        title=texts["title"],
        body=texts["body"] if stored.body == issue.body else mask_secrets(stored.body),
        origin="card" if issue.origin == CARD else "github",
        participants=_participants(stored),
        dates_estimated=bool((issue.raw or {}).get(DATES_ESTIMATED)),
        cluster=_cluster(session, repo_id, number),
        votes=vote_counts(session, repo_id, number),
        facts=_masked(facts, texts) if facts else None,
        findings=find_findings(issue.body, facts),
        fix=fixes[number],
    )


def _participants(stored: StoredIssue) -> int | None:
    """Count the authors of issue and comments; None if a comment or an author is not stored."""
    authors = {stored.issue.author, *(comment.author for comment in stored.comments)}
    is_whole = len(stored.comments) >= stored.issue.comments
    return len(authors) if is_whole and None not in authors else None


def _cluster(session: Session, repo_id: int, number: int) -> ClusterLine | None:
    key = cluster_of(session, repo_id, [number]).get(number)
    if key is None:
        return None
    cluster = find_clusters(session, repo_id, [key])[key]
    size = len(members_of(session, repo_id, [key])[key])
    return ClusterLine.based_on(cluster, text=mask_secrets(cluster.text), size=size)


def _masked(facts: Facts, texts: Mapping[str, str]) -> Facts:
    """Mask secrets in facts. Masking keeps the length, so spans stay valid.

    A quote is cut from its masked source in `texts` if given: what marks a secret may precede the quote.
    """
    evidence = tuple(_masked_evidence(item, texts.get(item.source)) for item in facts.evidence)
    return masked(facts.model_copy(update={"evidence": ()})).model_copy(update={"evidence": evidence})


def _masked_evidence(item: Evidence, source: str | None) -> Evidence:
    quote = mask_secrets(item.quote if source is None else source[item.start : item.end])
    if quote == item.quote:
        return item
    at = item.quote.find(item.value)
    value = mask_secrets(item.value) if at < 0 else quote[at : at + len(item.value)]
    return item.model_copy(update={"quote": quote, "value": value})


MEASUREMENTS_MAX = 4
LINES_MAX, LINE_CHARS_MAX = 2_000, 400
PROPOSAL_CHARS = 300
_LINE_END = re.compile(r"(?<=[.!?;])\s+|\n")
_METRIC = pattern(
    r"(?i)\b(TTFT|TPOT|ITL|LAT|E2EL?|latency|throughput|acceptance (?:length|rate)|req(?:uests)?/s"
    r"|tok(?:en)?s?/s|tokens per second|step time|load(?:ing)? time|start-?up time)\b"
    r"(?: ?(P\d\d|mean|median))?"
)
_CHANGE = pattern(
    r"(?i)([+−]~?\d+(?:\.\d+)?(?:[-–]\d+(?:\.\d+)?)? ?%|(?:\b|[-~])\d+(?:\.\d+)?(?:[-–]\d+(?:\.\d+)?)? ?%"
    r"|\b\d+(?:\.\d+)? ?[x×] (?:slower|lower|higher|worse|longer|faster|drop|slowdown|increase)\w*)"
    r"(?:[^\d%\n]{1,60}?(?:to|/|,) ?([+−-]\d+(?:\.\d+)? ?%))?"
)
_PROPOSED = pattern(
    r"\b(?:Suggested|Proposed|Possible|Potential|Recommended) (?:[Ff]ix(?:es)?|[Ss]olutions?)\b"
    r"(?: \([^()\n]{1,60}\))?[\s*:#]{1,8}([^\s*:#(][^\n]{20,})"
)
"""The heading of a proposed fix and the start of its text, even if line breaks were lost."""
_RACK = re.compile(r"(?<=\d)NVL\d*\b")
"""Rack suffix attached to a GPU name, as in GB200NVL72."""
_FIX_MENTION = pattern(r"(?i)\b(?:fix(?:es|ed)?|patch(?:ed)?|PR|commit)\b|#\d{3,6}")
_FIXED = pattern(r"(?i)\b(?:fixe[sd]|resolve[sd]|solve[sd]|cure[sd]|works?|gone|fixed)\b")
_NEGATION = pattern(r"(?i)\b(?:not|never|n't|does ?n.t|did ?n.t)\b")
_FAILS = pattern(r"(?i)\b(?:still|remains?|broken|fails?|crash(?:es)?|not|persists?|hangs?)\b")
_CONTRAST = pattern(r"(?i),? \b(?:but|however|while|whereas|though|although|yet)\b")


def find_findings(text: str, facts: Facts | None) -> Findings:
    """Find measurements (of slowdowns only), a partial fix and a proposed fix in the text of a failure."""
    if facts is None or not facts.is_failure:
        return Findings()
    lines = [line.strip() for line in islice(_LINE_END.split(text), LINES_MAX)]
    lines = [line for line in lines if line and len(line) <= LINE_CHARS_MAX]
    partial = next((found for line in lines if (found := _partial_fix(line))), None)
    measured: dict[str, Measurement] = {}
    for line in lines if facts.failure_kind == "slowdown" else ():
        if figure := _measurement(line):
            measured.setdefault(figure.metric, figure)
    return Findings(
        measurements=tuple(measured.values())[:MEASUREMENTS_MAX],
        partial_fix=partial,
        proposal=_proposal(text),
    )


def _proposal(text: str) -> str | None:
    found = _PROPOSED.search(text)
    if found is None:
        return None
    words = re.split(r"\s#{2,6}\s|```", found[1].replace("**", ""), maxsplit=1)[0][: 2 * PROPOSAL_CHARS]
    return textwrap.shorten(mask_secrets(words), PROPOSAL_CHARS, placeholder=" …").strip(" -:") or None


def _measurement(line: str) -> Measurement | None:
    metric, change = _METRIC.search(line), _CHANGE.search(line)
    if metric is None or change is None:
        return None
    name = " ".join(part for part in metric.groups() if part)
    figures = " to ".join(" ".join(part.split()) for part in change.groups() if part)
    return Measurement(metric=name, change=figures, quote=mask_secrets(line))


def _partial_fix(line: str) -> PartialFix | None:
    but = _CONTRAST.search(line)
    if but is None or not _FIX_MENTION.search(line):
        return None
    before, after = line[: but.start()], line[but.end() :]
    if not _FIXED.search(before) or _NEGATION.search(before) or not _FAILS.search(after):
        return None
    fixed_on = tuple(dict.fromkeys(mention.name for mention in find_mentions(_RACK.sub("", before))))
    not_on = tuple(dict.fromkeys(mention.name for mention in find_mentions(_RACK.sub("", after))))
    if not fixed_on or not not_on or set(fixed_on) & set(not_on):
        return None
    return PartialFix(fixed_on=fixed_on, not_on=not_on, quote=mask_secrets(line))
