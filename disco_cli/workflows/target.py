"""One new model on the K samples, in the database's order, whatever the order of its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.database import Database
from disco_cli.errors import ArtifactError, InputError
from disco_cli.files.align import has_correctness, read_correctness
from disco_cli.files.matrix import Benchmark, BenchmarkModel, PredictionFile, Samples
from disco_cli.files.widen import widened
from disco_cli.selection.subset import Selection
from disco_cli.workflows.inputs import read_outputs, values_name


@dataclass(frozen=True)
class Target:
    """What one model said on the K samples.

    Attributes
    ----------
    name : str
        The model's name.
    outputs : NDArray of float of shape (K, C)
        Probabilities, or responses with C = 1; a missing sample is an all-NaN row.
    responses : NDArray of float64 of shape (K,), or None
        Correctness or score of each sample, NaN = missing; ``None`` without labels.
    warnings : tuple of str
        What to know about how the file was taken.
    """

    name: str
    outputs: NDArray[np.floating[Any]]
    responses: NDArray[np.float64] | None
    warnings: tuple[str, ...]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which of the K samples the model lacks."""
        missing: NDArray[np.bool_] = np.isnan(self.outputs[:, 0])
        return missing


def read_targets(file: PredictionFile, database: Database) -> Iterator[Target]:
    """Return every model of a file as a target of the database.

    Parameters
    ----------
    file : PredictionFile
        Holds all N samples or only the selected ones.
    database : Database
        Names the K samples, their labels and options.

    Raises
    ------
    ArtifactError
        The file does not fit the database: other values, classes, labels or contents.
    InputError
        The file has no sample ids where the database knows samples by id.
    """
    file = widened(file, database.manifest.n_classes)
    _check_values(file, database)
    rows, warnings = locate(file, database.selection)
    known = database.references
    samples = Samples(
        n=database.selection.k,
        ids=database.selection.sample_ids,
        hashes=known.get("hashes"),
        labels=known.get("labels"),
        n_options=known.get("n_options"),
    )
    _check_samples(file, rows, samples)
    benchmark = Benchmark(
        samples=samples,
        models=tuple(
            BenchmarkModel(info, file, index, rows) for index, info in enumerate(file.models)
        ),
        n_classes=database.manifest.n_classes,
        counts_no_answer=bool(database.manifest.parameters["counts_no_answer"]),
    )
    everything = slice(0, samples.n)
    scored = has_correctness(benchmark)
    for m, model in enumerate(benchmark.models):
        yield Target(
            name=model.name,
            outputs=read_outputs(benchmark, m, everything),
            responses=read_correctness(benchmark, m, everything) if scored else None,
            warnings=warnings,
        )


def locate(file: PredictionFile, selection: Selection) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the row of each selected sample in the file, -1 where it is missing, and warnings.

    Raises
    ------
    InputError
        Samples are known by id in one place and by position in the other.
    """
    found, wanted = file.samples.ids, selection.sample_ids
    if wanted is None:
        return _locate_by_position(file, selection)
    if found is None:
        message = (
            f"{file.path}: has no `sample_ids`, but the selection knows its samples by id "
            f"(such as {str(wanted[0])!r}); add `sample_ids`"
        )
        raise InputError(message)
    order = np.argsort(wanted)
    places = np.searchsorted(wanted, found, sorter=order)
    places = order[np.minimum(places, len(order) - 1)]
    hits = np.flatnonzero(wanted[places] == found)
    rows = np.full(len(wanted), -1, dtype=np.int64)
    rows[places[hits]] = hits
    return rows, ()


def _locate_by_position(
    file: PredictionFile, selection: Selection
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    n = file.samples.n
    if n == selection.n_samples:
        return selection.draw.positions, ()
    if n == selection.k:
        warning = (
            f"no sample ids: the {n} rows were taken for the selected samples in the order of "
            "selection.json"
        )
        return np.arange(n), (warning,)
    message = (
        f"{file.path}: {n} rows without `sample_ids`; expected all {selection.n_samples} samples "
        f"in the benchmark's order, or the {selection.k} selected ones"
    )
    raise InputError(message)


def _check_values(file: PredictionFile, database: Database) -> None:
    """Refuse a file whose values are of another sort or width than the references'."""
    manifest = database.manifest
    found = values_name({file.kind})
    if found != manifest.values:
        message = (
            f"{file.path}: holds {found}, the database was built from {manifest.values}; "
            "save the same values as the reference models have"
        )
        raise ArtifactError(message)
    if manifest.values == "probabilities" and file.n_classes != manifest.n_classes:
        message = f"{file.path}: has {file.n_classes} classes, the database {manifest.n_classes}"
        raise ArtifactError(message)


def _check_samples(file: PredictionFile, rows: NDArray[np.int64], samples: Samples) -> None:
    """Refuse a file whose samples are not those of the reference models: by label, by content."""
    pairs: tuple[tuple[str, Any, Any, Any], ...] = (
        ("label", file.samples.labels, samples.labels, -1),
        ("content (hash)", file.samples.hashes, samples.hashes, ""),
    )
    for what, found, known, unknown in pairs:
        if found is None or known is None:
            continue
        theirs = np.where(rows >= 0, found[rows], unknown)
        wrong = np.flatnonzero((theirs != unknown) & (known != unknown) & (theirs != known))
        if len(wrong):
            first = int(wrong[0])
            name = rows[first] if samples.ids is None else repr(str(samples.ids[first]))
            message = (
                f"{file.path}: sample {name}: {what} {theirs[first]}, the database has "
                f"{known[first]} ({len(wrong)} such samples): another version of the benchmark?"
            )
            raise ArtifactError(message)
