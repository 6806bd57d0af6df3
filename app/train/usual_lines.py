"""Collects `app/extract/lists/usual_lines.txt` from logs of servers that did well.

    python -m app.train.usual_lines LOG…

The shapes of the lines are added to those that the list holds. Give it whole logs of starts, requests and
ends in which nothing went wrong, of every release.
"""

from pathlib import Path

from app.extract.lists import read_lines
from app.extract.log.lines import LOUD, read_numbered, shape_of
from app.extract.log.sampling import informative_lines
from app.train.inputs import make_parser

LEAST_WORDS = 2
"""A shape of fewer plain words would fit anything."""
LIST = Path(__file__).parents[1] / "extract" / "lists" / "usual_lines.txt"


def shapes_in(log: str) -> set[str]:
    """The shapes of a log's lines that are distinctive enough."""
    lines = read_numbered(informative_lines(log))
    shapes = {shape_of(line.text) for line in lines if line.level not in LOUD and 'File "' not in line.text}
    return {shape for shape in shapes if sum(word != "#" for word in shape.split()) >= LEAST_WORDS}


def main() -> None:
    """Read the logs, write the list."""
    parser = make_parser(__doc__)
    parser.add_argument("logs", nargs="+", type=Path)
    known = set(read_lines("usual_lines"))
    found = set(known)
    for path in parser.parse_args().logs:
        found |= shapes_in(path.read_text(encoding="utf-8", errors="replace"))
    LIST.write_text("".join(f"{shape}\n" for shape in sorted(found)), encoding="utf-8")
    print(f"{len(found)} shapes, {len(found - known)} of them new")


if __name__ == "__main__":
    main()
