"""Which columns of a matrix are equal, for millions of them: by hash, then checked value by value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 14
"""Columns hashed or compared at once: 64 rows of them fit the cache."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def first_equal(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each column the position of the first column that equals it.

    Parameters
    ----------
    values : NDArray of float64 of shape (M, N)
        NaN equals NaN, and -0.0 equals 0.0.

    Returns
    -------
    NDArray of int64 of shape (N,)
    """
    return _first_equal(values)


def first_equal_text(texts: NDArray[np.str_]) -> NDArray[np.int64]:
    """Return for each text the position of the first text that equals it, (N,).

    Parameters
    ----------
    texts : NDArray of str of shape (N,)
    """
    points = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), -1)
    return _first_equal(points.T)


def _first_equal(values: NDArray[np.float64] | NDArray[np.uint32]) -> NDArray[np.int64]:
    N = values.shape[1]
    keys = np.empty(N, dtype=np.uint64)
    for start in range(0, N, _BLOCK):
        keys[start : start + _BLOCK] = _hashed(_bits(values[:, start : start + _BLOCK]))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sizes = np.diff(np.append(begins, N))
    first = np.empty(N, dtype=np.int64)
    first[order] = np.repeat(order[begins], sizes)
    later = np.flatnonzero(first != np.arange(N))
    for start in range(0, len(later), _BLOCK):
        block = later[start : start + _BLOCK]
        differ = (_bits(values[:, block]) != _bits(values[:, first[block]])).any(axis=0)
        if differ.any():  # two different columns of one hash
            return _first_equal_slowly(values)
    return first


def _first_equal_slowly(values: NDArray[np.float64] | NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the same by sorting whole columns."""
    rows = np.ascontiguousarray(_bits(values).T)
    _, first, codes = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[codes.reshape(-1)], dtype=np.int64)


def _bits(block: NDArray[np.float64] | NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return values as integers that are equal where the values are."""
    if block.dtype.kind == "f":
        return np.asarray(np.add(block, 0.0, order="C")).view(np.uint64)  # -0.0 becomes 0.0
    return block.astype(np.uint64)


def _hashed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each column."""
    keys = np.full(bits.shape[1], _ODD)
    for row in bits:
        keys ^= row
        keys *= _ODD
        keys ^= keys >> _HALF
    return keys
