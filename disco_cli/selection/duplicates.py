"""Samples that are the same question twice: equal content, or equal responses of every model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disco_cli.selection.grouping import first_equal, first_equal_text


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
    units = _light(first_equal(Y), weights, limit=0.5 / k)
    if hashes is not None:
        content = np.where(hashes == "", np.arange(N), first_equal_text(hashes))
        units = _joined(units, content)
    is_first = units == np.arange(N)
    if np.count_nonzero(is_first) < k:
        return np.arange(N)
    return np.asarray((np.cumsum(is_first) - 1)[units], dtype=np.int64)


def _light(
    first: NDArray[np.int64], weights: NDArray[np.float64], limit: float
) -> NDArray[np.int64]:
    """Return the first member of each sample's group; itself where the group is too heavy."""
    order = np.argsort(first, kind="stable")
    begins = np.flatnonzero(np.diff(first[order], prepend=-1))
    sizes = np.diff(np.append(begins, len(first)))
    units = np.arange(len(first))
    # Groups of one size are rows of one matrix, so a sum never depends on the other groups.
    for size in np.unique(sizes[sizes > 1]):
        members = order[begins[sizes == size][:, np.newaxis] + np.arange(size)]
        members = members[weights[members].sum(axis=1) <= limit]
        units[members] = members[:, :1]
    return units


def _joined(units: NDArray[np.int64], content: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first sample of all that are linked by units or by content."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    N = len(units)
    here = np.arange(N)
    links = (np.ones(2 * N, dtype=np.int8), (np.tile(here, 2), np.concatenate([units, content])))
    count, codes = connected_components(coo_array(links, shape=(N, N)), directed=False)
    first = np.full(count, N)
    np.minimum.at(first, codes, here)
    return np.asarray(first[codes], dtype=np.int64)
