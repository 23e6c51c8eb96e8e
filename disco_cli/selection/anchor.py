"""``anchor``: the sample nearest to the centre of each of K clusters of alike samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disco_cli.selection.draw import CERTAINTY, Draw

_RESTARTS = 5
_ROUNDS = 100


def select_anchor(
    Y: NDArray[np.float64],
    weights: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
) -> Draw:
    """Choose anchor points (Vivek et al. 2024; tinyBenchmarks, arXiv 2402.14992).

    Weighted k-means of the samples' response vectors, the best of five starts; of each cluster the
    sample nearest to its centre stands for the cluster. Samples of equal responses are merged
    first, so copies never fill two clusters. With fewer than K distinct samples the rest is filled
    with the heaviest groups' further members, which share the group's weight.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses of the reference models, without NaN.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    k : int
        Number of samples, 1 … N.
    rng : numpy.random.Generator
        Starts of the k-means.

    Returns
    -------
    Draw
        ``weights`` are the weights of the clusters.
    """
    points, first, codes = np.unique(Y.T, axis=0, return_index=True, return_inverse=True)
    codes = codes.reshape(-1)
    mass = np.bincount(codes, weights=weights, minlength=len(points)).astype(np.float64)
    if len(points) <= k:
        return _fill(first, codes, mass, k)
    best: tuple[float, NDArray[np.int64], NDArray[np.float64]] | None = None
    for _ in range(_RESTARTS):
        labels, centres, inertia = _k_means(points, mass + 1e-12, k, rng)
        if best is None or inertia < best[0]:
            best = inertia, labels, centres
    assert best is not None  # noqa: S101 - at least one start
    _, labels, centres = best
    chosen, shares = [], []
    for j in range(k):
        inside = np.flatnonzero(labels == j)
        distances = np.einsum("nm,nm->n", points[inside] - centres[j], points[inside] - centres[j])
        chosen.append(first[inside[int(np.round(distances, 12).argmin())]])
        shares.append(mass[inside].sum())
    return _draw(np.array(chosen, dtype=np.int64), np.array(shares))


def _fill(
    first: NDArray[np.int64],
    codes: NDArray[np.int64],
    mass: NDArray[np.float64],
    k: int,
) -> Draw:
    """Take every distinct sample, then further copies of the heaviest groups."""
    taken = first.tolist()
    counts = np.ones(len(first))
    for i in np.argsort(-mass[codes], kind="stable"):
        if len(taken) == k:
            break
        if i != first[codes[i]]:
            taken.append(int(i))
            counts[codes[i]] += 1
    chosen = np.array(taken, dtype=np.int64)
    return _draw(chosen, (mass / counts)[codes[chosen]])


def _draw(chosen: NDArray[np.int64], shares: NDArray[np.float64]) -> Draw:
    by_weight = np.lexsort((chosen, -shares))
    chosen, shares = chosen[by_weight], shares[by_weight]
    order = np.argsort(chosen, kind="stable")
    return Draw(
        positions=chosen[order],
        ranks=order + 1,
        scores=shares[order],
        roles=(CERTAINTY,) * len(chosen),
        inclusion_probabilities=np.ones(len(chosen)),
        weights=shares[order] / shares.sum(),
    )


def _k_means(
    points: NDArray[np.float64],
    mass: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Run Lloyd's algorithm from a k-means++ start; every cluster keeps at least one point."""
    norms = np.einsum("nm,nm->n", points, points)
    centres = points[_plus_plus(points, mass, norms, k, rng)].copy()
    labels = np.full(len(points), -1)
    distances = np.zeros(len(points))
    for _ in range(_ROUNDS):
        squared = norms[:, np.newaxis] - 2.0 * points @ centres.T
        squared += np.einsum("km,km->k", centres, centres)
        new = squared.argmin(axis=1)
        distances = np.maximum(squared[np.arange(len(points)), new], 0.0)
        for j in np.flatnonzero(np.bincount(new, minlength=k) == 0):
            # An empty cluster takes the point that its own centre serves worst.
            counts = np.bincount(new, minlength=k)
            far = int(np.where(counts[new] > 1, distances, -1.0).argmax())
            new[far], distances[far] = j, 0.0
        if np.array_equal(new, labels):
            break
        labels = new
        totals = np.bincount(labels, weights=mass, minlength=k)
        sums = np.zeros_like(centres)
        np.add.at(sums, labels, points * mass[:, np.newaxis])
        centres = sums / totals[:, np.newaxis]
    return labels.astype(np.int64), centres, float(mass @ distances)


def _plus_plus(
    points: NDArray[np.float64],
    mass: NDArray[np.float64],
    norms: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Choose K starting points, each with a chance of mass × squared distance to those before."""
    chosen = np.empty(k, dtype=np.int64)
    chosen[0] = rng.choice(len(points), p=mass / mass.sum())
    nearest = np.full(len(points), np.inf)
    for j in range(1, k):
        last = chosen[j - 1]
        nearest = np.minimum(
            nearest, np.maximum(norms - 2 * points @ points[last] + norms[last], 0)
        )
        nearest[chosen[:j]] = 0.0
        chances = mass * nearest
        chosen[j] = rng.choice(len(points), p=chances / chances.sum())
    return chosen
