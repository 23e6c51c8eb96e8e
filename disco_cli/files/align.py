"""Lining up prediction files on one benchmark, and reading the values of its samples."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import InputError
from disco_cli.files.columns import row_error
from disco_cli.files.identity import SampleIndex
from disco_cli.files.matrix import Benchmark, BenchmarkModel, Kind, PredictionFile, Rows
from disco_cli.files.merge import Placed, merge_samples
from disco_cli.files.values import (
    BadRowError,
    Floats,
    check_responses,
    correctness,
    to_labels,
    to_probabilities,
    working,
)
from disco_cli.files.widen import is_ragged, widened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

ALL: Rows = slice(None)


def align(files: Sequence[PredictionFile], *, counts_no_answer: bool = False) -> Benchmark:
    """Line up prediction files: samples in canonical order, models by name.

    Samples are joined by id where files have ids, whatever the order of their rows, and are the
    union over files. Files without ids are joined by position, if all have the same N. Neither the
    order of files nor that of their rows changes the result.

    Parameters
    ----------
    files : sequence of PredictionFile
        At least one.
    counts_no_answer : bool
        Take a predicted label of -1 for "no answer", not for missing; see :class:`Benchmark`.

    Raises
    ------
    InputError
        If two files contradict each other or cannot be combined.
    """
    if not files:
        raise InputError("no prediction files; name at least one")
    files = sorted(files, key=lambda file: file.path)
    _check_models(files)
    n_classes = _common_classes(files)
    files = [widened(file, n_classes) for file in files]
    placed, rows, ids = _place(files)
    n = files[0].samples.n if ids is None else len(ids)
    models = [
        BenchmarkModel(info, file, index, rows[file_number])
        for file_number, file in enumerate(files)
        for index, info in enumerate(file.models)
    ]
    return Benchmark(
        samples=merge_samples(placed, n, ids, n_classes),
        models=tuple(sorted(models, key=lambda model: model.name)),
        n_classes=n_classes,
        counts_no_answer=counts_no_answer,
        notes=_notes(placed, n),
    )


def has_correctness(benchmark: Benchmark) -> bool:
    """Return whether :func:`read_correctness` works: labels or responses for every model."""
    return benchmark.samples.labels is not None or all(
        model.file.kind is Kind.RESPONSES or model.file.read_responses is not None
        for model in benchmark.models
    )


def read_values(benchmark: Benchmark, m: int, rows: Rows = ALL) -> NDArray[Any]:
    """Return values of one model as stored, missing samples filled in.

    Parameters
    ----------
    benchmark : Benchmark
        Aligned files.
    m : int
        Index in ``benchmark.models``.
    rows : slice or NDArray of int64
        Samples of the benchmark.

    Returns
    -------
    NDArray of shape (n, C) or (n,)
        A sample that the file lacks is NaN. Predicted labels come as int64, with -1 for missing
        and C for "no answer" where that counts. Do not write into it.
    """
    model = benchmark.models[m]
    if model.file.kind is not Kind.LABELS:
        return _read(benchmark, m, rows, model.file.read, lambda block, _: block)

    def canonical(block: NDArray[Any], _: NDArray[np.int64]) -> NDArray[np.int64]:
        return to_labels(block, benchmark.n_classes, counts_no_answer=benchmark.counts_no_answer)

    return _read(benchmark, m, rows, model.file.read, canonical)


def read_probabilities(benchmark: Benchmark, m: int, rows: Rows = ALL) -> Floats:
    """Return the probabilities of one model, (n, ``benchmark.width``), checked.

    Missing samples are all NaN; see :func:`to_probabilities` for the rest.

    Raises
    ------
    InputError
        If a row cannot be used; names file, row and sample.
    """
    kind = benchmark.models[m].file.kind

    def probabilities(block: NDArray[Any], samples: NDArray[np.int64]) -> Floats:
        return to_probabilities(
            block,
            kind,
            _options(benchmark, samples),
            benchmark.n_classes,
            counts_no_answer=benchmark.counts_no_answer and kind is not Kind.RESPONSES,
        )

    return _read(benchmark, m, rows, benchmark.models[m].file.read, probabilities)


def read_correctness(benchmark: Benchmark, m: int, rows: Rows = ALL) -> NDArray[np.float64]:
    """Return the score of one model on each sample, (n,).

    That is the response, where the file holds responses; else 1 where the most probable class is
    the label and 0 where not. Missing or unlabelled samples are NaN.

    Raises
    ------
    InputError
        If there are neither labels nor responses, or a row cannot be used.
    """
    model = benchmark.models[m]
    labels = benchmark.samples.labels
    if model.file.kind is Kind.RESPONSES or model.file.read_responses is not None:
        read = model.file.read_responses or model.file.read
        return _read(
            benchmark, m, rows, read, lambda block, _: check_responses(block).astype(np.float64)
        )
    if labels is None:
        raise InputError(
            f"{model.file.path}: no labels, in this file or any other, and no responses: "
            "whether answers are right is unknown; add labels (N,)"
        )

    def right(block: NDArray[Any], samples: NDArray[np.int64]) -> NDArray[np.float64]:
        return correctness(
            block,
            model.file.kind,
            labels[samples],
            _options(benchmark, samples),
            counts_no_answer=benchmark.counts_no_answer,
        )

    return _read(benchmark, m, rows, model.file.read, right)


def responses(benchmark: Benchmark) -> NDArray[np.float64]:
    """Return the score of every model on every sample, (M, N); NaN where missing."""
    result = np.empty((len(benchmark.models), benchmark.samples.n))
    for m in range(len(benchmark.models)):
        result[m] = read_correctness(benchmark, m)
    return result


def _options(benchmark: Benchmark, samples: NDArray[np.int64]) -> NDArray[np.int64] | None:
    options = benchmark.samples.n_options
    return None if options is None else options[samples]


def _read(
    benchmark: Benchmark,
    m: int,
    rows: Rows,
    read: Callable[[int, Rows], NDArray[Any]],
    convert: Callable[[NDArray[Any], Any], NDArray[Any]],
) -> NDArray[Any]:
    """Read what the file has of these samples, convert it, and fill in what the file lacks.

    ``convert`` gets the block and which samples its rows are.
    """
    model = benchmark.models[m]
    if model.rows is None:
        samples, at = rows, rows
    else:
        at = model.rows[rows]
        samples = np.arange(benchmark.samples.n)[rows]
        present = at >= 0
        if not present.all():
            filled = _convert(model, read, at[present], samples[present], convert)
            missing = -1 if filled.dtype.kind == "i" else np.nan
            if filled.dtype.kind in "ub":
                filled = working(filled)
            result = np.full((len(at), *filled.shape[1:]), missing, filled.dtype)
            result[present] = filled
            return result
    return _convert(model, read, at, samples, convert)


def _convert(
    model: BenchmarkModel,
    read: Callable[[int, Rows], NDArray[Any]],
    at: Rows,
    samples: Rows,
    convert: Callable[[NDArray[Any], Any], NDArray[Any]],
) -> NDArray[Any]:
    block = read(model.index, at)
    try:
        return convert(block, samples)
    except BadRowError as error:
        row = int(np.arange(model.file.samples.n)[at][error.row])
        raise blame(model, row, error.found) from error


def blame(model: BenchmarkModel, row: int, found: str) -> InputError:
    """Return the error that names a row of a model's file, and what was found there."""
    name = model.name if len(model.file.models) > 1 else None
    return row_error(model.file.path, row, found, ids=model.file.samples.ids, model=name)


