"""The errors of predictors and baselines among left-out reference models, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from disco_cli.estimation.fitted import FittedRecipe
from disco_cli.estimation.published import random_sample_errors
from disco_cli.estimation.regressors import LinearEstimator
from disco_cli.estimation.truth import Average, sample_weights
from disco_cli.files.matrix import Benchmark
from disco_cli.workflows.learn import Published
from disco_cli.workflows.references import References

TITLES = {
    "auto": "auto",
    "rf": "PCA + random forest",
    "knn": "PCA + nearest neighbours",
    "ridge": "ridge",
    "anchored-ridge": "anchored ridge",
    "offset-ridge": "offset ridge",
    "blend": "blend of the ridges",
    "mean": "baseline: mean of the references",
}


@dataclass(frozen=True)
class MethodError:
    """Cross-validated error of one predictor or baseline, in the metric's units.

    ``mae`` is ``None`` where the method cannot be had, and ``note`` says why.
    """

    name: str
    title: str
    mae: float | None
    note: str = ""


def predictor_errors(
    published: Published,
    auto: FittedRecipe | None,
    linear: Mapping[str, LinearEstimator],
    references: References,
) -> tuple[MethodError, ...]:
    """Return the mean absolute error of each predictor and of predicting the mean."""
    found: list[MethodError] = []
    if auto is not None:
        note = f"{auto.error_strongest:.4f} on the strongest, left out together"
        found.append(MethodError("auto", TITLES["auto"], _number(auto.error_alike), note))
    for name in ("rf", "knn"):
        error = float(np.nanmean(np.abs(published.left_out[name] - references.truth)))
        found.append(MethodError(name, TITLES[name], error))
    found += [
        MethodError(name, TITLES[name], float(np.nanmean(np.abs(estimator.residuals))), "left out")
        for name, estimator in linear.items()
    ]
    mean = float(np.nanmean(np.abs(published.left_out["mean"] - references.truth)))
    return (*found, MethodError("mean", TITLES["mean"], mean))


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value


def random_error(
    benchmark: Benchmark, references: References, average: Average, k: int, seed: int
) -> MethodError:
    """Return the mean absolute error of the plain mean of K random samples."""
    title = f"baseline: plain mean of {k} random samples"
    if references.responses is None or not references.comparable:
        note = "unavailable: the truth is not the mean of known responses"
        return MethodError("random", title, None, note)
    weights = sample_weights(benchmark.samples, average)
    errors = random_sample_errors(references.responses, references.truth, weights, k, seed)
    return MethodError("random", title, float(np.nanmean(np.abs(errors))), "mean of 50 draws")


def default_predictor(errors: tuple[MethodError, ...]) -> str:
    """Return who estimates unless told otherwise: ``auto``, else the predictor of least error.

    Errors are those of left-out reference models, so no target has a say.
    """
    predictors = [error for error in errors if error.name not in ("mean", "random")]
    if predictors[0].name == "auto":
        return "auto"
    return min(predictors, key=lambda error: np.inf if error.mae is None else error.mae).name
