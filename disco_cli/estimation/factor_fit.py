"""The factor estimator from the reference models and a draw; apart, so that estimating needs no fitting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.factor_estimator import FactorEstimator
from disco_cli.estimation.regressors import fit_anchored_ridge
from disco_cli.selection.draw import RANDOM, Draw
from disco_cli.selection.factors import Factors
from disco_cli.selection.greedy import noise_variance

_MIN_MODELS_FOR_RIDGE = 3


def fit_factor_estimator(
    Y: NDArray[np.float64],
    factors: Factors,
    weights: NDArray[np.float64],
    draw: Draw,
    groups: NDArray[np.int64] | None = None,
) -> FactorEstimator:
    """Gather what the estimates need.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses of the reference models, without NaN.
    factors : Factors
        Of all N samples, from the reference models.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    draw : Draw
        The K selected samples.
    groups : NDArray of int64 of shape (N,), optional
        Group number of each sample, 0 … G−1.
    """
    codes = np.zeros(factors.n_samples, dtype=np.int64) if groups is None else groups
    n_groups = int(codes.max()) + 1
    chosen = draw.positions
    shares = np.bincount(codes, weights=weights, minlength=n_groups).astype(np.float64)
    scale = np.where(shares > 0, shares, 1.0)
    by_group = np.zeros((n_groups, factors.loadings.shape[1]))
    np.add.at(by_group, codes, weights[:, np.newaxis] * factors.loadings)
    means = np.bincount(codes, weights=weights * factors.means, minlength=n_groups)
    drawn = np.array([role == RANDOM for role in draw.roles])
    if draw.weights is not None:
        design_weights = np.where(drawn, draw.weights, 0.0)
    else:
        design_weights = np.where(drawn, weights[chosen] / draw.inclusion_probabilities, 0.0)
    ridge = None
    if len(Y) >= _MIN_MODELS_FOR_RIDGE:
        ridge = fit_anchored_ridge(Y[:, chosen], Y @ weights, draw.weights)
    return FactorEstimator(
        means=factors.means[chosen],
        noise=noise_variance(factors)[chosen],
        shares=weights[chosen],
        loadings=factors.loadings[chosen],
        weights=design_weights,
        chances=draw.inclusion_probabilities,
        drawn=drawn,
        groups=codes[chosen],
        group_shares=shares,
        group_means=means / scale,
        group_loadings=by_group / scale[:, np.newaxis],
        ridge_slopes=None if ridge is None else ridge.coefficients,
        ridge_intercept=0.0 if ridge is None else ridge.intercept,
    )
