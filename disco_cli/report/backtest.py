"""Rendering of ``disco backtest``: a table on a terminal, tab-separated in a pipe, JSON, CSV."""

from __future__ import annotations

import csv
import io
import sys
from typing import TYPE_CHECKING, Any

from disco_cli.errors import OutputError
from disco_cli.files.atomic import atomic_write
from disco_cli.report.console import put_json, say_all
from disco_cli.report.tables import print_rows
from disco_cli.workflows.backtest import BacktestResult, method_dict

if TYPE_CHECKING:
    from pathlib import Path

HEADER = b"k,method,repeats,"
"""How every CSV of ours begins."""

TERMINAL = {
    "k": "k",
    "method": "method",
    "mae": "MAE",
    "mae_spread": "±",
    "relative": "/random",
    "random_k": "= random k",
    "worst": "worst",
    "bias_thirds_1": "bias low",
    "bias_thirds_2": "mid",
    "bias_thirds_3": "high",
    "spearman": "Spearman",
    "pairs": "pairs",
    "coverage": "covered",
    "width": "width",
    "seconds": "seconds",
}
"""What fits on a terminal; pipes, JSON and CSV get every figure."""


def table_path(rows: Path, *, force: bool) -> Path:
    """Return where the CSV goes, after checking that nothing of somebody else lies there.

    Raises
    ------
    OutputError
        If a file that disco did not write is in the way and ``force`` is not given.
    """
    path = rows.with_suffix(".csv")
    if path.exists() and not force:
        try:
            is_ours = path.is_file() and path.read_bytes().startswith(HEADER)
        except OSError:
            is_ours = False
        if not is_ours:
            raise OutputError(f"{path}: exists and was not written by disco; --force replaces it")
    return path


def show(result: BacktestResult, table: Path, *, as_json: bool, quiet: bool) -> None:
    """Print the comparison and write it as CSV beside the rows; messages go to stderr."""
    lines = [method_dict(found) for found in result.methods]
    _write_csv(table, lines)
    say_all(result.notes, quiet=quiet)
    say_all(
        sorted({f"{found.method}: {found.error}" for found in result.methods if found.error}),
        quiet=quiet,
    )
    measured = (
        f"{result.n_models} models, {result.n_samples} samples, split {result.split}: "
        f"{result.n_targets} targets, {result.seeds} repeats"
    )
    say_all([measured, f"rows: {result.path}  table: {table}"], quiet=quiet)
    if as_json:
        put_json(result.as_dict())
    elif sys.stdout.isatty():
        rows = [[_short(name, line[name]) for name in TERMINAL] for line in lines]
        print_rows(tuple(TERMINAL.values()), rows, n_keys=2)
    else:
        names = tuple(lines[0])
        print_rows(names, [[line[name] for name in names] for line in lines])


def _short(name: str, value: Any) -> Any:
    """Round what is not a score: a table that is too wide for its terminal folds."""
    if value is None:
        return None
    if name == "random_k":
        return round(value)
    return f"{value:.2f}" if name in ("relative", "seconds") else value


def _write_csv(path: Path, lines: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())
