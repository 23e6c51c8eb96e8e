"""How good a set of estimates is, given the true full scores. Pure functions of small arrays."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

GAPS = (0.01, 0.02, 0.05)
"""Bounds between the classes of gaps of true score, for pairs ranked right."""


@dataclass(frozen=True)
class Metrics:
    """Quality of T estimates; NaN where a figure is not defined for these targets.

    Attributes
    ----------
    n : int
        Number of targets, T.
    mae, rmse, worst : float
        Mean absolute, root mean squared and largest absolute error, in units of the score.
    bias : float
        Mean of estimate − truth.
    bias_thirds : tuple of three floats
        The same for targets in the lowest, middle and highest third of the range of true scores.
    spearman, kendall : float
        Rank correlations; Kendall's is tau-b.
    pairs : float
        Share of the pairs with different true scores that the estimates rank right; a tie of
        estimates counts half.
    pairs_by_gap : tuple of floats
        The same by gap of true score, one class more than there are bounds (:data:`GAPS`).
    coverage : float
        Share of the available intervals that hold the truth.
    width : float
        Mean width of the available intervals.
    with_interval : float
        Share of the targets for which an interval is available.
    """

    n: int
    mae: float
    rmse: float
    worst: float
    bias: float
    bias_thirds: tuple[float, ...]
    spearman: float
    kendall: float
    pairs: float
    pairs_by_gap: tuple[float, ...]
    coverage: float
    width: float
    with_interval: float


def measure(
    truth: NDArray[np.float64],
    estimate: NDArray[np.float64],
    low: NDArray[np.float64] | None = None,
    high: NDArray[np.float64] | None = None,
    *,
    gaps: Sequence[float] = GAPS,
) -> Metrics:
    """Compare estimates with the truth.

    Parameters
    ----------
    truth, estimate : NDArray of float64, shape (T,)
        True full scores and their estimates, T ≥ 1.
    low, high : NDArray of float64, shape (T,), optional
        Bounds of the intervals; NaN = not available.
    gaps : sequence of float
        Ascending bounds between classes of gaps.
    """
    error = estimate - truth
    absolute = np.abs(error)
    right, gap = ranked_pairs(truth, estimate)
    edges = [0.0, *gaps, np.inf]
    low = np.full(len(truth), np.nan) if low is None else low
    high = np.full(len(truth), np.nan) if high is None else high
    known = ~(np.isnan(low) | np.isnan(high))
    inside = (low <= truth) & (truth <= high)
    return Metrics(
        n=len(truth),
        mae=float(absolute.mean()),
        rmse=float(np.sqrt(np.mean(error**2))),
        worst=float(absolute.max()),
        bias=float(error.mean()),
        bias_thirds=bias_by_third(truth, estimate),
        spearman=spearman(truth, estimate),
        kendall=kendall(truth, estimate),
        pairs=_mean(right),
        pairs_by_gap=tuple(
            _mean(right[(gap > lower) & (gap <= upper)]) for lower, upper in pairwise(edges)
        ),
        coverage=_mean(inside[known]),
        width=_mean((high - low)[known]),
        with_interval=_mean(known),
    )


def bias_by_third(
    truth: NDArray[np.float64], estimate: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Return the mean of estimate − truth in each third of the range of true scores.

    The range from the lowest to the highest truth is cut into three equal parts; a part without
    targets has NaN.
    """
    lowest, highest = float(truth.min()), float(truth.max())
    step = (highest - lowest) / 3
    third = np.minimum((truth - lowest) // step, 2) if step > 0 else np.ones(len(truth))
    error = estimate - truth
    return (_mean(error[third == 0]), _mean(error[third == 1]), _mean(error[third == 2]))


def spearman(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; NaN if either is constant."""
    from scipy.stats import rankdata

    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def kendall(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return Kendall's tau-b; NaN if either argument is constant."""
    first, second = np.triu_indices(len(a), 1)
    sign_a, sign_b = np.sign(a[first] - a[second]), np.sign(b[first] - b[second])
    scale = np.sqrt(np.count_nonzero(sign_a) * np.count_nonzero(sign_b))
    return float(np.sum(sign_a * sign_b) / scale) if scale > 0 else float("nan")


def ranked_pairs(
    truth: NDArray[np.float64], estimate: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each pair with different truths whether it is ranked right, and its gap.

    Returns
    -------
    right : NDArray of float64
        1 right, 0 wrong, ½ where the estimates are equal.
    gap : NDArray of float64
        Absolute difference of the true scores.
    """
    first, second = np.triu_indices(len(truth), 1)
    difference = truth[first] - truth[second]
    agreement = np.sign(difference) * np.sign(estimate[first] - estimate[second])
    distinct = difference != 0
    return (1 + agreement[distinct]) / 2, np.abs(difference[distinct])


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else float("nan")
