"""In which order the parts of each kind of answer go when it must fit a budget: `budget_rules.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from app.web.answers.budget import Cut, CutOrder

_RULES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _order(name: str) -> CutOrder:
    rule = _RULES[name]
    cuts = tuple(Cut(**cut) for cut in rule["cuts"])
    return CutOrder(tuple(rule["keeps"]), cuts, tuple(rule["ranked"]))


DIAGNOSIS = _order("diagnosis")
ISSUE = _order("issue")
REPORT = _order("report")
LIST = _order("list")
ISSUE_LIST = _order("issue_list")
VERSION_LIST = _order("version_list")
DIGEST = _order("digest")
CLUSTER = _order("cluster")

ORDERS = {
    "Diagnosis": DIAGNOSIS,
    "KeptDiagnosis": DIAGNOSIS,
    "IssueDocument": ISSUE,
    "Report": REPORT,
    "Digest": DIGEST,
    "ClusterDetail": CLUSTER,
    "ClusterList": LIST,
    "IssueList": ISSUE_LIST,
    "RelatedList": LIST,
    "RegressionList": VERSION_LIST,
    "KnownIssueList": VERSION_LIST,
}
"""By the name of the answer's schema in the API description."""
