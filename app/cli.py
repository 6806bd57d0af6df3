"""The entry point `triage …`: names the commands, and turns every refusal into one line and an exit code.

Data goes to stdout, everything else to stderr.
"""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from app import __version__
from app.commands import ask, data, maintain, serve, show
from app.config import isolate_children
from app.errors import TriageError
from app.terminal.console import emit, say, set_up_logging

app = typer.Typer(
    name="triage",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Paste a vLLM crash log; see the known issue, what helps now, and whether a release fixes it.",
)
for command in (
    serve.up,
    serve.serve,
    serve.mcp,
    serve.migrate,
    data.sync,
    data.import_,
    ask.diagnose,
    ask.extract,
    ask.report,
    ask.comment,
    data.reextract,
    show.status,
    show.digest,
    maintain.backup,
    maintain.restore,
    maintain.copy,
    maintain.doctor,
):
    app.command(command.__name__.rstrip("_"))(command)

bench_app = typer.Typer(no_args_is_help=True, help="Measure this installation over its own data.")
bench_app.command("diagnose")(show.bench_diagnose)
app.add_typer(bench_app, name="bench")


def _version(asked: bool) -> None:
    if asked:
        emit(f"triage {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    del version


def main() -> NoReturn:
    """Entry point: every refusal is one line on stderr and a fitting exit code."""
    isolate_children()
    set_up_logging()
    try:
        app()
    except TriageError as error:
        say(f"triage: {error.message}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say("stopped; what was stored stays")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    sys.exit(0)


if __name__ == "__main__":
    main()
