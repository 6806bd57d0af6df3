"""What is extracted from the texts in `tests/cases`, against labels written by hand, may not get worse.

Scores are F1 over all values of a field, or the share of issues that are right where a field has one value.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app.bench.cases import load_pinned
from app.bench.run import is_root_cause
from app.extract.facts import Facts
from app.extract.reader import read_issue, read_log
from app.extract.text.document import CommentText, IssueText

CASES = Path(__file__).parent / "cases"
FOLDERS = sorted(path.parent for path in CASES.glob("*/issue.md"))
HEALTHY = sorted((CASES / "healthy").glob("*.log"))
MINIMUM: dict[str, float] = tomllib.loads((CASES / "minimum_scores.toml").read_text(encoding="utf-8"))
REPORTER = "ada"

Values = set[str]


def issue_of(folder: Path, number: int) -> IssueText:
    text = (folder / "issue.md").read_text(encoding="utf-8")
    head, *parts = re.split(r"^<!-- comment: (\w+) -->\n", text, flags=re.MULTILINE)
    title, labels, body = re.fullmatch(r"# (.+)\n<!-- labels: (.*) -->\n(.*)", head, re.DOTALL).groups()  # type: ignore[union-attr]
    comments = tuple(
        CommentText(
            id=number * 100 + at,
            body=words.strip(),
            author_association="NONE" if role == "AUTHOR" else role,
            user=REPORTER if role == "AUTHOR" else f"reader-{at}",
            created_at=f"2026-01-0{at + 1}T00:00:00Z",
        )
        for at, (role, words) in enumerate(zip(parts[::2], parts[1::2], strict=True), 1)
    )
    return IssueText(
        number, title, body.strip(), labels=tuple(labels.split(", ")), user=REPORTER, comments=comments
    )


def expected_of(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return loaded


def plain(value: object) -> str:
    return re.sub(r"[\s`*\"']+", " ", str(value).lower()).strip()


def values_of(facts: dict[str, Any]) -> dict[str, Values]:
    """The values of each field as comparable strings."""
    error, regression = facts["error"] or {}, facts["regression"] or {}
    return {
        "is_failure": {str(facts["is_failure"])},
        "failure_kind": {facts["failure_kind"]},
        "gpus": set(map(plain, facts["gpus"])),
        "gpu_count": {str(facts["gpu_count"])} - {"None"},
        "models": {plain(name).rpartition("/")[2] for name in facts["models"]},
        "backends": {
            re.sub(r"[^a-z0-9:]", "", f"{key}:{value}".lower())
            for key, found in facts["backends"].items()
            for value in (found if isinstance(found, list) else [found])
        },
        "versions": {f"{key} {plain(value)}" for key, value in facts["versions"].items() if value},
        "error_type": {plain(error["type"])} if error.get("type") else set(),
        "error_message": {plain(error["message"])} if error.get("message") else set(),
        "frame": {plain(error["frame"])} if error.get("frame") else set(),
        "wrappers": set(map(plain, error.get("wrappers", ()))),
        "workarounds": {f"{item['outcome']}: {plain(item['action'])}" for item in facts["workarounds"]},
        "regression": {
            f"{key} {plain(value)}"
            for key, found in regression.items()
            for value in (found if isinstance(found, list) else [found])
            if value and key != "evidence"
        },
        "related": set(map(str, facts["related"])),
    }


LOOSE = {"error_message", "workarounds", "wrappers", "frame"}
"""Fields of free text: one value may hold the other."""


def matches(name: str, wanted: str, found: str) -> bool:
    if name not in LOOSE:
        return wanted == found
    a, b = (text.partition(": ")[::2] if name == "workarounds" else ("", text) for text in (wanted, found))
    return a[0] == b[0] and (a[1] in b[1] or b[1] in a[1])


@dataclass
class Score:
    hits: int = 0
    wanted: int = 0
    found: int = 0
    misses: list[str] = field(default_factory=list)

    @property
    def f1(self) -> float:
        return 2 * self.hits / (self.wanted + self.found) if self.wanted + self.found else 1.0


@pytest.fixture(scope="module")
def scores() -> dict[str, Score]:
    counted: dict[str, Score] = defaultdict(Score)
    for number, folder in enumerate(FOLDERS, 1):
        facts: Facts = read_issue(issue_of(folder, number)).facts
        found = values_of(facts.model_dump(mode="json"))
        for name, wanted in values_of(expected_of(folder)).items():
            score = counted[name]
            missed = {item for item in wanted if not any(matches(name, item, other) for other in found[name])}
            extra = {item for item in found[name] if not any(matches(name, other, item) for other in wanted)}
            score.hits += len(wanted) - len(missed)
            score.wanted += len(wanted)
            score.found += len(wanted) - len(missed) + len(extra)
            score.misses += [f"{folder.name}: not found {item!r}" for item in sorted(missed)]
            score.misses += [f"{folder.name}: found {item!r}" for item in sorted(extra)]
    counted["root_cause_of_real_logs"] = score_of_real_logs()
    return counted


def score_of_real_logs() -> Score:
    logs = [log for log in load_pinned().real_logs if not log.unseen]
    score = Score(wanted=len(logs), found=len(logs))
    for log in logs:
        cause = read_log(log.log).errors.cause
        message = (cause.message or cause.type or "") if cause else ""
        if is_root_cause(log, message):
            score.hits += 1
        else:
            score.misses.append(f"{log.id}: found {message[:120]!r}, not {log.error[:120]!r}")
    return score


@pytest.mark.parametrize("name", sorted(MINIMUM))
def test_a_field_is_read_as_well_as_before(scores: dict[str, Score], name: str) -> None:
    score = scores[name]
    print(f"\n{name}: F1 {score.f1:.3f}, minimum {MINIMUM[name]}", *score.misses, sep="\n  ")
    assert score.f1 >= MINIMUM[name], f"{name} fell to {score.f1:.3f}:\n" + "\n".join(score.misses)


def test_every_field_has_a_minimum(scores: dict[str, Score]) -> None:
    assert scores.keys() == MINIMUM.keys()


LOGS = [folder for folder in FOLDERS if (folder / "log.txt").exists()]


@pytest.mark.parametrize("folder", LOGS, ids=lambda folder: folder.name)
def test_the_root_cause_of_a_pasted_log_is_that_of_its_issue(folder: Path) -> None:
    wanted = expected_of(folder)["error"]
    found = read_log((folder / "log.txt").read_text(encoding="utf-8")).errors.cause
    assert found is not None
    assert (plain(found.type), wanted["message"] in found.message) == (plain(wanted["type"]), True)


@pytest.mark.parametrize("log", HEALTHY, ids=lambda log: log.stem)
def test_a_healthy_run_has_no_root_cause(log: Path) -> None:
    assert read_log(log.read_text(encoding="utf-8")).errors.cause is None
