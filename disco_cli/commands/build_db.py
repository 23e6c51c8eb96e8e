"""The command ``disco build-db``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from disco_cli.commands.support import (
    DEFAULT_FOLDER,
    FOLDER,
    Filters,
    Folder,
    Force,
    Json,
    KindName,
    Location,
    Metrics,
    NoAnswer,
    Output,
    Predictions,
    Quiet,
    Seed,
    command,
    given,
    read_options,
    target_path,
    watch,
)
from disco_cli.files.url_path import as_path


def build_db(
    preds: Predictions = None,
    *,
    selection: Annotated[
        Location | None,
        typer.Option(
            parser=as_path, metavar="PATH", help="The selection [default: selection.json in --dir]."
        ),
    ] = None,
    truth: Annotated[
        Location | None,
        typer.Option(
            parser=as_path, metavar="PATH", help="Known full scores, CSV or Parquet: model, score."
        ),
    ] = None,
    recipe: Annotated[
        Literal["auto", "disco"] | None,
        typer.Option(
            help="disco: only what was published [default: the selection's recipe].",
            show_default=False,
        ),
    ] = None,
    average: Annotated[
        Literal["micro", "macro"] | None,
        typer.Option(
            help="Mean over samples, or over groups of equal weight [default: the selection's].",
            show_default=False,
        ),
    ] = None,
    neighbours: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many reference models kNN averages.")
    ] = 5,
    seed: Seed = 0,
    folder: Folder = DEFAULT_FOLDER,
    output: Output = None,
    kind: KindName = "auto",
    no_answer: NoAnswer = "missing",
    metric: Metrics = None,
    filter_name: Filters = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Learn how outputs on the K samples map to the full score. Writes db/.

    \b
    disco build-db preds/*.npz
    """
    from disco_cli.estimation.truth import Average
    from disco_cli.report import build as report
    from disco_cli.workflows.build import BuildOptions
    from disco_cli.workflows.build import build_db as run
    from disco_cli.workflows.options import Recipe

    result = run(
        preds or (),
        selection=selection or folder / "selection.json",
        truth=truth,
        options=BuildOptions(
            recipe=None if recipe is None else Recipe(recipe),
            average=None if average is None else Average(average),
            n_neighbours=neighbours,
            seed=seed,
        ),
        read=read_options(kind, no_answer, metric, filter_name),
        output=target_path(output, folder / "db", FOLDER),
        force=force,
        progress=watch(quiet=quiet),
    )
    told = given(folder, kind=kind, metrics=metric, filters=filter_name)
    report.show(
        result, told, selection=selection or folder / "selection.json", as_json=as_json, quiet=quiet
    )


app = command(build_db)
