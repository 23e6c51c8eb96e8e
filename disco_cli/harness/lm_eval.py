"""Logs of lm-evaluation-harness 0.4.0 … 0.4.13 -> one table for each model and task or group."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import InputError, UsageError
from disco_cli.harness.choices import Choices, ImportOptions
from disco_cli.harness.imported import (
    Imported,
    ImportedTable,
    check_unique_names,
)
from disco_cli.harness.lm_eval_files import Run, covers_benchmark, find_runs
from disco_cli.harness.lm_eval_groups import (
    Unit,
    check_wanted,
    choose_units,
    group_weights,
    leaves,
    shared_weighting,
)
from disco_cli.harness.lm_eval_ids import References, settle_ids
from disco_cli.harness.lm_eval_rows import read_sample_log
from disco_cli.harness.lm_eval_task import (
    TaskResult,
    check_counts,
    choose_filter,
    choose_metric,
    drop_repeats,
    name_filters,
    score_rows,
    take_rows,
    why_not_scored,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


def read_lm_eval(
    paths: Iterable[str | Path], options: ImportOptions | None = None, *, combine: bool = False
) -> Imported:
    """Import logs of lm-evaluation-harness.

    Parameters
    ----------
    paths : iterable of str or Path
        Output folders, results files or sample files, plain or gzipped.
    options : ImportOptions, optional
        Tasks, metric, filter, …
    combine : bool
        Put all tasks of a model into one table, as if they were one group.

    Raises
    ------
    InputError
        If a log is damaged, incomplete, or contradicts its results file or another log.
    UsageError
        If a filter or metric must be chosen, or a task is asked for that is not there.
    """
    options = options or ImportOptions()
    runs = find_runs([Path(p) for p in paths], model=options.model)
    check_wanted(runs, options.tasks)
    runs, notes = _one_run_each(runs, options.tasks)
    references = References()
    for reference in find_runs([Path(p) for p in options.full_runs]) if options.full_runs else []:
        _learn(reference, references)
    units = choose_units(runs, options.tasks, combine=combine, partial=options.partial)
    results, left_out = _read_tasks(runs, units, options, references)
    notes += left_out + _differences(runs, units)
    tables = _assemble(runs, units, results)
    check_unique_names(tables)
    notes = tuple(note for run in runs for note in run.notes) + notes
    return Imported(tables, notes)


def _learn(run: Run, references: References) -> None:
    """Learn from a full run which hash belongs to which document."""
    for task, path in run.samples.items():
        if not covers_benchmark(run, task):
            raise UsageError(f"{path}: --full-run needs a run of the whole of {task}")
        log = name_filters(read_sample_log(path), run.configs[task])
        log, _ = drop_repeats(log)
        check_counts(log, run.configs[task], partial=False)
        settle_ids(log, run, task, references)


def _one_run_each(runs: list[Run], tasks: tuple[str, ...]) -> tuple[list[Run], tuple[str, ...]]:
    """Keep one run for each model and task: a whole one before a part, then the newest."""
    notes: list[str] = []
    best: dict[tuple[str, str], Run] = {}
    for run in runs:
        for task in run.samples:
            if tasks and task not in tasks and not any(task in leaves(run, t) for t in tasks):
                continue
            key = (run.model, task)
            if key not in best:
                best[key] = run
                continue
            one, other = best[key], run
            if one.identity and other.identity and one.identity != other.identity:
                raise InputError(
                    f"{one.samples[task]} and {other.samples[task]}: both are named {run.model!r}, "
                    "but are runs of different models (arguments, revision or weights differ); "
                    "import them apart and name one with --model"
                )
            newer = max((one, other), key=lambda r: (covers_benchmark(r, task), r.date or ""))
            older = other if newer is one else one
            best[key] = newer
            notes.append(
                f"{older.samples[task]}: left out, {newer.samples[task]} is a "
                f"{'newer' if covers_benchmark(older, task) else 'fuller or newer'} run of it"
            )
    kept = []
    for run in runs:
        samples = {t: p for t, p in run.samples.items() if best.get((run.model, t)) is run}
        if samples:
            kept.append(replace(run, samples=samples))
    return kept, tuple(notes)


def _read_tasks(
    runs: list[Run], units: list[Unit], options: ImportOptions, references: References
) -> tuple[dict[tuple[int, str], TaskResult], tuple[str, ...]]:
    """Read every sample file that a unit needs; whole runs first, since they tell hashes."""
    wanted = {(unit.run, task) for unit in units for task in unit.tasks}
    order = sorted(
        wanted, key=lambda key: (not covers_benchmark(runs[key[0]], key[1]), key[1], key[0])
    )
    results: dict[tuple[int, str], TaskResult] = {}
    notes: list[str] = []
    choices = Choices()
    for index, task in order:
        with choices.each():
            found = _read_task(runs[index], task, options, references)
            if isinstance(found, TaskResult):
                results[index, task] = found
            elif options.tasks or len(units) == 1:
                raise InputError(found)
            else:  # one unusable task must not keep the others from being imported
                notes.append(f"left out: {found}")
    choices.check()
    return results, tuple(notes)


def _read_task(
    run: Run, task: str, options: ImportOptions, references: References
) -> TaskResult | str:
    """Return a task's samples, or why nothing in its log scores a single sample."""
    config = run.configs.get(task)
    path = run.samples[task]
    log = read_sample_log(
        path,
        output_type=None if config is None else config.output_type,
        delimiter=" " if config is None else config.delimiter,
    )
    notes: tuple[str, ...] = ()
    if log.report.encoding != "utf-8":
        notes += (f"{path}: not UTF-8, read as {log.report.encoding}",)
    log = name_filters(log, config)
    log, found = settle_ids(log, run, task, references)
    notes += found
    log, found = drop_repeats(log)
    notes += found + check_counts(log, config, partial=options.partial)
    problem = why_not_scored(log, task)
    if problem is not None:
        return problem
    choices = Choices()
    with choices.each():
        metric = choose_metric(log, options.metrics, task)
    with choices.each():
        name = choose_filter(log, options.filters, task)
    choices.check()
    log = take_rows(log, np.flatnonzero(log.filters == name))
    return score_rows(log, run, task, metric=metric, notes=notes)


