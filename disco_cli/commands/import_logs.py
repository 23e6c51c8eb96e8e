"""The commands ``disco import TOOL``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from disco_cli.commands.support import (
    Filters,
    Force,
    Json,
    Metrics,
    Quiet,
)
from disco_cli.errors import UsageError

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="""Turn logs of other evaluation tools into prediction files.

    \b
    disco import lm-eval results/ --metric acc -o preds/
    """,
)

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH…", help="Logs, or folders of logs.", show_default=False),
]
Tasks = Annotated[
    list[str] | None,
    typer.Option("--task", metavar="NAME", help="Import this task or group only; repeatable."),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Name the model so.")]
Partial = Annotated[
    bool, typer.Option("--partial", help="Import incomplete logs, and say what they lack.")
]
FullRuns = Annotated[
    list[str] | None,
    typer.Option(
        "--full-run", metavar="PATH", help="Log of all documents, to put wrong ids right by hash."
    ),
]
Into = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="PATH", help="Folder of the prediction files [default: preds]."
    ),
]
PREDS = Path("preds")


@app.command("lm-eval")
def lm_eval(
    paths: Paths = None,
    *,
    task: Tasks = None,
    metric: Metrics = None,
    filter_name: Filters = None,
    model: Model = None,
    full_run: FullRuns = None,
    partial: Partial = False,
    output: Into = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Import logs of lm-evaluation-harness 0.4 with --log_samples.

    \b
    disco import lm-eval results/ --metric acc -o preds/
    """
    choices = (task, metric, filter_name, model, full_run)
    _import("lm-eval", paths, choices, output, partial, as_json, quiet, force)


@app.command("inspect")
def inspect(
    paths: Paths = None,
    *,
    task: Tasks = None,
    metric: Metrics = None,
    model: Model = None,
    partial: Partial = False,
    output: Into = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Import logs of inspect_ai, .eval or .json; epochs are averaged.

    \b
    disco import inspect logs/ --metric choice -o preds/
    """
    choices = (task, metric, None, model, None)
    _import("inspect", paths, choices, output, partial, as_json, quiet, force)


@app.command("helm")
def helm(
    paths: Paths = None,
    *,
    task: Tasks = None,
    metric: Metrics = None,
    filter_name: Filters = None,
    model: Model = None,
    partial: Partial = False,
    output: Into = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Import runs of HELM: folders with per_instance_stats.json.

    \b
    disco import helm runs/ --metric exact_match --filter test -o preds/
    """
    choices = (task, metric, filter_name, model, None)
    _import("helm", paths, choices, output, partial, as_json, quiet, force)


@app.command("lighteval")
def lighteval(
    paths: Paths = None,
    *,
    task: Tasks = None,
    metric: Metrics = None,
    model: Model = None,
    output: Into = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Import details of lighteval: details_*.parquet.

    \b
    disco import lighteval output/ --metric acc -o preds/
    """
    choices = (task, metric, None, model, None)
    _import("lighteval", paths, choices, output, False, as_json, quiet, force)


@app.command("csv")
def csv_table(
    paths: Paths = None,
    *,
    metric: Metrics = None,
    output: Into = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Import tables of scores, long or wide.

    Long ones have the columns model and sample_id, wide ones are models × samples.

    \b
    disco import csv scores.csv -o preds/
    """
    choices = (None, metric, None, None, None)
    _import("csv", paths, choices, output, False, as_json, quiet, force)


Choices = tuple[list[str] | None, list[str] | None, list[str] | None, str | None, list[str] | None]


def _import(
    tool: str,
    paths: list[str] | None,
    choices: Choices,
    output: str | None,
    partial: bool,
    as_json: bool,
    quiet: bool,
    force: bool,
) -> None:
    from disco_cli.harness.choices import ImportOptions
    from disco_cli.harness.open import Tool
    from disco_cli.report.harness import show_import
    from disco_cli.workflows.import_logs import import_logs

    if output == "-":
        raise UsageError("-o -: prediction files go into a folder, not to standard output")
    tasks, metrics, filters, model, full_runs = choices
    result = import_logs(
        Tool(tool),
        paths or (),
        options=ImportOptions(
            tasks=tuple(tasks or ()),
            metrics=tuple(metrics or ()),
            filters=tuple(filters or ()),
            model=model,
            partial=partial,
            full_runs=tuple(full_runs or ()),
        ),
        output=PREDS if output is None else Path(output),
        force=force,
    )
    show_import(result, as_json=as_json, quiet=quiet)
