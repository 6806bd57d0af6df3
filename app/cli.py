"""The entry point `triage …`: names the commands, and turns every refusal into one line and an exit code.

Data goes to stdout, everything else to stderr.
"""

import gc
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from app import __version__
from app.commands import ask, data, maintain, run, serve, show
from app.errors import TriageError
from app.terminal import emit, say

GROUPS = {
    "Answers": (
        ask.diagnose,
        run.run,
        run.watch,
        ask.report,
        show.digest,
        show.upgrade,
        ask.comment,
        ask.extract,
    ),
    "Server": (serve.up, serve.serve, serve.mcp),
    "Data": (data.sync, data.import_, data.reextract, data.read),
    "Upkeep": (
        show.status,
        maintain.doctor,
        show.config,
        serve.migrate,
        maintain.backup,
        maintain.publish,
        maintain.restore,
        maintain.copy,
        maintain.forget,
    ),
}


GARBAGE_AFTER = 50_000
"""Objects made before cycles are looked for: with Python's 700 that is a third of the time of a start."""


class _Grouped(TyperGroup):
    """Help with the commands by purpose, each with the first line of its words."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; the message about a wrong value is shown without the library's prefix."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group; for a group in a group one without more."""
        del ctx
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            words = (command.help or "").partition("\n")[0]
            sections.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append(
                (name, words)
            )
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


app = typer.Typer(
    name="triage",
    cls=_Grouped,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its frames take half a narrow terminal, and time to load
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Paste a vLLM crash log; see the known issue, what helps now, and whether a release fixes it.",
)
for panel, commands in GROUPS.items():
    for command in commands:
        own = {"allow_interspersed_args": command is not run.run}  # what stands behind CMD is the command's
        app.command(command.__name__.rstrip("_"), rich_help_panel=panel, context_settings=own)(command)

bench_app = typer.Typer(no_args_is_help=True, help="Measure this installation over its own data.")
bench_app.command("diagnose")(show.bench_diagnose)
app.add_typer(bench_app, name="bench", rich_help_panel="Upkeep")


def _version(asked: bool) -> None:
    if asked:
        emit(f"triage {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    from app.config import isolate_children

    del version
    if context.invoked_subcommand in {run.run.__name__, run.watch.__name__}:
        return  # small, at once, and with the environment as the command is to have it
    isolate_children()
    if context.invoked_subcommand != ask.diagnose.__name__:  # which logs nothing, and must start at once
        from app.terminal.events import set_up_logging

        set_up_logging()


def main() -> NoReturn:
    """Entry point: every refusal is one line on stderr and a fitting exit code."""
    gc.set_threshold(GARBAGE_AFTER)
    try:
        app()
    except TriageError as error:
        say(f"triage: {error.message}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say("stopped; what was stored stays")
        sys.exit(130)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # `… | head -1` has read what it wants
            sys.exit(0)
        raise
    finally:
        gc.freeze()  # what is left goes with the process: to look for cycles in it takes 0.1 s
    sys.exit(0)


if __name__ == "__main__":
    main()
