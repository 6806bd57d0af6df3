"""In which order the parts of each kind of answer go when it must fit a budget; see `budget`.

A program that asks for little wants the verdict, what helps and where to read on. What it can fetch by
number, or read in another field too, goes first.
"""

from __future__ import annotations

from app.web.answers.budget import Emptied, Entries, Inside, Shape, Words

DIAGNOSIS = Shape(
    keeps=("verdict",),
    steps=(
        Emptied("issue_draft"),
        Inside("matches.excerpt"),
        Entries("other_errors"),
        Entries("matches", keep=5),
        Inside("matches.workarounds"),
        Entries("workarounds", keep=5),
        Entries("wrappers"),
        Entries("matches", keep=3),
        Inside("matches.regression"),
        Entries("redactions"),
        Entries("next_steps", keep=1),
        Entries("workarounds", keep=2),
        Entries("matches", keep=1),
        Entries("workarounds", keep=1),
    ),
    ranked=(
        "headline",
        "matches",
        "workarounds",
        "next_steps",
        "root_cause",
        "kept",
        "signature",
        "index",
        "environment",
        "is_question",
    ),
)

_GITHUB = ("title", "state", "url", "state_reason")

ISSUE = Shape(
    keeps=("repo", "number"),
    steps=(
        Words("body", keep=2000),
        Entries("evidence", keep=40),
        Words("body"),
        Entries("reproduction", keep=2),
        Entries("related", keep=20),
        Entries("evidence", keep=10),
        Entries("signatures", keep=1),
        Entries("cause", keep=2),
        Entries("workarounds", keep=5),
        Entries("labels", keep=5),
        Entries("evidence"),
        Entries("related_elsewhere"),
        Entries("workarounds", keep=2),
        Entries("cause", keep=1),
        Entries("reproduction"),
        Entries("related"),
    ),
    ranked=(
        *_GITHUB,
        "summary",
        "error",
        "fix",
        "workarounds",
        "cluster",
        "regression",
        "cause",
        "versions",
        "gpus",
        "models",
        "is_failure",
        "failure_kind",
        "backends",
        "created_at",
        "updated_at",
        "related",
    ),
)

REPORT = Shape(
    keeps=("repo", "number"),
    steps=(
        Words("body"),
        Inside("facts.quotes"),
        Entries("timeline", keep=10),
        Entries("graph.edges", keep=10),
        Entries("facts", keep=20),
        Inside("examples.quotes"),
        Inside("regression.quotes"),
        Entries("timeline"),
        Entries("remedies", keep=5),
        Entries("examples", keep=2),
        Inside("remedies.quotes"),
        Inside("cause.quotes"),
        Entries("fix_quotes"),
        Entries("graph.edges"),
        Entries("graph.nodes", keep=10),
        Entries("examples"),
        Entries("not_known"),
        Entries("graph.nodes", keep=1),
        Entries("cause", keep=1),
        Entries("remedies", keep=1),
        Entries("facts"),
    ),
    ranked=(
        *_GITHUB,
        "summary",
        "fix",
        "remedies",
        "error",
        "cause",
        "regression",
        "failure_kind",
        "as_of",
        "created_at",
    ),
)

LIST = Shape(keeps=("items", "next_cursor"), steps=(Entries("items"),), ranked=("total",))
"""Any list of short entries; those left out begin the next page."""

RELATED = LIST

ISSUE_LIST = Shape(
    keeps=("items", "next_cursor"),
    steps=(Emptied("facets"), Inside("items.labels"), Inside("items.summary"), Entries("items")),
    ranked=("total",),
)
"""Issues by filters: the counts go first, and what a list can do without."""

VERSION_LIST = Shape(
    keeps=("items", "next_cursor"),
    steps=(
        Inside("items.culprit_guesses"),
        Inside("items.newest"),
        Inside("items.quotes"),
        Inside("items.remedy"),
        Entries("items"),
    ),
    ranked=("total", "version", "is_ordered"),
)
"""Regressions and known issues: their words go before their entries do."""

DIGEST = Shape(
    keeps=("repo", "week"),
    steps=(
        Entries("areas"),
        Entries("weeks", keep=1),
        Entries("hardware", keep=5),
        Entries("remedies", keep=5),
        Entries("unremedied", keep=3),
        Entries("fixed", keep=8),
        Entries("clusters", keep=5),
        Entries("regressions", keep=3),
        Entries("alive", keep=2),
        Entries("weeks"),
        Entries("kinds"),
        Entries("hardware"),
        Entries("alive"),
        Entries("remedies"),
        Entries("unremedied"),
        Entries("clusters"),
        Entries("regressions"),
        Entries("fixed"),
        Entries("growing"),
        Entries("advice", keep=1),
    ),
    ranked=(
        "headline",
        "advice",
        "failures",
        "issues",
        "data",
        "days",
        "growing",
        "fixed",
        "regressions",
        "clusters",
        "unremedied",
        "remedies",
        "alive",
        "failures_before",
        "issues_before",
        "previous",
        "next",
    ),
)
"""What to do stays longest."""

CLUSTER = Shape(
    keeps=("id", "repo"),
    steps=(
        Inside("witnesses.quotes"),
        Inside("disagreements.quotes"),
        Entries("members", keep=20),
        Entries("timeline.buckets"),
        Entries("witnesses", keep=3),
        Entries("backends", keep=5),
        Entries("versions", keep=10),
        Entries("models", keep=5),
        Entries("members", keep=5),
        Entries("not_merged", keep=2),
        Entries("workarounds", keep=5),
        Entries("signature_ids", keep=1),
        Entries("disagreements", keep=1),
        Entries("members", keep=1),
        Entries("gpus", keep=3),
        Entries("workarounds", keep=1),
    ),
    ranked=(
        "text",
        "title",
        "canonical",
        "size",
        "open_count",
        "fix",
        "workarounds",
        "regression",
        "kind",
        "first_seen",
        "last_seen",
        "is_alive",
        "closed_but_alive",
        "members",
        "gpus",
        "canonical_reason",
    ),
)
"""One failure: its reports can be asked for one by one."""

SHAPES = {
    "Diagnosis": DIAGNOSIS,
    "KeptDiagnosis": DIAGNOSIS,
    "IssueDocument": ISSUE,
    "Report": REPORT,
    "Digest": DIGEST,
    "ClusterDetail": CLUSTER,
    "ClusterList": LIST,
    "IssueList": ISSUE_LIST,
    "RelatedList": RELATED,
    "RegressionList": VERSION_LIST,
    "KnownIssueList": VERSION_LIST,
}
"""By the name of the shape in the API description."""
