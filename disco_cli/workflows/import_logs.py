"""``disco import``: logs of other evaluation tools -> prediction files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disco_cli.errors import DiscoError, OutputError, UsageError
from disco_cli.files.open import open_predictions
from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.imported import ImportedTable, write_table
from disco_cli.harness.open import Tool
from disco_cli.harness.open import import_logs as read_logs


@dataclass(frozen=True)
class ImportResult:
    """What an import found and where it was written.

    Attributes
    ----------
    tables : tuple of ImportedTable
        One for each model and task or group.
    paths : tuple of str
        The prediction file of each.
    notes : tuple of str
        What concerns the logs as a whole.
    """

    tables: tuple[ImportedTable, ...]
    paths: tuple[str, ...]
    notes: tuple[str, ...]

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return what ``--json`` prints, an object for each file."""
        return [
            {"path": path, **table.as_dict()}
            for path, table in zip(self.paths, self.tables, strict=True)
        ]


def import_logs(
    tool: Tool,
    paths: Sequence[str | Path],
    *,
    options: ImportOptions | None = None,
    output: Path,
    force: bool = False,
) -> ImportResult:
    """Import logs and write a prediction file for each model and task.

    Parameters
    ----------
    tool : Tool
        Whose logs they are.
    paths : sequence of str or Path
        Files or folders.
    options : ImportOptions, optional
        What to take of them.
    output : Path
        Folder of the prediction files.
    force : bool
        Replace files that are not earlier imports of the same model and task.

    Raises
    ------
    DiscoError
        If a log cannot be used, a choice is missing, or a file cannot be written.
    """
    if not paths:
        raise UsageError("no logs given: the pattern matched nothing?")
    imported = read_logs(tool, paths, options)
    targets = [output / table.file_name for table in imported.tables]
    for table, target in zip(imported.tables, targets, strict=True):
        if not force and target.exists() and not _is_import_of(table, target):
            raise OutputError(f"{target}: exists and is no import of this log; --force replaces it")
    for table, target in zip(imported.tables, targets, strict=True):
        write_table(table, target)
    return ImportResult(imported.tables, tuple(map(str, targets)), imported.notes)


def _is_import_of(table: ImportedTable, path: Path) -> bool:
    """Whether a file is a prediction file of the same model and samples."""
    try:
        found = open_predictions(path)
    except DiscoError:
        return False
    ids = found.samples.ids
    known = set(table.ids.tolist())
    return (
        [model.name for model in found.models] == [table.model]
        and ids is not None
        and not known.isdisjoint(ids.tolist())
    )
