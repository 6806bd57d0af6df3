"""Extend `app/extract/lists/usual_lines.txt` from logs of healthy servers.

    python -m app.train.usual_lines LOG…

The shapes of the lines are added to the list. Pass complete logs without failures, from start-up through
requests to shutdown, of every release.
"""

from pathlib import Path

from app.extract.lists import read_lines
from app.extract.log.lines import LOUD, read_numbered, shape_of
from app.extract.log.sampling import informative_lines
from app.train.shared import make_parser

PLAIN_WORDS_MIN = 2
"""Minimum number of plain words in a shape; others would match anything."""
LIST = Path(__file__).parents[1] / "extract" / "lists" / "usual_lines.txt"


def shapes_in(log: str) -> set[str]:
    """Return the sufficiently distinctive shapes of a log's lines."""
    lines = read_numbered(informative_lines(log))
    shapes = {shape_of(line.text) for line in lines if line.level not in LOUD and 'File "' not in line.text}
    return {shape for shape in shapes if sum(word != "#" for word in shape.split()) >= PLAIN_WORDS_MIN}


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
