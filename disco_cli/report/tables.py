"""Rows for people and for pipes: a table on a terminal, tab-separated values elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

from disco_cli.report.console import printable


def print_rows(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, stream: TextIO | None = None
) -> None:
    """Print rows as a table where somebody watches, tab-separated with a header line in a pipe.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    rows : sequence of sequences
        One value per column; ``None`` is printed as ``-`` in a table and as nothing in a pipe.
    stream : text stream, optional
        Standard output by default.
    """
    out = sys.stdout if stream is None else stream
    if out.isatty():
        _print_table(columns, rows, out)
        return
    out.write("\n".join(tab_separated(columns, rows)) + "\n")


def tab_separated(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return a header line and a line per row; ``None`` is an empty field."""
    lines = ["\t".join(columns)]
    lines += ["\t".join(_cell(value, "", digits=6) for value in row) for row in rows]
    return lines


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], out: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        numeric = any(isinstance(row[index], int | float) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        # Text, not str: a name such as [red] is data and not markup.
        table.add_row(*(Text(printable(_cell(value, "-", digits=4))) for value in row))
    Console(file=out).print(table)


def _cell(value: Any, missing: str, *, digits: int) -> str:
    if value is None:
        return missing
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    # A tab or line break inside a name would break the row it stands in.
    return " ".join(str(value).split()) if isinstance(value, str) else str(value)
