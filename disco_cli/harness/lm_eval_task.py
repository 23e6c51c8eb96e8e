"""One task of one run of lm-evaluation-harness: filter and metric chosen, every check made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.errors import InputError
from disco_cli.harness.choices import choose_one
from disco_cli.harness.lm_eval_checks import check_mean, check_numbers, check_options, right_options
from disco_cli.harness.lm_eval_files import covers_benchmark
from disco_cli.harness.lm_eval_rows import UNNAMED, SampleLog

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

from disco_cli.harness.lm_eval_files import Run, TaskConfig


@dataclass(frozen=True)
class TaskResult:
    """The samples of one task and model, one row a document, ascending by ``doc_ids``.

    Attributes
    ----------
    task : str
        The task.
    path : Path
        The sample file.
    metric : str or None
        What ``responses`` are; ``None`` if the log has no metric (``--predict_only``).
    filter : str
        The filter whose rows these are.
    doc_ids : NDArray of int64, shape (n,)
        The tool's own numbers of the documents, put right where the log had them wrong.
    hashes : NDArray of bytes, shape (n,), or None
        SHA-256 of each document.
    labels : NDArray of int64, shape (n,)
        Right option, -1 where unknown.
    n_options : NDArray of int64, shape (n,), or None
        ``None`` in tasks without options.
    loglikelihoods : NDArray of float64, shape (n, C), or None
        As logged, padded with -inf.
    responses : NDArray of float64, shape (n,), or None
        The metric as logged.
    reported : float or None
        The metric's value by the results file.
    original, effective : int or None
        Size of the benchmark, and of this run, by the results file.
    complete : bool
        Whether all documents of the benchmark were evaluated and are here.
    notes : tuple of str
        What was found and how it was treated.
    """

    task: str
    path: Path
    metric: str | None
    filter: str
    doc_ids: NDArray[np.int64]
    hashes: NDArray[np.bytes_] | None
    labels: NDArray[np.int64]
    n_options: NDArray[np.int64] | None
    loglikelihoods: NDArray[np.float64] | None
    responses: NDArray[np.float64] | None
    reported: float | None
    original: int | None
    effective: int | None
    complete: bool
    notes: tuple[str, ...]


def name_filters(log: SampleLog, config: TaskConfig | None) -> SampleLog:
    """Give names to rows that lack them (before 0.4.7).

    The k-th row of a document belongs to the k-th filter of the task: rows come in blocks, one for
    each filter, and with several processes in such blocks for each process.
    """
    if not np.all(log.filters == UNNAMED):
        return log
    order = np.argsort(log.doc_ids, kind="stable")
    ids = log.doc_ids[order]
    first = np.searchsorted(ids, ids)
    occurrence = np.empty(len(ids), dtype=np.int64)
    occurrence[order] = np.arange(len(ids)) - first
    if config is None:
        count = int(occurrence.max()) + 1
        names = np.array(["none"] if count == 1 else [str(i + 1) for i in range(count)])
        if count > 1 and not _clashes(replace(log, filters=np.full(len(ids), "none")))[1]:
            names = np.array(["none"])  # the same rows again: a file appended to, not filters
    else:
        names = np.array(config.filters)
    return replace(log, filters=names[occurrence % len(names)])


def drop_repeats(log: SampleLog) -> tuple[SampleLog, tuple[str, ...]]:
    """Keep one of rows that are there twice word for word, refuse twins that differ.

    Raises
    ------
    InputError
        If a document has two different rows under one filter.
    """
    twins, different = _clashes(log)
    if different:
        row, other = different[0]
        raise InputError(
            f"{log.path}: doc_id {log.doc_ids[row]} (filter {log.filters[row]!r}) stands in rows "
            f"{min(row, other) + 1} and {max(row, other) + 1} with different contents: "
            "two runs appended to one file; evaluate again into an empty folder"
        )
    if not len(twins):
        return log, ()
    keep = np.setdiff1d(np.arange(len(log.doc_ids)), twins)
    note = (
        f"{log.path}: {len(twins)} of {len(log.doc_ids)} rows are exact repeats of earlier ones "
        "(the file was appended to); each kept once"
    )
    return take_rows(log, keep), (note,)


def _clashes(log: SampleLog) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """Return the rows that repeat an earlier one, and pairs of same id but different content."""
    order = np.lexsort((np.arange(len(log.doc_ids)), log.doc_ids, log.filters))
    before, after = order[:-1], order[1:]
    same = (log.doc_ids[before] == log.doc_ids[after]) & (log.filters[before] == log.filters[after])
    before, after = before[same], after[same]
    equal = log.n_options[before] == log.n_options[after]
    if log.hashes is not None:
        equal &= log.hashes[before] == log.hashes[after]
    columns = [log.loglikelihoods, *(column[:, None] for column in log.metrics.values())]
    for column in columns:
        one, two = column[before], column[after]
        equal &= np.all((one == two) | (np.isnan(one) & np.isnan(two)), axis=1)
    different = [(int(a), int(b)) for a, b in zip(before[~equal], after[~equal], strict=True)]
    return after, different


def take_rows(log: SampleLog, rows: NDArray[np.int64]) -> SampleLog:
    """Return a log of these rows, in their order; itself if these are all, as they stand."""
    if len(rows) == len(log.doc_ids) and np.array_equal(rows, np.arange(len(rows))):
        return log
    place = {int(row): i for i, row in enumerate(rows)} if log.gold_sets else {}
    return replace(
        log,
        doc_ids=log.doc_ids[rows],
        hashes=None if log.hashes is None else log.hashes[rows],
        filters=log.filters[rows],
        metrics={name: column[rows] for name, column in log.metrics.items()},
        n_options=log.n_options[rows],
        loglikelihoods=log.loglikelihoods[rows],
        unconditional=None if log.unconditional is None else log.unconditional[rows],
        characters=log.characters[rows],
        bytes=log.bytes[rows],
        index_labels=log.index_labels[rows],
        text_labels=log.text_labels[rows],
        gold_sets={place[row]: gold for row, gold in log.gold_sets.items() if row in place},
    )


def check_counts(log: SampleLog, config: TaskConfig | None, *, partial: bool) -> tuple[str, ...]:
    """Compare the number of rows with effective samples × filters of the results file.

    Raises
    ------
    InputError
        If rows are missing and ``partial`` is not set, or if there are too many.
    """
    cut = () if log.report.cut_off is None else (f"{log.report.cut_off} is cut off, left out",)
    if config is None:
        return cut
    if not config.effective:  # not counted before 0.4.3, and 0 under --predict_only
        if cut and not partial:
            raise InputError(
                f"{cut[0]}: the file is incomplete; evaluate again, or import what is there with "
                "--partial"
            )
        return cut
    expected = config.effective * len(config.filters)
    names, counts = np.unique(log.filters, return_counts=True)
    found = len(log.doc_ids)
    if found == expected and np.all(counts == config.effective):
        return cut
    by_filter = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
    story = (
        f"{log.path}: {found} rows ({by_filter}), but the results file counts "
        f"{config.effective} samples × {len(config.filters)} filters = {expected}"
        + "".join(f"; {one}" for one in cut)
    )
    if found > expected or np.any(counts > config.effective):
        raise InputError(f"{story}: rows of other runs are mixed in; evaluate again")
    if not partial:
        raise InputError(
            f"{story}: the file is incomplete; evaluate again, or import what is there with "
            "--partial"
        )
    return (f"{story}: incomplete, imported as it is",)


def choose_filter(log: SampleLog, wanted: tuple[str, ...], task: str) -> str:
    """Return the filter to take; several without a choice are listed and refused.

    Raises
    ------
    UsageError
        If the choice is missing or names none of the filters.
    """
    names = sorted({str(name) for name in log.filters})
    return choose_one(names, wanted, "filter", log.path, task)


def why_not_scored(log: SampleLog, task: str) -> str | None:
    """Return why no row of a log can be scored, ``None`` if rows can."""
    if _usable_metrics(log) or (log.has_options and not log.composite):
        return None
    if log.composite:
        return (
            f"{log.path}: {', '.join(log.composite)} of {task} is no number for each sample: the "
            "score is not their mean, so it cannot be estimated from some of the samples"
        )
    return f"{log.path}: {task} has no metric (evaluated with --predict_only?) and no options"


def choose_metric(log: SampleLog, wanted: tuple[str, ...], task: str) -> str | None:
    """Return the metric to take, ``None`` if rows have options but were not scored.

    Raises
    ------
    UsageError
        If the choice is missing or names none of the metrics.
    """
    usable = _usable_metrics(log)
    return choose_one(usable, wanted, "metric", log.path, task) if usable else None


def _usable_metrics(log: SampleLog) -> list[str]:
    return [
        name
        for name, column in log.metrics.items()
        if name not in log.composite and not np.all(np.isnan(column))
    ]


def score_rows(
    log: SampleLog, run: Run, task: str, *, metric: str | None, notes: tuple[str, ...]
) -> TaskResult:
    """Make the result of one task of the rows of one filter.

    Parameters
    ----------
    log : SampleLog
        Rows of one filter, unique documents.
    run : Run
        The run with its reported values.
    task : str
        The task.
    metric : str or None
        By :func:`choose_metric`.
    notes : tuple of str
        What was noticed so far.

    Raises
    ------
    InputError
        If a row lacks the metric, or the rows' mean is not the reported value, or the options'
        log-likelihoods contradict ``acc``.
    """
    log = take_rows(log, np.argsort(log.doc_ids, kind="stable"))
    config = run.configs.get(task)
    name = str(log.filters[0])
    responses = None if metric is None else log.metrics[metric]
    reported = run.values.get(task, {}).get(f"{metric},{name}")
    whole = log.report.cut_off is None and (
        config is None or config.effective in (None, len(log.doc_ids))
    )
    if whole and config is not None:
        check_numbers(log, run, task)
    if responses is not None and metric is not None:
        notes += check_mean(log, metric, reported if whole else None, config)
    labels, label_notes = right_options(log)
    if log.has_options:
        notes += label_notes + check_options(log, labels, metric, config)
    if metric is None:
        notes += (
            f"{log.path}: no metric logged; right is the likeliest option if it is the target",
        )
    return TaskResult(
        task=task,
        path=log.path,
        metric=metric,
        filter=name,
        doc_ids=log.doc_ids,
        hashes=log.hashes,
        labels=labels,
        n_options=log.n_options if log.has_options else None,
        loglikelihoods=log.loglikelihoods if log.has_options else None,
        responses=responses,
        reported=reported,
        original=None if config is None else config.original,
        effective=None if config is None else config.effective,
        complete=covers_benchmark(run, task) and whole,
        notes=notes,
    )
