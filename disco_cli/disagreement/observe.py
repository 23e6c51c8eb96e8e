"""Adding what models say of a block of samples to a state.

Two layers, as :mod:`disco_cli.disagreement.state` explains: ``sums`` takes the plain sum of the
probabilities of one group of models, :func:`add_group_sums` rounds it into the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.disagreement.measures import Floats, entropy
from disco_cli.disagreement.state import UNITS, State, to_units
from disco_cli.files.rows import row_top

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Observation:
    """What some models say of n samples, ready to be added to a state.

    Attributes
    ----------
    p : NDArray of float of shape (M, n, C)
        Probabilities, 0 where missing.
    entropy, confidence : NDArray of int64 of shape (n,)
        Sums over the models, in units.
    count : NDArray of int64 of shape (n,)
        Models that have the sample.
    missing : NDArray of bool of shape (M, n)
        Which models lack which samples.
    """

    p: Floats
    entropy: NDArray[np.int64]
    confidence: NDArray[np.int64]
    count: NDArray[np.int64]
    missing: NDArray[np.bool_]

    def answers(self) -> NDArray[np.int64]:
        """Return the most probable class, (M, n), the first of equal ones; -1 where missing."""
        found: NDArray[np.int64] = self.p.argmax(axis=2)
        found[self.missing] = -1
        return found


def observe(p: Floats, n_models: int, work: Floats | None = None) -> Observation:
    """Return what has to be added to a state for the probabilities of some models.

    Parameters
    ----------
    p : NDArray of float of shape (M × n, C)
        Non-negative, all NaN where missing, model after model; not changed.
    n_models : int
        M.
    work : NDArray of at least (M × n, C), optional
        Overwritten, so that a loop over blocks allocates less.
    """
    own = entropy(p, None if work is None or work.dtype != p.dtype else work[: len(p)])
    missing = np.isnan(own)
    if missing.any():
        p = np.where(missing[:, np.newaxis], p.dtype.type(0), p)
        own = np.where(missing, own.dtype.type(0), own)
    shape = (n_models, len(p) // n_models)
    return Observation(
        p=p.reshape(*shape, p.shape[1]),
        entropy=to_units(own).reshape(shape).sum(axis=0),
        confidence=to_units(row_top(p)).reshape(shape).sum(axis=0),
        count=shape[0] - missing.reshape(shape).sum(axis=0),
        missing=missing.reshape(shape),
    )


def add(state: State, rows: slice, sums: Floats, seen: Observation, *, first: bool = False) -> None:
    """Add an observation to these rows of a state, and its probabilities to a group's sums.

    Parameters
    ----------
    state : State
        Changed in place.
    rows : slice
        Rows of the state that the observation covers.
    sums : NDArray of float of shape (n, C)
        Sum over the models of this group so far; changed in place.
    seen : Observation
        What to add.
    first : bool
        Overwrite the sums.
    """
    if first:  # numpy adds along the first axis as the loop does, one after another
        np.add.reduce(seen.p, axis=0, dtype=sums.dtype, out=sums)
    else:
        for p in seen.p:
            np.add(sums, p, out=sums)
    highest = state.maximum[rows]
    top = seen.p[0] if len(seen.p) == 1 else np.maximum.reduce(seen.p, axis=0)
    np.maximum(highest, top, out=highest)
    state.entropy[rows] += seen.entropy
    state.confidence[rows] += seen.confidence
    state.count[rows] += seen.count


def add_labels(state: State, rows: slice, sums: Floats, labels: NDArray[np.int64]) -> None:
    """Add a model's predicted labels (n,), negative if missing: all probability on one class."""
    known = np.flatnonzero(labels >= 0)
    classes = labels[known]
    sums[known, classes] += 1
    state.maximum[rows][known, classes] = 1
    state.confidence[rows][known] += int(UNITS)
    state.count[rows][known] += 1


def add_correctness(state: State, rows: slice, correct: Floats) -> None:
    """Add the correctness or response (M, n) of some models, NaN where unknown."""
    graded = (correct >= 0) & (correct <= 1)
    known = ~np.isnan(correct)
    state.correct[rows] += to_units(np.where(graded, correct, 0)).sum(axis=0)
    state.judged[rows] += known.sum(axis=0)
    state.ungraded[rows] += (known & ~graded).sum(axis=0)


def add_group_sums(state: State, rows: slice, sums: Floats) -> None:
    """Round the sums of a whole group of models into the state, and reset them to zero."""
    state.total[rows] += to_units(sums)
    sums[...] = 0
