"""``disco import`` and ``disco export``: the way from and to other evaluation tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from disco_cli.cli_support import (
    DEFAULT_FOLDER,
    Filters,
    Folder,
    Force,
    Json,
    Metrics,
    Output,
    Quiet,
    target_path,
)
from disco_cli.errors import UsageError

imports = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help=r"""Turn logs of other evaluation tools into prediction files.

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
PREDS = Path("preds")


def register(app: typer.Typer) -> None:
    """Add the commands of this module to the program."""
    app.add_typer(imports, name="import")
    app.command("export")(export)


@imports.command("lm-eval")
def lm_eval(
    paths: Paths = None,
    *,
    task: Tasks = None,
    metric: Metrics = None,
    filter_name: Filters = None,
    model: Model = None,
    full_run: FullRuns = None,
    partial: Partial = False,
    output: Output = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    r"""Import logs of lm-evaluation-harness 0.4, run with --log_samples.

    \b
    disco import lm-eval results/ --metric acc -o preds/
    """
    choices = (task, metric, filter_name, model, full_run)
    _import("lm-eval", paths, choices, output, partial, as_json, quiet, force)


@imports.command("inspect")
def inspect(
    paths: Paths = None,
    *,
    task: Tasks = None,
    metric: Metrics = None,
    model: Model = None,
    partial: Partial = False,
    output: Output = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    r"""Import logs of inspect_ai, .eval or .json; epochs are averaged.

    \b
    disco import inspect logs/ --metric choice -o preds/
    """
    choices = (task, metric, None, model, None)
    _import("inspect", paths, choices, output, partial, as_json, quiet, force)


@imports.command("helm")
def helm(
    paths: Paths = None,
    *,
    task: Tasks = None,
    metric: Metrics = None,
    filter_name: Filters = None,
    model: Model = None,
    partial: Partial = False,
    output: Output = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    r"""Import runs of HELM: folders with per_instance_stats.json.

    \b
    disco import helm runs/ --metric exact_match --filter test -o preds/
    """
    choices = (task, metric, filter_name, model, None)
    _import("helm", paths, choices, output, partial, as_json, quiet, force)


@imports.command("lighteval")
def lighteval(
    paths: Paths = None,
    *,
    task: Tasks = None,
    metric: Metrics = None,
    model: Model = None,
    output: Output = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    r"""Import details of lighteval: details_*.parquet.

    \b
    disco import lighteval output/ --metric acc -o preds/
    """
    choices = (task, metric, None, model, None)
    _import("lighteval", paths, choices, output, False, as_json, quiet, force)


@imports.command("csv")
def csv_table(
    paths: Paths = None,
    *,
    metric: Metrics = None,
    output: Output = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    r"""Import tables of scores: columns model and sample_id, or models × samples.

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
    r"""Hand the selected samples to another evaluation tool.

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
