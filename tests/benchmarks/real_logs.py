"""Packs whole logs of real servers, with their labels, into a file that the benchmark asks.

    python -m tests.benchmarks.real_logs FOLDER [--out app/bench/real_logs.jsonl.gz] [--releases 2] [--unseen]

FOLDER holds the logs, whole and as printed, and `gold.jsonl` with a line for each: `id` (the vLLM version, `-`, a
name of the failure), `file`, `vllm_version`, `error` (the message that names the cause), `also_ok` (other messages
that do), `expected` (numbers of issues that report it) and `note` (why a second reader changed them). Of a failure that several releases were made to have,
`--releases` of them are taken, drawn by the id. A log that names the machine it was made on is left out and counted.
Add logs to FOLDER and pack it again: rows of a file are not edited.
"""

from __future__ import annotations

import argparse
import getpass
import gzip
import json
import re
import socket
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.bench import cases as pinned
from app.bench.cases import RealLog, sha256_of
from app.terminal import say

MACHINE = r"(?<![\w.-])/(?:tmp|root|work)/|index-url|pypi|(?<![\w.-])(?:{home}|{user}@|{host})(?![\w-])"
"""What a log of a server must not show: working folders, registries, and whoever ran it."""


def read_folder(folder: Path, *, unseen: bool = False) -> list[RealLog]:
    """The labelled logs of a folder, by id."""
    rows = [json.loads(line) for line in (folder / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    return sorted((_a_log(folder, row, unseen) for row in rows), key=lambda log: log.id)


def _a_log(folder: Path, row: dict[str, Any], unseen: bool) -> RealLog:
    text = (folder / row["file"]).read_text(encoding="utf-8", errors="replace")
    return RealLog(
        id=row["id"],
        vllm_version=row["vllm_version"],
        error=row["error"],
        also_ok=tuple(map(str, row.get("also_ok") or ())),
        expected=tuple(row["expected"]),
        unseen=unseen,
        note=row.get("note", ""),
        log=text,
    )


def failure_of(log: RealLog) -> str:
    """The name of the failure, without the version."""
    return log.id.removeprefix(f"{log.vllm_version}-")


def choose(logs: Sequence[RealLog], releases: int) -> list[RealLog]:
    """At most so many logs of each failure, by failure, without those that name this machine."""
    own = {"home": Path.home(), "user": getpass.getuser(), "host": socket.gethostname()}
    names_machine = re.compile(MACHINE.format(**{name: re.escape(str(value)) for name, value in own.items()}))
    by_failure: dict[str, list[RealLog]] = defaultdict(list)
    for log in sorted(logs, key=lambda log: sha256_of(log.id)):
        if not names_machine.search(log.model_dump_json()):
            by_failure[failure_of(log)].append(log)
    return [log for failure in sorted(by_failure) for log in by_failure[failure][:releases]]


def pack(logs: Sequence[RealLog]) -> bytes:
    """One JSON line for each log, compressed; the same logs give the same bytes."""
    lines = "".join(log.model_dump_json(exclude_defaults=True) + "\n" for log in logs)
    return gzip.compress(lines.encode(), 9, mtime=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path(pinned.__file__).with_name("real_logs.jsonl.gz"))
    parser.add_argument("--releases", type=int, default=2)
    parser.add_argument("--unseen", action="store_true", help="no rule was chosen by these logs")
    asked = parser.parse_args()
    logs = read_folder(asked.folder, unseen=asked.unseen)
    chosen = choose(logs, asked.releases)
    packed = pack(chosen)
    asked.out.write_bytes(packed)
    by_version = Counter(log.vllm_version for log in chosen)
    say(f"{len(chosen)} of {len(logs)} logs in {len(packed):,} bytes: {dict(sorted(by_version.items()))}")
    say(f"{len(logs) - len(choose(logs, len(logs)))} left out, for they name this machine")
    say(f"{sum(bool(log.expected) for log in chosen)} with reports that are known")


if __name__ == "__main__":
    main()
