"""Adding what models say of a block of samples to a state.

Two layers, as :mod:`disco_cli.disagreement.state` explains: ``sums`` takes the plain sum of the
probabilities of one group of models, :func:`add_group_sums` rounds it into the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.disagreement.measures import Floats, negated_entropy
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
    missing : NDArray of bool of shape (M, n) or None
        Which models lack which samples; ``None`` if none lacks any.
    """

    p: Floats
    entropy: NDArray[np.int64]
    confidence: NDArray[np.int64]
    missing: NDArray[np.bool_] | None

    def answers(self) -> NDArray[np.int64]:
        """Return the most probable class, (M, n), the first of equal ones; -1 where missing."""
        found: NDArray[np.int64] = self.p.argmax(axis=2)
        if self.missing is not None:
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
    # Few calls of numpy: around each, threads wait for each other.
    shape = (n_models, len(p) // n_models)
    figures = np.empty((2, len(p)), p.dtype)
    negated_entropy(p, figures[0], work)
    missing = None
    if np.isnan(figures[0].min()):
        missing = np.isnan(figures[0])
        p = np.where(missing[:, np.newaxis], p.dtype.type(0), p)
        figures[0, missing] = 0
        missing = missing.reshape(shape)
    row_top(p, figures[1])
    negated, confidence = to_units(figures).reshape(2, *shape).sum(axis=1)
    return Observation(
        p=p.reshape(*shape, p.shape[1]),
        entropy=-negated,
        confidence=confidence,
        missing=missing,
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
    state.count[rows] += len(seen.p)
    if seen.missing is not None:
        state.count[rows] -= seen.missing.sum(axis=0)


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
