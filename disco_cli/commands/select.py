"""The command ``disco select``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from disco_cli.commands.support import (
    DEFAULT_FOLDER,
    SELECTION,
    AverageName,
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


def select(
    preds: Predictions = None,
    *,
    k: Annotated[
        int, typer.Option("--k", "-k", min=1, metavar="K", help="How many samples.")
    ] = 100,
    recipe: Annotated[
        Literal["auto", "disco"] | None,
        typer.Option(
            help="auto (default): chosen by cross-validation inside the reference models; disco: as "
            "published.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        Literal["pds", "jsd", "random", "stratified-random", "strata", "hybrid", "greedy", "anchor"]
        | None,
        typer.Option(help="How they are chosen [default: the recipe's way].", show_default=False),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="With hybrid: the share that is not drawn at random [default: 0.5].",
            show_default=False,
        ),
    ] = None,
    average: AverageName = "micro",
    stratify: Annotated[
        bool, typer.Option("--stratify", help="Take an equal share of every group.")
    ] = False,
    seed: Seed = 0,
    scores: Annotated[
        Location | None,
        typer.Option(
            parser=as_path, metavar="PATH", help="Reuse this scores.parquet instead of PREDS…"
        ),
    ] = None,
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
    """Select the K samples that tell models apart. Writes selection.json.

    \b
    disco select --k 100 preds/*.npz
    """
    from disco_cli.estimation.truth import Average
    from disco_cli.report import select as report
    from disco_cli.selection.choose import Method
    from disco_cli.workflows.options import Recipe
    from disco_cli.workflows.select import SelectOptions
    from disco_cli.workflows.select import select as run

    result = run(
        preds or (),
        options=SelectOptions(
            k=k,
            recipe=None if recipe is None else Recipe(recipe),
            method=None if method is None else Method(method),
            share=share,
            stratify=stratify,
            average=Average(average),
            seed=seed,
        ),
        scores=scores,
        read=read_options(kind, no_answer, metric, filter_name),
        output=target_path(output, folder / "selection.json", SELECTION),
        force=force,
        progress=watch(quiet=quiet),
    )
    told = given(folder, preds, kind, no_answer, metric, filter_name)
    report.show(result, told, as_json=as_json, quiet=quiet)


app = command(select)
