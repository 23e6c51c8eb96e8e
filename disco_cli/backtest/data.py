"""What a backtest works on: models with known full scores, all of their responses in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import InputError, UsageError
from disco_cli.estimation.truth import Average, full_scores, sample_weights
from disco_cli.files.align import align, has_correctness, read_probabilities, responses
from disco_cli.files.location import expand
from disco_cli.files.matrix import Kind
from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.open import open_inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from disco_cli.backtest.baselines.interface import ProbabilityReader
    from disco_cli.files.matrix import Benchmark, Rows

MIN_OBSERVED = 0.95
"""Models that answered a smaller share of the score's weight are left out: their full score, which
everything here is measured against, would be a guess."""

MATERIALISE_BYTES = 1 << 29
"""Probabilities up to this size are decoded once and kept in single precision."""


@dataclass(frozen=True)
class BacktestData:
    """Models, their responses and their full scores.

    Attributes
    ----------
    names : tuple of str
        The M models, ascending.
    responses : NDArray of float64, shape (M, N)
        NaN = missing.
    weights : NDArray of float64, shape (N,)
        Weights of the score; they sum to 1.
    truth : NDArray of float64, shape (M,)
        Full scores over the samples that each model answered.
    dates : tuple of (str or None)
        ISO date of each model.
    groups : NDArray of int64, shape (N,), optional
        Group of each sample, numbered from 0.
    probabilities : ProbabilityReader, optional
        Probabilities of a model (by index) on some samples.
    n_classes : int, optional
        Width of the probabilities.
    notes : tuple of str
        What the user should know, for stderr.
    """

    names: tuple[str, ...]
    responses: NDArray[np.float64]
    weights: NDArray[np.float64]
    truth: NDArray[np.float64]
    dates: tuple[str | None, ...]
    groups: NDArray[np.int64] | None = None
    probabilities: ProbabilityReader | None = None
    n_classes: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of everything that a result can depend on."""
        digest = hashlib.sha256(repr((self.names, self.dates, self.n_classes)).encode())
        for array in (self.responses, self.weights, self.truth, self.groups):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        if self.probabilities is not None:
            for m in range(len(self.names)):
                values = self.probabilities(m, slice(None))
                digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class FileSource:
    """Prediction files to load; small enough to be sent to other processes.

    Attributes
    ----------
    paths : tuple of str
        Prediction files, or logs of other evaluation tools.
    kind : Kind, optional
        What the values are; decided per file if absent.
    counts_no_answer : bool
        Whether a predicted label of -1 means "no answer".
    average : Average
        Micro or macro.
    logs : ImportOptions, optional
        What to take of logs of other evaluation tools.
    """

    paths: tuple[str, ...]
    kind: Kind | None = None
    counts_no_answer: bool = False
    average: Average = Average.MICRO
    logs: ImportOptions | None = None

    def __call__(self) -> BacktestData:
        """Open, align and load the files.

        Raises
        ------
        UsageError
            If there is no path.
        InputError
            If a file is bad, or nothing tells whether answers are right.
        """
        if not self.paths:
            raise UsageError("no prediction files given: the pattern matched nothing?")
        files = open_inputs(expand(self.paths), self.kind, self.logs)
        return load(align(files, counts_no_answer=self.counts_no_answer), self.average)


def load(benchmark: Benchmark, average: Average = Average.MICRO) -> BacktestData:
    """Load a benchmark; models whose full score is not known are left out, and named in a note.

    Raises
    ------
    InputError
        If there are neither labels nor responses.
    """
    if not has_correctness(benchmark):
        raise InputError(
            "a backtest compares estimates with true scores, but the files hold neither labels nor "
            "responses; add labels (N,) to one of them"
        )
    y = responses(benchmark)
    samples = benchmark.samples
    weights = sample_weights(samples, average)
    observed = ~np.isnan(y) @ weights
    kept = np.flatnonzero(observed >= MIN_OBSERVED)
    notes = list(benchmark.notes)
    if len(kept) < len(y):
        notes.append(
            f"{len(y) - len(kept)} of {len(y)} models left out of the backtest: they answered "
            f"less than {MIN_OBSERVED:.0%} of the benchmark, so their full score is not known"
        )
    read = None
    if benchmark.models[0].file.kind is not Kind.RESPONSES:
        read = _reader(benchmark, kept)
    return BacktestData(
        names=tuple(benchmark.models[m].name for m in kept),
        responses=y[kept],
        weights=weights,
        truth=full_scores(y[kept], samples, average),
        dates=tuple(benchmark.models[m].info.date for m in kept),
        groups=_group_numbers(samples.groups),
        probabilities=read,
        n_classes=None if read is None else benchmark.width,
        notes=tuple(notes),
    )


def _group_numbers(groups: NDArray[np.str_] | None) -> NDArray[np.int64] | None:
    if groups is None:
        return None
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _reader(benchmark: Benchmark, kept: NDArray[np.int64]) -> ProbabilityReader:
    """Return a reader of the models kept; from memory if they fit there."""

    def read(m: int, rows: Rows) -> NDArray[Any]:
        return read_probabilities(benchmark, int(kept[m]), rows)

    width = benchmark.width
    if len(kept) * benchmark.samples.n * width * 4 > MATERIALISE_BYTES:
        return read
    stack = np.empty((len(kept), benchmark.samples.n, width), np.float32)
    for m in range(len(kept)):
        stack[m] = read(m, slice(None))

    def read_stack(m: int, rows: Rows) -> NDArray[Any]:
        return stack[m, rows]

    return read_stack
