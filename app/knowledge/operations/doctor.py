"""Check an installation: database engine, schema, damage, index, freshness, settings; with advice.

The database is only read. If a finding is a fault, `triage doctor` exits with 1.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from app.config import Settings
from app.errors import ReaderError, SchemaError, StoreError
from app.extract.facts import Frozen
from app.extract.reader import RULES_VERSION
from app.extract.text.document import IssueText
from app.knowledge.freshness import STALE_AFTER, freshness, latest_runs
from app.model_reader.client import reader_client
from app.model_reader.embeddings import embedder
from app.model_reader.prompt import make_prompt
from app.model_reader.reply import parse_reply
from app.store.derived.readings import find_facts_without_evidence, stale_numbers
from app.store.engine.health import (
    LATER,
    Finding,
    a_fault,
    an_advice,
    check_derived,
    check_repository,
    engine_version,
    examine_engine,
    examine_file,
    find_damage,
)
from app.store.engine.sqlite_file import sqlite_file
from app.store.engine.sync_lock import sync_holder
from app.store.github.issues import find_repository, find_stored_repositories
from app.store.github.releases import missing_for_fixes
from app.store.people import sum_kept_logs
from app.store.schema import check_current, current_revision
from app.store.session import Store, open_store

_READABLE = (
    "let the user that runs triage read and write it and its folder; if it is damaged, "
    "`triage restore BACKUP --force`"
)
OVERDUE = timedelta(hours=3)
"""Time after expiry at which a kept log is reported; a running server deletes them hourly."""
TOKENS_MIN = 8_000
"""With a shorter context a model reads only the beginning and end of long issues."""
_SAMPLE = IssueText(
    1,
    "Server fails at start",
    "vLLM 0.9.1 stops with ValueError: no blocks left.\nWith --enforce-eager it starts.",
)
"""A sample report to test a model server with."""


class Examination(Frozen):
    """The result. `is_sound`: no finding is a fault; `looked_at`: what was examined, with figures."""

    is_sound: bool
    looked_at: tuple[str, ...]
    findings: tuple[Finding, ...]


def examine(settings: Settings) -> Examination:
    """Run all checks; a check that cannot run is itself a finding."""
    looked: list[str] = []
    findings = tuple(_findings(settings, looked))
    is_sound = all(finding.level != "fault" for finding in findings)
    return Examination(is_sound=is_sound, looked_at=tuple(looked), findings=findings)


def _findings(settings: Settings, looked: list[str]) -> Iterator[Finding]:
    if settings.github_token is None:
        fault = "there is none: GitHub allows 60 requests an hour"
        yield an_advice("TRIAGE_GITHUB_TOKEN", fault, "set one, without any scope: it allows 5,000")
    file = sqlite_file(settings.database_url)
    if file is not None and not file.exists():
        do = "`triage up` makes it; TRIAGE_DATABASE_URL names another"
        yield a_fault("database", f"there is no file {file}", do)
        return
    try:
        with closing(open_store(settings.database_url)) as store:
            yield from _examine_store(settings, store, looked)
    except StoreError as error:
        yield a_fault("database", error.message, _READABLE)
    yield from _examine_models(settings, looked)


def _examine_store(settings: Settings, store: Store, looked: list[str]) -> Iterator[Finding]:
    with store.reading() as session:
        connection = session.connection()
        looked.append(engine_version(connection))
        yield from examine_engine(connection)
        damage = find_damage(connection)
    if damage is not None:
        yield damage
        return
    try:
        check_current(store)
    except SchemaError as error:
        yield a_fault("schema", error.message, "nothing is written until then")
        return
    looked.append(f"schema {current_revision(store)}")
    with store.reading() as session:
        file = sqlite_file(settings.database_url)
        if file is not None:
            words, findings = examine_file(file, keeps_logs=sum_kept_logs(session)[0] > 0)
            looked.append(words)
            yield from findings
        looked.append("index: a sample of terms")
        yield from check_derived(session)
        for repo in settings.repo:
            yield from _examine_repository(session, store, repo, looked)
        overdue, _ = sum_kept_logs(session, expired_before=datetime.now(UTC) - OVERDUE)
    if overdue:
        yield an_advice(
            "kept logs", f"{overdue} have expired", "start the server: it deletes expired logs hourly"
        )


def _examine_repository(session: Session, store: Store, repo: str, looked: list[str]) -> Iterator[Finding]:
    repo_id = find_repository(session, repo)
    if not repo_id:
        yield an_advice(repo, "nothing of it is stored", "`triage sync` brings it")
        return
    looked.append(f"{repo}: readings, pair features, clusters, syncs")
    if stale := stale_numbers(session, repo_id, RULES_VERSION):
        read = find_facts_without_evidence(session, repo_id, stale[:100])
        if read or len(stale) < find_stored_repositories(session, [repo]).issues:
            yield an_advice(repo, f"{len(stale):,} issues are not read, or were read by older rules", LATER)
        else:
            yield a_fault(repo, f"{len(stale):,} issues are not read: no log is found to be theirs", LATER)
    yield from check_repository(session, repo_id, repo)
    if missing := missing_for_fixes(session, repo_id):
        fault = f"no {' and no '.join(missing)} are stored: which release fixes what cannot be known"
        yield an_advice(repo, fault, "`triage sync` brings them, and so does a server that syncs")
    run = next(iter(latest_runs(session, sync_holder(store.engine), repo_id)), None)
    if run is None:
        fault = "it was never synced: what is stored is the starter set, or was imported"
        yield an_advice(repo, fault, "`triage up` syncs as it serves; `triage sync` does it once")
    elif run.outcome == "failed":
        fault = f"the last sync failed: {run.fault or 'no reason was noted'}"
        yield a_fault(repo, fault, "`triage sync` tries again, and says why it cannot")
    elif run.outcome not in ("complete", "running"):
        fault = f"the last sync ended before all was stored ({run.outcome})"
        fault += f": {run.fault}" if run.fault else ""
        yield an_advice(repo, fault, "`triage sync`, or a server that syncs, goes on where it stopped")
    fresh = freshness(store, repo)
    if fresh.is_stale and fresh.as_of:
        fault = f"no sync was complete for {STALE_AFTER.total_seconds() / 3600:.0f} hours"
        yield an_advice(repo, fault, "serve with `--sync-every 15m`, or let `triage sync` run by a timer")


def _examine_models(settings: Settings, looked: list[str]) -> Iterator[Finding]:
    """Check the model servers that are configured."""
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
