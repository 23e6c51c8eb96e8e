"""Estimates that lean on a random draw and hold for any model, however unlike the references."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_PENALTY = 10.0
_FOLDS = 5


@dataclass(frozen=True)
class DesignEstimate:
    """A score and its standard error, both in units of the score."""

    value: float
    standard_error: float


def estimate_weighted_mean(
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    chances: NDArray[np.float64] | None = None,
    strata: NDArray[np.int64] | None = None,
) -> DesignEstimate:
    """Estimate the score by the weighted mean of the drawn samples.

    Parameters
    ----------
    y : NDArray of float64 of shape (n,)
        Responses on the random part of the selection, without NaN; at least 2.
    weights : NDArray of float64 of shape (n,)
        Positive weights share / chance; scaled to sum to 1 here (Hájek).
    chances : NDArray of float64 of shape (n,), optional
        Inclusion probabilities; they lower the error when much of the benchmark is drawn. Only for
        a uniform draw without replacement or one draw per stratum.
    strata : NDArray of int64 of shape (n,), optional
        With them the error comes from the differences of sibling strata 2i and 2i + 1 (collapsed
        strata; Cochran 1977, section 5A.12; a little too large on average); without, from the
        residuals of all.

    Returns
    -------
    DesignEstimate
    """
    share = weights / weights.sum()
    value = float(share @ y)
    return DesignEstimate(value, _standard_error(y - value, share, chances, strata))


def estimate_difference(
    y: NDArray[np.float64],
    features: NDArray[np.float64],
    feature_means: NDArray[np.float64],
    weights: NDArray[np.float64],
    chances: NDArray[np.float64] | None = None,
) -> DesignEstimate:
    """Estimate the score by a regression on sample features plus the weighted mean residual.

    Also known as AIPW or the generalised difference estimator (Cassel, Särndal & Wretman 1976):
    ridge of y on the features over the drawn samples, cross-fitted in five folds so that no
    sample's residual comes from a fit that saw it, then ``mean prediction over all N samples +
    weighted mean residual``.

    Parameters
    ----------
    y : NDArray of float64 of shape (n,)
        Responses on the random part of the selection, without NaN; at least 2.
    features : NDArray of float64 of shape (n, p)
        Features of those samples, standardised over the benchmark.
    feature_means : NDArray of float64 of shape (p,)
        Mean (by share in the score) of the features over all N samples.
    weights, chances
        See :func:`estimate_weighted_mean`.

    Returns
    -------
    DesignEstimate
    """
    n = len(y)
    share = weights / weights.sum()
    relative = share * n
    folds = np.arange(n) % min(_FOLDS, n)
    residuals = np.empty(n)
    predicted_mean = 0.0
    for fold in range(folds.max() + 1):
        inside = folds == fold
        outside = ~inside
        part = relative[outside] / relative[outside].sum()
        centre, level = part @ features[outside], float(part @ y[outside])
        X = features[outside] - centre
        scatter = (X.T * relative[outside]) @ X + _PENALTY * np.eye(X.shape[1])
        slope = np.linalg.solve(scatter, (X.T * relative[outside]) @ (y[outside] - level))
        residuals[inside] = y[inside] - level - (features[inside] - centre) @ slope
        predicted_mean += float(inside.mean()) * (level + float((feature_means - centre) @ slope))
    correction = float(share @ residuals)
    error = _standard_error(residuals - correction, share, chances, None)
    return DesignEstimate(predicted_mean + correction, error)


def _standard_error(
    residuals: NDArray[np.float64],
    share: NDArray[np.float64],
    chances: NDArray[np.float64] | None,
    strata: NDArray[np.int64] | None,
) -> float:
    """Return the standard error of ``share @ residuals``."""
    n = len(residuals)
    if n < 2:
        return float("inf")
    parts = share * residuals
    left_out = np.ones(n) if chances is None else np.clip(1.0 - chances, 0.0, 1.0)
    if strata is None:
        return float(np.sqrt(n / (n - 1) * (left_out @ parts**2)))
    order = np.argsort(strata, kind="stable")
    number, parts, left_out = strata[order], parts[order], left_out[order]
    first = np.flatnonzero((number[:-1] // 2 == number[1:] // 2) & (number[:-1] >= 0))
    if len(first) == 0:
        return _standard_error(residuals, share, chances, None)
    scale = (left_out[first] + left_out[first + 1]) / 2
    paired = float(scale @ (parts[first] - parts[first + 1]) ** 2)
    # Samples without a sibling (an odd one, or its sibling is missing) count like the paired ones.
    return float(np.sqrt(paired * n / (2 * len(first))))
