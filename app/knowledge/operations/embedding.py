"""Compute embedding vectors of stored issues (title and root cause) with the operator's embeddings server.

Issues are processed newest first and each batch is stored at once, so a run can be stopped at any time. An
unchanged text is not sent again, whatever else changed in its issue.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from app.errors import NotFoundError
from app.extract.facts import Facts
from app.model_reader.embeddings import TEXTS_MAX, Embedder
from app.store.derived.model_outputs import (
    IssueVector,
    count_vectors,
    find_digests,
    note_same,
    save_vectors,
    unembedded_numbers,
)
from app.store.derived.readings import find_facts_without_evidence
from app.store.github.issues import find_heads, find_repository
from app.store.records import Progress, Report, quiet
from app.store.session import Store

BATCH = 10 * TEXTS_MAX


@dataclass(frozen=True, slots=True)
class Embedded:
    """The result of a run: number of vectors made, and of issues with an unchanged text."""

    model: str
    made: int = 0
    same: int = 0

    @property
    def is_news(self) -> bool:
        return self.made > 0

    @property
    def words(self) -> str:
        """A one-line summary of the run."""
        return f"{self.model} made vectors of {self.made:,} issues; {self.same:,} had theirs"


def embedded_text(title: str, facts: Facts | None) -> str:
    """Return the text to embed."""
    cause = facts.error.line if facts is not None and facts.error is not None else ""
    return f"{title}\n{cause}".strip()


def embed_issues(
    store: Store,
    repo: str,
    client: Embedder,
    *,
    limit: int | None = None,
    report: Report = quiet,
) -> Embedded:
    """Make the vectors that are missing or belong to another model or text.

    Raises:
        NotFoundError: nothing of the repository is stored.
        ReaderError: the server failed; batches stored before are kept.
    """
    model = client.served_model()
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if not repo_id:
            raise NotFoundError(f"nothing of {repo} is stored")
        waiting = unembedded_numbers(session, repo_id, model.identity)[:limit]
    made = same = 0
    for start in range(0, len(waiting), BATCH):
        batch = waiting[start : start + BATCH]
        texts, unchanged = _changed_texts(store, repo_id, batch, model.identity)
        numbers = list(texts)
        vectors: list[IssueVector] = []
        for at in range(0, len(numbers), TEXTS_MAX):
            part = numbers[at : at + TEXTS_MAX]
            answers = client.embed(model, [texts[number] for number in part])
            vectors += [
                IssueVector(number, _digest(texts[number]), vector)
                for number, vector in zip(part, answers, strict=True)
            ]
        with store.unit_of_work(changes="content" if vectors else None) as session:
            save_vectors(session, repo_id, model.identity, vectors)
            note_same(session, repo_id, unchanged)
        made, same = made + len(vectors), same + len(unchanged)
        report(Progress("embedding", made + same, len(waiting)))
    return Embedded(model.identity, made, same)


def vectors_kept(store: Store, repos: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count the stored vectors by repository and model."""
    with store.reading() as session:
        known = {repo: find_repository(session, repo) for repo in repos}
        return {repo: dict(count_vectors(session, key)) for repo, key in known.items() if key}


def _changed_texts(
    store: Store, repo_id: int, numbers: list[int], model: str
) -> tuple[dict[int, str], list[int]]:
    """Return the texts without a vector of this model, and the issues whose text has one."""
    with store.reading() as session:
        facts = find_facts_without_evidence(session, repo_id, numbers)
        heads = find_heads(session, repo_id, numbers)
        digests = find_digests(session, repo_id, numbers, model)
    texts = {issue.number: embedded_text(issue.title, facts.get(issue.number)) for issue in heads}
    same = [number for number, text in texts.items() if digests.get(number) == _digest(text)]
    return {number: text for number, text in texts.items() if number not in set(same) and text}, same


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
