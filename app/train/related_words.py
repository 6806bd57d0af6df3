"""Write `app/match/search/related_words.json`: word forms and related words.

    python -m app.train.related_words --database sqlite:///triage.db

Two words are related if titles with them have similar bodies: "garbled" and "gibberish" both occur above
bodies about characters and output. Co-occurrences of title words and body words are weighted by positive
pointwise mutual information, reduced to `DIMENSIONS` by a singular value decomposition, and compared by
cosine similarity (Levy, Goldberg and Dagan 2015).
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
"""Minimum number of titles with a word; others have too few co-occurrences."""
COMMON_SHARE = 0.25
"""Maximum share of bodies with a context word; others are uninformative."""
COUNT_MIN = 2
DIMENSIONS = 150
COSINE_MIN = 0.45
RELATED_MAX, FORMS_MAX = 8, 4
TEXT_CHARS = 5_000
OUT = Path(__file__).parents[1] / "match" / "search" / NAME


def read_words(store: Store, repo: str) -> tuple[list[set[str]], list[set[str]], dict[str, Counter[str]]]:
    """Return the stems of each issue's title, those of its text, and the word forms of each stem."""
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


def _incidence(rows: Iterable[set[str]], columns: dict[str, int]) -> csr_matrix:
    at = [(row, columns[word]) for row, words in enumerate(rows) for word in words & columns.keys()]
    places = np.array(at, dtype=np.int64).T
    return csr_matrix((np.ones(len(at)), places), shape=(places[0].max() + 1, len(columns)))


def find_related(titles: list[set[str]], texts: list[set[str]]) -> dict[str, dict[str, float]]:
    """Return the nearest words of each word in enough titles, with their cosine similarity."""
    in_titles = Counter(word for words in titles for word in words)
    in_texts = Counter(word for words in texts for word in words)
    words = sorted(word for word, count in in_titles.items() if count >= TITLES_LEAST and len(word) > 2)
    columns = {word: at for at, word in enumerate(words)}
    rare = [word for word in words if in_texts[word] < COMMON_SHARE * len(texts)]
    around = {word: at for at, word in enumerate(rare)}
    met = (_incidence(titles, columns).T @ _incidence(texts, around)).tocoo()
    kept = met.data >= COUNT_MIN
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
            if near[at, other] >= COSINE_MIN
        }
        for at, word in enumerate(words)
    }


def main() -> None:
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
