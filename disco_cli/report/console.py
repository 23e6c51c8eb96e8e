"""Where words go: data on stdout, everything for the person on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress

import typer


def say(text: str) -> None:
    """Print a message for the person as one line on stderr.

    A name from a file may hold line breaks or codes that command a terminal; they are replaced.
    Nobody has to read the messages: a command does not fail because stderr is full or closed.
    """
    with suppress(OSError):
        typer.echo(printable(text), err=True)


def printable(text: str) -> str:
    """Return a text without line breaks and control codes."""
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def say_all(lines: Iterable[str], *, quiet: bool) -> None:
    """Print messages on stderr unless ``--quiet``."""
    if not quiet:
        for line in lines:
            say(line)


def print_json(data: object) -> None:
    """Print one JSON object on one line of stdout; NaN becomes null."""
    typer.echo(json.dumps(data, ensure_ascii=False, allow_nan=False))
