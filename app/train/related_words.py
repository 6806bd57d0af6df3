"""Writes `app/match/search/related_words.json`: forms of words, and other words for the same.

    python -m app.train.related_words --database sqlite:///triage.db

Two words say the same if the texts below titles that hold the one are like those below titles that hold the
other: "garbled" and "gibberish" both stand over talk of characters and output. So the words of titles are
counted with those of their issues' texts, weighed by positive pointwise mutual information, brought to
`DIMENSIONS` by a singular value decomposition, and compared by the cosine (Levy, Goldberg and Dagan 2015).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.match.pairs.features import own_text
from app.match.search.question_search import NAME
from app.match.search.terms import bare_title, stemmed_words
from app.store.github.issues import each_issue, find_repository
from app.store.session import Store, open_store
from app.train.inputs import make_parser, write_json

TITLES_LEAST = 5
"""A word of fewer titles has no company to be known by."""
COMMON_SHARE = 0.25
"""A word of more texts says nothing of a title."""
MET_LEAST = 2
DIMENSIONS = 150
NEAR_LEAST = 0.45
RELATED_MAX, FORMS_MAX = 8, 4
TEXT_CHARS = 5_000
OUT = Path(__file__).parents[1] / "match" / "search" / NAME


def read_words(store: Store, repo: str) -> tuple[list[set[str]], list[set[str]], dict[str, Counter[str]]]:
    """For each issue the stems of its title and of its text; and the words that each stem is of."""
    titles: list[set[str]] = []
    texts: list[set[str]] = []
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    with store.reading() as session:
        for issue in each_issue(session, find_repository(session, repo)):
            text = own_text(read_document(IssueText(issue.number, issue.title, issue.body)))
            words = list(stemmed_words(f"{bare_title(issue.title)} {text[:TEXT_CHARS]}"))
            titles.append({stem for stem, _ in stemmed_words(bare_title(issue.title)) if stem.isalpha()})
            texts.append({stem for stem, _ in words if stem.isalpha()})
            for stem, word in set(words):
                forms[stem][word] += 1
    return titles, texts, forms


def _table(rows: Iterable[set[str]], columns: dict[str, int]) -> csr_matrix:
    """One row for each text, 1 for each of its words."""
    at = [(row, columns[word]) for row, words in enumerate(rows) for word in words & columns.keys()]
    places = np.array(at, dtype=np.int64).T
    return csr_matrix((np.ones(len(at)), places), shape=(places[0].max() + 1, len(columns)))


def find_related(titles: list[set[str]], texts: list[set[str]]) -> dict[str, dict[str, float]]:
    """For each word of enough titles the words nearest to it, with the cosine."""
    in_titles = Counter(word for words in titles for word in words)
    in_texts = Counter(word for words in texts for word in words)
    words = sorted(word for word, count in in_titles.items() if count >= TITLES_LEAST and len(word) > 2)
    columns = {word: at for at, word in enumerate(words)}
    rare = [word for word in words if in_texts[word] < COMMON_SHARE * len(texts)]
    around = {word: at for at, word in enumerate(rare)}
    met = (_table(titles, columns).T @ _table(texts, around)).tocoo()
    kept = met.data >= MET_LEAST
    row, column, count = met.row[kept], met.col[kept], met.data[kept]
    expected = (
        np.array([in_titles[word] for word in words])[row]
        * np.array([in_texts[word] for word in rare])[column]
    )
    information = np.maximum(np.log(count * len(texts) / expected), 0.0)
    vectors, strengths, _ = svds(
        csr_matrix((information, (row, column)), shape=met.shape), k=DIMENSIONS, v0=np.ones(min(met.shape))
    )
    vectors = vectors * np.sqrt(strengths)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9
    near = vectors @ vectors.T
    np.fill_diagonal(near, 0.0)
    return {
        word: {
            words[other]: round(float(near[at, other]), 2)
            for other in np.argsort(-near[at])[:RELATED_MAX]
            if near[at, other] >= NEAR_LEAST
        }
        for at, word in enumerate(words)
    }


def main() -> None:
    """Learn and write."""
    parser = make_parser(__doc__, database=True)
    parser.add_argument("--repo", default="vllm-project/vllm")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    titles, texts, forms = read_words(open_store(asked.database), asked.repo)
    related = find_related(titles, texts)
    data = {
        "forms": {stem: " ".join(word for word, _ in forms[stem].most_common(FORMS_MAX)) for stem in related},
        "related": {
            stem: " ".join(f"{other}:{round(100 * near)}" for other, near in row.items())
            for stem, row in related.items()
            if row
        },
    }
    write_json(asked.out, data, indent=0)
    print(f"{len(data['related'])} words of {len(titles)} issues, {asked.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
