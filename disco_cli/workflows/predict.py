"""``disco predict``: estimate new models from their outputs on the K samples alone.

For an NPZ file this imports numpy and nothing heavier, and it executes nothing from an artifact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.database import Database, load_database, read_arrays
from disco_cli.errors import ArtifactError, GateError, InputError, UsageError
from disco_cli.estimation.forest import predict_forest, read_forest
from disco_cli.estimation.intervals import half_width, models_needed
from disco_cli.estimation.neighbours import nearest, predict_neighbours
from disco_cli.estimation.pca import Pca
from disco_cli.estimation.signature import fill_missing, flatten, project
from disco_cli.files.align import gather_notes
from disco_cli.selection.subset import read_selection
from disco_cli.workflows.inputs import ReadOptions, open_files
from disco_cli.workflows.target import Target, read_targets

MIN_SHARE = 0.5
"""A target must have answered at least this share of the K samples."""
PREDICTORS = ("rf", "knn")


@dataclass(frozen=True)
class Prediction:
    """The estimate of one model; the fields are the keys of a ``--json`` line.

    Attributes
    ----------
    model : str
        Its name.
    estimate, low, high : float or None
        Full score and its interval, in the metric's units; ``None`` where there is none.
    level : float
        Coverage the interval is made for.
    status : str
        ``in-range``, ``extrapolated`` (beyond the reference scores) or ``unfamiliar`` (farther
        from every reference than they are from each other).
    predictor : str
        Who made the estimate.
    n_used, n_missing : int
        Of the K samples, how many the model answered and how many it lacks.
    subset_mean : float or None
        Its mean on the K samples; biased where they were chosen for disagreement.
    nearest : str
        The most similar reference model.
    distance : float
        Cosine distance to it, 0 … 2.
    warnings : tuple of str
        What to know before the estimate is trusted.
    """

    model: str
    estimate: float
    low: float | None
    high: float | None
    level: float
    status: str
    predictor: str
    n_used: int
    n_missing: int
    subset_mean: float | None
    nearest: str
    distance: float
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class PredictResult:
    """Estimates in the order in which the models were given.

    Attributes
    ----------
    predictions : tuple of Prediction
        One per model.
    metric : str
        What the estimates are in.
    notes : tuple of str
        What the person should know about the input.
    """

    predictions: tuple[Prediction, ...]
    metric: str
    notes: tuple[str, ...]

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return what ``--json`` prints, an object per line."""
        return [asdict(prediction) for prediction in self.predictions]

    def check(self, *, fail_under: float | None, max_width: float | None) -> None:
        """Hold the estimates against a quality gate.

        Raises
        ------
        GateError
            An estimate is lower than ``fail_under``, or an interval wider than ``max_width`` or
            not available.
        """
        for prediction in self.predictions:
            name = prediction.model
            if fail_under is not None and prediction.estimate < fail_under:
                message = f"{name}: estimate {prediction.estimate:.4f} is under {fail_under:g}"
                raise GateError(message)
            if max_width is None:
                continue
            if prediction.low is None or prediction.high is None:
                message = f"{name}: no interval to hold against --max-width {max_width:g}"
                raise GateError(message)
            width = prediction.high - prediction.low
            if width > max_width:
                message = f"{name}: the interval is {width:.4f} wide, more than {max_width:g}"
                raise GateError(message)


def predict(
    paths: Sequence[str | Path],
    *,
    database: Database | Path,
    selection: Path | None = None,
    predictor: str = "rf",
    level: float = 0.9,
    read: ReadOptions | None = None,
) -> PredictResult:
    """Estimate the full score of every model in the files.

    Parameters
    ----------
    paths : sequence of paths
        Prediction files with all N samples or only the K selected ones, in any order.
    database : Database or Path
        What ``build_db`` made.
    selection : Path, optional
        ``selection.json`` beside the database; refused when the database is of another one.
    predictor : str
        ``rf`` or ``knn``.
    level : float
        Coverage of the interval, above 0 and below 1.
    read : ReadOptions, optional
        How to understand the files.

    Raises
    ------
    DiscoError
        A file is bad or does not fit the database, or an artifact is damaged.
    """
    if not 0 < level < 1:
        raise UsageError(f"--level {level:g}: choose a level between 0 and 1, such as 0.9")
    opened = database if isinstance(database, Database) else load_database(database)
    if selection is not None and selection.exists():
        _check_selection(opened, selection)
    files = open_files(paths, read or ReadOptions())
    estimator = Estimator(opened, predictor)
    predictions = tuple(
        estimator.predict(target, level) for file in files for target in read_targets(file, opened)
    )
    return PredictResult(
        predictions=predictions,
        metric=opened.manifest.metric,
        notes=gather_notes(files),
    )


