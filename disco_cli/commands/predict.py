"""The command ``disco predict``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from disco_cli.commands.support import (
    DEFAULT_FOLDER,
    LINES,
    TABLE,
    Filters,
    Folder,
    Force,
    Json,
    KindName,
    Level,
    Location,
    Metrics,
    Output,
    Predictions,
    Quiet,
    command,
    read_options,
    target_path,
    words,
)
from disco_cli.files.url_path import as_path


def predict(
    models: Predictions = None,
    *,
    database: Annotated[
        Location | None,
        typer.Option(
            "--db", parser=as_path, metavar="PATH", help="The database [default: db/ in --dir]."
        ),
    ] = None,
    predictor: Annotated[
        Literal["auto", "rf", "knn", "ridge", "anchored-ridge", "offset-ridge", "blend"] | None,
        typer.Option(help="Who estimates [default: the database's own].", show_default=False),
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="Estimate every group of samples, too.")
    ] = False,
    level: Level = 0.9,
    fail_under: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE",
            help="Exit with 5 if an estimate is lower than this.",
            show_default=False,
        ),
    ] = None,
    max_width: Annotated[
        float | None,
        typer.Option(
            metavar="WIDTH",
            help="Exit with 5 if an interval is wider than this.",
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS,…",
            help="Exit with 5 if a status is among these: extrapolated, unfamiliar.",
            show_default=False,
        ),
    ] = None,
    folder: Folder = DEFAULT_FOLDER,
    output: Output = None,
    kind: KindName = "auto",
    metric: Metrics = None,
    filter_name: Filters = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Estimate new models from their outputs on the K samples alone.

    \b
    disco predict new_model.npz
    """
    from disco_cli.report import predict as report
    from disco_cli.workflows.gates import Gates
    from disco_cli.workflows.predict import predict as run

    target = target_path(output, None, LINES if as_json else TABLE)
    gates = Gates(fail_under, max_width, words(fail_on))
    result = run(
        models or (),
        database=database or folder / "db",
        selection=folder / "selection.json" if database is None else None,
        predictor=predictor,
        level=level,
        by_group=groups,
        gates=gates,
        read=read_options(kind, metrics=metric, filters=filter_name),
    )
    report.show(
        result,
        as_json=as_json,
        quiet=quiet,
        output=target,
        force=force,
    )
    result.check(gates)


app = command(predict)
