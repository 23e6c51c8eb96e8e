"""Reading the same samples of several models into one array, to be worked on at once.

A call of numpy costs a microsecond or more whatever it is given, and threads wait for each other
around it. Many models × few samples are as quick to work on as one model × many samples, but what
is kept of each sample is then touched once for all of these models.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.files.align import blame, read_values
from disco_cli.files.fetch import ModelReader, OpenedModel
from disco_cli.files.matrix import Kind
from disco_cli.files.values import (
    BadRowError,
    Floats,
    correctness,
    to_probabilities,
    working,
    working_dtype,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

    from disco_cli.files.matrix import Benchmark, BenchmarkModel


STACKED = 4
"""Models that are read together. More of them mean more reads of fewer bytes for the same values."""


def stackable(model: BenchmarkModel) -> bool:
    """Return whether a model has a row of values for each sample, which can be read anywhere."""
    return model.file.kind.has_classes and model.file.random_access


def alike(benchmark: Benchmark, models: range) -> list[range]:
    """Cut models into runs of up to ``STACKED`` that make a :class:`Stack`.

    Their files are of one kind and type, and all have responses beside the values, or none.
    """

    def form(m: int) -> tuple[Any, ...]:
        file = benchmark.models[m].file
        return file.kind, _held_as(benchmark.models[m]), file.read_responses is None

    runs = [list(run) for _, run in groupby(models, form)]
    return [
        range(m, min(m + STACKED, run[-1] + 1))
        for run in runs
        for m in range(run[0], run[-1] + 1, STACKED)
    ]


def _held_as(model: BenchmarkModel) -> np.dtype[Any]:
    """Return the type in which values are held: as stored, if that can say what is missing."""
    dtype = model.file.dtype
    return dtype if dtype.kind == "f" else working_dtype(dtype)


class Stack:
    """Some models of one kind and type whose values are read together; a context manager.

    Parameters
    ----------
    benchmark : Benchmark
        All models.
    models : range
        Which of them, a run of :func:`alike`.
    size : int
        Samples that are read at once, at most.

    Attributes
    ----------
    kind : Kind
        What all their values are.
    dtype : numpy.dtype
        How these are held.
    holds_probabilities : bool
        Whether values are probabilities as they are, if they are any.
    """

    def __init__(self, benchmark: Benchmark, models: range, size: int) -> None:
        self.benchmark = benchmark
        self.models = models
        first = benchmark.models[models.start]
        self.kind = first.file.kind
        n_options = benchmark.samples.n_options
        self.holds_probabilities = (
            self.kind is Kind.PROBABILITIES
            and not benchmark.counts_no_answer
            and (n_options is None or bool((n_options >= (first.file.n_classes or 0)).all()))
        )
        self._open = ExitStack()
        self._files: list[OpenedModel | None] = []
        shape = (len(models), size, first.file.n_classes or 0)
        self.dtype = _held_as(first)
        self._buffer = np.empty(shape, self.dtype)

    def __enter__(self) -> Self:
        """Open the files."""
        with ExitStack() as opening:
            for m in self.models:
                self._files.append(self._opened(self.benchmark.models[m], opening))
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        self._open.close()

    def _opened(self, model: BenchmarkModel, opening: ExitStack) -> OpenedModel | None:
        read = model.file.read
        if not isinstance(read, ModelReader) or not read.in_place:
            return None
        if read.stored.dtype != _held_as(model):
            return None
        opened = read.opened(model.index)
        opening.callback(opened.close)
        return opened

    def places(self, rows: slice) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return the handles of the open files, and the bytes at which samples begin in each.

        ``None`` unless all files are open and hold these samples one after another as they are.
        """
        found = []
        for m, file in zip(self.models, self._files, strict=True):
            start = None if file is None else _first_row(self.benchmark.models[m], rows)
            if file is None or start is None:
                return None
            found.append((file.handle, file.place(start)))
        handles, offsets = np.array(found, np.int64).T.copy()
        return handles, offsets

    def read(self, rows: slice) -> Floats:
        """Return the values of these n samples, (models × n, C), model after model.

        They are checked by nobody yet; missing rows are all NaN. The next call overwrites them.
        """
        n = rows.stop - rows.start
        n_models, _, n_classes = self._buffer.shape
        block = self._buffer.reshape(-1)[: n_models * n * n_classes].reshape(-1, n, n_classes)
        for m, file, values in zip(self.models, self._files, block, strict=True):
            start = None if file is None else _first_row(self.benchmark.models[m], rows)
            if file is None or start is None:
                values[...] = read_values(self.benchmark, m, rows)
            else:
                file.read_rows(start, values)
        return working(block.reshape(-1, n_classes))

    def probabilities(self, values: Floats, rows: slice) -> Floats:
        """Return the probabilities (models × n, width) that values stand for, checked.

        Raises
        ------
        InputError
            If a row cannot be used; names file, row and sample.
        """
        try:
            return to_probabilities(
                values,
                self.kind,
                self._repeated(self.benchmark.samples.n_options, rows),
                self.benchmark.n_classes,
                counts_no_answer=self.benchmark.counts_no_answer,
            )
        except BadRowError as error:
            raise self._blamed(error, rows) from error

    def correctness(self, values: Floats, rows: slice) -> NDArray[np.float64]:
        """Return how right each row of values is by the labels, (models, n); NaN where unknown."""
        samples = self.benchmark.samples
        try:
            correct = correctness(
                values,
                self.kind,
                self._repeated(samples.labels, rows),
                self._repeated(samples.n_options, rows),
                counts_no_answer=self.benchmark.counts_no_answer,
            )
        except BadRowError as error:
            raise self._blamed(error, rows) from error
        return correct.reshape(len(self.models), -1)

    def _repeated(self, column: NDArray[np.int64] | None, rows: slice) -> NDArray[np.int64] | None:
        return None if column is None else np.tile(column[rows], len(self.models))

    def _blamed(self, error: BadRowError, rows: slice) -> Exception:
        which, sample = divmod(error.row, rows.stop - rows.start)
        model = self.benchmark.models[self.models[which]]
        row = rows.start + sample
        return blame(model, row if model.rows is None else int(model.rows[row]), error.found)


def _first_row(model: BenchmarkModel, rows: slice) -> int | None:
    """Return where samples begin in a file that has all of them in a row, else ``None``."""
    if model.rows is None:
        return int(rows.start)
    found = model.rows[rows]
    if found.min() < 0 or not (np.diff(found) == 1).all():
        return None
    return int(found[0])
