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
from disco_cli.files.stack import Stack
from disco_cli.files.values import certain_tolerance
from disco_cli.kernel import kernel_for

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


def add_from_files(
    state: State, rows: slice, sums: Floats, stack: Stack, samples: slice, *, first: bool
) -> tuple[int, NDArray[np.int64] | None]:
    """Add samples of a stack of models without anybody having read them before.

    Parameters
    ----------
    state : State
        Changed in place.
    rows : slice
        Rows of the state that the samples are.
    sums : NDArray of float of shape (n, C)
        Sum over the models of this group so far; changed in place.
    stack : Stack
        Models.
    samples : slice
        Which samples.
    first : bool
        Overwrite the sums.

    Returns
    -------
    int
        How many samples were added before one that needs a closer look; 0 without compiled loops.
    NDArray of int64 of shape (M, n) or None
        The most probable class, the first of equal ones, where they were added; ``None`` where the
        benchmark has no labels that it could be compared with.
    """
    n, n_classes = sums.shape
    maximum = state.maximum[rows]
    labelled = stack.benchmark.samples.labels is not None
    answers = np.empty((len(stack.models), n), np.int64) if labelled else None
    tolerance = certain_tolerance(n_classes)  # not positive: it would all be done in vain
    kernel = kernel_for(sums, maximum) if stack.holds_probabilities and tolerance > 0 else None
    places = None if kernel is None else stack.places(samples)
    if kernel is None or places is None:
        return 0, answers
    done: int = kernel.add_files(
        *places, stack.dtype.itemsize, n, n_classes, tolerance, sums, maximum, first,
        state.entropy[rows], state.confidence[rows], answers,
    )  # fmt: skip
    state.count[rows][:done] += len(stack.models)
    return done, answers


def observe(p: Floats, n_models: int) -> Observation:
    """Return what has to be added to a state for the probabilities of some models.

    Parameters
    ----------
    p : NDArray of float of shape (M × n, C)
        Non-negative, all NaN where missing, model after model; not changed.
    n_models : int
        M.
    """
    # Few calls of numpy: around each, threads wait for each other.
    shape = (n_models, len(p) // n_models)
    figures = np.empty((2, len(p)), p.dtype)
    if (kernel := kernel_for(p)) is not None:
        kernel.figures(p, p.shape[1], figures)
    else:
        negated_entropy(p, figures[0])
        row_top(p, figures[1])
    missing = None
    if np.isnan(figures[0].min()):
        missing = np.isnan(figures[0])
        p = np.where(missing[:, np.newaxis], p.dtype.type(0), p)
        figures[:, missing] = 0
        missing = missing.reshape(shape)
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
    maximum = state.maximum[rows]
    if (kernel := kernel_for(seen.p, sums, maximum)) is not None:
        kernel.add(seen.p, len(seen.p), sums, maximum, first)
    else:
        _add_values(seen.p, sums, maximum, first=first)
    state.entropy[rows] += seen.entropy
    state.confidence[rows] += seen.confidence
    state.count[rows] += len(seen.p)
    if seen.missing is not None:
        state.count[rows] -= seen.missing.sum(axis=0)


def _add_values(P: Floats, sums: Floats, maximum: Floats, *, first: bool) -> None:
    if first:  # numpy adds along the first axis as the loop does, one after another
        np.add.reduce(P, axis=0, dtype=sums.dtype, out=sums)
    else:
        for p in P:
            np.add(sums, p, out=sums)
    top = P[0] if len(P) == 1 else np.maximum.reduce(P, axis=0)
    np.maximum(maximum, top, out=maximum)


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
    total = state.total[rows]
    if (kernel := kernel_for(sums)) is not None and total.flags.c_contiguous:
        kernel.add_units(sums, total)
    else:
        total += to_units(sums)
        sums[...] = 0