def _differences(runs: list[Run], units: list[Unit]) -> tuple[str, ...]:
    """Tell tasks that models were given with different numbers of examples."""
    shots: dict[str, dict[int, str]] = {}
    for unit in units:
        for task in unit.tasks:
            config = runs[unit.run].configs.get(task)
            if config is not None and config.n_shot is not None:
                shots.setdefault(task, {}).setdefault(config.n_shot, runs[unit.run].model)
    return tuple(
        f"{task}: models were asked with different numbers of examples: "
        + ", ".join(f"{model} {count}" for count, model in sorted(models.items()))
        for task, models in sorted(shots.items())
        if len(models) > 1
    )


def _assemble(
    runs: list[Run],
    units: list[Unit],
    results: dict[tuple[int, str], TaskResult],
) -> tuple[ImportedTable, ...]:
    ready = [unit for unit in units if all((unit.run, task) in results for task in unit.tasks)]
    tables = []
    arrays: dict[bytes, NDArray[np.str_]] = {}
    for name in sorted({unit.name for unit in ready}):
        same = [unit for unit in ready if unit.name == name]
        weighting = shared_weighting(runs, same, results)
        for unit in same:
            parts = [results[unit.run, task] for task in unit.tasks]
            table = _table(runs[unit.run], unit, parts)
            weights, score, notes = group_weights(runs[unit.run], unit, parts, weighting)
            tables.append(
                replace(
                    table,
                    ids=_shared(table.ids, arrays),
                    hashes=None if table.hashes is None else _shared(table.hashes, arrays),
                    groups=None if table.groups is None else _shared(table.groups, arrays),
                    weights=weights,
                    score=score,
                    notes=table.notes + notes,
                )
            )
    return tuple(sorted(tables, key=lambda table: (table.task, table.model)))


def _shared(column: NDArray[np.str_], arrays: dict[bytes, NDArray[np.str_]]) -> NDArray[np.str_]:
    """Return the same array for equal contents: many models have the same samples."""
    digest = hashlib.blake2b(np.ascontiguousarray(column).view(np.uint8).data)
    return arrays.setdefault(digest.digest() + column.dtype.str.encode(), column)


def _table(run: Run, unit: Unit, parts: list[TaskResult]) -> ImportedTable:
    """Put the tasks of one unit under each other."""
    metrics = {part.metric for part in parts}
    if len(metrics) > 1:
        raise UsageError(
            f"{run.results_path or parts[0].path}: the tasks of {unit.name} have different "
            f"metrics ({', '.join(sorted(str(m) for m in metrics))}); choose tasks with --task"
        )
    optional = [part.loglikelihoods is not None for part in parts]
    if any(optional) and not all(optional):
        raise UsageError(
            f"{run.results_path or parts[0].path}: some tasks of {unit.name} have options and "
            "some have not; choose tasks with --task"
        )
    width = max(
        (p.loglikelihoods.shape[1] for p in parts if p.loglikelihoods is not None), default=0
    )
    ids = [_numbered(part.task, part.doc_ids) for part in parts]
    groups = [np.full(len(part.doc_ids), part.task) for part in parts]
    with_hashes = all(part.hashes is not None for part in parts)
    return ImportedTable(
        source=str(parts[0].path if len(parts) == 1 else run.results_path or parts[0].path.parent),
        model=run.model,
        date=run.date,
        task=unit.name,
        metric=parts[0].metric,
        ids=np.concatenate(ids),
        responses=_joined([part.responses for part in parts]),
        hashes=_joined([part.hashes for part in parts]).astype(np.str_) if with_hashes else None,
        labels=_joined([part.labels for part in parts]) if all(optional) else None,
        n_options=_joined([part.n_options for part in parts]),
        groups=np.concatenate(groups),
        loglikelihoods=_joined(
            [None if p.loglikelihoods is None else _widened(p.loglikelihoods, width) for p in parts]
        ),
        complete=all(part.complete for part in parts) and not unit.missing,
        notes=tuple(note for part in parts for note in part.notes) + unit.notes,
    )


def _numbered(task: str, doc_ids: NDArray[np.int64]) -> NDArray[np.str_]:
    """Return ``task/number`` of each document, (n,), without a Python text for each."""
    return np.char.add(f"{task}/", doc_ids.astype(np.str_))


def _joined(columns: list[NDArray[Any] | None]) -> Any:
    """Return arrays under each other, ``None`` if one is missing."""
    present = [column for column in columns if column is not None]
    if len(present) < len(columns):
        return None
    return present[0] if len(present) == 1 else np.concatenate(present)


def _widened(block: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    return np.pad(block, ((0, 0), (0, width - block.shape[1])), constant_values=-np.inf)
