"""The command ``disco backtest``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from disco_cli.commands.support import (
    DEFAULT_FOLDER,
    ROWS,
    Filters,
    Folder,
    Force,
    Json,
    KindName,
    Level,
    Location,
    Metrics,
    NoAnswer,
    Output,
    Predictions,
    Quiet,
    command,
    read_options,
    target_path,
    watch,
    whole_numbers,
    words,
)
from disco_cli.files.url_path import as_path


def backtest(
    preds: Predictions = None,
    *,
    split: Annotated[
        Literal["random", "newest", "strongest", "leave-one-out"],
        typer.Option(help="Which models are estimated as if they were new."),
    ] = "random",
    test_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of models that become targets [default: 0.25].",
            show_default=False,
        ),
    ] = None,
    cutoff: Annotated[
        str | None,
        typer.Option(
            metavar="DATE", help="With newest: models of this date or later are the targets."
        ),
    ] = None,
    by_family: Annotated[
        bool,
        typer.Option("--by-family", help="Relatives of a target never are its references."),
    ] = False,
    families: Annotated[
        Location | None,
        typer.Option(
            parser=as_path,
            metavar="PATH",
            help="Families, CSV: model, family; implies --by-family.",
        ),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            "-k",
            metavar="K,K,…",
            help="Numbers of samples, by commas [default: 10,30,60,100,200].",
        ),
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME,…",
            help="Methods, separated by commas, or all; random is always among them.",
        ),
    ] = "all",
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="How many repeats.")] = 3,
    level: Level = 0.9,
    average: Annotated[
        Literal["micro", "macro"],
        typer.Option(help="Mean over samples, or over groups of equal weight."),
    ] = "micro",
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", min=0, metavar="N", help="Processes; 0: one for each core."),
    ] = 0,
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
    """Measure how well each method predicts models already known.

    Writes backtest.jsonl (a line for each finished cell; a rerun goes on where it stopped) and
    backtest.csv, and prints the comparison.

    \b
    disco backtest preds/*.npz --k 30,100
    """
    from disco_cli.backtest.splits import SplitKind
    from disco_cli.estimation.truth import Average
    from disco_cli.report import backtest as report
    from disco_cli.workflows.backtest import backtest as run

    rows = _rows_path(output, folder)
    table = report.table_path(rows, force=force)
    result = run(
        preds or (),
        ks=whole_numbers(k, "--k"),
        methods=None if methods == "all" else words(methods),
        split=SplitKind(split),
        seeds=seeds,
        test_share=test_share,
        cutoff=cutoff,
        by_family=by_family,
        family_table=families,
        level=level,
        average=Average(average),
        read=read_options(kind, no_answer, metric, filter_name),
        output=rows,
        jobs=jobs or _cores(),
        force=force,
        progress=watch(quiet=quiet),
    )
    report.show(result, table, as_json=as_json, quiet=quiet)


def _rows_path(output: str | None, folder: Path) -> Path:
    from disco_cli.errors import UsageError
    from disco_cli.files.url_path import is_behind_url

    path = target_path(output, folder / "backtest.jsonl", ROWS)
    if path is not None and is_behind_url(path):
        raise UsageError(f"{path}: rows are appended one by one; give a file on this machine, -o")
    if path is None:
        raise UsageError("-o -: the rows are a file that a rerun goes on from; name one")
    return path


def _cores() -> int:
    import os

    affinity = getattr(os, "sched_getaffinity", None)  # the cores that this process may use
    return len(affinity(0)) if affinity else os.cpu_count() or 1


app = command(backtest)