def _check_selection(database: Database, path: Path) -> None:
    found = read_selection(path)
    if found.sha256 != database.selection.sha256:
        message = (
            f"{path}: selects other samples ({found.method}, k = {found.k}) than the database was "
            f"built from ({database.selection.method}, k = {database.selection.k}); "
            "run `disco build-db` again, or `disco predict --db` with the database you mean"
        )
        raise ArtifactError(message)


class Estimator:
    """The parts of a database that one predictor needs, read once for all targets."""

    def __init__(self, database: Database, predictor: str) -> None:
        if predictor not in PREDICTORS:
            raise UsageError(f"--predictor {predictor}: choose one of {', '.join(PREDICTORS)}")
        self.database = database
        self.predictor = predictor
        self.arrays = database.references
        pca = read_arrays(database.parts["pca.npz"], "pca.npz")
        self.pca = Pca(
            pca["mean"], pca["components"], pca["variance"], float(pca["total_variance"])
        )
        self.forest = read_forest(database.parts["rf.pkl"]) if predictor == "rf" else None

    def estimate(self, scores: NDArray[np.float64]) -> float:
        """Return the full score that belongs to principal scores (q,)."""
        if self.forest is not None:
            return float(predict_forest(self.forest, scores[np.newaxis])[0])
        neighbours = int(self.database.manifest.parameters["n_neighbours"])
        return predict_neighbours(self.arrays["scores"], self.arrays["truth"], scores, neighbours)

    def predict(self, target: Target, level: float) -> Prediction:
        """Return the estimate of one target with all that is said about it."""
        n_missing = int(target.missing.sum())
        warnings = [*target.warnings, *self._check_share(target, n_missing)]
        filled = fill_missing(target.outputs[np.newaxis], self.arrays["fill"])
        scores = project(self.pca, flatten(filled))[0]
        estimate = self.estimate(scores)
        index, distance = nearest(self.arrays["scores"], scores)
        width = half_width(self.arrays[f"residuals_{self.predictor}"], level)
        if width is None:
            warnings.append(
                f"no interval: level {level:g} needs {models_needed(level)} reference models, "
                f"the database has {self.database.manifest.n_models}"
            )
        subset_mean = self._subset_mean(target)
        status = self._status(subset_mean, distance)
        if status == "extrapolated":
            warnings.append(
                "beyond the reference models: a forest cannot follow, the interval does not hold"
            )
        return Prediction(
            model=target.name,
            estimate=estimate,
            low=None if width is None else self._possible(estimate - width),
            high=None if width is None else self._possible(estimate + width),
            level=level,
            status=status,
            predictor=self.predictor,
            n_used=len(target.outputs) - n_missing,
            n_missing=n_missing,
            subset_mean=subset_mean,
            nearest=str(self.arrays["names"][index]),
            distance=distance,
            warnings=tuple(warnings),
        )

    def _possible(self, bound: float) -> float:
        """Return a bound of an interval, not beyond what the metric can be."""
        if self.database.manifest.metric != "accuracy":
            return bound
        return min(max(bound, 0.0), 1.0)

    def _check_share(self, target: Target, n_missing: int) -> list[str]:
        k = len(target.outputs)
        if k - n_missing < MIN_SHARE * k:
            message = (
                f"model {target.name!r}: has {k - n_missing} of the {k} selected samples, at least "
                f"{math.ceil(MIN_SHARE * k)} are needed; run it on the samples of selection.json"
            )
            raise InputError(message)
        if n_missing == 0:
            return []
        return [f"{n_missing} of {k} samples missing, filled with the reference models' mean"]

    def _subset_mean(self, target: Target) -> float | None:
        """Return the model's own mean over the K samples, weighted as the score is."""
        if target.responses is None:
            return None
        return weighted_mean(target.responses, self.arrays["weights"])

    def _status(self, subset_mean: float | None, distance: float) -> str:
        known = self.arrays.get("responses")
        if known is not None and subset_mean is not None:
            means = [weighted_mean(row, self.arrays["weights"]) for row in known]
            present = [mean for mean in means if mean is not None]
            if not min(present) <= subset_mean <= max(present):
                return "extrapolated"
        return "unfamiliar" if distance > self.arrays["gaps"].max() else "in-range"


def weighted_mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float | None:
    """Return the weighted mean of what is not NaN, ``None`` if nothing is."""
    present = ~np.isnan(values)
    total = weights[present].sum()
    return float(values[present] @ weights[present] / total) if total > 0 else None
