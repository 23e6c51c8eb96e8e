"""Adding models to the state of one panel, that is of a range of samples.

Models are taken in ascending order of names, in groups of ``GROUP``. A group is summed by one
thread, block by block; what it adds to the state is exact (see
:mod:`disco_cli.disagreement.state`), so groups may be added in any order by any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.disagreement.observe import (
    UNSHARED,
    add_group_sums,
    observe_correctness,
    observe_labels,
    observe_probabilities,
)
from disco_cli.disagreement.plan import EngineOptions, cut
from disco_cli.disagreement.state import GROUP, State
from disco_cli.files.align import read_correctness, read_probabilities, read_values
from disco_cli.files.matrix import Benchmark, BenchmarkModel, Kind
from disco_cli.files.values import working_dtype

if TYPE_CHECKING:
    import threading

    from numpy.typing import NDArray

    from disco_cli.disagreement.correctness import Correctness
    from disco_cli.disagreement.measures import Floats


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


def in_file_order(model: BenchmarkModel) -> bool:
    """Return whether the file has its rows in the order of the samples.

    If so, a few samples after the other can be read at no extra cost.
    """
    if model.rows is None:
        return True
    present = model.rows[model.rows >= 0]
    return bool((np.diff(present) > 0).all())


Guards = Sequence[AbstractContextManager[Any]]
"""Locks of a state that several threads add to, one for each block."""


class Panel:
    """A range of samples and how it is worked on.

    Parameters
    ----------
    benchmark : Benchmark
        All models.
    rows : slice
        The samples.
    options : EngineOptions
        Tells how much is worked on at once.
    ordered : sequence of bool
        Of each model, whether it is :func:`in_file_order`.
    kept : Correctness, optional
        Where to keep how right each model is.

    Attributes
    ----------
    blocks : list of slice
        What is worked on at once, counted from the start of the panel.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        rows: slice,
        options: EngineOptions,
        ordered: Sequence[bool],
        kept: Correctness | None = None,
    ) -> None:
        self.benchmark = benchmark
        self.rows = rows
        self.ordered = ordered
        self.kept = kept
        self.n = rows.stop - rows.start
        self.blocks = cut(self.n, options.block_elements // max(benchmark.width, 1))

    def empty(self) -> State:
        """Return the state of the panel's samples without any model."""
        return State.empty(self.n, self.benchmark.width, state_dtype(self.benchmark))

    def add(
        self,
        models: range,
        state: State,
        guards: Guards | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Add one whole group of models to a state; leave it half done when ``stop`` is set."""
        guards = guards or [UNSHARED] * len(self.blocks)
        sums = np.zeros_like(state.maximum)
        work = np.empty_like(sums[: max(rows.stop - rows.start for rows in self.blocks)])
        for m in models:
            if stop is not None and stop.is_set():
                return
            values = None if self.ordered[m] else self._read(m, slice(0, self.n))
            for rows, guard in zip(self.blocks, guards, strict=True):
                part = self._read(m, rows) if values is None else values.take(rows)
                correct = _observe(part, state, rows, sums[rows], guard=guard, work=work)
                if self.kept is not None and correct is not None:
                    self.kept.put(m, self._samples(rows), correct)
        for rows, guard in zip(self.blocks, guards, strict=True):
            add_group_sums(state, rows, sums[rows], guard)

    def _read(self, m: int, rows: slice) -> _Values:
        """Read what model m says of some rows of the panel, and how right it is."""
        benchmark, file = self.benchmark, self.benchmark.models[m].file
        samples = self._samples(rows)
        read = read_values if file.kind is Kind.LABELS else read_probabilities
        values = read(benchmark, m, samples)
        labels = benchmark.samples.labels
        if file.kind is Kind.RESPONSES or file.read_responses is not None:
            return _Values(values, correct=read_correctness(benchmark, m, samples))
        if labels is None:
            return _Values(values)
        if file.kind in (Kind.LABELS, Kind.PROBABILITIES):
            return _Values(values, labels=labels[samples])
        # Rounding can make one probability of the two best of many logits.
        return _Values(values, correct=read_correctness(benchmark, m, samples))

    def _samples(self, rows: slice) -> slice:
        """Return which samples of the benchmark some rows of the panel are."""
        return slice(self.rows.start + rows.start, self.rows.start + rows.stop)


@dataclass(frozen=True)
class _Values:
    """What one model says of some samples: probabilities (n, C) or predicted labels (n,).

    How right it is follows from ``labels`` where these are given, else it is ``correct``.
    """

    values: NDArray[Any]
    labels: NDArray[np.int64] | None = None
    correct: NDArray[np.float64] | None = None

    def take(self, rows: slice) -> _Values:
        """Return the part for some of the samples."""

        def pick(column: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if column is None else column[rows]

        return _Values(self.values[rows], pick(self.labels), pick(self.correct))


def _observe(
    part: _Values,
    state: State,
    rows: slice,
    sums: Floats,
    *,
    guard: AbstractContextManager[Any],
    work: Floats,
) -> Floats | None:
    """Add one model's block to a state and to the sums of its group; return how right it is."""
    if part.values.ndim == 1:
        answers = part.values
        observe_labels(state, rows, sums, answers, guard)
    else:
        answers = observe_probabilities(state, rows, sums, part.values, guard=guard, work=work)
    correct = part.correct
    if part.labels is not None:
        unknown = (answers < 0) | (part.labels < 0)
        correct = np.where(unknown, np.nan, answers == part.labels)
    if correct is not None:
        observe_correctness(state, rows, correct, guard)
    return correct
