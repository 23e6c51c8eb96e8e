"""The full-benchmark score of a model from its responses: micro, macro or weighted mean."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from disco_cli.files.matrix import Samples


class Average(str, Enum):
    """How the responses of N samples become one score."""

    MICRO = "micro"
    MACRO = "macro"


def sample_weights(samples: Samples, average: Average) -> NDArray[np.float64]:
    """Return each sample's weight in the score; they sum to 1.

    Micro: proportional to the samples' own weights (1 without them). Macro: the same inside each
    group, and every group has the same total.

    Parameters
    ----------
    samples : Samples
        N samples; macro needs their groups.
    average : Average
        Micro or macro.

    Returns
    -------
    NDArray of float64 of shape (N,)

    Raises
    ------
    InputError
        Macro without groups, or weights that sum to 0.
    """
    own = np.ones(samples.n) if samples.weights is None else samples.weights.astype(np.float64)
    codes, n_groups = _group_codes(samples, average)
    totals = np.bincount(codes, weights=own, minlength=n_groups)
    if np.any(totals <= 0):
        raise InputError("weights: they sum to 0 (in a group); give at least one sample a weight")
    return np.asarray(own / totals[codes] / n_groups)


def full_scores(
    responses: NDArray[np.float64], samples: Samples, average: Average
) -> NDArray[np.float64]:
    """Return the score of each model over the samples it answered.

    Parameters
    ----------
    responses : NDArray of float64 of shape (M, N)
        Correctness or score of each model on each sample, NaN = missing.
    samples : Samples
        The N samples.
    average : Average
        Micro or macro; a group in which a model answered nothing makes its macro score NaN.

    Returns
    -------
    NDArray of float64 of shape (M,)
        NaN where a model answered nothing.
    """
    weights = sample_weights(samples, average)
    codes, n_groups = _group_codes(samples, average)
    scores = np.empty(len(responses))
    for m, row in enumerate(responses):  # models, not samples: keeps temporaries at (N,)
        present = ~np.isnan(row)
        covered = np.bincount(codes, weights=weights * present, minlength=n_groups)
        earned = np.bincount(codes, weights=weights * np.where(present, row, 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            scores[m] = np.mean(earned / covered)
    return scores


def weighted_mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float | None:
    """Return the weighted mean of what is not NaN, ``None`` if nothing is.

    Parameters
    ----------
    values, weights : NDArray of float64 of shape (n,)
    """
    present = ~np.isnan(values)
    total = weights[present].sum()
    return float(values[present] @ weights[present] / total) if total > 0 else None


def _group_codes(samples: Samples, average: Average) -> tuple[NDArray[np.int64], int]:
    """Return the group number of each sample and the number of groups; micro has one."""
    if average is Average.MICRO:
        return np.zeros(samples.n, dtype=np.int64), 1
    if samples.groups is None:
        raise InputError("--average macro needs `groups` in the prediction files; there are none")
    names, codes = np.unique(samples.groups, return_inverse=True)
    return codes.astype(np.int64), len(names)
