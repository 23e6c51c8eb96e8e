"""Anchor points: one sample for each cluster of samples, weighted by its cluster.

anchor-corr clusters the columns of Y, so samples that the same models get right stand for each
other; anchor-irt (in :mod:`.irt`) clusters item parameters. At K = N every sample is an anchor with
its own weight and the full score comes back exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.backtest.baselines.interface import (
    Estimate,
    Fitted,
    Predict,
    References,
    weighted_mean,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESTARTS = 5


@dataclass(frozen=True)
class Anchors:
    """Chosen samples, ascending, and the share of the score each stands for (they sum to 1)."""

    positions: NDArray[np.int64]
    weights: NDArray[np.float64]


def fit_anchor_corr(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by the weighted sum of its responses to anchors of correctness.

    The published method has no interval.
    """
    anchors = choose_anchors(references.filled().T, references.weights, k, rng)
    return Fitted(anchors.positions, weighted_sum(anchors))


def weighted_sum(anchors: Anchors) -> Predict:
    """Return the predictor that sums the responses with the anchors' weights.

    Weights of missing anchors go to the others in proportion.
    """

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:  # noqa: ARG001
        return Estimate(float(weighted_mean(y, anchors.weights)))

    return predict


def choose_anchors(
    features: NDArray[np.float64],
    weights: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
) -> Anchors:
    """Cluster the samples and take of each cluster the one nearest to its centre.

    Weighted k-means, :data:`RESTARTS` restarts, lowest inertia. Samples with equal features cannot
    be told apart; if there are fewer distinct ones than K, the rest of the budget is drawn at
    random from what is left, and a cluster's weight is shared by all its chosen samples in
    proportion to their own weights.

    Parameters
    ----------
    features : NDArray of float64, shape (N, F)
        What to cluster by.
    weights : NDArray of float64, shape (N,)
        Weights of the score.
    k : int
        K anchors.
    rng : Generator
        Seeds the restarts and the surplus.
    """
    distinct, member = np.unique(features, axis=0, return_inverse=True)
    member = member.ravel()
    if len(distinct) > k:
        cluster = _k_means(distinct, np.bincount(member, weights).astype(np.float64), k, rng)[
            member
        ]
    else:
        cluster = member
    chosen = _nearest(features, weights, cluster)
    surplus = k - len(chosen)
    if surplus > 0:
        rest = np.setdiff1d(np.arange(len(weights)), chosen)
        chosen = np.concatenate([chosen, rng.permutation(rest)[:surplus]])
    positions = np.sort(chosen)
    label, own = cluster[positions], weights[positions]
    total = np.bincount(cluster, weights).astype(np.float64)
    inside = np.bincount(label, own, len(total))
    count = np.bincount(label, minlength=len(total))
    # Samples without weight can still stand for a cluster that has some: share evenly there.
    share = np.where(inside[label] > 0, own / np.where(inside > 0, inside, 1)[label], 0)
    share = np.where(inside[label] > 0, share, 1 / count[label])
    return Anchors(positions, total[label] * share)


def _k_means(
    points: NDArray[np.float64], weights: NDArray[np.float64], k: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the cluster (n,) of each distinct point."""
    from sklearn.cluster import KMeans

    means = KMeans(n_clusters=k, n_init=RESTARTS, random_state=int(rng.integers(2**31)))
    labels = means.fit_predict(points.astype(np.float32), sample_weight=weights * len(weights))
    return np.asarray(labels, dtype=np.int64)


def _nearest(
    features: NDArray[np.float64], weights: NDArray[np.float64], cluster: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return of each non-empty cluster the sample nearest to its weighted mean, first on ties."""
    n_clusters = int(cluster.max()) + 1
    mass = np.bincount(cluster, weights, n_clusters)
    # A cluster without weight has no weighted mean; its plain mean will do.
    used = np.where(mass[cluster] > 0, weights, 1.0)
    mass = np.bincount(cluster, used, n_clusters)
    sums = np.zeros((n_clusters, features.shape[1]))
    np.add.at(sums, cluster, used[:, None] * features)
    centres = sums / np.where(mass > 0, mass, 1)[:, None]
    distance = np.sum((features - centres[cluster]) ** 2, axis=1)
    order = np.lexsort((np.arange(len(cluster)), distance, cluster))
    _, first = np.unique(cluster[order], return_index=True)
    return order[first].astype(np.int64)
