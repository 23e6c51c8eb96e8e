"""``disco build-db``: learn from the reference models how outputs map to the full score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli import __version__
from disco_cli.database import Database, Manifest, write_arrays
from disco_cli.errors import ArtifactError, InputError
from disco_cli.estimation.forest import save_forest
from disco_cli.estimation.neighbours import nearest_distances
from disco_cli.estimation.published import (
    PublishedFit,
    cross_validate_published,
    fit_published,
    random_sample_errors,
)
from disco_cli.estimation.signature import fill_missing, flatten, mean_outputs
from disco_cli.estimation.truth import Average, sample_weights
from disco_cli.files.fingerprint import fingerprint
from disco_cli.files.matrix import Benchmark
from disco_cli.progress import SILENT, Progress
from disco_cli.selection.subset import Selection, read_selection
from disco_cli.workflows.inputs import ReadOptions, open_benchmark, values_name
from disco_cli.workflows.references import References, read_references

MIN_MODELS = 5
"""With fewer reference models nothing can be learnt, let alone checked."""


@dataclass(frozen=True)
class MethodError:
    """Cross-validated error of one predictor or baseline, in the metric's units.

    ``mae`` is ``None`` where the method cannot be had, and ``note`` says why.
    """

    name: str
    title: str
    mae: float | None
    note: str = ""


@dataclass(frozen=True)
class BuildResult:
    """A database and how well it predicts its own reference models when they are left out.

    Attributes
    ----------
    database : Database
        What was learnt.
    errors : tuple of MethodError
        Predictors first, then the two baselines.
    path : str or None
        Where the database was written.
    notes : tuple of str
        What the person should know about the input.
    """

    database: Database
    errors: tuple[MethodError, ...]
    path: str | None
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        manifest = self.database.manifest
        return {
            "path": self.path,
            "n_models": manifest.n_models,
            "n_samples": manifest.n_samples,
            "k": self.database.selection.k,
            "metric": manifest.metric,
            "average": manifest.average,
            "errors": [vars(error) for error in self.errors],
            "notes": list(self.notes),
        }


def build_db(
    paths: Sequence[str | Path],
    *,
    selection: Selection | Path,
    truth: Path | None = None,
    average: Average = Average.MICRO,
    n_neighbours: int = 5,
    seed: int = 0,
    read: ReadOptions | None = None,
    output: Path | None = None,
    force: bool = False,
    progress: Progress = SILENT,
) -> BuildResult:
    """Learn from reference models whose full score is known.

    Parameters
    ----------
    paths : sequence of paths
        Prediction files of the reference models.
    selection : Selection or Path
        The K samples, or the ``selection.json`` that names them.
    truth : Path, optional
        CSV or Parquet with columns model and score. Without it the truth comes from ``scores`` in
        the files if every model has one, else from labels or responses.
    average : Average
        Micro or macro, where the truth comes from labels or responses.
    n_neighbours : int
        Number of neighbours of the kNN predictor.
    seed : int
        Seed of the forest, the folds and the random samples of the baseline.
    read, output, force, progress
        As for :func:`disco_cli.workflows.score.score`; ``output`` is a folder.

    Raises
    ------
    DiscoError
        A file is bad, the selection is of another benchmark, there are too few reference models,
        or the database cannot be written.
    """
    chosen = selection if isinstance(selection, Selection) else read_selection(selection)
    benchmark = open_benchmark(paths, read or ReadOptions())
    _check_fit(benchmark, chosen)
    references = read_references(benchmark, chosen, truth, average)
    fill = mean_outputs(references.outputs)
    signatures = flatten(fill_missing(references.outputs, fill))
    left_out = cross_validate_published(signatures, references.truth, seed, n_neighbours, progress)
    errors = (
        *_predictor_errors(left_out, references.truth),
        _random_error(benchmark, references, average, chosen.k, seed),
    )
    fit = fit_published(signatures, references.truth, seed)
    database = _assemble(
        benchmark, chosen, references, fit, fill, left_out, errors, average, n_neighbours, seed
    )
    if output is not None:
        database.save(output, force=force)
    return BuildResult(
        database=database,
        errors=errors,
        path=None if output is None else str(output),
        notes=(*benchmark.notes, *references.notes),
    )


def _check_fit(benchmark: Benchmark, selection: Selection) -> None:
    found = fingerprint(benchmark.samples)
    if found != selection.benchmark:
        message = (
            f"the selection was made on another benchmark ({selection.n_samples} samples, "
            f"{selection.benchmark[:12]}) than these files ({benchmark.samples.n} samples, "
            f"{found[:12]}); run `disco select` on the files of this benchmark"
        )
        raise ArtifactError(message)
    if len(benchmark.models) < MIN_MODELS:
        message = (
            f"{len(benchmark.models)} reference models given, at least {MIN_MODELS} are needed; "
            "add prediction files of models whose full score is known"
        )
        raise InputError(message)


def _predictor_errors(
    left_out: dict[str, NDArray[np.float64]], truth: NDArray[np.float64]
) -> tuple[MethodError, ...]:
    titles = {
        "rf": "PCA + random forest",
        "knn": "PCA + nearest neighbours",
        "mean": "baseline: mean of the references",
    }
    return tuple(
        MethodError(name, title, float(np.abs(left_out[name] - truth).mean()))
        for name, title in titles.items()
    )


def _random_error(
    benchmark: Benchmark, references: References, average: Average, k: int, seed: int
) -> MethodError:
    title = f"baseline: plain mean of {k} random samples"
    if references.responses is None or not references.comparable:
        note = "unavailable: the truth is not the mean of known responses"
        return MethodError("random", title, None, note)
    weights = sample_weights(benchmark.samples, average)
    errors = random_sample_errors(references.responses, references.truth, weights, k, seed)
    return MethodError("random", title, float(np.nanmean(np.abs(errors))), "mean of 50 draws")


def _assemble(
    benchmark: Benchmark,
    selection: Selection,
    references: References,
    fit: PublishedFit,
    fill: NDArray[np.floating[Any]],
    left_out: dict[str, NDArray[np.float64]],
    errors: tuple[MethodError, ...],
    average: Average,
    n_neighbours: int,
    seed: int,
) -> Database:
    import sklearn

    positions = selection.draw.positions
    samples = benchmark.samples.take(positions)
    arrays: dict[str, NDArray[Any]] = {
        "names": np.array(benchmark.names),
        "truth": references.truth,
        "scores": fit.scores,
        "gaps": nearest_distances(fit.scores),
        "fill": fill,
        "weights": sample_weights(benchmark.samples, average)[positions],
    }
    if samples.labels is not None:
        arrays["labels"] = samples.labels
    if samples.n_options is not None:
        arrays["n_options"] = samples.n_options
    if references.responses is not None:
        arrays["responses"] = references.responses[:, positions]
    for name in ("rf", "knn"):
        arrays[f"residuals_{name}"] = references.truth - left_out[name]
    kinds = {model.file.kind for model in benchmark.models}
    manifest = Manifest(
        benchmark=selection.benchmark,
        n_samples=selection.n_samples,
        n_classes=benchmark.n_classes,
        n_models=len(benchmark.models),
        values=values_name(kinds),
        metric=references.metric,
        average=average.value,
        comparable=references.comparable,
        parameters={
            "seed": seed,
            "n_neighbours": n_neighbours,
            "counts_no_answer": benchmark.counts_no_answer,
        },
        errors=tuple(vars(error) for error in errors),
        versions={
            "disco": __version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    )
    parts = {
        "references.npz": write_arrays(arrays),
        "signatures.npz": write_arrays({"outputs": references.outputs}),
        "pca.npz": write_arrays({name: np.asarray(value) for name, value in vars(fit.pca).items()}),
        "rf.pkl": save_forest(fit.forest),
    }
    return Database(manifest, selection, parts)
