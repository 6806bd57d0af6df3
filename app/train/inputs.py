"""What the commands that learn have in common: how they are called, files of JSON lines."""

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def make_parser(doc: str | None, *, database: bool = False) -> argparse.ArgumentParser:
    """A parser whose help is the module's own text; with `database` it needs the address of one."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if database:
        parser.add_argument("--database", required=True)
    return parser


def read_rows(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """The JSON objects of files, one a line; packed ones end with `.gz`."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open() as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def write_json(path: Path, data: Any, indent: int = 2) -> None:
    """Write what was learned."""
    path.write_text(json.dumps(data, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")
