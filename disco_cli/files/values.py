"""Blocks of values as numbers: probabilities, correctness and the checks of every row.

Pure functions of a block, that is of the values of one model for n samples: (n, C) for
probabilities, logits and log-probabilities, (n,) for predicted labels and responses. They work in
the block's own precision: float32 for float16, float32 and small integers, else float64.

A row is checked whenever it is read, since a sample of rows says nothing about the others. The
checks are by-products of the sums and maxima that are needed anyway; only a block that fails them
is searched for the row to blame.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import InputError
from disco_cli.files.matrix import Kind
from disco_cli.files.rows import row_max, row_sum, spread
from disco_cli.kernel import kernel_for

TOLERANCE = 1e-2
"""How far a row may sum from 1. Rounding C = 1000 probabilities to float16 moves their sum by up to
5e-4 and to bfloat16 by up to 4e-3; printing them with three or four decimals by a little more. Rows
that are not probabilities at all are off by far more than one percent."""


LARGEST = 1e100
"""Magnitudes that are worked with. The square of a larger number, or a sum of them, overflows, and
no response, weight or score that was measured comes near."""

MAX_CLASSES = 1 << 20
"""Classes that predicted labels may name: one label of 10⁹ would ask for as many columns."""

Floats = NDArray[np.floating[Any]]


def certain_tolerance(n_classes: int) -> float:
    """Return how far from 1 a compiled sum of float32 proves that numpy's is within ``TOLERANCE``.

    The two round otherwise, each by at most C · 2⁻²⁴ of the sum, in whatever order it adds.
    Negative from 83,887 classes on, which no sum is within: it proves nothing there.
    """
    return TOLERANCE - max(0.01 * TOLERANCE, n_classes * 2.0**-23)


class BadRowError(InputError):
    """A row that cannot be used; ``row`` counts inside the block that was handed in."""

    def __init__(self, row: int, found: str) -> None:
        super().__init__(f"row {row}: {found}")
        self.row = row
        self.found = found


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the precision in which values stored as ``dtype`` are worked."""
    small = dtype.itemsize <= (4 if dtype.kind == "f" else 2)
    return np.dtype(np.float32 if small else np.float64)


def working(block: NDArray[Any]) -> Floats:
    """Return a block in the precision that it is worked in, itself if it already is.

    Rows become contiguous, so that sums do not depend on the layout of the file.
    """
    if block.dtype == np.float16:
        return _widened(block)
    result: Floats = block.astype(working_dtype(block.dtype), order="C", copy=False)
    return result


def _widened(block: NDArray[np.float16]) -> NDArray[np.float32]:
    kernel = kernel_for(block, dtype=np.float16)
    if kernel is None:
        return _singles().take(block.view(np.uint16), mode="wrap")
    result = np.empty(block.shape, np.float32)
    kernel.widen(block, result)
    return result


@functools.cache
def _singles() -> NDArray[np.float32]:
    """Return all numbers of half precision in single precision, by their bits.

    Looking them up is ten times faster than numpy's conversion, which is done bit by bit.
    """
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def softmax(logits: Floats) -> Floats:
    """Return the softmax of each row, (n, C); the row's maximum is taken off first."""
    classes = logits.shape[1]
    result: Floats = spread(row_max(logits), classes)
    np.subtract(logits, result, out=result)
    np.exp(result, out=result)
    result /= spread(row_sum(result), classes)
    return result


