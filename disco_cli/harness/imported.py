"""What every importer returns: one model's samples of one task, ready to become a prediction file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import InputError
from disco_cli.files.matrix import Kind, ModelInfo, PredictionFile, Rows, Samples
from disco_cli.files.npz import write_npz

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@dataclass(frozen=True)
class ImportedTable:
    """One model on one task or group; n samples, C options at most.

    Attributes
    ----------
    source : str
        The log, as the user named it.
    model, date : str
        The model's name and the ISO date of the run, if known.
    task : str
        Task or group.
    metric : str or None
        What ``responses`` are.
    ids : NDArray of str, shape (n,)
        ``task/id``, the id being the tool's own.
    responses : NDArray of float64, shape (n,), or None
        The metric of each sample, NaN where the tool has none.
    hashes : NDArray of str, shape (n,), or None
        Hash of each sample's content.
    labels : NDArray of int64, shape (n,), or None
        Right option, -1 where unknown.
    n_options : NDArray of int64, shape (n,), or None
        Number of options.
    groups : NDArray of str, shape (n,), or None
        Subtask of each sample.
    weights : NDArray of float64, shape (n,), or None
        Weight in the score, mean 1 over the whole benchmark; ``None`` if all are equal.
    loglikelihoods : NDArray of float64, shape (n, C), or None
        Log-likelihood of each option, padded with -inf.
    predicted_labels : NDArray of int64, shape (n,), or None
        The option that was answered, -1 for none: for tools that log no likelihoods.
    score : float or None
        The score on the whole benchmark, if the run covered it.
    complete : bool
        Whether every sample of the benchmark is here.
    notes : tuple of str
        What was found, and how it was treated.
    """

    source: str
    model: str
    date: str | None
    task: str
    metric: str | None
    ids: NDArray[np.str_]
    responses: NDArray[np.float64] | None
    hashes: NDArray[np.str_] | None = None
    labels: NDArray[np.int64] | None = None
    n_options: NDArray[np.int64] | None = None
    groups: NDArray[np.str_] | None = None
    weights: NDArray[np.float64] | None = None
    loglikelihoods: NDArray[np.float64] | None = None
    predicted_labels: NDArray[np.int64] | None = None
    score: float | None = None
    complete: bool = True
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.ids)

    @property
    def mean(self) -> float | None:
        """Weighted mean of the responses that are there, ``None`` without any."""
        if self.responses is None:
            return None
        there = ~np.isnan(self.responses)
        if not there.any():
            return None
        weights = np.ones(self.n) if self.weights is None else self.weights
        return float(np.average(self.responses[there], weights=weights[there]))

    @property
    def file_name(self) -> str:
        """Name of the prediction file, ``TASK__MODEL.npz`` in characters that are safe anywhere."""
        safe = re.sub(r"[^\w.+=@-]+", "__", f"{self.task}__{self.model}").strip(".")
        return f"{safe[:180]}.npz"

    def values(self) -> tuple[Kind, NDArray[Any]]:
        """Return what a prediction file of this table holds, and its kind.

        Log-likelihoods are stored as logits: their softmax over the options is the probability that
        the tool's own Brier score uses. A row that holds NaN or nothing finite is missing.

        Raises
        ------
        InputError
            If there are neither options nor answers nor a metric.
        """
        if self.loglikelihoods is not None:
            return Kind.LOGITS, _without_broken_rows(self.loglikelihoods)
        if self.predicted_labels is not None:
            return Kind.LABELS, self.predicted_labels
        if self.responses is not None:
            return Kind.RESPONSES, self.responses
        raise InputError(f"{self.source}: neither options nor a metric to read")

    def samples(self) -> Samples:
        """Return what is known of the samples, as prediction files have it."""
        return Samples(
            n=self.n,
            ids=self.ids,
            hashes=self.hashes,
            labels=self.labels,
            groups=self.groups,
            weights=self.weights,
            n_options=self.n_options,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what a user wants to know of the import, for ``--json``."""
        return {
            "source": self.source,
            "model": self.model,
            "date": self.date,
            "task": self.task,
            "metric": self.metric,
            "n_samples": self.n,
            "n_groups": None if self.groups is None else len(np.unique(self.groups)),
            "mean": self.mean,
            "score": self.score,
            "complete": self.complete,
            "has_options": self.loglikelihoods is not None,
            "weighted": self.weights is not None,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Imported:
    """Everything that one import found.

    Attributes
    ----------
    tables : tuple of ImportedTable
        Ascending by task and model.
    notes : tuple of str
        What concerns the logs as a whole, such as tasks that were left out.
    """

    tables: tuple[ImportedTable, ...]
    notes: tuple[str, ...]


def _without_broken_rows(loglikelihoods: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n, C) with rows that no probabilities follow from, all NaN but for their padding."""
    usable = np.isfinite(loglikelihoods.max(axis=1, keepdims=True))  # NaN beats any maximum
    return np.where(usable, loglikelihoods, np.nan)


def check_unique_names(tables: tuple[ImportedTable, ...]) -> None:
    """Refuse tables that would be written to one file.

    Raises
    ------
    InputError
        If two tables have the same model and task, or names that differ in special characters only.
    """
    seen: dict[str, ImportedTable] = {}
    for table in tables:
        other = seen.setdefault(table.file_name.casefold(), table)
        if other is not table:
            raise InputError(
                f"{table.source} and {other.source}: both are {table.task} of {table.model!r} "
                f"(or {other.model!r}); import them apart and name one with --model"
            )


def check_hashes_agree(tables: tuple[ImportedTable, ...]) -> None:
    """Refuse tables that have different contents under one sample id.

    Raises
    ------
    InputError
        Names both logs and the first such sample.
    """
    known: dict[str, tuple[str, str]] = {}
    for table in tables:
        if table.hashes is None:
            continue
        for sample, digest in zip(table.ids.tolist(), table.hashes.tolist(), strict=True):
            other, source = known.setdefault(sample, (digest, table.source))
            if other != digest:
                raise InputError(
                    f"{table.source}: sample {sample!r} has another content than in {source}: "
                    "another version of the data set; such runs cannot be compared"
                )


def as_prediction_file(table: ImportedTable) -> PredictionFile:
    """Return an import as an opened prediction file, without writing one."""
    kind, values = table.values()
    with_values = kind is not Kind.RESPONSES
    n_classes = values.shape[1] if kind.has_classes else None
    if kind is Kind.LABELS:
        known = [int(column.max()) for column in (values, table.labels) if column is not None]
        options = [] if table.n_options is None else [int(table.n_options.max()) - 1]
        n_classes = max(1, *known, *options) + 1
    return PredictionFile(
        path=table.source,
        kind=kind,
        samples=table.samples(),
        models=(_model(table),),
        n_classes=n_classes,
        dtype=values.dtype,
        read=partial(_rows_of, values),
        read_responses=partial(_rows_of, table.responses)
        if with_values and table.responses is not None
        else None,
        notes=tuple(note.removeprefix(f"{table.source}: ") for note in table.notes),
    )


def write_table(table: ImportedTable, path: Path) -> None:
    """Write a table as an NPZ prediction file.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    kind, values = table.values()
    responses = None if kind is Kind.RESPONSES else table.responses
    write_npz(path, values, kind, table.samples(), (_model(table),), responses=responses)


def _model(table: ImportedTable) -> ModelInfo:
    return ModelInfo(table.model, table.date, table.score)


def _rows_of(values: NDArray[Any], _model: int, rows: Rows) -> NDArray[Any]:
    return values[rows]
