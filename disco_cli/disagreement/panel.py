"""Adding models to the state of one panel, that is of a range of samples.

Models are taken in ascending order of names, in groups of ``GROUP``. The probabilities of a group
are added one after another; what the group adds to the state is exact (see
:mod:`disco_cli.disagreement.state`), so groups may be added in any order by any number of threads.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.disagreement.observe import (
    add,
    add_correctness,
    add_from_files,
    add_group_sums,
    add_labels,
    observe,
)
from disco_cli.disagreement.plan import EngineOptions, cut
from disco_cli.disagreement.state import GROUP, State
from disco_cli.disagreement.turns import Turns
from disco_cli.files.align import read_correctness, read_probabilities, read_values
from disco_cli.files.matrix import Benchmark, BenchmarkModel, Kind
from disco_cli.files.stack import STACKED, Stack, alike, stackable
from disco_cli.files.values import working_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        What is worked on at once of a single model, counted from the start of the panel.
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
        self._block_rows = options.block_elements // max(benchmark.width, 1)
        self.blocks = cut(self.n, self._block_rows)

    def empty(self) -> State:
        """Return the state of the panel's samples without any model."""
        return State.empty(self.n, self.benchmark.width, state_dtype(self.benchmark))

    def add(self, models: range, state: State) -> None:
        """Add one whole group of models to a state."""
        if all(self.ordered[m] and stackable(self.benchmark.models[m]) for m in models):
            self._add_together(models, state)
            return
        sums, turns = np.zeros_like(state.maximum), Turns(len(self.blocks), models.start)
        for m in models:
            self.add_model(m, state, sums, turns)

    def _add_together(self, models: range, state: State) -> None:
        """Add a group of models, all of which can be read anywhere, few samples at a time."""
        # Twice a block: compiled loops read no more than fits the cache of it at a time.
        tiles = cut(self.n, 2 * self._block_rows // min(len(models), STACKED))
        size = max(rows.stop - rows.start for rows in tiles)
        sums = np.empty_like(state.maximum[:size])
        with ExitStack() as files:
            stacks = [
                files.enter_context(Stack(self.benchmark, run, size))
                for run in alike(self.benchmark, models)
            ]
            responses = [self._responses(stack.models) for stack in stacks]
            for rows in tiles:
                part = sums[: rows.stop - rows.start]
                for stack, known in zip(stacks, responses, strict=True):
                    correct = self._add_stack(stack, rows, state, part, first=stack is stacks[0])
                    correct = correct if known is None else known[:, rows]
                    self._judge(stack.models, rows, state, correct)
                add_group_sums(state, rows, part)

    def _add_stack(
        self, stack: Stack, rows: slice, state: State, sums: Floats, *, first: bool
    ) -> NDArray[np.float64] | None:
        """Add a stack of models; return how right they are by the labels (M, n), if there are any."""
        samples, labels = self._samples(rows), self.benchmark.samples.labels
        done, answers = add_from_files(state, rows, sums, stack, samples, first=first)
        known = None
        if labels is not None and answers is not None:
            known = _compared(answers[:, :done], labels[samples][:done])
        if done == len(sums):
            return known
        rest = slice(rows.start + done, rows.stop)
        correct = self._add_checked(stack, rest, state, sums[done:], first=first)
        return correct if known is None else np.concatenate([known, correct], axis=1)

    def _add_checked(
        self, stack: Stack, rows: slice, state: State, sums: Floats, *, first: bool
    ) -> NDArray[np.float64] | None:
        """Do as :meth:`_add_stack`, with checks that find missing rows and name faulty ones."""
        samples, labels = self._samples(rows), self.benchmark.samples.labels
        values = stack.read(samples)
        seen = observe(stack.probabilities(values, samples), len(stack.models))
        add(state, rows, sums, seen, first=first)
        if labels is None:
            return None
        if stack.kind is Kind.PROBABILITIES:
            return _compared(seen.answers(), labels[samples])
        # Rounding can make one probability of the two best of many logits.
        return stack.correctness(values, samples)

    def _responses(self, models: range) -> NDArray[np.float64] | None:
        """Return the responses (M, n) of models whose files hold them beside the values."""
        if self.benchmark.models[models.start].file.read_responses is None:
            return None
        return np.stack([read_correctness(self.benchmark, m, self.rows) for m in models])

    def add_model(self, m: int, state: State, sums: Floats, turns: Turns) -> None:
        """Add one model, read from its start to its end.

        Parameters
        ----------
        m : int
            The model.
        state : State
            Changed in place, once it is the model's turn.
        sums : NDArray of float of shape (n, C)
            Sum over the models of this group so far; zero again after the last of them.
        turns : Turns
            Who may change which of ``blocks``.
        """
        values = None if self.ordered[m] else self._read(m, slice(0, self.n))
        ends_group = (m + 1) % GROUP == 0 or m + 1 == len(self.benchmark.models)
        for block, rows in enumerate(self.blocks):
            part = self._read(m, rows) if values is None else values.take(rows)
            seen = None if part.values.ndim == 1 else observe(part.values, 1)
            correct = part.correct
            if part.labels is not None:
                answers = part.values[np.newaxis] if seen is None else seen.answers()
                correct = _compared(answers, part.labels)
            with turns.turn(block, m):
                if seen is None:
                    add_labels(state, rows, sums[rows], part.values)
                else:
                    add(state, rows, sums[rows], seen)
                self._judge(range(m, m + 1), rows, state, correct)
                if ends_group:
                    add_group_sums(state, rows, sums[rows])

    def _judge(
        self, models: range, rows: slice, state: State, correct: NDArray[np.float64] | None
    ) -> None:
        """Add, and keep, how right models are, (M, n)."""
        if correct is not None:
            add_correctness(state, rows, correct)
            if self.kept is not None:
                self.kept.put(models, self._samples(rows), correct)

    def _read(self, m: int, rows: slice) -> _Values:
        """Read what model m says of some rows of the panel, and how right it is."""
        benchmark, file = self.benchmark, self.benchmark.models[m].file
        samples = self._samples(rows)
        read = read_values if file.kind is Kind.LABELS else read_probabilities
        values = read(benchmark, m, samples)
        labels = benchmark.samples.labels
        if file.kind is Kind.RESPONSES or file.read_responses is not None:
            return _Values(values, correct=read_correctness(benchmark, m, samples)[np.newaxis])
        if labels is None:
            return _Values(values)
        if file.kind in (Kind.LABELS, Kind.PROBABILITIES):
            return _Values(values, labels=labels[samples])
        # Rounding can make one probability of the two best of many logits.
        return _Values(values, correct=read_correctness(benchmark, m, samples)[np.newaxis])

    def _samples(self, rows: slice) -> slice:
        """Return which samples of the benchmark some rows of the panel are."""
        return slice(self.rows.start + rows.start, self.rows.start + rows.stop)


@dataclass(frozen=True)
class _Values:
    """What one model says of some samples: probabilities (n, C) or predicted labels (n,).

    How right it is follows from ``labels`` (n,) where these are given, else it is ``correct``,
    (1, n).
    """

    values: NDArray[Any]
    labels: NDArray[np.int64] | None = None
    correct: NDArray[np.float64] | None = None

    def take(self, rows: slice) -> _Values:
        """Return the part for some of the samples."""
        return _Values(
            self.values[rows],
            None if self.labels is None else self.labels[rows],
            None if self.correct is None else self.correct[:, rows],
        )


def _compared(answers: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 1 where answers (M, n) are the labels (n,), 0 where not, NaN where unknown."""
    correct: NDArray[np.float64] = (answers == labels).astype(np.float64)
    correct[(answers < 0) | (labels < 0)] = np.nan
    return correct
