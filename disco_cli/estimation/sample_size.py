"""The plain random sample of K: its error by formula, and the smallest K for a target error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.intervals import normal_quantile


@dataclass(frozen=True)
class RandomSample:
    """The mean of K samples drawn without replacement, for the models at hand.

    By sampling theory (Cochran 1977, theorem 2.2), not by drawing: the standard error of model m is
    √((1 − K/N) / K) · spread_m. Errors are taken to be normal, as sums of many samples are.

    Attributes
    ----------
    n_samples : int
        N.
    mean_spread : float
        Mean over models of the standard deviation (N − 1) of a model's responses over the samples,
        each response by N times its share in the score.
    pair_spread : float
        Root mean square over pairs of models of the same deviation of their differences; NaN
        without pairs.
    """

    n_samples: int
    mean_spread: float
    pair_spread: float

    def error(self, k: int) -> float:
        """Return the mean absolute error."""
        return math.sqrt(2.0 / math.pi) * self._scale(k) * self.mean_spread

    def width(self, k: int, level: float) -> float:
        """Return the mean width of the intervals of this level."""
        return 2.0 * normal_quantile(level) * self._scale(k) * self.mean_spread

    def difference(self, k: int, level: float) -> float:
        """Return the error of a difference of two models that is kept to at this level."""
        return normal_quantile(level) * self._scale(k) * self.pair_spread

    def smallest_k(self, target: float) -> int:
        """Return the smallest K whose mean absolute error is at most ``target``."""
        if self.mean_spread <= 0:
            return 1
        one = math.sqrt(2.0 / math.pi) * self.mean_spread
        wanted = 1.0 / ((target / one) ** 2 + 1.0 / self.n_samples)
        return min(max(math.ceil(wanted - 1e-9), 1), self.n_samples)

    def _scale(self, k: int) -> float:
        return math.sqrt((1.0 - k / self.n_samples) / k)


def describe_random_sample(Y: NDArray[np.float64], weights: NDArray[np.float64]) -> RandomSample:
    """Return what decides on the error of a plain random sample.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses without NaN; N ≥ 2.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1. Where they differ the sample's mean is
        weighted by them, and its error is that of the linearised ratio.
    """
    M, N = Y.shape
    parts = N * weights * (Y - (Y @ weights)[:, np.newaxis])
    squares = np.einsum("mn,mn->m", parts, parts) / (N - 1)
    # Σ over pairs of ‖a − b‖² = M · Σ ‖a‖² − ‖Σ a‖².
    total = parts.sum(axis=0)
    pairs = M * float(squares.sum()) - float(total @ total) / (N - 1)
    n_pairs = M * (M - 1) // 2
    return RandomSample(
        n_samples=N,
        mean_spread=float(np.sqrt(squares).mean()),
        pair_spread=math.sqrt(max(pairs, 0.0) / n_pairs) if n_pairs else float("nan"),
    )


@dataclass(frozen=True)
class SmallestK:
    """The smallest number of samples for a target error, as far as it was measured.

    Attributes
    ----------
    k : int
        Number of samples.
    bound : str
        ``exact`` (between two that were measured), ``at-most`` (already the fewest that were
        measured suffice) or ``more-than`` (even the most do not).
    """

    k: int
    bound: str


def find_smallest_k(ks: Sequence[int], errors: Sequence[float], target: float) -> SmallestK:
    """Return from where on the measured errors stay at or below a target.

    Between two measured numbers the logarithm of the error is taken to be linear in that of K, as it
    is where the error falls like a power of K. Nothing is said beyond what was measured.

    Parameters
    ----------
    ks : sequence of int
        Ascending.
    errors : sequence of float
        Error at each.
    target : float
        Positive.
    """
    above = [place for place, error in enumerate(errors) if error > target]
    if not above:
        return SmallestK(ks[0], "at-most")
    last = above[-1]
    if last == len(ks) - 1:
        return SmallestK(ks[-1], "more-than")
    worse, better = errors[last], errors[last + 1]
    fewer, more = math.log(ks[last]), math.log(ks[last + 1])
    # An error of exactly 0 has no logarithm; a hair's breadth above it has.
    step = math.log(worse / target) / math.log(worse / max(better, 1e-12 * worse))
    k = math.exp(fewer + min(step, 1.0) * (more - fewer))
    return SmallestK(math.ceil(k - 1e-9), "exact")
