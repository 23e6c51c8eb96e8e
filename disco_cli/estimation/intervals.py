"""Half-widths of intervals from residuals of reference models that were left out."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def half_width(
    residuals: NDArray[np.float64], level: float, n_models: int | None = None
) -> float | None:
    """Return the half-width that covers a new, exchangeable residual with chance ≥ ``level``.

    The ⌈(n + 1)·level⌉-th smallest absolute residual (split conformal prediction: Lei et al.,
    "Distribution-free predictive inference for regression", JASA 2018, section 2.2).

    Parameters
    ----------
    residuals : NDArray of float64 of shape (n,)
        Truth minus estimate of models that were left out; NaN entries are not counted.
    level : float
        Wanted coverage, 0 … 1.
    n_models : int, optional
        n, where the residuals are several per model and n is the number of models; they are then
        pooled, and the rank is taken in proportion.

    Returns
    -------
    float or None
        In the units of the residuals; ``None`` when n is too small for the level.
    """
    sizes = np.sort(np.abs(residuals[~np.isnan(residuals)]))
    n = len(sizes) if n_models is None else min(n_models, len(sizes))
    # The small subtraction keeps (n + 1)·level = 9.000000000000002 from becoming 10.
    rank = math.ceil((n + 1) * level - 1e-9)
    if rank > n:
        return None
    place = math.ceil(max(rank, 1) / n * len(sizes) - 1e-9)
    return float(sizes[place - 1])


def models_needed(level: float) -> int:
    """Return the smallest number of left-out models that supports this level."""
    # ⌈(n + 1)·level⌉ ≤ n, with the tolerance of half_width: n ≥ (level − 1e-9) / (1 − level).
    return max(math.ceil((level - 1e-9) / (1 - level)), 1)


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal variable lies within ±z with a chance of ``level``.

    From the standard library: importing scipy would take longer than a prediction.
    """
    from statistics import NormalDist

    return NormalDist().inv_cdf(0.5 + level / 2.0)
