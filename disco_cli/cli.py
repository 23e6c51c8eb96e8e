"""The command line. A command's module is imported when that command is asked for."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from disco_cli import __version__
from disco_cli.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, EXIT_OK, DiscoError
from disco_cli.report.console import free_terminal, put, say

COMMANDS = {
    "score": "score",
    "select": "select",
    "build-db": "build_db",
    "predict": "predict",
    "plan": "plan",
    "info": "info",
    "backtest": "backtest",
    "import": "import_logs",
    "export": "export",
}
"""Name of each command and the module of :mod:`disco_cli.commands` that holds it."""


class DiscoGroup(TyperGroup):
    """The commands, made when they are asked for; errors become one line and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature of the base
        """Return the names in the order in which they are used."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return a command, ``None`` if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"disco_cli.commands.{COMMANDS[cmd_name]}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the command and turn the errors that a user can mend into exit codes."""
        try:
            try:
                result = super().invoke(ctx)
            finally:
                free_terminal()
            sys.stdout.flush()
        except DiscoError as error:
            for message in error.messages:
                say(f"error: {' '.join(message.split())}")
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:
            _discard_output()  # the reader (head, less) has seen enough
            raise typer.Exit(EXIT_OK) from None
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        return result


app = typer.Typer(
    cls=DiscoGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Estimate what a model would score on a whole benchmark from about 1 % of its samples.

    \b
    disco select --k 100 preds/*.npz
    disco build-db preds/*.npz
    disco predict new_model.npz
    """,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        put(f"disco {__version__}")
        raise typer.Exit


@app.callback()
def common(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Hold the options of the program itself."""


def main() -> None:
    """Run the command line, and say in one line where its results could not be written."""
    _replace_closed_streams()
    _spell_out_what_cannot_be_encoded()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # a full disk shows here at the latest
    except BrokenPipeError:
        _discard_output()
        sys.exit(EXIT_OK)
    except (OSError, MemoryError) as error:
        _discard_output()
        say(f"error: {_reason(error)}")
        sys.exit(EXIT_BAD_INPUT)


def _replace_closed_streams() -> None:
    """Let a command run where stderr is closed, and fail where a closed stdout would lose data.

    Both numbers are taken by a device, or the next file that is opened would receive the output.
    """
    if sys.stdout is None:
        unwritable = os.open(os.devnull, os.O_RDONLY)
        sys.stdout = open(unwritable, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _spell_out_what_cannot_be_encoded() -> None:
    """Let no name of a file or model end the program, in whatever encoding the streams are."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Keep the interpreter from complaining when it flushes what cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(error: OSError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    where = error.filename or "standard output: cannot be written"
    return f"{where}: {(error.strerror or str(error)).lower()}"
