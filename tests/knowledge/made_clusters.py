"""Clusters put together by hand, so that what is told of them is tested apart from how they are made."""

from __future__ import annotations

from typing import Any

from app.extract.facts import Evidence, Facts, Regression, Workaround
from app.extract.log.signature import Signature
from app.store.derived.clusters import count_reports
from app.store.derived.links import save_links
from app.store.derived.readings import Reading, save_readings
from app.store.github.issues import add_repository, save_issues
from app.store.records import LinkRecord
from app.store.session import Store
from app.store.tables import CLUSTER, CLUSTER_ALIAS, CLUSTER_MEMBER
from tests.samples import REPO, an_issue

TEXT = "ValueError | No room for the cache."
BODY = "Fails since 0.9.0. With --enforce-eager it works, but it is 20 % slower. Seen on H100."
ONE, TWO, SOLE = "s1-aaaaaaaaaaaa", "s1-bbbbbbbbbbbb", "s1-cccccccccccc"
OLD = "s1-000000000000"


def told(field: str, value: str, quote: str = BODY, source: str = "body") -> Evidence:
    return Evidence(
        field=field,
        value=value,
        quote=quote,
        source=source,
        start=0,
        end=len(quote),
        rule="t.rule",
        confidence=1,
    )


def facts_of(
    number: int,
    *,
    gpu: str = "",
    version: str = "",
    remedy: str = "",
    outcome: str = "works",
    span: Regression | None = None,
    signature: str = "",
    **more: Any,
) -> Facts:
    """Facts of a failure with the evidence that each value needs."""
    evidence = [told("gpus", gpu)] if gpu else []
    evidence += [told("versions.vllm", version)] if version else []
    evidence += [told("workarounds", remedy)] if remedy else []
    evidence += [told("regression.first_failing", span.first_failing or "")] if span else []
    return Facts(
        number=number,
        is_failure=True,
        failure_kind=more.pop("failure_kind", "crash"),
        gpus=(gpu,) if gpu else (),
        versions={"vllm": version} if version else {},
        regression=span,
        evidence=tuple(evidence),
        workarounds=tuple(
            Workaround(action=action, kind="flag", outcome=outcome, command=action)  # type: ignore[arg-type]
            for action in ([remedy] if remedy else [])
        ),
        signatures=(Signature(id=signature, text=TEXT),) if signature else (),
        **more,
    )


def put(store: Store, *records: tuple[Any, Facts], repo: str = REPO) -> int:
    """Stores issues as they were read; returns the repository's key."""
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        save_issues(session, repo_id, [issue for issue, _ in records])
        readings = [Reading(facts.number, facts) for _, facts in records]
        save_readings(session, repo_id, readings, rules_version="t")
    return repo_id


def group(
    store: Store,
    repo_id: int,
    key: str,
    canonical: int,
    *others: int,
    text: str = TEXT,
    signatures: dict[int, str] | None = None,
    old: str | None = None,
) -> None:
    """Puts issues into one cluster; `old` once named it."""
    known = signatures or {}
    with store.unit_of_work() as session:
        execute = session.connection().execute
        execute(CLUSTER.insert().values(repo_id=repo_id, id=key, canonical=canonical, text=text))
        for number in (canonical, *others):
            member = {"number": number, "cluster_id": key, "signature_id": known.get(number), "traits": {}}
            execute(CLUSTER_MEMBER.insert().values(repo_id=repo_id, **member))
        count_reports(session, repo_id, (canonical, *others))
        if old:
            execute(CLUSTER_ALIAS.insert().values(repo_id=repo_id, old_id=old, number=canonical))


def link(store: Store, repo_id: int, number: int, target: int, kind: str, **more: Any) -> None:
    record = LinkRecord(REPO, target, kind, more.pop("reason", "words alike"), **more)
    with store.unit_of_work() as session:
        save_links(session, repo_id, number, [record], kind=kind)


def report(number: int, **fields: Any) -> Any:
    """An issue with the words that the facts of `facts_of` quote."""
    return an_issue(number, **{"body": BODY, "title": f"[Bug]: no room, {number}", **fields})
