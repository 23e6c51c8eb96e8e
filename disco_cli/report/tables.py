"""Rows for people and for pipes: a table on a terminal, tab-separated values elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

from disco_cli.report.console import printable

_GAP = 2


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    stream: TextIO | None = None,
    n_keys: int = 1,
) -> None:
    """Print rows as a table where somebody watches, tab-separated with a header line in a pipe.

    A table that is wider than the terminal is printed in parts below each other; a row stands in the
    first, and in those for which it has values.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    rows : sequence of sequences
        One value per column; ``None`` is printed as ``-`` in a table and as nothing in a pipe.
    stream : text stream, optional
        Standard output by default.
    n_keys : int, optional
        So many of the first columns say what a row is about, and lead each part of a wide table.
    """
    out = sys.stdout if stream is None else stream
    if out.isatty():
        _print_table(columns, rows, out, n_keys)
        return
    out.write("\n".join(tab_separated(columns, rows)) + "\n")


def tab_separated(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return a header line and a line per row; ``None`` is an empty field."""
    lines = ["\t".join(columns)]
    lines += ["\t".join(_cell(value, "", digits=6) for value in row) for row in rows]
    return lines


def _print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], out: TextIO, n_keys: int
) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=out)
    cells = [[_cell(value, "-", digits=4) for value in row] for row in rows]
    numeric = [_is_numeric([row[i] for row in rows]) for i in range(len(columns))]
    widths = [
        max(map(cell_len, (name, *column))) for name, *column in zip(columns, *cells, strict=True)
    ]
    for number, part in enumerate(_parts(widths, console.width, n_keys)):
        shown = list(range(len(rows)))
        if number:
            shown = [r for r in shown if any(rows[r][i] is not None for i in part[n_keys:])]
            if not shown:
                continue
            out.write("\n")
        table = Table(box=None, pad_edge=False, header_style="bold")
        for i in part:
            table.add_column(
                columns[i],
                justify="right" if numeric[i] else "left",
                overflow="fold",
                no_wrap=numeric[i],
            )
        for r in shown:
            # Text, not str: a name such as [red] is data and not markup.
            table.add_row(*(Text(cells[r][i]) for i in part))
        console.print(table)


def _is_numeric(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    )


def _parts(widths: Sequence[int], room: int, n_keys: int) -> list[list[int]]:
    """Share columns among tables that fit into the room, each led by the key columns.

    A column that fits nowhere has a table of its own.
    """
    keys = list(range(n_keys))
    start = sum(widths[i] + _GAP for i in keys) - _GAP
    parts, used = [keys.copy()], start
    for i in range(n_keys, len(widths)):
        if used + _GAP + widths[i] > room and len(parts[-1]) > n_keys:
            parts.append(keys.copy())
            used = start
        parts[-1].append(i)
        used += _GAP + widths[i]
    return parts


def _cell(value: Any, missing: str, *, digits: int) -> str:
    if value is None:
        return missing
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    # A tab or line break inside a name would break the row it stands in.
    # and so might a control code the terminal.
    return printable(" ".join(value.split())) if isinstance(value, str) else str(value)
