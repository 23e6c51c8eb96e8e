"""What every method of the backtest is given and must give back.

A method is a function ``fit(references, k, rng) -> Fitted``. It sees the reference models whole and
a target only through :attr:`Fitted.predict`, which is called with the target's outputs on the
chosen samples and nothing else, so no method can look at what it should estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from disco_cli.files.matrix import Rows

T = TypeVar("T")

ProbabilityReader = Callable[[int, "Rows"], NDArray[Any]]
"""(reference model, rows) -> probabilities (n, C); a missing sample is a row of NaN."""


@dataclass(frozen=True)
class Estimate:
    """An estimated full score and its interval; NaN bounds mean "not available"."""

    value: float
    low: float = math.nan
    high: float = math.nan


Predict = Callable[[NDArray[np.float64], "NDArray[np.float64] | None"], Estimate]
"""(responses on S (K,), probabilities on S (K, C) or None) -> estimate."""


@dataclass(frozen=True)
class Fitted:
    """A method after it has seen the references.

    Attributes
    ----------
    positions : NDArray of int64, shape (K,)
        The samples S that a target must be run on, ascending.
    predict : Predict
        From a target's outputs on S to an estimate.
    """

    positions: NDArray[np.int64]
    predict: Predict


class Memo:
    """Work that several methods or sizes K share on one set of references."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def once(self, key: str, compute: Callable[[], T]) -> T:
        """Return the value of ``compute``, called at most once for each key."""
        if key not in self._values:
            self._values[key] = compute()
        value: T = self._values[key]
        return value


@dataclass(frozen=True)
class References:
    """Everything a method may know of the reference models.

    Attributes
    ----------
    responses : NDArray of float64, shape (M, N)
        Correctness or score of each sample, NaN = missing.
    weights : NDArray of float64, shape (N,)
        Weight of each sample in the full score; they sum to 1.
    truth : NDArray of float64, shape (M,)
        Full scores.
    groups : NDArray of int64, shape (N,), optional
        Group of each sample, numbered from 0.
    probabilities : ProbabilityReader, optional
        Probabilities of the reference models; absent where only responses are known.
    n_classes : int, optional
        C, where probabilities are there.
    level : float
        Level that intervals should reach.
    memo : Memo
        Shared work, see :meth:`once`.
    """

    responses: NDArray[np.float64]
    weights: NDArray[np.float64]
    truth: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None
    probabilities: ProbabilityReader | None = None
    n_classes: int | None = None
    level: float = 0.9
    memo: Memo = field(default_factory=Memo, compare=False, repr=False)

    @property
    def n_models(self) -> int:
        """M, the number of reference models."""
        return len(self.responses)

    @property
    def n_samples(self) -> int:
        """N."""
        return int(self.responses.shape[1])

    def once(self, key: str, compute: Callable[[], T]) -> T:
        """Return the value of ``compute``, called at most once for each key.

        Only for work that uses the references alone and no random generator of a cell, so that a
        result never depends on which cells ran before it.
        """
        return self.memo.once(key, compute)

    def filled(self) -> NDArray[np.float64]:
        """Return the responses (M, N) with missing ones replaced by the sample's mean."""
        return self.once("filled", lambda: fill(self.responses, sample_means(self.responses)))


FitMethod = Callable[[References, int, np.random.Generator], Fitted]
"""(references, K, rng) -> fitted method."""


def weighted_mean(
    responses: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weighted mean over the last axis of what is not missing.

    Parameters
    ----------
    responses : NDArray of float64, shape (..., N)
        NaN = missing.
    weights : NDArray of float64, shape (N,)
        Weights, not necessarily summing to 1.

    Returns
    -------
    NDArray of float64, shape (...)
        NaN where nothing that has weight is known.
    """
    known = ~np.isnan(responses)
    total = known @ weights
    with np.errstate(invalid="ignore"):
        mean = np.where(known, responses, 0.0) @ weights / total
    return np.asarray(mean, dtype=np.float64)


def sample_means(responses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean (N,) of each sample over models; the mean of all where none has it."""
    known = ~np.isnan(responses)
    count = known.sum(axis=0)
    total = np.where(known, responses, 0.0).sum(axis=0)
    overall = total.sum() / max(int(count.sum()), 1)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), overall))


def fill(responses: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace missing responses (..., n) by the means (n,) of their samples."""
    return np.where(np.isnan(responses), means, responses)


def draw(rng: np.random.Generator, n_samples: int, k: int) -> NDArray[np.int64]:
    """Draw K of N samples at random, ascending.

    The first draw of equal generators is nested over K, and equal between methods: on the same
    split, methods that start from a random subset are compared on the same subset.
    """
    return np.sort(rng.permutation(n_samples)[:k])


def residual_interval(value: float, residuals: NDArray[np.float64], level: float) -> Estimate:
    """Return the value with the ⌈(n+1)·level⌉-th smallest absolute residual as half-width.

    With fewer residuals than the level needs the interval is not available.
    """
    n = len(residuals)
    rank = math.ceil((n + 1) * level - 1e-12)
    if rank > n:
        return Estimate(value)
    half = float(np.sort(np.abs(residuals))[rank - 1])
    return Estimate(value, value - half, value + half)


def normal_interval(value: float, error: float, n: int, level: float) -> Estimate:
    """Return the value with a Student interval of n − 1 degrees of freedom.

    Parameters
    ----------
    value, error : float
        Estimate and its standard error; NaN = not known.
    n : int
        Number of observations behind the standard error.
    level : float
        Level of the interval.
    """
    if n < 2 or math.isnan(error):
        return Estimate(value)
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, (1 + level) / 2)) * error
    return Estimate(value, value - half, value + half)