def to_probabilities(
    block: NDArray[Any],
    kind: Kind,
    n_options: NDArray[np.int64] | None = None,
    n_classes: int | None = None,
    *,
    counts_no_answer: bool = False,
) -> Floats:
    """Return the probabilities that a block of any kind stands for.

    Parameters
    ----------
    block : NDArray of shape (n, C) or (n,)
        Values of one model.
    kind : Kind
        What they are.
    n_options : NDArray of int64, shape (n,), optional
        Valid classes of each row. Whatever stands beyond them gets probability 0.
    n_classes : int, optional
        C; needed for labels only.
    counts_no_answer : bool
        Give "no answer" (label -1) a last column of its own, which is 0 for other kinds.

    Returns
    -------
    NDArray of float32 or float64, shape (n, C), (n, C + 1) or (n, 2)
        A missing row is all NaN. Responses y become (y, 1 - y). Valid probabilities are returned
        as they came, without a copy where possible: do not write into the result.

    Raises
    ------
    BadRowError
        A row that is partly NaN, does not sum to 1, or is otherwise not what ``kind`` says.
    """
    if kind is Kind.RESPONSES:
        return _two_outcomes(check_responses(block))
    if kind is Kind.LABELS:
        if n_classes is None:
            raise InputError("predicted labels need a known number of classes")
        labels = to_labels(block, n_classes, counts_no_answer=counts_no_answer)
        return one_hot(labels, n_classes + int(counts_no_answer))
    if kind is Kind.LOGITS:
        result = softmax(_checked_logits(working(block), n_options))
    elif kind is Kind.LOG_PROBABILITIES:
        logs = _padded(working(block), n_options, -np.inf)
        with np.errstate(over="ignore"):
            result = _checked_sums(np.exp(logs), n_options, "exp(log-probabilities)")
    else:
        result = _checked_sums(_padded(working(block), n_options, 0), n_options, "probabilities")
    if counts_no_answer:
        result = np.pad(result, ((0, 0), (0, 1)))
        result[np.isnan(result[:, 0]), -1] = np.nan
    return result


def one_hot(labels: NDArray[np.int64], width: int) -> NDArray[np.float32]:
    """Return (n, width) rows with a single 1, all NaN where the label is negative."""
    result = np.zeros((len(labels), width), np.float32)
    known = labels >= 0
    result[known, labels[known]] = 1
    result[~known] = np.nan
    return result


def to_labels(
    block: NDArray[Any], n_classes: int | None = None, *, counts_no_answer: bool = False
) -> NDArray[np.int64]:
    """Return predicted labels as (n,) int64, with -1 for every missing one.

    With ``counts_no_answer`` a stored -1 becomes class ``n_classes``. A label may lie beyond the
    options of its sample: models do answer E where there are four options, and are wrong.

    Raises
    ------
    BadRowError
        A label that is no whole number or lies beyond the classes.
    """
    if block.dtype.kind == "f":
        block = block.astype(np.float64)
        broken = (block != np.trunc(block)) & ~np.isnan(block)
        if broken.any():
            row = int(np.argmax(broken))
            raise BadRowError(row, f"predicted label {block[row]} is not a whole number")
        block = np.where(np.isnan(block), -2, block)
    far = block >= MAX_CLASSES
    if far.any():
        row = int(np.argmax(far))
        raise BadRowError(
            row, f"predicted label {block[row]:.6g}; number the classes from 0, below {MAX_CLASSES}"
        )
    # Whatever is negative is missing; clipped first, as -inf or -1e300 has no integer.
    labels = (block if block.dtype.kind == "u" else np.maximum(block, -2)).astype(np.int64)
    if n_classes is not None and (beyond := labels >= n_classes).any():
        row = int(np.argmax(beyond))
        raise BadRowError(
            row,
            f"predicted label {labels[row]}, but there are {n_classes} classes (0 is the first)",
        )
    if counts_no_answer and n_classes is not None:
        labels = np.where(labels == -1, n_classes, labels)
    return np.maximum(labels, -1)


def correctness(
    block: NDArray[Any],
    kind: Kind,
    labels: NDArray[np.int64] | None = None,
    n_options: NDArray[np.int64] | None = None,
    *,
    counts_no_answer: bool = False,
) -> NDArray[np.float64]:
    """Return how right each row is: 1 or 0, or the response itself.

    Parameters
    ----------
    block : NDArray of shape (n, C) or (n,)
        Values of one model.
    kind : Kind
        What they are.
    labels : NDArray of int64, shape (n,), optional
        Right classes, negative where unknown; not needed for responses.
    n_options : NDArray of int64, shape (n,), optional
        Valid classes of each row.
    counts_no_answer : bool
        Whether a predicted label of -1 is wrong rather than missing.

    Returns
    -------
    NDArray of float64, shape (n,)
        NaN where the row is missing or its label unknown. Of equal maxima the first counts.

    Raises
    ------
    BadRowError
        As :func:`to_probabilities`.
    """
    if kind is Kind.RESPONSES:
        return check_responses(block).astype(np.float64)
    if labels is None:
        raise InputError("correctness needs labels")
    if kind is Kind.LABELS:
        answers = to_labels(block)
        missing = answers < 0
        if counts_no_answer:
            missing &= block != -1
    else:
        # The largest logit or log-probability: two can meet in one rounded probability.
        if kind is Kind.LOGITS:
            values = _checked_logits(working(block), n_options)
        else:
            values = _padded(working(block), n_options, -np.inf)
            to_probabilities(block, kind, n_options)  # for its checks
        answers = values.argmax(axis=1)
        missing = np.isnan(values[:, 0])
    right: NDArray[np.float64] = (answers == labels).astype(np.float64)
    right[missing | (labels < 0)] = np.nan
    return right


