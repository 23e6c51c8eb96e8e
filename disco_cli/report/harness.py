"""Rendering of ``disco import`` and ``disco export``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from disco_cli.harness.export import Target
from disco_cli.harness.imported import ImportedTable
from disco_cli.report.console import as_valid_json, put, put_json, say_all
from disco_cli.workflows.export import ExportResult
from disco_cli.workflows.import_logs import ImportResult

_FEW = 3
"""So many models of a task have a line of their own."""

_MOST_TOLD = 10
"""So many notes on single models are printed."""


def show_import(result: ImportResult, *, as_json: bool, quiet: bool) -> None:
    """Print the path of each prediction file; what was found, on stderr."""
    say_all([*result.notes, *_notes(result), *_found(result)], quiet=quiet)
    if as_json:
        for row in result.as_dicts():
            put_json(row)
        return
    for path in result.paths:
        put(path)


def _notes(result: ImportResult) -> list[str]:
    """Return what concerns single models, the first few where there is much of it."""
    notes = [note for table in result.tables for note in table.notes]
    if len(notes) <= _MOST_TOLD:
        return notes
    return [*notes[:_MOST_TOLD], f"… and {len(notes) - _MOST_TOLD} more notes; --json has all"]


def _found(result: ImportResult) -> list[str]:
    """Return a line for each task, or for each model where there are few of them."""
    tasks: dict[tuple[str, str | None], list[ImportedTable]] = {}
    for table in result.tables:
        tasks.setdefault((table.task, table.metric), []).append(table)
    lines = []
    for tables in tasks.values():
        few = len(tables) <= _FEW
        lines += [_line([table]) for table in tables] if few else [_line(tables)]
    return lines


def _line(tables: Sequence[ImportedTable]) -> str:
    first = tables[0]
    who = first.model if len(tables) == 1 else f"{len(tables)} models"
    n = _range([table.n for table in tables])
    n_parts = sum(not table.complete for table in tables)
    parts = "" if not n_parts else " (a part of the benchmark)"
    if n_parts and len(tables) > 1:
        parts = f" ({n_parts} models: a part of the benchmark)"
    means = [table.mean for table in tables if table.mean is not None]
    what = f"mean {first.metric} {_range(means)}" if means else "no metric"
    return f"{first.task}, {who}: {n} samples{parts}, {what}"


def _range(numbers: Sequence[float]) -> str:
    low, high = f"{min(numbers):.6g}", f"{max(numbers):.6g}"
    return low if low == high else f"{low} … {high}"


def show_export(result: ExportResult, *, as_json: bool, quiet: bool) -> None:
    """Print the text, or the path it was written to; how to go on, on stderr."""
    exported = result.exported
    lines = [f"note: {warning}" for warning in exported.warnings]
    if exported.command is not None:
        lines.append(f"next: {exported.command}")
    say_all(lines, quiet=quiet)
    if as_json:
        put_json(result.as_dict())
    elif result.path is None:
        text = exported.text
        if result.to is Target.JSONL:
            text = as_valid_json(text, sys.stdout.encoding)
        put(text, end="")
    else:
        put(result.path)
