"""From raw arrays of any format to a checked :class:`PredictionFile`.

The formats differ in where values lie. What the values are, whom they belong to and whether all
that stands beside them fits is decided here, once for all formats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import InputError
from disco_cli.files.columns import read_models, read_samples, row_error
from disco_cli.files.kinds import detect_kind
from disco_cli.files.matrix import Kind, ModelInfo, PredictionFile, Reader, Rows, Samples
from disco_cli.files.values import BadRowError, to_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

ROWS_LOOKED_AT = 64
"""Rows per model. Enough that a few that look like another kind by accident are told from many."""

_ROWS_TOGETHER = 4


@dataclass(frozen=True)
class Source:
    """Where the values of a file are and what is known of them before they are read.

    Attributes
    ----------
    path : str
        As the user wrote it.
    key : str
        What the values are called in the file, for messages.
    named : Kind or None
        What that name says they are; ``None`` leaves probabilities, logits or log-probabilities
        to be told by their values.
    shape : tuple of int
        (M, N) for labels and responses, (M, N, C) else.
    dtype : numpy dtype
        As stored.
    read : Reader
        Rows of one model.
    first_rows : callable or None
        Fetches the first rows of the first model, where reading a spread of rows of every model
        would mean reading the whole file.
    responses : Reader or None
        The metric beside the values.
    """

    path: str
    key: str
    named: Kind | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Reader
    first_rows: Callable[[int], NDArray[Any]] | None = None
    responses: Reader | None = None


def assemble(
    source: Source,
    sample_columns: Mapping[str, NDArray[Any]],
    model_columns: Mapping[str, NDArray[Any]],
    forced: Kind | None,
) -> PredictionFile:
    """Check all parts of a file against each other and put them together.

    Parameters
    ----------
    source : Source
        The values.
    sample_columns, model_columns : mapping of str to NDArray
        As :func:`read_samples` and :func:`read_models` want them.
    forced : Kind, optional
        The user's word on the kind, which is not doubted.

    Raises
    ------
    InputError
        If anything is out of range, doubtful, or contradicts something else.
    """
    path, (n_models, n) = source.path, source.shape[:2]
    n_classes = source.shape[2] if len(source.shape) == 3 else None
    if 0 in source.shape:
        raise InputError(f"{path}: {source.key} is empty; it has shape {source.shape}")
    if n_classes == 1:
        raise InputError(
            f"{path}: {source.key} has one class only; for two outcomes store both probabilities"
        )
    samples = read_samples(path, sample_columns, n, n_classes)
    models = read_models(path, model_columns, n_models)
    notes = []
    if "model_names" not in model_columns and n_models > 1:
        notes.append(f"models without names are called {models[0].name} … {models[-1].name}")
    kind = forced or source.named
    read = source.read
    if forced is None and n_classes is not None:
        kinds = _Kinds(source, samples, models)
        kind = kinds.decide()
        if source.first_rows is not None:
            read = partial(kinds.read_checked, kind)
        if source.named is None:
            notes.append(f"{source.key} taken for {kind.value}")
    if kind is None:
        raise TypeError(f"{source.key} has no class axis and no name")
    if kind is Kind.LABELS:
        n_classes = _classes_of_labels(source, samples, models)
    return PredictionFile(
        path=path,
        kind=kind,
        samples=samples,
        models=models,
        n_classes=n_classes,
        dtype=source.dtype,
        read=read,
        read_responses=source.responses,
        random_access=source.first_rows is None,
        notes=tuple(notes),
    )


class _Kinds:
    """Tells the kind of each model of a file from a spread of its rows."""

    def __init__(self, source: Source, samples: Samples, models: tuple[ModelInfo, ...]) -> None:
        self.source = source
        self.samples = samples
        self.models = models
        self.looked_at: set[int] = set()

    def decide(self) -> Kind:
        """Return the kind of the file, from all models where each can be read by itself."""
        if self.source.first_rows is not None:
            rows = np.arange(min(self.samples.n, ROWS_LOOKED_AT))
            return self._look(0, self.source.first_rows(len(rows)), rows)
        kind = self._look_at(0)
        for model in range(1, len(self.models)):
            self._agree(kind, model, self._look_at(model))
        return kind

    def read_checked(self, kind: Kind, model: int, rows: Rows) -> NDArray[Any]:
        """Read rows of a model, and look at some of them the first time."""
        values = self.source.read(model, rows)
        if model not in self.looked_at and len(values):
            some = _spread(len(values))
            self._agree(kind, model, self._look(model, values[some], self._numbers(rows)[some]))
            self.looked_at.add(model)
        return values

    def _numbers(self, rows: Rows) -> NDArray[np.int64]:
        numbers: NDArray[np.int64] = np.arange(self.samples.n)[rows]
        return numbers

    def _agree(self, kind: Kind, model: int, found: Kind) -> None:
        if found is not kind:
            raise InputError(
                f"{self.source.path}: model {self.models[model].name!r} holds {found.value}, but "
                f"the file begins with {kind.value}; keep each file to one kind, or name it "
                "with --kind"
            )

    def _look_at(self, model: int) -> Kind:
        rows = _spread(self.samples.n)
        return self._look(model, self.source.read(model, rows), rows)

    def _look(self, model: int, values: NDArray[Any], rows: NDArray[np.int64]) -> Kind:
        options = None if self.samples.n_options is None else self.samples.n_options[rows]
        try:
            return detect_kind(values, options, self.source.named)
        except BadRowError as error:
            name = self.models[model].name if len(self.models) > 1 else None
            row = int(rows[error.row])
            raise row_error(
                self.source.path, row, error.found, ids=self.samples.ids, model=name
            ) from error


def _spread(n: int) -> NDArray[np.int64]:
    """Return up to ``ROWS_LOOKED_AT`` rows from all over n, some together, as each place is read."""
    if n <= ROWS_LOOKED_AT:
        return np.arange(n)
    places = ROWS_LOOKED_AT // _ROWS_TOGETHER
    starts = np.arange(places) * (n - _ROWS_TOGETHER) // (places - 1)  # distinct, as n is larger
    rows: NDArray[np.int64] = (starts[:, np.newaxis] + np.arange(_ROWS_TOGETHER)).ravel()
    return rows


def _classes_of_labels(source: Source, samples: Samples, models: tuple[ModelInfo, ...]) -> int:
    """Return C: what the class names tell, or one more than the largest label or option seen."""
    if samples.class_names is not None:
        return len(samples.class_names)
    top = -1
    for model in range(source.shape[0]):
        predicted = source.read(model, slice(None))
        try:
            top = max(top, int(to_labels(predicted).max(initial=-1)))
        except BadRowError as error:
            name = models[model].name if len(models) > 1 else None
            raise row_error(
                source.path, error.row, error.found, ids=samples.ids, model=name
            ) from error
    if samples.labels is not None:
        top = max(top, int(samples.labels.max()))
    if samples.n_options is not None:
        top = max(top, int(samples.n_options.max()) - 1)
    return max(top + 1, 2)
