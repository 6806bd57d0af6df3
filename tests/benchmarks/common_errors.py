"""How often `common` is right: logs below *likely*, known and unseen, with and without an issue of their own.

    TRIAGE_DATABASE_URL=… python -m tests.benchmarks.common_errors

`fresh`: logs that were labelled before anything was asked of them. By those that are not `unseen` mechanisms were
sought afterwards.
Prints for each set of whole real logs how many of those with a known failure get a `common` whose issues include
a right one, and how many of those that nobody reported get one at all.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

from app.bench.cases import RealLog, load_pinned
from app.config import load_settings
from app.knowledge.diagnosis.diagnose import diagnose
from app.store.session import open_store
from tests.benchmarks.full_sync import SHARED
from tests.benchmarks.real_logs import read_folder

FRESH = Path(__file__).with_name("fresh_logs.jsonl.gz")


def _fresh() -> list[RealLog]:
    with gzip.open(FRESH, "rt", encoding="utf-8") as lines:
        return [RealLog.model_validate_json(line) for line in lines]


def main() -> None:
    """Ask every log and print the table."""
    settings = load_settings()
    store = open_store(settings.database_url)
    pinned, fresh = load_pinned(), _fresh()
    sets: dict[str, list[RealLog]] = {
        "real": [log for log in pinned.real_logs if not log.unseen],
        "unseen": [log for log in pinned.real_logs if log.unseen],
        "fresh": [log for log in fresh if not log.unseen],
        "fresh, unseen": [log for log in fresh if log.unseen],
        "eval": [*read_folder(SHARED / "eval/real_logs"), *read_folder(SHARED / "eval/gpu_logs")],
    }
    print(
        "| logs | known, below likely | with a right common | nobody reported | with one |\n|---|---|---|---|---|"
    )
    for name, logs in sets.items():
        counts: Counter[str] = Counter()
        for log in logs:
            found = diagnose(store, log.log, repos=settings.repo)
            if found.verdict in {"same", "likely"}:
                continue
            kind = "known" if log.expected else "nobody"
            counts[kind] += 1
            named = {issue.number for issue in found.common.issues} if found.common else set()
            counts[f"{kind}, answered"] += bool(named & set(log.expected)) if log.expected else bool(named)
        row = (counts[key] for key in ("known", "known, answered", "nobody", "nobody, answered"))
        print(f"| {name} | {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main()
