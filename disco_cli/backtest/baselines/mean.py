"""Predicting the mean: the reference models' mean score for every target, without running it.

The floor of every comparison. It does not return the full score at K = N: it ignores the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disco_cli.backtest.baselines.interface import (
    Estimate,
    Fitted,
    References,
    draw,
    residual_interval,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def fit_mean(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate every target by the mean score of the references.

    The interval comes from each reference's distance to the mean of the others.
    """
    truth = references.truth
    value = float(truth.mean())
    residuals = (truth - value) * len(truth) / (len(truth) - 1)
    answer = residual_interval(value, residuals, references.level)

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:  # noqa: ARG001
        return answer

    return Fitted(draw(rng, references.n_samples, k), predict)
