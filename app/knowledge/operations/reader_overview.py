"""How far the reading by a language model is, for status and metrics; and whether its servers are of use.

For the first no server is asked; for the second each is tried with a text of our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from app.config import Settings
from app.errors import ReaderError
from app.extract.facts import Frozen
from app.extract.text.document import IssueText
from app.model_reader.client import reader_client
from app.model_reader.embeddings import embedder
from app.model_reader.prompt import make_prompt
from app.model_reader.reply import parse_reply, prompt_version
from app.store.derived.model_replies import count_replies, last_model, tokens_today, unread_numbers
from app.store.engine.health import Finding, a_fault, an_advice
from app.store.github.issues import find_repository
from app.store.session import Store


class ReaderStatus(Frozen):
    """One repository's. `waiting`: issues that the model named last has not read as they are now."""

    model: str | None
    outcomes: dict[str, int]
    waiting: int
    values_kept: int
    values_dropped: int
    tokens: int


class ReaderOverview(Frozen):
    """All that is known of the model reader without asking its server."""

    tokens_today: int
    tokens_per_day: int
    repositories: dict[str, ReaderStatus]


def reader_overview(store: Store, repos: Sequence[str], tokens_per_day: int) -> ReaderOverview:
    """How far it is with these repositories."""
    found: dict[str, ReaderStatus] = {}
    with store.reading() as session:
        used = tokens_today(session)
        for repo in repos:
            repo_id = find_repository(session, repo)
            if repo_id is None:
                continue
            counts, model = count_replies(session, repo_id), last_model(session, repo_id)
            found[repo] = ReaderStatus(
                model=model,
                outcomes=dict(counts.outcomes),
                waiting=len(unread_numbers(session, repo_id, model or "", prompt_version())),
                values_kept=counts.kept,
                values_dropped=counts.dropped,
                tokens=counts.tokens,
            )
    return ReaderOverview(tokens_today=used, tokens_per_day=tokens_per_day, repositories=found)


TOKENS_MIN = 8_000
"""A model with a shorter context reads the beginnings and ends of long issues only."""
_SAMPLE = IssueText(
    1,
    "Server fails at start",
    "vLLM 0.9.1 stops with ValueError: no blocks left.\nWith --enforce-eager it starts.",
)
"""A report of our own, to try a server with."""


def examine_models(settings: Settings, looked: list[str]) -> Iterator[Finding]:
    """What is wrong with the configured servers of models; nothing of one that is not configured."""
    servers = (
        ("TRIAGE_READER_URL", settings.reader_url, _examine_reader),
        ("TRIAGE_EMBEDDINGS_URL", settings.embeddings_url, _examine_embeddings),
    )
    for variable, url, examine in servers:
        try:
            yield from examine(settings, looked) if url is not None else ()
        except ReaderError as error:
            do = "start the server, or unset it: nothing else needs it"
            yield a_fault(variable, error.message, do)


def _examine_embeddings(settings: Settings, looked: list[str]) -> Iterable[Finding]:
    looked.append("embeddings: their server makes a vector")
    with embedder(settings, attempts=1) as client:
        model = client.served_model()
        looked[-1] += f": {model.identity}, {len(client.embed(model, [_SAMPLE.title])[0])} values"
    return ()


def _examine_reader(settings: Settings, looked: list[str]) -> Iterator[Finding]:
    looked.append("model reader: its server reads a sample")
    with reader_client(settings, attempts=1) as client:
        model = client.served_model()
        answer = client.ask(model, make_prompt(_SAMPLE).content)
    looked[-1] += f": {model.identity}"
    if answer.kind == "refused":
        do = "it must support response_format json_schema, as vLLM does"
        yield a_fault("TRIAGE_READER_URL", f"the server refuses to read: {answer.text}", do)
    elif answer.kind == "cut":
        do = "a model that reads well needs some 400 tokens: serve another one, or one that does not reason"
        yield an_advice("TRIAGE_READER_MODEL", "its reply was cut", do)
    elif parse_reply(answer.text) is None:
        do = "serve it with guided decoding (structured outputs), which vLLM has on by default"
        yield a_fault("TRIAGE_READER_MODEL", "its reply does not follow the schema", do)
    if model.tokens_max is not None and model.tokens_max < TOKENS_MIN:
        fault = f"its context is {model.tokens_max:,} tokens: of long issues only parts are read"
        yield an_advice("TRIAGE_READER_MODEL", fault, "serve it with a --max-model-len of 32768")
