"""Write `app/match/search/background.npz`: document frequencies of common terms in a full database.

    python -m app.train.background --database sqlite:///triage.db

The file contains hashes and numbers only.
"""

from pathlib import Path

import numpy as np

from app.match.search.bm25 import HASH_SHIFT, ISSUES, LEVELS_PER_OCTAVE, NAME
from app.store.derived.search_index import count_indexed, find_common
from app.store.session import open_store
from app.train.shared import make_parser

DF_MIN = 4
"""Terms with a lower document frequency are left out: unlisted terms count as rare."""
OUT = Path(__file__).parents[1] / "match" / "search" / NAME


def main() -> None:
    parser = make_parser(__doc__, database=True)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    with open_store(asked.database).reading() as session:
        size, common = count_indexed(session), find_common(session, least=DF_MIN)
    if size < ISSUES:
        raise SystemExit(f"{size} issues are stored; {ISSUES} are needed")
    halves = (np.array(list(common), dtype=np.int64) >> HASH_SHIFT).astype(np.int32)
    kept, first = np.unique(halves, return_index=True)
    counts = np.array(list(common.values()), dtype=float)[first]
    levels = np.round(np.log2(counts) * LEVELS_PER_OCTAVE).astype(np.uint8)
    np.savez_compressed(asked.out, halves=kept, levels=levels, issues=np.array(size))
    print(f"{len(kept)} terms of {size} issues, {asked.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
