"""Samples that are the same question twice: equal content, or equal responses of every model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def sample_units(
    Y: NDArray[np.float64],
    k: int,
    hashes: NDArray[np.str_] | None = None,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """Return the number of the unit each sample belongs to; a draw takes one sample of a unit.

    Samples of equal content are always one unit. Samples that every model answered equally are
    one unit as long as it weighs no more than half of 1/K of the benchmark: a few copies are
    probably one question, while thousands of samples that everybody solves are many questions of
    one kind, of which more than one may be drawn.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses of the reference models; NaN equals NaN.
    k : int
        Number of samples to be drawn.
    hashes : NDArray of str of shape (N,), optional
        Content hashes; an empty hash is unknown.
    weights : NDArray of float64 of shape (N,), optional
        Share of each sample in the score, summing to 1; equal without.

    Returns
    -------
    NDArray of int64 of shape (N,)
        Units 0 … U−1, numbered by their first sample. There are at least K of them, or no two
        samples share one.
    """
    N = Y.shape[1]
    if weights is None:
        weights = np.full(N, 1.0 / N)
    units = np.arange(N)
    columns = np.ascontiguousarray(Y.T)
    _merge([column.tobytes() for column in columns], weights, units, limit=0.5 / k)
    if hashes is not None:
        _merge([str(h) or None for h in hashes], weights, units, limit=np.inf)
    _, first, codes = np.unique(units, return_index=True, return_inverse=True)
    if len(first) < k:
        return np.arange(N)
    return codes.astype(np.int64)


def _merge(
    keys: list[bytes] | list[str | None],
    weights: NDArray[np.float64],
    units: NDArray[np.int64],
    limit: float,
) -> None:
    """Give samples of one key the unit of the first of them, in place."""
    members: dict[bytes | str, list[int]] = {}
    for i, key in enumerate(keys):
        if key is not None:
            members.setdefault(key, []).append(i)
    for rows in members.values():
        if len(rows) > 1 and float(weights[rows].sum()) <= limit:
            joined = np.isin(units, units[rows]) if limit == np.inf else rows
            units[joined] = units[joined].min()
