"""Reductions over the C classes of each row, quick for few classes too.

numpy's own reductions spend up to hundreds of nanoseconds a row on starting, which with four or ten
classes is nearly all the time there is. A row's result never depends on the rows around it, so
blocks of any size give the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 64
"""Classes up to which taking the maximum column by column is quicker, measured on float32."""


def row_max(block: NDArray[Any]) -> NDArray[Any]:
    """Return the largest value of each row, (n,); NaN where any value is NaN."""
    result: NDArray[Any]
    if block.shape[1] > FEW:
        result = block.max(axis=1)
        return result
    result = block[:, 0].copy()
    for column in block.T[1:]:
        np.maximum(result, column, out=result)
    return result


def row_top(block: NDArray[Any], out: NDArray[Any]) -> None:
    """Write the largest value of each row, of float32 or float64 that are not negative, to ``out``.

    Such numbers are in the order of their bits, and integers, of which none is NaN, are compared in
    half the time.
    """
    if block.shape[1] <= FEW // 2:
        out[...] = row_max(block)
    else:
        integer = f"i{block.itemsize}"
        block.view(integer).max(axis=1, out=out.view(integer))


def row_sum(block: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of each row of a block in C order, (n,)."""
    # Two to ten times faster than block.sum(axis=1). A product with a vector of ones would be
    # faster still, but there the order of additions depends on the number of rows.
    result: NDArray[Any] = np.einsum("ij->i", block)
    return result


def spread(per_row: NDArray[Any], classes: int) -> NDArray[Any]:
    """Return one number per row as an (n, C) block of its own.

    Broadcasting restarts numpy's loop at every row; repeating the number first takes half the time
    or less.
    """
    return np.repeat(per_row, classes).reshape(-1, classes)
