"""Rendering of ``disco info``."""

from __future__ import annotations

from typing import Any

from disco_cli.report.console import put_json, say_all
from disco_cli.report.tables import print_rows
from disco_cli.workflows.info import InfoResult

_SHOWN = 3
"""So many names of a list are shown; JSON has all."""


def show(result: InfoResult, *, as_json: bool, quiet: bool) -> None:
    """Print the facts, one per line, under the names that they have in JSON."""
    say_all(result.notes, quiet=quiet)
    if as_json:
        put_json(result.as_dict())
        return
    rows = [row for name, value in result.facts.items() for row in _rows(name, value)]
    print_rows((result.what, result.path), rows)


def _rows(name: str, value: Any) -> list[tuple[str, Any]]:
    if name == "errors":
        return [(f"error of {error['name']}", error["mae"]) for error in value]
    if isinstance(value, dict):
        return [(name, ", ".join(f"{key} {number}" for key, number in value.items()))]
    return [(name, _some(value) if isinstance(value, list) else value)]


def _some(names: list[Any]) -> str | None:
    """Return the first names of a list and how many there are."""
    if not names:
        return None
    shown = ", ".join(map(str, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown}, … ({len(names)})"