def check_responses(block: NDArray[Any]) -> Floats:
    """Return responses, (n,), in working precision; NaN is missing and infinity a fault."""
    values = working(block)
    broken = np.abs(values) > min(LARGEST, float(np.finfo(values.dtype).max))
    if broken.any():
        row = int(np.argmax(broken))
        advice = "a missing response is NaN" if np.isinf(values[row]) else "scale the responses"
        raise BadRowError(row, f"response {values[row]:.6g}; {advice}")
    return values


def _two_outcomes(responses: Floats) -> Floats:
    outside = (responses < 0) | (responses > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise BadRowError(
            row,
            f"response {responses[row]:.6g} lies outside [0, 1], so it has no probability and "
            "models cannot be said to disagree; give predictions beside it, or scale it to [0, 1]",
        )
    return np.stack([responses, 1 - responses], axis=1)


def _padded(block: Floats, n_options: NDArray[np.int64] | None, fill: float) -> Floats:
    """Return the block with ``fill`` beyond each row's options."""
    if n_options is None or (n_options >= block.shape[1]).all():
        return block
    valid = np.arange(block.shape[1]) < n_options[:, None]
    result: Floats = np.where(valid, block, block.dtype.type(fill))
    return result


def _missing_rows(block: Floats, n_options: NDArray[np.int64] | None) -> NDArray[np.bool_]:
    """Return which rows are all NaN within their options; refuse those that are partly NaN."""
    nan = np.isnan(block)
    if n_options is None:
        count = np.full(len(block), block.shape[1])
    else:
        count = np.minimum(n_options, block.shape[1])
    found = nan.sum(axis=1)
    partly = (found > 0) & (found < count)
    if partly.any():
        row = int(np.argmax(partly))
        raise BadRowError(
            row,
            f"{found[row]} of {count[row]} options are NaN; a missing row is NaN throughout, and "
            "fewer options are told by n_options",
        )
    missing: NDArray[np.bool_] = found > 0
    return missing


def _checked_sums(block: Floats, n_options: NDArray[np.int64] | None, what: str) -> Floats:
    """Return padded probabilities after checking that each row sums to 1."""
    if (kernel := kernel_for(block)) is not None and kernel.are_probabilities(
        block, block.shape[1], certain_tolerance(block.shape[1])
    ):
        return block
    sums = row_sum(block)
    farthest = max(1 - sums.min(initial=1), sums.max(initial=1) - 1)
    if block.min(initial=0) >= 0 and farthest <= TOLERANCE:
        return block
    missing = _missing_rows(block, n_options)
    negative = (block < -TOLERANCE).any(axis=1)
    if negative.any():
        row = int(np.argmax(negative))
        raise BadRowError(
            row, f"{what} reach {block[row].min():.4g}; if they are logits, say --kind logits"
        )
    off = ~(np.abs(sums - 1) <= TOLERANCE) & ~missing
    if off.any():
        row = int(np.argmax(off))
        raise BadRowError(
            row,
            f"{what} sum to {sums[row]:.4g} instead of 1; normalise them, or store logits "
            "(--kind logits) to have it done",
        )
    result: Floats = np.maximum(block, 0)  # keeps NaN
    result[missing] = np.nan
    return result


def _checked_logits(block: Floats, n_options: NDArray[np.int64] | None) -> Floats:
    """Return padded logits; missing rows are all NaN."""
    block = _padded(block, n_options, -np.inf)
    top = row_max(block)
    if np.isfinite(top).all():
        return block
    missing = _missing_rows(block, n_options)
    broken = np.isinf(top)
    if broken.any():
        row = int(np.argmax(broken))
        found = "an infinite logit" if top[row] > 0 else "no finite logit"
        raise BadRowError(row, f"{found}; a missing row is NaN throughout")
    return np.where(missing[:, None], block.dtype.type(np.nan), block)
