"""Fitting the ``auto`` recipe; apart from the fitted one, so that estimating needs no fitting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.averaging import combine_parts
from disco_cli.estimation.combine import Calibration
from disco_cli.estimation.crossvalidation import Selector, Trial, calibrate, cross_validate
from disco_cli.estimation.factor_fit import fit_factor_estimator
from disco_cli.estimation.fitted import FittedRecipe
from disco_cli.progress import SILENT, Progress
from disco_cli.selection.draw import Draw
from disco_cli.selection.factors import complete_responses, distinct_models, fit_factors

N_REPEATS = 3
"""Draws per fold; they steady the calibration, whose errors are shared within a draw."""

_MIN_MODELS = 3
"""Fewer different models cannot be left out."""


def fit_recipe(
    Y: NDArray[np.float64],
    weights: NDArray[np.float64],
    draw: Draw,
    select: Selector | None,
    rng: np.random.Generator,
    *,
    groups: NDArray[np.int64] | None = None,
    progress: Progress = SILENT,
) -> FittedRecipe:
    """Fit the estimator for a draw and calibrate it by refitting everything in each fold.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses of the reference models, NaN = missing; copies of a model count once.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    draw : Draw
        The K selected samples.
    select : Selector, optional
        The way in which ``draw`` was made, for the folds; its rows count in the distinct models
        (``distinct_models``). Without it the draw itself is used in every fold, which is too
        optimistic for samples that were chosen by the same models.
    rng : numpy.random.Generator
        Folds and draws.
    groups : NDArray of int64 of shape (N,), optional
        Group number of each sample.
    progress : Progress
        Told of every fold.
    """
    Y = Y[distinct_models(Y)]
    known = complete_responses(Y)
    factors = fit_factors(known)
    estimator = fit_factor_estimator(known, factors, weights, draw, groups)
    selectors: dict[str, Selector] = {"": select or (lambda _rows, _factors, _rng: draw)}
    trials = (
        {"": ()}
        if len(Y) < _MIN_MODELS
        else cross_validate(
            Y,
            weights,
            selectors,
            rng,
            groups=groups,
            n_repeats=1 if select is None else N_REPEATS,
            progress=progress,
        )
    )
    calibration = calibrate(Y, weights, trials[""])
    return FittedRecipe(
        estimator,
        calibration,
        _mean_error(trials[""], calibration, strongest=False),
        _mean_error(trials[""], calibration, strongest=True),
    )


def _mean_error(trials: tuple[Trial, ...], calibration: Calibration, *, strongest: bool) -> float:
    """Return the mean absolute error of the combined estimate; NaN without such trials."""
    errors = [
        abs(combine_parts(trial.parts, calibration.shares) - trial.truth)
        for trial in trials
        if trial.strongest == strongest
    ]
    return float(np.mean(errors)) if errors else float("nan")
