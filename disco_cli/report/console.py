"""Where words go: data on stdout, everything for the person on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterable

import typer


def say(text: str) -> None:
    """Print a message for the person, on stderr."""
    typer.echo(text, err=True)


def say_all(lines: Iterable[str], *, quiet: bool) -> None:
    """Print messages on stderr unless ``--quiet``."""
    if not quiet:
        for line in lines:
            say(line)


def print_json(data: object) -> None:
    """Print one JSON object on one line of stdout; NaN becomes null."""
    typer.echo(json.dumps(data, ensure_ascii=False, allow_nan=False))
