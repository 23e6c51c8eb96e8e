"""What has to be kept of the models seen so far, and how two such states become one.

PDS, JSD and confidence are sums or maxima over models, so the models of any two states can be
pooled. Floating-point sums depend on their order; a result must not. Sums over models are
therefore kept as integers in units of 2^-40, whose addition is exact: states may be merged in any
order and grouping, on any number of threads or machines, with the same bits at the end.

Turning every single value into an integer would cost as much as its logarithm. So the values of up
to ``GROUP`` models, neighbours in the ascending order of names, are first added as they are, one
after another; only the sum of such a group, the same wherever it is computed, is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.disagreement.measures import Floats, entropy, row_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUP = 16
"""Models m // GROUP form one group, m their place in the ascending order of names."""

UNITS = float(2**40)
"""Units in 1.0. The rounding is below 1e-12 and the sum of 400,000 entropies does not overflow."""

_FINISH_ELEMENTS = 1 << 16


@dataclass(frozen=True)
class State:
    """Sums and maxima over some models for n samples.

    Attributes
    ----------
    maximum : NDArray of float32 or float64 of shape (n, C)
        Highest probability that any model gives each class.
    total : NDArray of int64 of shape (n, C)
        Sum of the probabilities, in units of 1 / ``UNITS`` like all sums here.
    entropy, confidence : NDArray of int64 of shape (n,)
        Sums of the models' entropies (nats) and highest probabilities.
    count : NDArray of int64 of shape (n,)
        Models that have the sample.
    correct : NDArray of int64 of shape (n,)
        Sum of the models' correctness or response.
    judged : NDArray of int64 of shape (n,)
        Models whose correctness or response is known.
    ungraded : NDArray of int64 of shape (n,)
        Models whose response lies outside [0, 1], so that 1 − response is no error.
    """

    maximum: Floats
    total: NDArray[np.int64]
    entropy: NDArray[np.int64]
    confidence: NDArray[np.int64]
    count: NDArray[np.int64]
    correct: NDArray[np.int64]
    judged: NDArray[np.int64]
    ungraded: NDArray[np.int64]

    @classmethod
    def empty(cls, n: int, n_classes: int, dtype: np.dtype[Any]) -> State:
        """Return the state of no model at all, the neutral element of :func:`merge`."""
        shape = (n, n_classes)
        columns = (np.zeros(n, dtype=np.int64) for _ in range(6))
        return cls(np.zeros(shape, dtype=dtype), np.zeros(shape, dtype=np.int64), *columns)


@dataclass(frozen=True)
class Figures:
    """The figures of n samples; every array is (n,).

    ``pds``, ``jsd`` and ``confidence`` are NaN where no model has the sample, ``error_rate`` where
    no model's correctness is known or a response lies outside [0, 1].
    """

    pds: NDArray[np.float64]
    jsd: NDArray[np.float64]
    confidence: NDArray[np.float64]
    n_models: NDArray[np.int64]
    error_rate: NDArray[np.float64]


def to_units(x: Floats) -> NDArray[np.int64]:
    """Return ``x`` in whole units, rounded towards zero."""
    return (x * np.asarray(UNITS, dtype=x.dtype)).astype(np.int64)


def merge(first: State, second: State) -> State:
    """Return the state of the models of both; exact, commutative and associative."""
    sums = ("total", "entropy", "confidence", "count", "correct", "judged", "ungraded")
    return State(
        np.maximum(first.maximum, second.maximum),
        *(getattr(first, name) + getattr(second, name) for name in sums),
    )


def finish(state: State) -> Figures:
    """Turn sums and maxima into figures; see :mod:`disco_cli.disagreement.measures` for these."""
    n, C = state.total.shape
    step = max(2, _FINISH_ELEMENTS // max(C, 1))
    count = np.where(state.count > 0, state.count, np.nan)
    judged = np.where((state.judged > 0) & (state.ungraded == 0), state.judged, np.nan)
    pds, mixed = np.empty(n), np.empty(n)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        pds[rows] = row_sums(state.maximum[rows])
        mixed[rows] = entropy(state.total[rows] / (UNITS * count[rows, np.newaxis]))
    return Figures(
        pds=np.where(state.count > 0, pds, np.nan),
        # Rounding may leave identical models a hair below zero.
        jsd=np.maximum(mixed - state.entropy / (UNITS * count), 0.0),
        confidence=state.confidence / (UNITS * count),
        n_models=state.count.copy(),
        error_rate=1.0 - state.correct / (UNITS * judged),
    )
