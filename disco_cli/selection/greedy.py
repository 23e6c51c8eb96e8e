"""``greedy``: samples that together explain most of the models' scores; and ``hybrid``, part such, part random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disco_cli.selection.draw import Draw, certainty_draw
from disco_cli.selection.factors import Factors
from disco_cli.selection.grouping import first_equal
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
    means = Y.mean(axis=0)
    norms = _squared_norms(Y, means)
    shrinkage = _SHRINKAGE * float(np.median(norms)) + 1e-12
    r = scores - scores.mean()
    along = r @ Y - r.sum() * means
    # The columns X that are left of the centred ones are left @ (Y - means); an M × M matrix for
    # all of them, so a step reads Y once and writes nothing of its size.
    left = np.eye(len(Y))
    first = first_equal(Y)
    last = np.zeros(Y.shape[1])  # -1: a copy of a chosen one, -2: chosen
    chosen = np.empty(k, dtype=np.int64)
    gains = np.empty(k)
    for step in range(k):
        gain = along**2 / (norms + shrinkage)
        best = int(np.where(last < 0, last, np.round(gain, 12)).argmax())
        chosen[step], gains[step] = best, gain[best]
        last[first == first[best]] = np.minimum(-1.0, last[first == first[best]])
        last[best] = -2.0
        x = left @ (Y[:, best] - means[best])
        scale = norms[best] + shrinkage
        turned = x @ left
        products = turned @ Y - turned.sum() * means  # xᵀX
        # With D = I − x xᵀ / scale: xᵢᵀ D² xᵢ and rᵀ D² xᵢ, the next norms and products.
        shrunk = 2.0 / scale - float(x @ x) / scale**2
        norms = np.maximum(norms - shrunk * products**2, 0.0)
        along -= shrunk * along[best] * products
        left -= np.outer(x, turned) / scale
    return certainty_draw(chosen, gains)


def _squared_norms(
    Y: NDArray[np.float64], means: NDArray[np.float64], width: int = 1 << 13
) -> NDArray[np.float64]:
    """Return the squared norm of each centred column, (N,)."""
    norms = np.empty(Y.shape[1])
    for start in range(0, Y.shape[1], width):
        block = slice(start, start + width)
        centred = Y[:, block] - means[block]
        norms[block] = np.einsum("mn,mn->n", centred, centred)
    return norms


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
    groups: NDArray[np.int64] | None = None,
) -> Draw:
    """Take a share of informative samples for certain and draw the rest from strata.

    Parameters
    ----------
    factors, weights, k, rng, n_draws, units, groups
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
        return select_strata(factors, weights, k, rng, n_draws=n_draws, units=units, groups=groups)
    if units is None:
        certain = select_informative(factors, weights, n_certain)
    else:
        # Of copies only the first can be informative.
        _, first = np.unique(units, return_index=True)
        joined = np.bincount(units, weights=weights).astype(np.float64)
        certain = first[select_informative(factors.take(first), joined, min(n_certain, len(first)))]
    return select_strata(
        factors, weights, k, rng, n_draws=n_draws, units=units, groups=groups, certain=certain
    )
