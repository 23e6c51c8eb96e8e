"""Nearest reference models, by the cosine distance of principal scores.

Distances are rounded to twelve decimals, so that references whose signatures are the same tie in
spite of rounding; ties go to the reference that comes first, and references come in the order of
their names. The published texts differ in the number of neighbours: 1 in the authors' code, 5
elsewhere (arXiv 2510.07959).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import UsageError

N_NEIGHBOURS = 5

_DECIMALS = 12


def cosine_distances(scores: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 − cosine of the angle between ``z`` and each row.

    Parameters
    ----------
    scores : NDArray of float64 of shape (M, q)
        Principal scores of the references.
    z : NDArray of float64 of shape (q,)
        Principal scores of one model.

    Returns
    -------
    NDArray of float64 of shape (M,)
        0 … 2. A row of zeros has no direction: it is at distance 1 from everything.
    """
    inner = (scores * z).sum(axis=1)
    lengths = np.sqrt((scores * scores).sum(axis=1)) * np.sqrt((z * z).sum())
    cosines = np.divide(inner, lengths, out=np.zeros(len(scores)), where=lengths > 0)
    rounded: NDArray[np.float64] = np.round(1 - np.clip(cosines, -1, 1), _DECIMALS)
    return rounded


def predict_neighbours(
    scores: NDArray[np.float64],
    truth: NDArray[np.float64],
    z: NDArray[np.float64],
    n_neighbours: int = N_NEIGHBOURS,
) -> float:
    """Estimate a full score as the mean of those of the nearest references.

    Parameters
    ----------
    scores : NDArray of float64 of shape (M, q)
        Principal scores of the references.
    truth : NDArray of float64 of shape (M,)
        Their full scores.
    z : NDArray of float64 of shape (q,)
        Principal scores of the target.
    n_neighbours : int
        How many; all references if there are fewer.

    Raises
    ------
    UsageError
        If ``n_neighbours`` is under 1.
    """
    return _mean_of_nearest(cosine_distances(scores, z), truth, n_neighbours)


def leave_one_out(
    scores: NDArray[np.float64], truth: NDArray[np.float64], n_neighbours: int = N_NEIGHBOURS
) -> NDArray[np.float64]:
    """Estimate each reference from the others; the principal components have seen it.

    Parameters
    ----------
    scores, truth, n_neighbours
        As for :func:`predict_neighbours`; M ≥ 2.

    Returns
    -------
    NDArray of float64 of shape (M,)
    """
    n_others = min(n_neighbours, len(truth) - 1)
    return np.array(
        [
            _mean_of_nearest(_distances_to_others(scores, row), truth, n_others)
            for row in range(len(truth))
        ]
    )


def nearest(scores: NDArray[np.float64], z: NDArray[np.float64]) -> tuple[int, float]:
    """Return the row of the nearest reference and its distance."""
    distances = cosine_distances(scores, z)
    row = int(distances.argmin())
    return row, float(distances[row])


def nearest_distances(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each reference's distance (M,) to the nearest other one; infinite if M is 1."""
    return np.array([_distances_to_others(scores, row).min() for row in range(len(scores))])


def _distances_to_others(scores: NDArray[np.float64], row: int) -> NDArray[np.float64]:
    """Return the distances of a reference, infinite to itself."""
    distances = cosine_distances(scores, scores[row])
    distances[row] = np.inf
    return distances


def _mean_of_nearest(
    distances: NDArray[np.float64], truth: NDArray[np.float64], n_neighbours: int
) -> float:
    """Return the mean truth of the nearest, the first of equals."""
    if n_neighbours < 1:
        raise UsageError(f"{n_neighbours} neighbours; ask for at least 1")
    return float(truth[np.argsort(distances, kind="stable")[:n_neighbours]].mean())
