"""``disco export``: a selection -> what another tool takes as a list of samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disco_cli.files.output import write_output
from disco_cli.harness.export import Exported, Target, export_selection
from disco_cli.selection.subset import read_selection


@dataclass(frozen=True)
class ExportResult:
    """A selection in another tool's form, and where it was written.

    Attributes
    ----------
    to : Target
        Whom it is for.
    exported : Exported
        Text, number of samples, command and warnings.
    path : str or None
        The file, ``None`` for standard output.
    """

    to: Target
    exported: Exported
    path: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "to": self.to.value,
            "path": self.path,
            "k": self.exported.k,
            "command": self.exported.command,
            "warnings": list(self.exported.warnings),
            "text": self.exported.text if self.path is None else None,
        }


def export(
    selection: Path,
    *,
    to: Target,
    task: str | None = None,
    output: Path | None = None,
    force: bool = False,
) -> ExportResult:
    """Export a selection.

    Parameters
    ----------
    selection : Path
        The ``selection.json``.
    to : Target
        Whom for.
    task : str, optional
        As for :func:`disco_cli.harness.export.export_selection`.
    output : Path, optional
        File to write.
    force : bool
        Replace a file with other content.

    Raises
    ------
    DiscoError
        If the selection is bad, its ids are not the tool's, there is no such task, or the file cannot be written.
    """
    chosen = read_selection(selection)
    exported = export_selection(
        chosen, to, path="samples.json" if output is None else str(output), task=task
    )
    if output is not None:
        write_output(output, exported.text.encode(), force=force)
    return ExportResult(to, exported, None if output is None else str(output))
