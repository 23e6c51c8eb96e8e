"""Plain sampling: the weighted mean of a random or stratified random subset.

Both return the full score at K = N: every sample is in S with its own weight.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.backtest.baselines.interface import (
    Estimate,
    Fitted,
    References,
    draw,
    normal_interval,
    weighted_mean,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fit_random(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by the weighted mean of K samples drawn at random.

    The interval is Student's, from the standard error of a ratio estimate with the correction for
    a finite population.
    """
    positions = draw(rng, references.n_samples, k)
    weights = references.weights[positions]

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:  # noqa: ARG001
        value = float(weighted_mean(y, weights))
        if math.isnan(value):
            return Estimate(value)
        known = ~np.isnan(y)
        n = int(known.sum())
        residual = weights[known] * (y[known] - value) / weights[known].mean()
        error = _standard_error(residual, references.n_samples)
        return normal_interval(value, error, n, references.level)

    return Fitted(positions, predict)


def fit_stratified(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by the means of its groups, from K samples shared out over the groups.

    Each group gets a part of K in proportion to its weight in the score (for equal weights of
    groups K//G each), at random inside the group. Without groups this is :func:`fit_random`.
    """
    groups = references.groups
    if groups is None or groups.max() == 0:
        return fit_random(references, k, rng)
    sizes = np.bincount(groups)
    share = np.bincount(groups, references.weights).astype(np.float64)
    counts = allocate(share, sizes, k)
    order = rng.permutation(references.n_samples)
    positions = np.sort(
        np.concatenate([order[groups[order] == g][:count] for g, count in enumerate(counts)])
    )
    member, weights = groups[positions], references.weights[positions]

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:  # noqa: ARG001
        known = ~np.isnan(y)
        return _stratified(
            y[known],
            weights[known],
            member[known],
            share=share,
            sizes=sizes,
            level=references.level,
        )

    return Fitted(positions, predict)


def allocate(share: NDArray[np.float64], sizes: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Share K samples out over G groups in proportion to their shares, by largest remainders.

    Parameters
    ----------
    share : NDArray of float64, shape (G,)
        What each group should get, in any unit.
    sizes : NDArray of int64, shape (G,)
        Samples in each group; no group gets more, the rest goes to the others.
    k : int
        K, at most the sum of the sizes.

    Returns
    -------
    NDArray of int64, shape (G,)
        Counts that sum to K. Ties go to the first group.
    """
    counts = np.zeros(len(sizes), dtype=np.int64)
    while (left := k - int(counts.sum())) > 0:
        room = sizes - counts
        open_share = np.where(room > 0, share, 0.0)
        if open_share.sum() == 0:
            open_share = (room > 0).astype(np.float64)
        wish = left * open_share / open_share.sum()
        whole = np.floor(wish + 1e-9).astype(np.int64)
        rest = left - int(whole.sum())
        if rest > 0:
            whole[np.argsort(-(wish - whole), kind="stable")[:rest]] += 1
        counts += np.minimum(whole, room)
    return counts


def _stratified(
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    member: NDArray[np.int64],
    *,
    share: NDArray[np.float64],
    sizes: NDArray[np.int64],
    level: float,
) -> Estimate:
    """Combine the means of the groups that were sampled; others do not count."""
    n_groups = len(sizes)
    if not len(y):
        return Estimate(math.nan)
    weight = np.bincount(member, weights, n_groups)
    seen = weight > 0
    count = np.bincount(member, minlength=n_groups)
    mean = np.bincount(member, weights * y, n_groups) / np.where(seen, weight, 1)
    part = np.where(seen, share, 0) / share[seen].sum()
    value = float(part @ mean)
    freedom = int(np.sum(count[seen] - 1))
    if freedom < 1:
        return Estimate(value)
    # One variance for all groups: with a handful of samples each, their own are worthless.
    variance = float(np.sum((y - mean[member]) ** 2)) / freedom
    left = np.where(seen, 1 - count / np.maximum(sizes, 1), 0.0)
    error = math.sqrt(variance * float(np.sum(part**2 * left / np.maximum(count, 1))))
    return normal_interval(value, error, freedom + 1, level)


def _standard_error(residual: NDArray[np.float64], n_samples: int) -> float:
    """Return the standard error of a mean of n of N residuals drawn without replacement."""
    n = len(residual)
    if n < 2:
        return math.nan
    variance = float(np.sum(residual**2)) / (n - 1)
    return math.sqrt(variance / n * max(1 - n / n_samples, 0.0))
