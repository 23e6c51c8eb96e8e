"""Linear regressors from the responses on K samples to the full score, with leave-one-out errors.

All three are one ridge regression with a few unpenalised columns; they differ in what they shrink
to: a constant (ridge), a calibrated mean (anchored ridge), the design's weighted mean (offset ridge).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_PENALTIES = 10.0 ** np.arange(-2.0, 4.01, 0.5)
"""Penalties that are tried, in units of the mean eigenvalue of the features' inner products."""


@dataclass(frozen=True)
class LinearEstimator:
    """``intercept + coefficients · y`` for a target with responses y on the K samples.

    Attributes
    ----------
    intercept : float
        In units of the score.
    coefficients : NDArray of float64 of shape (K,)
        One per selected sample.
    residuals : NDArray of float64 of shape (M,)
        Estimate minus score of each reference model, estimated without that model.
    """

    intercept: float
    coefficients: NDArray[np.float64]
    residuals: NDArray[np.float64]

    def predict(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores (T,) of responses y (T, K); a NaN makes its row's score NaN."""
        return np.asarray(self.intercept + y @ self.coefficients)

    @property
    def error(self) -> float:
        """Root mean squared leave-one-out error."""
        return float(np.sqrt(np.mean(self.residuals**2)))

    def to_arrays(self, name: str) -> dict[str, NDArray[np.float64]]:
        """Return the estimator as arrays, under keys that start with ``name``."""
        return {f"{name}/{field}": np.asarray(value) for field, value in vars(self).items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.float64]], name: str) -> LinearEstimator:
        """Return the estimator that ``to_arrays`` gave.

        Raises
        ------
        KeyError
            There is none of that name.
        """
        return cls(
            float(arrays[f"{name}/intercept"]),
            arrays[f"{name}/coefficients"],
            arrays[f"{name}/residuals"],
        )


def fit_ridge(Y: NDArray[np.float64], scores: NDArray[np.float64]) -> LinearEstimator:
    """Fit ridge regression, the penalty chosen by leave-one-out.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, K)
        Responses (or any signature) of the reference models, without NaN; M ≥ 2.
    scores : NDArray of float64 of shape (M,)
        Their full scores.
    """
    ones = np.ones((len(Y), 1))
    free, coefficients, residuals = _fit(ones, Y, scores)
    return LinearEstimator(float(free[0]), coefficients, residuals)


def fit_anchored_ridge(
    Y: NDArray[np.float64],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
) -> LinearEstimator:
    """Fit the best line through the mean response and, penalised, what it leaves.

    ``score ≈ α + β·ȳ + γ·(Y − ȳ)`` with only γ penalised: with few models it is a calibrated mean
    instead of a constant, and it follows a target beyond the references' range.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, K)
        Responses of the reference models, without NaN; M ≥ 3.
    scores : NDArray of float64 of shape (M,)
        Their full scores.
    weights : NDArray of float64 of shape (K,), optional
        Weights of the mean, summing to 1; equal without.
    """
    share = _shares(Y, weights)
    mean = Y @ share
    columns = np.column_stack([np.ones(len(Y)), mean])
    free, slopes, residuals = _fit(columns, Y - mean[:, np.newaxis], scores)
    coefficients = slopes + (float(free[1]) - slopes.sum()) * share
    return LinearEstimator(float(free[0]), coefficients, residuals)


def fit_offset_ridge(
    Y: NDArray[np.float64],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
) -> LinearEstimator:
    """Fit, penalised, what the weighted mean of the design misses.

    ``score ≈ ȳ + α + γ·(Y − ȳ)``: shrinks to the nearly unbiased weighted mean itself.

    Parameters
    ----------
    Y, scores, weights
        See :func:`fit_anchored_ridge`.
    """
    share = _shares(Y, weights)
    mean = Y @ share
    ones = np.ones((len(Y), 1))
    free, slopes, residuals = _fit(ones, Y - mean[:, np.newaxis], scores - mean)
    coefficients = slopes + (1.0 - slopes.sum()) * share
    return LinearEstimator(float(free[0]), coefficients, residuals)


def blend(estimators: Sequence[LinearEstimator]) -> LinearEstimator:
    """Return the plain average of several estimators fitted to the same models."""
    return LinearEstimator(
        float(np.mean([e.intercept for e in estimators])),
        np.mean([e.coefficients for e in estimators], axis=0),
        np.mean([e.residuals for e in estimators], axis=0),
    )


def _shares(Y: NDArray[np.float64], weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    if weights is None:
        return np.full(Y.shape[1], 1.0 / Y.shape[1])
    return np.asarray(weights / weights.sum())


def _fit(
    free: NDArray[np.float64], X: NDArray[np.float64], target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Fit ``free @ b + X @ g`` with only g penalised; the penalty has the least leave-one-out error.

    The leave-one-out residual of a linear smoother is (fit − target) / (1 − leverage), exactly.

    Returns
    -------
    b, g, residuals
        Coefficients of the free and of the penalised columns; leave-one-out residuals (M,).
    """
    left, values, _ = np.linalg.svd(free, full_matrices=False)
    basis = left[:, values > 1e-10 * values[0]]
    X_left = X - basis @ (basis.T @ X)
    target_left = target - basis @ (basis.T @ target)
    eigenvalues, vectors = np.linalg.eigh(X_left @ X_left.T)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    rotated = vectors.T @ target_left
    unit = max(float(eigenvalues.mean()), 1e-12)
    leverage = np.einsum("mp,mp->m", basis, basis)
    best_error, best_penalty, residuals = np.inf, unit, -target_left
    for penalty in _PENALTIES[::-1] * unit:  # of equal errors the strongest penalty
        shrink = eigenvalues / (eigenvalues + penalty)
        fit = vectors @ (shrink * rotated)
        hat = leverage + (vectors**2) @ shrink
        left_out = (fit - target_left) / np.maximum(1.0 - hat, 1e-8)
        error = float(left_out @ left_out)
        if error < best_error * (1 - 1e-9):
            best_error, best_penalty, residuals = error, penalty, left_out
    slopes = X_left.T @ (vectors @ (rotated / (eigenvalues + best_penalty)))
    b = np.linalg.lstsq(free, target - X @ slopes, rcond=1e-10)[0]
    return b, slopes, residuals
