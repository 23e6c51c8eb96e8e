"""The command ``disco export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from disco_cli.commands.support import (
    DEFAULT_FOLDER,
    Folder,
    Force,
    Json,
    Output,
    Quiet,
    command,
    target_path,
)


def export(
    selection: Annotated[
        Path | None,
        typer.Argument(
            metavar="SELECTION", help="The selection [default: selection.json in --dir]."
        ),
    ] = None,
    *,
    to: Annotated[
        Literal["lm-eval", "inspect", "ids", "csv", "jsonl"],
        typer.Option("--to", help="Whom the list of samples is for."),
    ],
    task: Annotated[
        str | None, typer.Option("--task", metavar="NAME", help="Export this task only.")
    ] = None,
    folder: Folder = DEFAULT_FOLDER,
    output: Output = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Hand the selected samples to another evaluation tool.

    \b
    disco export disco-run/selection.json --to lm-eval -o samples.json
    """
    from disco_cli.harness.export import Target
    from disco_cli.report.harness import show_export
    from disco_cli.workflows.export import export as run

    result = run(
        selection or folder / "selection.json",
        to=Target(to),
        task=task,
        output=target_path(output, None),
        force=force,
    )
    show_export(result, as_json=as_json, quiet=quiet)


app = command(export)
