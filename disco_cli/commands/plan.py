"""The command ``disco plan``."""

from __future__ import annotations

from typing import Annotated

import typer

from disco_cli.commands.support import (
    AverageName,
    Filters,
    Json,
    KindName,
    Level,
    Metrics,
    NoAnswer,
    Predictions,
    Quiet,
    Seed,
    command,
    read_options,
    watch,
    whole_numbers,
)


def plan(
    preds: Predictions = None,
    *,
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            "-k",
            metavar="K,K,…",
            help="Numbers of samples, by commas [default: 10,30,60,100,200,…].",
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            metavar="N,N,…",
            help="Numbers of reference models, by commas [default: a quarter, half, all].",
        ),
    ] = None,
    target_error: Annotated[
        float | None,
        typer.Option(metavar="ERROR", help="Tell the fewest samples for this mean absolute error."),
    ] = None,
    level: Level = 0.9,
    average: AverageName = "micro",
    seed: Seed = 0,
    kind: KindName = "auto",
    no_answer: NoAnswer = "missing",
    metric: Metrics = None,
    filter_name: Filters = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how many samples and reference models an estimate takes.

    Leaves some of the models out and estimates them from the others.

    \b
    disco plan preds/*.npz --target-error 0.01
    """
    from disco_cli.report import plan as report
    from disco_cli.workflows.plan import plan as run

    result = run(
        preds or (),
        ks=whole_numbers(k, "--k"),
        models=whole_numbers(models, "--models"),
        target_error=target_error,
        level=level,
        average=average,
        seed=seed,
        read=read_options(kind, no_answer, metric, filter_name),
        progress=watch(quiet=quiet),
    )
    report.show(result, as_json=as_json, quiet=quiet)


app = command(plan)
