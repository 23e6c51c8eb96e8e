"""``strata``: one random sample of each of K strata of alike samples, and ``hybrid`` built on it.

Informative and representative in one draw. Samples whose responses the reference models' factors
explain badly, or which a stronger model may get wrong, have more chances (Neyman allocation, with a
floor), the strata hold samples that behave alike, so the weighted mean is nearly unbiased for *any* model and varies little for models that
resemble the references.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from disco_cli.selection.draw import CERTAINTY, RANDOM, Draw
from disco_cli.selection.factors import Factors

_MOST_INDICATORS = 1 << 25
"""At most so many numbers (256 MiB) tell of which group each unit is."""

STRONGER = 1.5
"""How much stronger than the references, in logits, the models are that sizes also serve.

The exact error of the design on seven sets (benchmarks/recipes_design.py), compared with the rule
noise + 1.5 · mean noise: as large for models like the references, 3 % smaller for stronger and for
newer ones, 3 % larger for models weaker than all references. Larger values shift it further.
"""


@dataclass(frozen=True)
class Strata:
    """K strata of U units.

    Attributes
    ----------
    members : tuple of NDArray of int64
        Units of each stratum. Strata 2i and 2i + 1 are siblings: halves of one larger stratum.
    chances : NDArray of float64 of shape (U,)
        Chance of each unit to be the one drawn from its stratum; they sum to 1 in each stratum.
    """

    members: tuple[NDArray[np.int64], ...]
    chances: NDArray[np.float64]

    def draw(self, rng: np.random.Generator, n_draws: int) -> NDArray[np.int64]:
        """Return ``n_draws`` independent draws (n_draws, K) of one unit per stratum."""
        uniform = rng.random((n_draws, len(self.members)))
        drawn = np.empty((n_draws, len(self.members)), dtype=np.int64)
        for j, units in enumerate(self.members):
            steps = np.cumsum(self.chances[units])
            places = np.searchsorted(steps, uniform[:, j] * steps[-1], side="right")
            drawn[:, j] = units[np.minimum(places, len(units) - 1)]
        return drawn


def draw_sizes(
    factors: Factors, weights: NDArray[np.float64], stronger: float = STRONGER
) -> NDArray[np.float64]:
    """Return the size of each sample, (N,) and positive: its weight times the doubt about it.

    Doubt is the root of the sum of squares of three things, each of mean 1: what the references leave
    unexplained, what a stronger model leaves open, and a constant, so that no sample is out of reach.

    Parameters
    ----------
    factors : Factors
        Of N samples.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    stronger : float
        How much stronger than the references, in logits, a model is expected to be.
    """
    mean = float(factors.noise.mean())
    if mean <= 0:  # all models answer alike: every sample is as good as another
        return weights + _tiny(weights)
    noise, spread = factors.noise / mean, _doubt_of_a_stronger_model(factors, stronger)
    return np.asarray((weights + _tiny(weights)) * np.sqrt(noise**2 + spread**2 + 1.0))


def _doubt_of_a_stronger_model(factors: Factors, stronger: float) -> NDArray[np.float64]:
    """Return the binomial standard deviation of its responses, (N,), over its mean.

    Such a model solves what all references solve; what tells is what they find hard. Responses that
    are no shares of success have no such thing, and every sample gets half a mean.
    """
    if factors.means.min() < 0.0 or factors.means.max() > 1.0:
        return np.full(factors.n_samples, 0.5)
    M = factors.n_models
    chance = (factors.means * M + 0.5) / (M + 1)  # never 0 or 1
    odds = chance / (1.0 - chance) * np.exp(stronger)
    spread = np.sqrt(odds) / (1.0 + odds)
    return np.asarray(spread / spread.mean())


def _tiny(weights: NDArray[np.float64]) -> float:
    """Return a share so small that it only keeps samples of weight 0 from a size of 0."""
    return 1e-9 * float(weights.mean())


def build_strata(features: NDArray[np.float64], sizes: NDArray[np.float64], k: int) -> Strata:
    """Split units into K strata of nearly equal total size by recursive bisection.

    Each group is projected on its own first principal axis and cut at the proportional point, so
    strata hold units whose features are alike. Cost O(U log K).

    Parameters
    ----------
    features : NDArray of float64 of shape (U, p)
        What should be alike within a stratum.
    sizes : NDArray of float64 of shape (U,)
        Positive sizes; the chance of a unit is its share of its stratum's size.
    k : int
        Number of strata, 1 … U.
    """
    members: list[NDArray[np.int64]] = []
    pending = [(np.arange(len(sizes)), k)]
    while pending:
        units, parts = pending.pop()
        if parts == 1:
            members.append(units)
            continue
        # An even number of strata on the left keeps 2i and 2i + 1 siblings.
        left = 1 if parts == 2 else 2 * max(1, round(parts / 4))
        centred = features[units] - features[units].mean(axis=0)
        axis = np.linalg.eigh(centred.T @ centred)[1][:, -1]
        axis = axis * (-1.0 if axis[np.abs(axis).argmax()] < 0 else 1.0)
        # Rounded, so that noise in the last digit cannot reorder units that are equal.
        along = np.round(centred @ axis, 10)
        units = units[np.argsort(along, kind="stable")]
        filled = np.cumsum(sizes[units])
        target = filled[-1] * left / parts
        cut = int(np.abs(filled - target).argmin()) + 1
        cut = min(max(cut, left), len(units) - (parts - left))
        pending.append((units[cut:], parts - left))
        pending.append((units[:cut], left))
    chances = np.empty(len(sizes))
    for units in members:
        chances[units] = sizes[units] / sizes[units].sum()
    return Strata(tuple(members), chances)


def select_strata(
    factors: Factors,
    weights: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
    *,
    n_draws: int = 1,
    units: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
    certain: NDArray[np.int64] | None = None,
) -> Draw:
    """Draw one sample of each of K strata, beside samples that are taken for certain.

    Parameters
    ----------
    factors : Factors
        Of the N samples.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    k : int
        Number of samples, certain ones included.
    rng : numpy.random.Generator
        Source of chance.
    n_draws : int
        With more than one, the best balanced of so many draws is kept: the one whose weighted mean
        of the features is nearest to that of all samples (rejective sampling, Fuller 2009). The
        stated chances then hold approximately; with 1 they are exact.
    units : NDArray of int64 of shape (N,), optional
        Unit of each sample (see ``duplicates``); at most one sample of a unit is drawn.
    groups : NDArray of int64 of shape (N,), optional
        Group number of each sample, 0 … G−1: samples of a group count as more alike.
    certain : NDArray of int64, optional
        Fewer than K positions that are taken in any case (``hybrid``); the strata cover the rest.

    Returns
    -------
    Draw
        Weights sum to 1: a certain sample keeps its own share, a drawn one has
        share / chance, scaled to fill what is left. Without that scale (share / chance itself) the
        weighted sum is exactly unbiased; with it, up to a term of order 1/K.
    """
    N = factors.n_samples
    taken = np.empty(0, dtype=np.int64) if certain is None else certain
    codes = np.arange(N) if units is None else units
    # A sample that is a copy of a certain one can never be drawn; the certain one stands for it.
    free = np.flatnonzero(~np.isin(codes, codes[taken]))
    pool = _pool(factors, weights, codes, free)
    n_random = k - len(taken)
    if n_random > len(pool.sizes):  # copies have to be drawn after all
        free = np.setdiff1d(np.arange(N), taken)
        codes = np.arange(N)
        pool = _pool(factors, weights, codes, free)
    members = None if groups is None else groups[pool.samples[pool.starts]]
    strata = build_strata(stratum_features(pool.factors, members, n_random), pool.sizes, n_random)
    draws = strata.draw(rng, n_draws)
    best = 0 if n_draws == 1 else _most_balanced(draws, strata.chances, pool)
    chosen = draws[best]
    drawn, shares = pool.pick(chosen, rng)
    chances = strata.chances[chosen] * shares
    own = np.array([weights[codes == codes[i]].sum() for i in taken], dtype=np.float64)
    inverse = pool.weights[chosen] / strata.chances[chosen]
    inverse *= (1.0 - own.sum()) / inverse.sum()
    positions = np.concatenate([taken, drawn])
    order = np.argsort(positions, kind="stable")
    number = np.concatenate([np.full(len(taken), -1), np.arange(n_random)])
    roles = np.array([CERTAINTY] * len(taken) + [RANDOM] * n_random)[order]
    return Draw(
        positions=positions[order],
        ranks=order + 1,
        scores=np.full(k, np.nan),
        roles=tuple(str(role) for role in roles),
        inclusion_probabilities=np.concatenate([np.ones(len(taken)), chances])[order],
        weights=np.concatenate([own, inverse])[order],
        strata=number[order],
    )


@dataclass(frozen=True)
class _Pool:
    """The units that can be drawn: description, weight and size of each, and their samples."""

    factors: Factors
    weights: NDArray[np.float64]
    sizes: NDArray[np.float64]
    samples: NDArray[np.int64]
    starts: NDArray[np.int64]

    def pick(
        self, chosen: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return a sample of each chosen unit and its chance within the unit."""
        stops = np.append(self.starts[1:], len(self.samples))
        picked = np.empty(len(chosen), dtype=np.int64)
        shares = np.ones(len(chosen))
        for j, unit in enumerate(chosen):
            inside = self.samples[self.starts[unit] : stops[unit]]
            place = int(rng.integers(len(inside))) if len(inside) > 1 else 0
            picked[j] = inside[place]
            shares[j] = 1.0 / len(inside)
        return picked, shares


