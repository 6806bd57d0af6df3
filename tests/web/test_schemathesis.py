"""Requests made from the API description, good and bad ones: no fault, no answer that it does not tell of."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog

from app.web.answers.parameters import write_cursor
from tests.served import served, starter_settings

pytestmark = pytest.mark.long
ADMIN = "a-token-of-the-tests"
PHASES = {"examples", "coverage", "fuzzing", "stateful"}
LISTS = {
    "list_judgements": "judgements",
    "list_regressions": "regressions",
    "list_known_issues": "known-issues",
}
"""The kind of each list's cursors."""


def exemption(operation: str, *statuses: int) -> dict[str, Any]:
    """Statuses that data may get which the description cannot tell from good ones."""
    accepted = ["2xx", "3xx", "401", "403", "404", "409", "429", "5xx", *map(str, statuses)]
    return {
        "include-operation-id": operation,
        "checks": {"positive_data_acceptance": {"expected-statuses": accepted}},
    }


BATCH = exemption("diagnose_batch", 415, 422)
# A wrong entry is answered in its own line, so that the others get their answers.
BATCH["checks"]["negative_data_rejection"] = {"expected-statuses": ["2xx", "4xx"]}

OPERATIONS = [
    exemption("diagnose", 415, 422),  # text that no schema can tell from a log: control characters, blanks
    exemption("get_digest", 422),  # week 53 of a year that has none
    exemption("judge", 422),  # an issue on both sides
    exemption("list_issues", 422),  # a cursor of another list
    exemption("list_signatures", 422),  # a cursor of the list in another order
    exemption("get_newest_digest", 422),  # a repository that is not known here
    exemption("list_changes", 422),
    exemption("get_issue", 422),  # a version that is none
    exemption("get_repo_issue", 422),
    exemption("get_issue_report", 422),
    exemption("get_repo_issue_report", 422),
    exemption("list_families", 422),
    exemption("compare_versions", 422),  # a version that is none, a stack that is none
    exemption("write_comment", 415, 422),  # an event of another shape
    BATCH,
    exemption("get_signature", 422),
    *(
        {**exemption(name, 422), "parameters": {"cursor": write_cursor(kind, 10)}}
        for name, kind in LISTS.items()
    ),
]


@dataclass
class Findings:
    """What a run found, each fault once."""

    faults: dict[tuple[str, str, str], str] = field(default_factory=dict)
    phases: set[str] = field(default_factory=set)
    operations: set[str] = field(default_factory=set)
    checks: int = 0

    def take(self, event: Any) -> None:
        from schemathesis.engine import events

        if isinstance(event, events.NonFatalError | events.FatalError):
            found = getattr(event, "info", None) or getattr(event, "exception", None)
            self.faults[("error", str(getattr(event, "label", "")), "")] = str(found)
        elif isinstance(event, events.ScenarioFinished):
            self.phases.add(event.phase.value)
            self.operations.add(str(event.label))
            for checks in event.recorder.checks.values():
                for check in checks:
                    self.checks += 1
                    if check.failure_info:
                        failure = check.failure_info.failure
                        key = (str(event.label), check.name, failure.title)
                        self.faults.setdefault(
                            key, f"{failure.message}\n{check.failure_info.code_sample[:1500]}"
                        )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = starter_settings(
        tmp_path_factory.mktemp("described"), admin_token=ADMIN, webhook_secret="a secret of the tests"
    )
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with served(settings) as base:
        yield base
    structlog.configure(**before)


def ask(address: str, examples: int) -> Findings:
    schemathesis = pytest.importorskip("schemathesis", reason="pip install -e '.[long]'")
    from schemathesis.config import SchemathesisConfig
    from schemathesis.engine import from_schema

    config = SchemathesisConfig.from_dict(
        {
            "base-url": address,
            "headers": {"Authorization": f"Bearer {ADMIN}"},
            "continue-on-failure": True,
            "generation": {"max-examples": examples, "deterministic": True, "database": "none"},
            "operations": OPERATIONS,
        }
    )
    found = Findings()
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json", config=config)
    for event in from_schema(schema).execute():
        found.take(event)
    return found


def assert_clean(found: Findings) -> None:
    answer = "\n\n".join(f"{' | '.join(key)}\n{text}" for key, text in found.faults.items())
    assert not found.faults, answer
    assert found.phases >= PHASES
    assert found.checks > 5000


def test_every_operation_answers_as_it_is_described(address: str) -> None:
    assert_clean(ask(address, examples=3))


def test_every_operation_answers_as_it_is_described_to_many_more_requests(address: str) -> None:
    assert_clean(ask(address, examples=200))
