"""The command ``disco score``."""

from __future__ import annotations

from disco_cli.commands.support import (
    DEFAULT_FOLDER,
    DEFAULT_MEMORY,
    PARQUET,
    Engine,
    Filters,
    Folder,
    Force,
    Json,
    KindName,
    Memory,
    Metrics,
    NoAnswer,
    Output,
    Predictions,
    Quiet,
    Scheduler,
    Threads,
    command,
    engine_options,
    given,
    read_options,
    target_path,
    watch,
)


def score(
    preds: Predictions = None,
    *,
    folder: Folder = DEFAULT_FOLDER,
    output: Output = None,
    kind: KindName = "auto",
    no_answer: NoAnswer = "missing",
    metric: Metrics = None,
    filter_name: Filters = None,
    memory: Memory = DEFAULT_MEMORY,
    threads: Threads = None,
    engine: Engine = "local",
    scheduler: Scheduler = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Score how much the models disagree on each sample. Writes scores.parquet.

    What is written is Parquet; -o - prints tab-separated values.

    \b
    disco score preds/*.npz
    """
    from disco_cli.report import score as report
    from disco_cli.workflows.score import score as run

    result = run(
        preds or (),
        read=read_options(kind, no_answer, metric, filter_name),
        engine=engine_options(memory, threads, engine, scheduler),
        output=target_path(output, folder / "scores.parquet", PARQUET),
        force=force,
        progress=watch(quiet=quiet),
    )
    told = given(folder, preds, kind, no_answer, metric, filter_name)
    report.show(result, told, as_json=as_json, quiet=quiet)


app = command(score)
