"""``anchor``: the sample nearest to the centre of each of K clusters of alike samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disco_cli.selection.draw import CERTAINTY, Draw
from disco_cli.selection.grouping import first_equal

MOST_CLUSTERED = 1 << 15
"""Distinct samples that are clustered themselves; of more, a systematic sample of so many is."""

_LEAST_PER_CLUSTER = 256
"""That sample has at least so many draws per cluster."""

_RESTARTS = 5
_ROUNDS = 100
_BLOCK = 1 << 20
"""Distances worked out at once: 8 MiB."""


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

    Of more than 32,768 distinct samples, the centres are sought on a systematic sample of 32,768
    draws (256 for each cluster, if that is more) with chances in proportion to weight: an unbiased
    picture of the weighted sum of squares, in which every sample heavier than one draw is certain
    to be. All samples then go to their nearest centre, whose place and weight are worked out anew
    from them, and all can be chosen.

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
    codes = first_equal(Y)
    mass = np.bincount(codes, weights=weights, minlength=len(codes)).astype(np.float64)
    first = np.flatnonzero(codes == np.arange(len(codes)))
    if len(first) <= k:
        return _fill(first, codes, mass, k)
    n_draws = max(MOST_CLUSTERED, _LEAST_PER_CLUSTER * k)
    if len(first) <= n_draws:
        first = _by_column(Y, first)
        labels, centres = _best_clusters(Y[:, first], mass[first], k, rng)
    else:
        part, shares = _systematic(first, mass[first], n_draws, rng)
        _, centres = _best_clusters(Y[:, part], shares, k, rng)
        labels, centres = _cluster_all(Y, first, mass[first], centres)
    chosen, shares = _nearest(Y, first, mass[first], labels, centres)
    return _draw(chosen, shares)


def _by_column(Y: NDArray[np.float64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return positions in ascending order of their columns: the order of samples is moot."""
    return positions[np.lexsort(Y[::-1, positions])]


def _systematic(
    positions: NDArray[np.int64],
    mass: NDArray[np.float64],
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw positions at even steps of the cumulative mass; returns them and their draws' mass."""
    steps = np.cumsum(mass)
    points = (rng.random() + np.arange(n_draws)) / n_draws * steps[-1]
    places = np.minimum(np.searchsorted(steps, points, side="right"), len(steps) - 1)
    counts = np.bincount(places)
    drawn = np.flatnonzero(counts)
    return positions[drawn], counts[drawn] / n_draws


def _best_clusters(
    columns: NDArray[np.float64],
    mass: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return labels (n,) and centres (k, M) of the best of some starts, of columns (M, n)."""
    points = np.ascontiguousarray(columns.T)
    best: tuple[float, NDArray[np.int64], NDArray[np.float64]] | None = None
    for _ in range(_RESTARTS):
        labels, centres, inertia = _k_means(points, mass + 1e-12, k, rng)
        if best is None or inertia < best[0]:
            best = inertia, labels, centres
    assert best is not None  # noqa: S101 - at least one start
    return best[1], best[2]


def _cluster_all(
    Y: NDArray[np.float64],
    positions: NDArray[np.int64],
    mass: NDArray[np.float64],
    centres: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Assign all distinct samples to the nearest of given centres, and move these to their means."""
    labels = np.empty(len(positions), dtype=np.int64)
    distances = np.empty(len(positions))
    rows = max(1, _BLOCK // max(centres.shape))
    for start in range(0, len(positions), rows):
        part = slice(start, start + rows)
        points = np.ascontiguousarray(Y[:, positions[part]].T)
        norms = np.einsum("nm,nm->n", points, points)
        labels[part], distances[part] = _assign(points, norms, centres)
    _occupy(labels, distances, len(centres))
    totals = np.bincount(labels, weights=mass + 1e-12)
    sums = [np.bincount(labels, weights=row[positions] * (mass + 1e-12)) for row in Y]
    return labels, np.array(sums).T / totals[:, np.newaxis]


def _nearest(
    Y: NDArray[np.float64],
    positions: NDArray[np.int64],
    mass: NDArray[np.float64],
    labels: NDArray[np.int64],
    centres: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the sample nearest to each centre and the mass of its cluster."""
    order = np.argsort(labels, kind="stable")
    stops = np.cumsum(np.bincount(labels, minlength=len(centres)))
    chosen = np.empty(len(centres), dtype=np.int64)
    shares = np.empty(len(centres))
    for j, inside in enumerate(np.split(order, stops[:-1])):
        away = np.ascontiguousarray(Y[:, positions[inside]].T) - centres[j]
        distances = np.einsum("nm,nm->n", away, away)
        chosen[j] = positions[inside[int(np.round(distances, 12).argmin())]]
        shares[j] = mass[inside].sum()
    return chosen, shares


def _fill(
    first: NDArray[np.int64],
    codes: NDArray[np.int64],
    mass: NDArray[np.float64],
    k: int,
) -> Draw:
    """Take every distinct sample, then further copies of the heaviest groups."""
    copies = np.argsort(-mass[codes], kind="stable")
    copies = copies[codes[copies] != copies][: k - len(first)]
    counts = 1 + np.bincount(codes[copies], minlength=len(codes))
    chosen = np.concatenate([first, copies])
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
    heavy = np.ascontiguousarray(points.T) * mass
    labels = np.full(len(points), -1)
    distances = np.zeros(len(points))
    for _ in range(_ROUNDS):
        new, distances = _assign(points, norms, centres)
        _occupy(new, distances, k)
        if np.array_equal(new, labels):
            break
        labels = new
        totals = np.bincount(labels, weights=mass, minlength=k)
        sums = np.array([np.bincount(labels, weights=row, minlength=k) for row in heavy])
        centres = np.ascontiguousarray(sums.T) / totals[:, np.newaxis]
    return labels.astype(np.int64), centres, float(mass @ distances)


def _assign(
    points: NDArray[np.float64], norms: NDArray[np.float64], centres: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nearest centre of each point and the squared distance to it."""
    own = np.einsum("km,km->k", centres, centres)
    labels = np.empty(len(points), dtype=np.int64)
    distances = np.empty(len(points))
    rows = max(1, _BLOCK // len(centres))
    for start in range(0, len(points), rows):
        part = slice(start, start + rows)
        squared = points[part] @ centres.T
        squared *= -2.0
        squared += norms[part, np.newaxis]
        squared += own
        labels[part] = squared.argmin(axis=1)
        distances[part] = squared[np.arange(len(squared)), labels[part]]
    return labels, np.maximum(distances, 0.0)


def _occupy(labels: NDArray[np.int64], distances: NDArray[np.float64], k: int) -> None:
    """Give each empty cluster the point that its own centre serves worst, in place."""
    counts = np.bincount(labels, minlength=k)
    for j in np.flatnonzero(counts == 0):
        far = int(np.where(counts[labels] > 1, distances, -1.0).argmax())
        counts[labels[far]] -= 1
        counts[j] = 1
        labels[far], distances[far] = j, 0.0


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
            nearest, np.maximum(norms - 2.0 * (points @ points[last]) + norms[last], 0)
        )
        nearest[chosen[:j]] = 0.0
        chances = mass * nearest
        chosen[j] = rng.choice(len(points), p=chances / chances.sum())
    return chosen
