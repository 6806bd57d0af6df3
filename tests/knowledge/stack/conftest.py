"""Failures of our own making, as the advisor sees them."""

from __future__ import annotations

from typing import Any

from app.extract.facts import ErrorFact, Facts, Regression
from app.extract.versions import Version
from app.knowledge.fix.shapes import FixTruth, FixView, Held
from app.knowledge.stack.standing import FailureCase

SPAN = Regression(last_working="0.20.0", first_failing="0.21.0")
OPEN = FixTruth(FixView(state="not_fixed"))
FIXED = FixTruth(
    FixView(state="fixed", pr="#9", released_in="0.21.0"),
    Held(full=(Version("0.21.0"),), released=tuple(map(Version, ("0.20.0", "0.21.0", "0.22.0")))),
)


PLAIN = ErrorFact(type="KeyError", message="'name'")


def case(title: str = "It fails", version: str | None = "0.21.0", **fields: Any) -> FailureCase:
    facts = Facts(
        number=1,
        is_failure=True,
        versions={"vllm": version} if version else {},
        gpus=fields.pop("gpus", ()),
        models=fields.pop("models", ()),
        regression=fields.pop("span", None),
        workarounds=fields.pop("workarounds", ()),
        error=fields.pop("error", PLAIN),
        failure_kind=fields.pop("kind", "exception"),
    )
    given: dict[str, Any] = {"facts": facts, "truth": OPEN, "state": "open", "title": title, **fields}
    return FailureCase(**given)
