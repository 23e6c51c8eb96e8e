"""Sort & Search (Lifelong Benchmarks): one threshold between easy and hard samples.

Samples are ordered from easy to hard by the references' mean; a target is run on K evenly spaced
ones and taken to be right on everything easier than the best threshold. Even at K = N it returns
the share before the threshold, not the full score: wrong answers on easy samples and right ones on
hard samples are explained away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from disco_cli.backtest.baselines.interface import Estimate, Fitted, References, sample_means

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fit_sort_search(references: References, k: int, rng: np.random.Generator) -> Fitted:  # noqa: ARG001
    """Estimate a target by the threshold of the best running sum of 2y − 1.

    Sample ⌊(i + ½)·N/K⌋ of the order stands for its K-th part of all samples; the estimate is the
    weight of the parts before the threshold. Ties of difficulty go by position. The published
    method has no interval.
    """
    n = references.n_samples
    order = np.argsort(-sample_means(references.responses), kind="stable")
    queried = order[np.floor((np.arange(k) + 0.5) * n / k).astype(np.int64)]
    edges = np.floor(np.arange(k + 1) * n / k + 1e-9).astype(np.int64)
    before = np.concatenate([[0.0], np.cumsum(references.weights[order])])[edges]
    positions = np.sort(queried)
    rank = np.searchsorted(positions, queried)

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:  # noqa: ARG001
        return Estimate(float(before[threshold(y[rank])]))

    return Fitted(positions, predict)


def threshold(y: NDArray[np.float64]) -> int:
    """Return how many of the samples, easy first, lie before the best threshold.

    Parameters
    ----------
    y : NDArray of float64, shape (K,)
        Responses in [0, 1] from the easiest to the hardest sample; missing ones do not count.

    Returns
    -------
    int
        The first length at which the running sum of 2y − 1 is largest; 0 if it is never positive.
    """
    running = np.concatenate([[0.0], np.cumsum(np.where(np.isnan(y), 0.0, 2 * y - 1))])
    return int(np.argmax(running))
