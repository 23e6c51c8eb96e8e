"""The command ``disco info``."""

from __future__ import annotations

from typing import Annotated

import typer

from disco_cli.commands.support import (
    Filters,
    Json,
    KindName,
    Location,
    Metrics,
    Quiet,
    command,
    read_options,
)
from disco_cli.files.url_path import as_path


def info(
    path: Annotated[
        Location,
        typer.Argument(
            parser=as_path, metavar="PATH", help="A prediction file, an artifact or a database."
        ),
    ],
    *,
    kind: KindName = "auto",
    metric: Metrics = None,
    filter_name: Filters = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a prediction file, an artifact or a database holds.

    \b
    disco info disco-run/db
    """
    from disco_cli.report import info as report
    from disco_cli.workflows.info import info as run

    read = read_options(kind, metrics=metric, filters=filter_name)
    report.show(run(path, read=read), as_json=as_json, quiet=quiet)


app = command(info)
