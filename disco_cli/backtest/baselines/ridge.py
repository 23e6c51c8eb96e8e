"""Random + ridge: the full score regressed on the responses to a random subset.

The strongest simple baseline of arXiv 2506.07673. At K = N it does not return the full score
exactly: the penalty shrinks the coefficients, and with fewer models than samples the weights of the
score cannot be identified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.backtest.baselines.interface import (
    Estimate,
    Fitted,
    References,
    draw,
    fill,
    residual_interval,
    sample_means,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHAS = np.logspace(-2, 4, 25)
"""Penalties tried."""


@dataclass(frozen=True)
class Ridge:
    """A fitted ridge regression.

    Attributes
    ----------
    centre : NDArray of float64, shape (K,)
        Means of the features.
    coefficients : NDArray of float64, shape (K,)
        Of the centred features.
    intercept : float
        Mean of the scores.
    alpha : float
        The penalty chosen.
    residuals : NDArray of float64, shape (M,)
        Of each model when it is left out.
    """

    centre: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    intercept: float
    alpha: float
    residuals: NDArray[np.float64]

    def value(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the prediction (...) for features (..., K)."""
        answer: NDArray[np.float64] = (features - self.centre) @ self.coefficients
        return answer + self.intercept


def fit_ridge(
    features: NDArray[np.float64],
    scores: NDArray[np.float64],
    alphas: NDArray[np.float64] = ALPHAS,
) -> Ridge:
    """Fit a ridge regression, the penalty by leave-one-out error.

    With the singular value decomposition of the centred features, X = U s Vᵀ, the leverage at
    penalty α is h = 1/M + Σ U² s²/(s² + α), and the residual of a model left out is the ordinary
    one over 1 − h: one decomposition serves every penalty.

    Parameters
    ----------
    features : NDArray of float64, shape (M, K)
        Without missing values.
    scores : NDArray of float64, shape (M,)
        What to predict.
    alphas : NDArray of float64
        Penalties to choose from; the first of equal ones is taken.
    """
    centre, intercept = features.mean(axis=0), float(scores.mean())
    u, s, vt = np.linalg.svd(features - centre, full_matrices=False)
    along = u.T @ (scores - intercept)
    shrink = s**2 / (s**2 + alphas[:, None])
    fitted = (shrink * along) @ u.T
    leverage = 1 / len(scores) + shrink @ (u.T**2)
    # A model that only its own row explains has leverage 1; its residual is then unknown, not 0/0.
    residuals = (scores - intercept - fitted) / np.maximum(1 - leverage, 1e-9)
    best = int(np.argmin(np.mean(residuals**2, axis=1)))
    alpha = float(alphas[best])
    coefficients = vt.T @ (s / (s**2 + alpha) * along)
    return Ridge(centre, coefficients, intercept, alpha, residuals[best])


def fit_random_ridge(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by ridge regression on its responses to a random subset.

    Missing responses count as the references' mean of the sample. The interval comes from
    leave-one-out residuals.
    """
    positions = draw(rng, references.n_samples, k)
    return ridge_on(references, positions)


def ridge_on(references: References, positions: NDArray[np.int64]) -> Fitted:
    """Regress the references' full scores on their responses to these samples."""
    means = sample_means(references.responses)[positions]
    ridge = fit_ridge(references.filled()[:, positions], references.truth)

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:  # noqa: ARG001
        value = float(ridge.value(fill(y, means)))
        return residual_interval(value, ridge.residuals, references.level)

    return Fitted(positions, predict)