def _check_models(files: Sequence[PredictionFile]) -> None:
    owners: dict[str, PredictionFile] = {}
    for file in files:
        for model in file.models:
            owner = owners.setdefault(model.name, file)
            if owner is not file:
                raise InputError(
                    f"{file.path}: is given twice; name it once"
                    if owner.path == file.path
                    else f"{file.path}: model {model.name!r} is in {owner.path} too; give each "
                    "model its own name (model_names in the file; without it the file's name "
                    "counts)"
                )


def _common_classes(files: Sequence[PredictionFile]) -> int | None:
    """Return C, after checking that all files have the same and that their kinds combine."""
    first = files[0]
    for file in files:
        if (file.kind is Kind.RESPONSES) is not (first.kind is Kind.RESPONSES):
            raise InputError(
                f"{file.path}: holds {file.kind.value}, but {first.path} holds "
                f"{first.kind.value}; they cannot be combined, give files of one sort"
            )
    exact: PredictionFile | None = None
    for file in files:
        if file.kind.has_classes or file.samples.class_names is not None:
            exact = exact or file
            if is_ragged(file) and is_ragged(exact):
                exact = max(exact, file, key=lambda one: one.n_classes or 0)
            elif file.n_classes != exact.n_classes:
                raise InputError(
                    f"{file.path}: has {file.n_classes} classes, but {exact.path} has "
                    f"{exact.n_classes}; all files need the same classes"
                )
    if exact is None:
        known = [file.n_classes for file in files if file.n_classes is not None]
        return max(known, default=None)
    for file in files:
        if (file.n_classes or 0) > (exact.n_classes or 0):
            raise InputError(
                f"{file.path}: has labels up to {(file.n_classes or 0) - 1}, but {exact.path} has "
                f"only {exact.n_classes} classes (0 is the first)"
            )
    return exact.n_classes


