"""`triage bench diagnose`: run, figures, table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from app.bench.cases import load_pinned
from app.bench.run import run
from app.bench.score import figures_of
from app.bench.table import markdown, write_between_marks
from app.store.session import Store


def bench_diagnose(
    store: Store, repo: str, *, tell: Callable[[str], None], as_json: bool = False, write: Path | None = None
) -> str:
    """Measure, put the table into `write` if one is given, and return it, or all figures as JSON.

    Raises:
        InputError: nothing of `repo` is stored, or `write` lacks its marks.
    """
    figures = figures_of(run(store, repo, load_pinned(), tell))
    if write is not None:
        write_between_marks(write, markdown(figures))
    return json.dumps(asdict(figures), indent=2) if as_json else markdown(figures)
