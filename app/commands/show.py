"""`triage status`, `digest`, `upgrade` and `bench`: the state of a database, a week or an upgrade."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from app.commands.database import DatabaseOption, current_settings, current_store
from app.errors import ConfigError, NotFoundError
from app.terminal import emit, say


def bench_diagnose(
    as_json: Annotated[bool, typer.Option("--json", help="print all figures as JSON")] = False,
    _database: DatabaseOption = None,
) -> None:
    """Measure how well logs find their issue, compared with search libraries; takes some minutes."""
    from app.bench.run import bench_diagnose as measure

    settings = current_settings()
    store = current_store(settings)
    emit(measure(store, settings.default_repo, report=say, as_json=as_json))


def status(
    _database: DatabaseOption = None,
) -> None:
    """Show running and recent syncs, freshness, cursors and counts as JSON."""
    from app.knowledge.freshness import status as ask

    settings = current_settings()
    store = current_store(settings)
    found = ask(store, settings.repo)
    models: dict[str, object] = {}
    if settings.reader_url is not None:
        from app.knowledge.freshness import reader_overview

        reader = reader_overview(store, settings.repo, settings.reader_tokens_per_day)
        models["reader"] = reader.model_dump(mode="json")
    if settings.embeddings_url is not None:
        from app.knowledge.operations.embedding import vectors_kept

        models["vectors"] = vectors_kept(store, settings.repo)
    emit(json.dumps({**found.model_dump(mode="json"), **models}, indent=2))


ConfigFormat = Literal["text", "json"]
DigestFormat = Literal["html", "markdown", "json"]


def digest(
    week: Annotated[
        str | None, typer.Option(metavar="WEEK", help="ISO week; default: the newest complete one")
    ] = None,
    repo: Annotated[
        str | None, typer.Option(metavar="OWNER/NAME", help="repository; default: the first of TRIAGE_REPO")
    ] = None,
    format_: Annotated[
        DigestFormat, typer.Option("--format", help="output format; html is suitable for e-mail")
    ] = "markdown",
    to: Annotated[
        str | None,
        typer.Option(metavar="URL", help="post the digest to this webhook: Slack, Teams, Discord or other"),
    ] = None,
    send: Annotated[bool, typer.Option("--send", help="post the digest to TRIAGE_DIGEST_URL")] = False,
    _database: DatabaseOption = None,
) -> None:
    """Print what broke, what was fixed and what to do in a week. Exit 1: no data; 2: no such week."""
    from app.knowledge.digest.digest import digest_mail, digest_markdown, make_digest
    from app.knowledge.digest.week import newest_whole_week
    from app.knowledge.iso_week import IsoWeek

    asked = IsoWeek.parse(week) if week is not None else None
    settings = current_settings()
    store = current_store(settings)
    where = repo or settings.default_repo
    chosen = asked or newest_whole_week(store, where)
    if chosen is None:
        raise NotFoundError(f"no dated issue of {where} is stored: `triage sync` or `triage import` first")
    found = make_digest(store, where, chosen)
    if send and settings.digest_url is None:
        raise ConfigError("--send: TRIAGE_DIGEST_URL is not set")
    if target := settings.digest_url.get_secret_value() if send and settings.digest_url else to:
        from app.remote.chat import post_digest

        say(f"posted week {found.week} as a message of {post_digest(found, target)}")
    elif format_ == "json":
        emit(found.model_dump_json(indent=2))
    elif format_ == "markdown":
        emit(digest_markdown(found))
    else:
        emit(digest_mail(found))


UpgradeFormat = Literal["text", "json", "markdown"]


def upgrade(
    from_: Annotated[str, typer.Option("--from", metavar="VERSION", help="release to upgrade from")],
    to: Annotated[str, typer.Option(metavar="VERSION", help="release to upgrade to")],
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="read GPU, model and arguments from this log")
    ] = None,
    gpu: Annotated[str | None, typer.Option(help="the GPU, such as H100")] = None,
    model: Annotated[str | None, typer.Option(help="the model, such as Qwen/Qwen3-8B")] = None,
    args: Annotated[str | None, typer.Option(help="options of `vllm serve`, in quotes")] = None,
    format_: Annotated[UpgradeFormat, typer.Option("--format", help="output format")] = "text",
    _database: DatabaseOption = None,
) -> None:
    """Show what an upgrade fixes and breaks, for a stack or all. Exit 0: no known objection; 3: wait."""
    from app.knowledge.stack.stack import make_stack, read_stack
    from app.knowledge.stack.upgrade import compare_versions, upgrade_markdown, upgrade_text

    stack = make_stack(None, gpu, model, args)
    if log is not None:
        from app.commands.ask import read_input
        from app.knowledge.diagnosis.log_input import clean_log, decode_log

        of_log = read_stack(clean_log(decode_log(read_input(str(log)))))
        if of_log is None:
            typer.echo("triage: the log names neither version nor GPU, model or arguments.", err=True)
        given = stack.model_dump(exclude_none=True) if stack else {}
        stack = of_log.model_copy(update=given) if of_log else stack
    settings = current_settings()
    found = compare_versions(
        current_store(settings), settings.default_repo, from_, to, stack.at(from_) if stack else None
    )
    if format_ == "json":
        emit(found.model_dump_json(indent=2))
    else:
        emit(upgrade_markdown(found) if format_ == "markdown" else upgrade_text(found))
    raise typer.Exit(3 if found.verdict == "wait" else 0)


def config(
    _database: DatabaseOption = None,
    format_: Annotated[ConfigFormat, typer.Option("--format", help="output format")] = "text",
) -> None:
    """List every setting with value and source; secrets are masked."""
    from app.config import PREFIX, SERVER_VARIABLE, Settings, server_address, setting_sources, settings_text

    values, sources = settings_text(current_settings()), setting_sources()
    rows = {
        PREFIX + name.upper(): {
            "value": value,
            "source": sources.get(name, "default"),
            "meaning": field.description,
        }
        for (name, field), value in zip(Settings.model_fields.items(), values, strict=True)
    }
    rows[SERVER_VARIABLE] = {
        "value": server_address() or "",
        "source": "environment" if server_address() else "default",
        "meaning": "the server that `diagnose`, `run`, `watch` and `comment` ask in place of a database",
    }
    if format_ == "json":
        emit(json.dumps(rows, indent=2))
        return
    for name, row in rows.items():
        emit(f"{name}={row['value']}  # {row['source']}")
