"""``greedy``: samples that together explain most of the models' scores; and ``hybrid``, part such, part random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disco_cli.selection.draw import Draw, certainty_draw
from disco_cli.selection.factors import Factors
from disco_cli.selection.prior import PRIOR_VARIANCE
from disco_cli.selection.strata import select_strata

_SHRINKAGE = 0.1
"""λ of the forward selection in units of the median squared norm of a sample's column."""

NOISE_FLOOR = 0.5
"""Share of the mean noise variance that is added to each sample's own, which is uncertain."""


def select_greedy(Y: NDArray[np.float64], scores: NDArray[np.float64], k: int) -> Draw:
    """Choose K samples by forward selection with shrinkage.

    Repeats K times: take the sample whose column x of responses explains most of what is left of
    the scores r, ``(xᵀr)² / (‖x‖² + λ)``; then take its direction out of r and all columns with
    the same shrinkage. λ = 0.1 · median ‖x‖². Copies of a chosen column come last.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses of the reference models, without NaN.
    scores : NDArray of float64 of shape (M,)
        Their full scores.
    k : int
        Number of samples, 1 … N.

    Returns
    -------
    Draw
        ``scores`` holds the gain of each sample when it was taken.
    """
    X = Y - Y.mean(axis=0)
    r = scores - scores.mean()
    shrinkage = _SHRINKAGE * float(np.median(np.einsum("mn,mn->n", X, X))) + 1e-12
    free = np.ones(Y.shape[1], dtype=bool)
    copies = np.zeros(Y.shape[1], dtype=bool)
    chosen = np.empty(k, dtype=np.int64)
    gains = np.empty(k)
    for step in range(k):
        norms = np.einsum("mn,mn->n", X, X)
        gain = (r @ X) ** 2 / (norms + shrinkage)
        best = int(np.where(free, np.where(copies, -1.0, np.round(gain, 12)), -2.0).argmax())
        chosen[step], gains[step] = best, gain[best]
        free[best] = False
        copies |= np.all(Y[:, best : best + 1] == Y, axis=0)
        x = X[:, best].copy()
        scale = norms[best] + shrinkage
        r = r - x * (x @ r / scale)
        X -= np.outer(x, (x @ X) / scale)
    return certainty_draw(chosen, gains)


def select_informative(factors: Factors, weights: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Choose K samples that leave the least doubt about the score under the factor model.

    Forward selection (Bayesian A-optimality for one linear functional): with P the covariance of a
    target's factors so far and g the weighted mean loading, sample i lowers the variance of gᵀθ by
    ``(gᵀP l_i)² / (noise_i² + l_iᵀP l_i)``.

    Parameters
    ----------
    factors : Factors
        Of the N samples.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    k : int
        Number of samples, 0 … N.

    Returns
    -------
    NDArray of int64 of shape (K,)
        Positions in the order of choice.
    """
    loadings = factors.loadings
    noise = noise_variance(factors)
    goal = weights @ loadings
    covariance = PRIOR_VARIANCE * np.eye(loadings.shape[1])
    free = np.ones(factors.n_samples, dtype=bool)
    chosen = np.empty(k, dtype=np.int64)
    for step in range(k):
        projected = loadings @ covariance
        variance = noise + np.einsum("nd,nd->n", projected, loadings)
        gain = np.where(free, (projected @ goal) ** 2 / np.maximum(variance, 1e-300), -1.0)
        best = int(gain.argmax())
        chosen[step] = best
        free[best] = False
        covariance = covariance - np.outer(projected[best], projected[best]) / variance[best]
    return chosen


def noise_variance(factors: Factors) -> NDArray[np.float64]:
    """Return the noise variance of each sample, (N,), raised by a share of its mean."""
    variance = factors.noise**2
    return np.asarray(variance + NOISE_FLOOR * variance.mean() + 1e-12)


def select_hybrid(
    factors: Factors,
    weights: NDArray[np.float64],
    k: int,
    share: float,
    rng: np.random.Generator,
    *,
    n_draws: int = 1,
    units: NDArray[np.int64] | None = None,
) -> Draw:
    """Take a share of informative samples for certain and draw the rest from strata.

    Parameters
    ----------
    factors, weights, k, rng, n_draws, units
        See :func:`disco_cli.selection.strata.select_strata`.
    share : float
        Share of certain samples, 0 … 1; at least one sample is drawn at random.

    Returns
    -------
    Draw
        Roles ``certainty`` and ``random``.
    """
    n_certain = min(round(share * k), k - 1)
    if n_certain <= 0:
        return select_strata(factors, weights, k, rng, n_draws=n_draws, units=units)
    if units is None:
        certain = select_informative(factors, weights, n_certain)
    else:
        # Of copies only the first can be informative.
        _, first = np.unique(units, return_index=True)
        joined = np.bincount(units, weights=weights).astype(np.float64)
        certain = first[select_informative(factors.take(first), joined, min(n_certain, len(first)))]
    return select_strata(factors, weights, k, rng, n_draws=n_draws, units=units, certain=certain)
