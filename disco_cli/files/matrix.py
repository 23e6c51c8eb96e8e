"""What a prediction file holds, and how several files line up on one benchmark.

Letters, here and everywhere: M models, N samples, C classes, K selected samples.

* A :class:`PredictionFile` is one file, its values unread: who the models are, what is known of the
  samples, and a reader that fetches the values of one model for some rows.
* A :class:`Benchmark` is many such files aligned: one canonical order of samples (independent of
  the order of files and of rows inside them) and models in ascending order of their names.

Values are always fetched for one model and a range of rows, so no caller ever needs the whole
(M, N, C) stack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = slice | NDArray[np.int64]
"""Which rows of a file to fetch: a slice or an array of row numbers."""

Reader = Callable[[int, Rows], NDArray[Any]]
"""(model index inside the file, rows) -> raw values (n, C) or (n,), as stored."""


def as_slice(rows: Rows) -> Rows:
    """Return a run of consecutive rows as a slice."""
    if isinstance(rows, slice) or not len(rows) or rows[-1] - rows[0] != len(rows) - 1:
        return rows
    return slice(int(rows[0]), int(rows[-1]) + 1) if (np.diff(rows) == 1).all() else rows


class Kind(str, Enum):
    """What the values of a file are."""

    PROBABILITIES = "probabilities"
    LOGITS = "logits"
    LOG_PROBABILITIES = "log-probabilities"
    LABELS = "labels"
    RESPONSES = "responses"

    @property
    def has_classes(self) -> bool:
        """Whether the values have a class axis of their own, (n, C) rather than (n,)."""
        return self in (Kind.PROBABILITIES, Kind.LOGITS, Kind.LOG_PROBABILITIES)


@dataclass(frozen=True)
class Samples:
    """What is known of N samples; every array is (N,) and every field but ``n`` may be absent.

    Attributes
    ----------
    n : int
        Number of samples, N.
    ids : NDArray of str, optional
        Unique ids. Without them samples are known by position.
    hashes : NDArray of str, optional
        Hash of each sample's content.
    labels : NDArray of int64, optional
        Right class, -1 where unknown.
    groups : NDArray of str, optional
        Group (task, subject) of each sample.
    weights : NDArray of float64, optional
        Weight of each sample in the score.
    n_options : NDArray of int64, optional
        Number of valid classes of each sample, where choices are ragged.
    class_names : tuple of str, optional
        Names of the C classes.
    """

    n: int
    ids: NDArray[np.str_] | None = None
    hashes: NDArray[np.str_] | None = None
    labels: NDArray[np.int64] | None = None
    groups: NDArray[np.str_] | None = None
    weights: NDArray[np.float64] | None = None
    n_options: NDArray[np.int64] | None = None
    class_names: tuple[str, ...] | None = None

    def take(self, rows: NDArray[np.int64]) -> Samples:
        """Return the samples of these rows, in their order."""

        def pick(column: NDArray[Any] | None) -> Any:
            return None if column is None else column[rows]

        return replace(
            self,
            n=len(rows),
            ids=pick(self.ids),
            hashes=pick(self.hashes),
            labels=pick(self.labels),
            groups=pick(self.groups),
            weights=pick(self.weights),
            n_options=pick(self.n_options),
        )


@dataclass(frozen=True)
class ModelInfo:
    """Name, date (ISO) and known full score of one model."""

    name: str
    date: str | None = None
    score: float | None = None


@dataclass(frozen=True)
class PredictionFile:
    """One opened prediction file; values are fetched on demand.

    Attributes
    ----------
    path : str
        Where it came from, as the user wrote it.
    kind : Kind
        What ``read`` returns.
    samples : Samples
        The samples in the order of the file's rows.
    models : tuple of ModelInfo
        The models in the order of the file.
    n_classes : int or None
        C where the values or ``n_options`` or the labels tell it, ``None`` for responses.
    dtype : numpy dtype
        As stored.
    read : Reader
        Values of one model; -1 in ``labels`` kind and NaN elsewhere mean missing.
    read_responses : Reader or None
        The metric that was logged beside the values, (n,) float, NaN = missing.
    random_access : bool
        Whether some rows can be fetched without reading the others. Where they cannot (compressed
        arrays), fetch one model after the other, all rows at once.
    held_bytes : int
        Most that a thread which reads the file keeps decoded. What is no more than
        :data:`disco_cli.files.kept.SMALL_BYTES` need not be told.
    notes : tuple of str
        What was taken for what; shown to the user on stderr.
    """

    path: str
    kind: Kind
    samples: Samples
    models: tuple[ModelInfo, ...]
    n_classes: int | None
    dtype: np.dtype[Any]
    read: Reader
    read_responses: Reader | None = None
    random_access: bool = True
    held_bytes: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BenchmarkModel:
    """One model of a benchmark and where its values lie.

    ``rows`` is (N,) int64, the row of each benchmark sample inside the file and -1 where the file
    lacks it; ``None`` when the file's rows are the benchmark's samples in the same order.
    """

    info: ModelInfo
    file: PredictionFile
    index: int
    rows: NDArray[np.int64] | None

    @property
    def name(self) -> str:
        """The model's name."""
        return self.info.name


@dataclass(frozen=True)
class Benchmark:
    """Prediction files aligned on one canonical list of samples.

    Built by :func:`disco_cli.files.align.align`; see there for the order of samples and models.

    Attributes
    ----------
    samples : Samples
        All N samples in canonical order, the union over files.
    models : tuple of BenchmarkModel
        Ascending by name.
    n_classes : int or None
        C, equal in all files; ``None`` for responses.
    counts_no_answer : bool
        Whether a predicted label of -1 means "no answer": wrong where labels exist, and a class of
        its own (index C) beside the others. Otherwise it is missing, as every negative one.
    notes : tuple of str
        What was taken for what, for stderr.
    """

    samples: Samples
    models: tuple[BenchmarkModel, ...]
    n_classes: int | None
    counts_no_answer: bool = False
    notes: tuple[str, ...] = field(default=())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models, ascending."""
        return tuple(model.name for model in self.models)

    @property
    def by_position(self) -> bool:
        """Whether samples are known by their position only."""
        return self.samples.ids is None

    @property
    def width(self) -> int:
        """Columns of every block of probabilities.

        C, one more where "no answer" is a class, and 2 for responses, which are read as (y, 1 - y).
        """
        if self.n_classes is None:
            return 2
        return self.n_classes + int(self.counts_no_answer)
