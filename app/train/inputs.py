"""Shared by the training commands: argument parser, JSON Lines input, JSON output."""

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def make_parser(doc: str | None, *, database: bool = False) -> argparse.ArgumentParser:
    """Create a parser with the module's docstring as help; `database` adds a required `--database`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if database:
        parser.add_argument("--database", required=True)
    return parser


def read_rows(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON Lines files, gzipped if they end with `.gz`."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open() as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def write_json(path: Path, data: Any, indent: int = 2) -> None:
    path.write_text(json.dumps(data, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")
