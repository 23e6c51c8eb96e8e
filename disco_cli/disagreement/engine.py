"""Scoring every sample of a benchmark in one pass over the files.

Models are taken in ascending order of names, in groups of ``GROUP``; a group is always summed by
one thread, block by block. What is added to the state is exact (see
:mod:`disco_cli.disagreement.state`), so threads, blocks and panels change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.disagreement.observe import (
    add_group_sums,
    observe_correctness,
    observe_labels,
    observe_probabilities,
)
from disco_cli.disagreement.plan import EngineOptions, cut
from disco_cli.disagreement.state import GROUP, Figures, State, finish
from disco_cli.files.align import read_correctness, read_probabilities, read_values
from disco_cli.files.matrix import Benchmark, Kind
from disco_cli.files.values import working_dtype
from disco_cli.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from disco_cli.disagreement.measures import Floats


@dataclass(frozen=True)
class SampleScores:
    """Disagreement on each sample of a benchmark; every array is (N,).

    Attributes
    ----------
    pds, jsd, confidence : NDArray of float64
        As :mod:`disco_cli.disagreement.measures` defines them; NaN where no model has the sample.
    n_models : NDArray of int64
        Models that have the sample.
    error_rate : NDArray of float64 or None
        1 − mean correctness (or response) over the models; NaN where none is known, ``None`` where
        neither labels nor responses in [0, 1] exist.
    """

    pds: NDArray[np.float64]
    jsd: NDArray[np.float64]
    confidence: NDArray[np.float64]
    n_models: NDArray[np.int64]
    error_rate: NDArray[np.float64] | None


def score_benchmark(
    benchmark: Benchmark,
    *,
    options: EngineOptions | None = None,
    progress: Progress = SILENT,
) -> SampleScores:
    """Score all samples of a benchmark.

    Parameters
    ----------
    benchmark : Benchmark
        Aligned prediction files with at least one model.
    options : EngineOptions, optional
        Bounds on memory and threads.
    progress : Progress
        Told of every model that is done.

    Returns
    -------
    SampleScores
        The same bits whatever the options and the order of files and rows.

    Raises
    ------
    InputError
        A row that cannot be used; names file, row and sample.
    """
    options = options or EngineOptions()
    M, N = len(benchmark.models), benchmark.samples.n
    state = State.empty(N, benchmark.width, state_dtype(benchmark))
    progress.start(M, "Scoring")
    for models in groups(M):
        add_group(benchmark, models, state, options)
        progress.advance(len(models))
    return collect([finish(state)])


def groups(n_models: int) -> list[range]:
    """Return the models of each group, by their place in the ascending order of names."""
    return [range(m, min(m + GROUP, n_models)) for m in range(0, n_models, GROUP)]


def state_dtype(benchmark: Benchmark) -> np.dtype[Any]:
    """Return the precision of maxima and group sums: float64 if any file has more than float32."""
    wide = any(
        model.file.kind is not Kind.LABELS and working_dtype(model.file.dtype) == np.float64
        for model in benchmark.models
    )
    return np.dtype(np.float64 if wide else np.float32)


def add_group(benchmark: Benchmark, models: range, state: State, options: EngineOptions) -> None:
    """Add one whole group of models to a state."""
    sums = np.zeros_like(state.maximum)
    blocks = cut(len(sums), options.block_elements // max(benchmark.width, 1))
    for m in models:
        for rows in blocks:
            _observe(benchmark, m, rows, state, sums[rows])
    for rows in blocks:
        add_group_sums(state, rows, sums[rows])


def _observe(benchmark: Benchmark, m: int, rows: slice, state: State, sums: Floats) -> None:
    """Add one model's block to a state and to the sums of its group."""
    file, labels = benchmark.models[m].file, benchmark.samples.labels
    if file.kind is Kind.LABELS:
        answers = read_values(benchmark, m, rows)
        observe_labels(state, rows, sums, answers)
    else:
        answers = observe_probabilities(state, rows, sums, read_probabilities(benchmark, m, rows))
    if file.kind is Kind.RESPONSES or file.read_responses is not None:
        observe_correctness(state, rows, read_correctness(benchmark, m, rows))
    elif labels is not None and file.kind in (Kind.PROBABILITIES, Kind.LABELS):
        unknown = (answers < 0) | (labels[rows] < 0)
        observe_correctness(state, rows, np.where(unknown, np.nan, answers == labels[rows]))
    elif labels is not None:  # rounding can make the two best of many logits one probability
        observe_correctness(state, rows, read_correctness(benchmark, m, rows))


def collect(figures: Sequence[Figures]) -> SampleScores:
    """Join the figures of consecutive ranges of samples."""

    def join(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in figures])

    error_rate = join("error_rate")
    return SampleScores(
        pds=join("pds"),
        jsd=join("jsd"),
        confidence=join("confidence"),
        n_models=join("n_models"),
        error_rate=None if np.isnan(error_rate).all() else error_rate,
    )
