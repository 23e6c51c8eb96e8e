"""What the rows of one task of lm-evaluation-harness must agree with: reported means, arg-max.

Each check has a message of its own. A contradiction that the tool itself cannot have written is an
error; what a task may have its reasons for is told.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import InputError
from disco_cli.harness.lm_eval_files import Run, TaskConfig, covers_benchmark
from disco_cli.harness.lm_eval_rows import SampleLog

TOLERANCE = 1e-9
"""How far the mean of the rows may lie from the reported value."""


def check_numbers(log: SampleLog, run: Run, task: str) -> None:
    """Refuse a run of all documents, or of the first n, whose documents are not 0 … n - 1.

    Raises
    ------
    InputError
        Names the first number that is missing.
    """
    if not covers_benchmark(run, task) and run.limit is None:
        return  # --samples may choose any
    missing = np.setdiff1d(np.arange(len(log.doc_ids)), log.doc_ids)
    if len(missing):
        raise InputError(
            f"{log.path}: {len(log.doc_ids)} documents of {task}, but none has doc_id "
            f"{missing[0]} (the last has {log.doc_ids.max()}): rows are missing or damaged"
        )


def check_mean(
    log: SampleLog, metric: str, reported: float | None, config: TaskConfig | None
) -> tuple[str, ...]:
    """Compare the mean of a metric with the reported value.

    Raises
    ------
    InputError
        If the tool reports the mean and it is another, or some rows lack the metric.
    """
    responses = log.metrics[metric]
    what = f"{log.path}: the mean {metric} (filter {str(log.filters[0])!r})"
    lacking = np.flatnonzero(np.isnan(responses))
    mean = float(np.mean(responses))
    if len(lacking) and (reported is None or math.isnan(reported)):
        return (f"{log.path}: {len(lacking)} rows have no {metric}: counted as missing",)
    if len(lacking):
        raise InputError(
            f"{log.path}: {len(lacking)} rows have no {metric} (first: doc_id "
            f"{log.doc_ids[lacking[0]]}), but the results file reports {reported:.10g}: damaged"
        )
    if reported is None or abs(mean - reported) <= TOLERANCE:
        return ()
    aggregation = None if config is None else config.aggregations.get(metric)
    if aggregation == "mean":
        raise InputError(
            f"{what} of {len(responses)} rows is {mean:.10g}, but the results file reports "
            f"{reported:.10g}: rows and results are not of one run, or the file is damaged"
        )
    how = "code of its own" if aggregation is None else aggregation
    return (
        (
            f"{what} is {mean:.10g}, but the reported value, {reported:.10g}, is aggregated by {how}; "
            "what is estimated is the mean"
        ),
    )


def _predicted(log: SampleLog, metric: str) -> NDArray[np.int64] | None:
    """Return the option that the tool counts as the answer, (n,); first of ties, first NaN."""
    padding = np.arange(log.loglikelihoods.shape[1]) >= log.n_options[:, None]
    scores = log.loglikelihoods
    with np.errstate(invalid="ignore", divide="ignore"):
        if metric == "acc_mutual_info":
            if log.unconditional is None:
                return None
            scores = scores - log.unconditional
        elif metric in ("acc_norm", "acc_bytes"):
            lengths = log.characters if metric == "acc_norm" else log.bytes
            if np.any((lengths < 0) & ~padding):
                return None
            scores = scores / lengths
        elif metric != "acc":
            return None
    scores = np.where(padding, -np.inf, scores)
    # numpy's argmax is the tool's: of equal values the first, and NaN above everything.
    answers: NDArray[np.int64] = np.argmax(scores, axis=1).astype(np.int64)
    return answers


def right_options(log: SampleLog) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the right option of each row and what had to be inferred."""
    by_index = np.where(log.index_labels >= 0, log.index_labels, log.text_labels)
    by_text = np.where(log.text_labels >= 0, log.text_labels, log.index_labels)
    accuracy = log.metrics.get("acc")
    if accuracy is None or not log.has_options:
        return by_index, ()
    predicted = np.argmax(log.loglikelihoods, axis=1)
    if not np.array_equal(by_index, by_text):
        wrong = [np.sum((predicted == labels) != accuracy) for labels in (by_index, by_text)]
        return (by_text if wrong[1] < wrong[0] else by_index), ()
    binary = np.isin(accuracy, (0.0, 1.0))
    if log.n_shared >= len(log.doc_ids) and np.all(log.n_options == 2) and np.all(binary):
        # The target is the shared text, not an index; of two options acc tells the right one.
        labels = np.where(accuracy == 1.0, predicted, 1 - predicted).astype(np.int64)
        note = "options differ in the question and share their text: right option inferred from acc"
        return labels, (f"{log.path}: {note}",)
    return by_index, ()


def check_options(
    log: SampleLog, labels: NDArray[np.int64], metric: str | None, config: TaskConfig | None
) -> tuple[str, ...]:
    """Count what is odd in the log-likelihoods and compare their arg-max with the metrics."""
    inside = np.arange(log.loglikelihoods.shape[1]) < log.n_options[:, None]
    nan = np.any(np.isnan(log.loglikelihoods) & inside, axis=1)
    infinite = np.any(np.isinf(log.loglikelihoods) & inside, axis=1) & ~nan
    notes: list[str] = []
    if nan.any():
        notes.append(
            f"{log.path}: {nan.sum()} of {len(nan)} rows have NaN log-likelihoods; their metric is "
            "kept as the tool gave it (to it the first NaN is the answer), their probabilities "
            "count as missing"
        )
    if infinite.any():
        notes.append(
            f"{log.path}: {infinite.sum()} of {len(nan)} rows have infinite log-likelihoods; "
            "-inf is probability 0"
        )
    if log.n_doubled:
        notes.append(
            f"{log.path}: {log.n_doubled} rows hold every option twice, with and without the "
            "question (mutual information); only those with the question are taken"
        )
    if log.n_shared:
        notes.append(
            f"{log.path}: {log.n_shared} rows have one continuation after different questions"
        )
    for name in dict.fromkeys(("acc", metric)):
        if name is not None and name in log.metrics:
            notes += _check_argmax(log, labels, name, config)
    return tuple(notes)


def _check_argmax(
    log: SampleLog, labels: NDArray[np.int64], metric: str, config: TaskConfig | None
) -> tuple[str, ...]:
    predicted = _predicted(log, metric)
    if predicted is None:
        return ()
    correct = (predicted == labels).astype(np.float64)
    known = labels >= 0
    for row, gold in log.gold_sets.items():
        known[row] = True
        correct[row] = float(int(predicted[row]) in gold)
    wrong = np.flatnonzero(known & (correct != log.metrics[metric]))
    if not len(wrong):
        return ()
    story = (
        f"{log.path}: {metric} of {len(wrong)} of {known.sum()} rows is not what the options' "
        f"log-likelihoods and the target give (first: doc_id {log.doc_ids[wrong[0]]}, {metric} "
        f"{log.metrics[metric][wrong[0]]:g})"
    )
    plain = config is not None and config.output_type == "multiple_choice" and not config.custom
    if plain and metric == "acc":
        raise InputError(f"{story}: the file is damaged")
    return (f"{story}: the task scores in its own way; the metric is kept as logged",)