def _pool(
    factors: Factors,
    weights: NDArray[np.float64],
    codes: NDArray[np.int64],
    free: NDArray[np.int64],
) -> _Pool:
    """Join the free samples of each unit."""
    order = free[np.argsort(codes[free], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1)) if len(order) else order
    sizes = np.add.reduceat(draw_sizes(factors, weights)[order], starts)
    joined = np.add.reduceat(weights[order], starts)
    # Samples of a unit are described alike; the first speaks for all.
    return _Pool(factors.take(order[starts]), joined, sizes, order, starts)


def stratum_features(
    factors: Factors, groups: NDArray[np.int64] | None, n_strata: int
) -> NDArray[np.float64]:
    """Return the features of the strata: mean response, factor loadings, and group.

    The first two, 1 + d of them, in the unit of a principal score of the (N, M) responses, √M times
    the response. A group is a column as if all models answered its samples otherwise by one half. More groups
    than strata, or than fit into memory, are not told apart.

    Parameters
    ----------
    factors : Factors
        Of U units.
    groups : NDArray of int64 of shape (U,), optional
        Group number of each unit.
    n_strata : int
        K.

    Returns
    -------
    NDArray of float64 of shape (U, 1 + d) or (U, 1 + d + G)
    """
    scale = np.sqrt(factors.n_models)
    features = np.column_stack([scale * factors.means, scale * factors.loadings])
    n_groups = 0 if groups is None or len(groups) == 0 else int(groups.max()) + 1
    if not 1 < n_groups <= min(n_strata, _MOST_INDICATORS // max(len(features), 1)):
        return features
    inside = np.zeros((len(features), n_groups))
    inside[np.arange(len(features)), groups] = scale / 2
    return np.column_stack([features, inside])


def _most_balanced(draws: NDArray[np.int64], chances: NDArray[np.float64], pool: _Pool) -> int:
    """Return the draw whose weighted mean of the standardised features misses theirs the least."""
    features = np.column_stack([pool.factors.means, pool.factors.loadings])
    total = pool.weights / pool.weights.sum()
    centred = features - total @ features
    scale = np.sqrt(total @ centred**2)
    centred = centred / np.where(scale > 0, scale, 1.0)
    inverse = total[draws] / chances[draws]
    inverse /= inverse.sum(axis=1, keepdims=True)
    misses = np.einsum("bk,bkp->bp", inverse, centred[draws])
    return int(np.einsum("bp,bp->b", misses, misses).argmin())
