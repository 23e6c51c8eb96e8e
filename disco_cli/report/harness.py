"""Rendering of ``disco import`` and ``disco export``."""

from __future__ import annotations

import sys

from disco_cli.harness.export import Target
from disco_cli.report.console import as_valid_json, put, put_json, say_all
from disco_cli.workflows.export import ExportResult
from disco_cli.workflows.import_logs import ImportResult


def show_import(result: ImportResult, *, as_json: bool, quiet: bool) -> None:
    """Print the path of each prediction file; what was found, on stderr."""
    say_all([*result.notes, *_found(result)], quiet=quiet)
    if as_json:
        for row in result.as_dicts():
            put_json(row)
        return
    for path in result.paths:
        put(path)


def _found(result: ImportResult) -> list[str]:
    lines = []
    for table in result.tables:
        lines += list(table.notes)
        what = f"mean {table.metric} {table.mean:.6g}" if table.mean is not None else "no metric"
        whole = "" if table.complete else " (a part of the benchmark)"
        lines.append(f"{table.task} of {table.model}: {table.n} samples{whole}, {what}")
    return lines


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
