"""What the archive's tests share: a base with a row in nearly every table."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from app.knowledge.indexing.derive import derive_issues
from app.store.backup.copy import tables_in
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.github.releases import save_releases
from app.store.github.sync_state import add_delivery, begin_run, end_run, save_cursor
from app.store.people import KeptLogRecord, add_kept_log, save_judgement
from app.store.session import Store
from tests.samples import (
    REPO,
    a_comment,
    a_pull,
    a_release,
    allreduce_log,
    an_issue,
    fenced,
    marlin_log,
    rope_log,
)

NOW = datetime(2026, 6, 3, 6, 0, 0, 123456, tzinfo=UTC)
RAW = {"b": 1, "a": [1.0, 2.5, 1e3, -0.0, None, True], "ü": "„x“ \U0001f600", "n": 2**62}


def fill(store: Store, issues: int = 3) -> int:
    """Store and read some issues with all that hangs on them; the repository's key."""
    logs = (marlin_log(), rope_log(), allreduce_log())
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        records = [
            an_issue(number, body=fenced("See the log.", logs[number % 3]), raw={**RAW, "number": number})
            for number in range(11, 11 + issues)
        ]
        save_issues(session, repo_id, [*records, a_pull(900, merged_at=NOW)])
        save_comments(session, repo_id, [a_comment(77, 11, "Same here.")])
        save_releases(session, repo_id, [a_release("v0.9.1", 900)])
        derive_issues(session, repo_id, REPO, [*(record.number for record in records), 900])
        save_judgement(session, repo_id, 11, 12, "different", "other models")
        add_delivery(session, "one", "issues")
        add_kept_log(
            session,
            KeptLogRecord(
                "0" * 32, "k" * 64, "a log", {"diagnosis": 1.0}, NOW, datetime.now(UTC) + timedelta(days=3)
            ),
        )
        save_cursor(session, repo_id, "issues", {"since": "2026-06-01T00:00:00Z"})
        run = begin_run(session, repo_id)
        end_run(session, run, outcome="complete", stored=issues)
    return repo_id


def contents(store: Store) -> dict[str, list[str]]:
    """The rows of every table, alike on both engines and in an order of their own."""
    with store.reading() as session:
        connection = session.connection()
        return {
            table.name: sorted(
                json.dumps(_plain(dict(row)), sort_keys=True, default=str)
                for row in connection.execute(select(table)).mappings()
            )
            for table in tables_in(connection)
        }


def _plain(value: object) -> object:
    """JSON as both engines agree on it: 1.0 is the same as 1."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
