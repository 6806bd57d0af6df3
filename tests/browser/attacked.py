"""A base in which every text that a visitor elsewhere could write is an attack."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.config import Settings
from app.extract.facts import Cause, ErrorFact, Facts, Regression
from app.store.github.issues import save_comments
from app.store.records import IssueRecord
from app.store.session import open_store
from tests.browser.base import put_read
from tests.knowledge.made_clusters import facts_of, group, put, told
from tests.samples import a_comment, an_issue
from tests.served import starter_settings
from tests.web.attacks import MARKUP, NESTINGS

TOLD, READ, NESTED = 70001, 72001, 74001
"""The first number of those with facts made of the attack, of those that are read by the rules, of the nestings."""
WEEK, MONDAY = "2026-W30", datetime(2026, 7, 20, tzinfo=UTC)
"""Later than the starter set, so that the first page and the feed tell of them."""
TITLE_MAX = 256
"""Longest title that GitHub takes, in characters."""
BODY_MAX = 65_536
"""Longest text that GitHub takes, in characters."""


def attacked_settings(folder: Path) -> Settings:
    """Settings over a SQLite file with the attacks, each as title, text, comment, label, author and facts."""
    settings = starter_settings(folder, rate_limit="off", github_api_url="http://127.0.0.1:9")
    store = open_store(settings.database_url)
    put_read(store, [an_issue(1, title="A question", created_at=MONDAY + timedelta(days=8))], [])
    for at, text in enumerate(MARKUP.values()):
        number = TOLD + at
        repo_id = put(store, (_issue(number, text), _facts(number, text)))
        with store.unit_of_work() as session:
            save_comments(session, repo_id, [a_comment(number, number, text, author=text[:60])])
        group(store, repo_id, cluster_of(number), number, text=text[:300])
    read = [
        _issue(READ + at, f"Fails on H100 with `--enforce-eager`. {text}")
        for at, text in enumerate(MARKUP.values())
    ]
    put_read(
        store,
        read,
        [a_comment(issue.number, issue.number, f"It works with `-x`. {issue.body}") for issue in read],
    )
    for at, text in enumerate(NESTINGS.values()):
        repo_id = put(
            store,
            (
                an_issue(NESTED + at, body=text, title=text[:TITLE_MAX], created_at=MONDAY),
                facts_of(NESTED + at),
            ),
        )
    store.close()
    return settings


def cluster_of(number: int) -> str:
    """The id of the cluster of an issue with made facts."""
    return f"s1-{number:012x}"


def _issue(number: int, text: str) -> IssueRecord:
    moment = MONDAY + timedelta(days=1, minutes=(TOLD - number) % 1000)
    return an_issue(
        number,
        title=text[:TITLE_MAX],
        body=text[:BODY_MAX],
        author=text[:60],
        labels=(text[:50], "bug"),
        comments=1,
        created_at=moment,
        updated_at=moment,
    )


def _facts(number: int, text: str) -> Facts:
    short = text[:200]
    facts = facts_of(
        number,
        gpu=short,
        version=text[:40],
        remedy=short,
        error=ErrorFact(type=text[:40], message=short, frame=text[:60], wrappers=(short,), other=(short,)),
        cause=(Cause(text=short, certainty="hypothesis"),),
        summary=short,
        models=(short,),
        span=Regression(last_working=text[:40], first_failing=text[:40], culprit="#1"),
        environment={text[:30]: text[:60]},
    )
    return facts.model_copy(
        update={"evidence": (*facts.evidence, told("workarounds", short, short, f"comment:{number}"))}
    )