def _place(
    files: Sequence[PredictionFile],
) -> tuple[list[Placed], list[NDArray[np.int64] | None], NDArray[np.str_] | None]:
    """Return where the samples of each file stand, the way back, and the ids in order."""
    first = files[0]
    columns: dict[int, NDArray[np.str_]] = {}
    for file in files:
        ids = file.samples.ids
        if (ids is None) is not (first.samples.ids is None):
            without, other = (file, first) if ids is None else (first, file)
            raise InputError(
                f"{without.path}: has no sample_ids, but {other.path} has; add them, since samples "
                "are joined either by id or by position"
            )
        if ids is not None:
            columns[id(ids)] = ids
        elif file.samples.n != first.samples.n:
            raise InputError(
                f"{file.path}: has {file.samples.n} samples, but {first.path} has "
                f"{first.samples.n}; without sample_ids all files need the same samples in the "
                "same order: add sample_ids"
            )
    if not columns:
        return [Placed(file, None) for file in files], [None] * len(files), None
    index = SampleIndex(list(columns.values()))
    positions = {key: index.positions(ids) for key, ids in columns.items()}
    rows = {key: index.rows(found) for key, found in positions.items()}
    placed = []
    for file in files:
        key = id(file.samples.ids)
        placed.append(Placed(file, None if rows[key] is None else positions[key]))
    return placed, [rows[id(file.samples.ids)] for file in files], index.ids


def gather_notes(files: Sequence[PredictionFile]) -> tuple[str, ...]:
    """Return the notes of files, each once, with the first file that it is about."""
    counts = Counter(note for file in files for note in file.notes)
    notes = []
    for note, count in counts.items():
        path = next(file.path for file in files if note in file.notes)
        notes.append(f"{path}{f' and {count - 1} more' if count > 1 else ''}: {note}")
    return tuple(notes)


def _notes(placed: Sequence[Placed], n: int) -> tuple[str, ...]:
    """Return the notes of all files, each once, and what is odd about all of them together."""
    files = [file for file, _ in placed]
    notes = list(gather_notes(files))
    labelled = [file for file in files if file.kind is Kind.LABELS]
    if labelled and any(file.kind.has_classes for file in files):
        notes.append(
            f"{labelled[0].path}{f' and {len(labelled) - 1} more' if len(labelled) > 1 else ''}: "
            "predicted labels among models with probabilities; they count as certain of their answer, "
            "which looks like disagreement"
        )
    files_with = np.zeros(n, np.int64)
    for _, positions in placed:
        files_with[slice(None) if positions is None else positions] += 1
    for file, positions in placed:
        if len(placed) > 1 and positions is not None and (files_with[positions] == 1).all():
            notes.append(f"{file.path}: has no sample in common with any other file")
    return tuple(notes)
