"""The command line: parse, call one workflow, render. Heavy imports live inside the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from disco_cli import __version__
from disco_cli.cli_backtest import backtest
from disco_cli.cli_harness import register as register_harness
from disco_cli.cli_support import (
    DEFAULT_FOLDER,
    DiscoGroup,
    Filters,
    Folder,
    Force,
    Json,
    KindName,
    Metrics,
    NoAnswer,
    Output,
    Predictions,
    Quiet,
    Seed,
    read_options,
    target_path,
    watch,
)

app = typer.Typer(
    cls=DiscoGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=r"""Estimate what a model would score on a whole benchmark from about 1 % of its samples.

    \b
    disco select --k 100 preds/*.npz
    disco build-db preds/*.npz
    disco predict new_model.npz
    """,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"disco {__version__}")
        raise typer.Exit


@app.callback()
def common(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Hold the options of the program itself."""


@app.command()
def score(
    preds: Predictions = None,
    *,
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
    r"""Score how much the models disagree on each sample; writes scores.parquet.

    \b
    disco score preds/*.npz
    """
    from disco_cli.report import score as report
    from disco_cli.workflows.score import score as run

    result = run(
        preds or (),
        read=read_options(kind, no_answer, metric, filter_name),
        output=target_path(output, folder / "scores.parquet"),
        force=force,
        progress=watch(quiet=quiet),
    )
    report.show(result, as_json=as_json, quiet=quiet)


@app.command()
def select(
    preds: Predictions = None,
    *,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="How many samples.")] = 100,
    method: Annotated[
        Literal["pds", "jsd", "random", "stratified-random"],
        typer.Option(help="How they are chosen."),
    ] = "pds",
    stratify: Annotated[
        bool, typer.Option("--stratify", help="Take an equal share of every group.")
    ] = False,
    seed: Seed = 0,
    scores: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Reuse this scores.parquet instead of PREDS…"),
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
    r"""Select the K samples that tell models apart; writes selection.json.

    \b
    disco select --k 100 preds/*.npz
    """
    from disco_cli.report import select as report
    from disco_cli.workflows.select import Method
    from disco_cli.workflows.select import select as run

    result = run(
        preds or (),
        k=k,
        method=Method(method),
        stratify=stratify,
        seed=seed,
        scores=scores,
        read=read_options(kind, no_answer, metric, filter_name),
        output=target_path(output, folder / "selection.json"),
        force=force,
        progress=watch(quiet=quiet),
    )
    report.show(result, as_json=as_json, quiet=quiet)


@app.command("build-db")
def build_db(
    preds: Predictions = None,
    *,
    selection: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The selection [default: selection.json in --dir]."),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Known full scores, CSV or Parquet: model, score."),
    ] = None,
    average: Annotated[
        Literal["micro", "macro"],
        typer.Option(help="Mean over samples, or over groups of equal weight."),
    ] = "micro",
    neighbours: Annotated[
        int, typer.Option(min=1, help="How many reference models kNN averages.")
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
    r"""Learn from the reference models how outputs map to the full score; writes db/.

    \b
    disco build-db preds/*.npz
    """
    from disco_cli.estimation.truth import Average
    from disco_cli.report import build as report
    from disco_cli.workflows.build import build_db as run

    result = run(
        preds or (),
        selection=selection or folder / "selection.json",
        truth=truth,
        average=Average(average),
        n_neighbours=neighbours,
        seed=seed,
        read=read_options(kind, no_answer, metric, filter_name),
        output=target_path(output, folder / "db", allow_dash=False),
        force=force,
        progress=watch(quiet=quiet),
    )
    report.show(result, as_json=as_json, quiet=quiet)


@app.command()
def predict(
    models: Predictions = None,
    *,
    database: Annotated[
        Path | None,
        typer.Option("--db", metavar="PATH", help="The database [default: db/ in --dir]."),
    ] = None,
    predictor: Annotated[
        Literal["rf", "knn"], typer.Option(help="Forest or nearest neighbours.")
    ] = "rf",
    level: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Coverage the interval is made for.")
    ] = 0.9,
    fail_under: Annotated[
        float | None,
        typer.Option(help="Exit with 5 if an estimate is lower than this.", show_default=False),
    ] = None,
    max_width: Annotated[
        float | None,
        typer.Option(help="Exit with 5 if an interval is wider than this.", show_default=False),
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
    r"""Estimate new models from their outputs on the K samples alone.

    \b
    disco predict new_model.npz
    """
    from disco_cli.report import predict as report
    from disco_cli.workflows.predict import predict as run

    result = run(
        models or (),
        database=database or folder / "db",
        selection=folder / "selection.json" if database is None else None,
        predictor=predictor,
        level=level,
        read=read_options(kind, metrics=metric, filters=filter_name),
    )
    report.show(
        result,
        as_json=as_json,
        quiet=quiet,
        output=target_path(output, None),
        force=force,
    )
    result.check(fail_under=fail_under, max_width=max_width)


@app.command()
def info(
    path: Annotated[Path, typer.Argument(help="A prediction file, an artifact or a database.")],
    *,
    kind: KindName = "auto",
    as_json: Json = False,
) -> None:
    r"""Say what a prediction file, a selection, scores or a database holds.

    \b
    disco info disco-run/db
    """
    from disco_cli.report import info as report
    from disco_cli.workflows.info import info as run

    report.show(run(path, read=read_options(kind)), as_json=as_json)


app.command()(backtest)
register_harness(app)


def main() -> None:
    """Run the command line."""
    app()
