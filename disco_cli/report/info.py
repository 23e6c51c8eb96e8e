"""Rendering of ``disco info``."""

from __future__ import annotations

from disco_cli.report.console import put_json, say_all
from disco_cli.report.tables import print_rows
from disco_cli.workflows.info import InfoResult


def show(result: InfoResult, *, as_json: bool) -> None:
    """Print the facts, one per line."""
    if as_json:
        put_json(result.as_dict())
        return
    say_all(result.notes, quiet=False)
    print_rows((result.what, result.path), list(result.facts.items()))
