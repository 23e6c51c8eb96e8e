"""Adding what one model says of a block of samples to a state.

Two layers, as :mod:`disco_cli.disagreement.state` explains: ``sums`` takes the plain sum of the
probabilities of one group of models, :func:`add_group_sums` rounds it into the state.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.disagreement.measures import Floats, entropy
from disco_cli.disagreement.state import UNITS, State, to_units

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNSHARED: AbstractContextManager[Any] = nullcontext()
"""Guard of a state that one thread has for itself."""


def observe_probabilities(
    state: State,
    rows: slice,
    sums: Floats,
    p: Floats,
    *,
    guard: AbstractContextManager[Any] = UNSHARED,
    work: Floats | None = None,
) -> NDArray[np.int64]:
    """Add a model's probabilities (n, C) for these rows; return its answers (n,), -1 if missing.

    Parameters
    ----------
    state : State
        Changed in place while ``guard`` is held.
    rows : slice
        Rows of the state that the block covers.
    sums : NDArray of float of shape (n, C)
        Sum over the models of this group so far; changed in place, no other thread may use it.
    p : NDArray of float of shape (n, C)
        Non-negative, all NaN where missing; not changed.
    guard : context manager
        Lock of these rows.
    work : NDArray of at least (n, C), optional
        Overwritten, so that a loop over blocks allocates less.
    """
    own = entropy(p, None if work is None or work.dtype != p.dtype else work[: len(p)])
    answers: NDArray[np.int64] = p.argmax(axis=1)
    top = p[np.arange(len(p)), answers]
    missing = np.isnan(own)
    if missing.any():
        p = np.where(missing[:, np.newaxis], p.dtype.type(0), p)
        own, top = np.where(missing, 0, own), np.where(missing, 0, top)
        answers[missing] = -1
    np.add(sums, p, out=sums)
    with guard:
        highest = state.maximum[rows]
        np.maximum(highest, p, out=highest)
        state.entropy[rows] += to_units(own)
        state.confidence[rows] += to_units(top)
        state.count[rows] += ~missing
    return answers


def observe_labels(
    state: State,
    rows: slice,
    sums: Floats,
    labels: NDArray[np.int64],
    guard: AbstractContextManager[Any] = UNSHARED,
) -> None:
    """Add a model's predicted labels (n,), negative if missing: all probability on one class."""
    known = np.flatnonzero(labels >= 0)
    classes = labels[known]
    sums[known, classes] += 1
    with guard:
        state.maximum[rows][known, classes] = 1
        state.confidence[rows][known] += int(UNITS)
        state.count[rows][known] += 1


def observe_correctness(
    state: State, rows: slice, correct: Floats, guard: AbstractContextManager[Any] = UNSHARED
) -> None:
    """Add a model's correctness or response (n,), NaN where unknown."""
    graded = (correct >= 0) & (correct <= 1)
    known = ~np.isnan(correct)
    with guard:
        state.correct[rows] += to_units(np.where(graded, correct, 0))
        state.judged[rows] += known
        state.ungraded[rows] += known & ~graded


def add_group_sums(
    state: State, rows: slice, sums: Floats, guard: AbstractContextManager[Any] = UNSHARED
) -> None:
    """Round the sums of a whole group of models into the state, and reset them to zero."""
    units = to_units(sums)
    sums[...] = 0
    with guard:
        state.total[rows] += units
