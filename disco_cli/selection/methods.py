"""Selection by disagreement, and the plain and the stratified random sample.

Every function takes arrays in the benchmark's canonical order, so a result never depends on the
order of files. Ties are broken by JSD and then by position, which follows the sample ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from disco_cli.selection.draw import RANDOM, Draw, certainty_draw

if TYPE_CHECKING:
    from numpy.typing import NDArray


def select_top(
    scores: NDArray[np.float64],
    tie_breaker: NDArray[np.float64],
    k: int,
    groups: NDArray[np.str_] | None = None,
) -> Draw:
    """Take the K samples of the highest score (DISCO, arXiv 2510.07959, section 3).

    Parameters
    ----------
    scores : NDArray of float64 of shape (N,)
        PDS or JSD of each sample; NaN (nobody answered it) ranks last.
    tie_breaker : NDArray of float64 of shape (N,)
        Decides between equal scores, higher first; then the lower position wins.
    k : int
        Number of samples, 1 … N.
    groups : NDArray of str of shape (N,), optional
        Take ``allocate`` samples of each group instead of the K highest overall.
    """
    if groups is None:
        chosen, n_tied, n_tied_chosen = _top(scores, tie_breaker, k)
        return certainty_draw(chosen, scores[chosen], n_tied=n_tied, n_tied_chosen=n_tied_chosen)
    names, codes = np.unique(groups, return_inverse=True)
    quotas = allocate(np.bincount(codes, minlength=len(names)), k)
    parts = []
    n_tied = n_tied_chosen = 0
    for group, quota in enumerate(quotas):
        members = np.flatnonzero(codes == group)
        top, tied, tied_chosen = _top(scores[members], tie_breaker[members], int(quota))
        parts.append(members[top])
        n_tied += tied
        n_tied_chosen += tied_chosen
    taken = np.concatenate(parts)
    # Ranks run over all groups, by the same rule as within one.
    taken = taken[_ranking(scores[taken], tie_breaker[taken], taken)]
    return certainty_draw(taken, scores[taken], n_tied=n_tied, n_tied_chosen=n_tied_chosen)


def select_random(
    n: int,
    k: int,
    rng: np.random.Generator,
    groups: NDArray[np.str_] | NDArray[np.int64] | None = None,
    shares: NDArray[np.float64] | None = None,
) -> Draw:
    """Draw K of N samples uniformly, or ``allocate`` of each group uniformly.

    Parameters
    ----------
    n, k : int
        Numbers of samples, 1 ≤ K ≤ N.
    rng : numpy.random.Generator
        Source of chance.
    groups : NDArray of str or int64 of shape (N,), optional
        Strata.
    shares : NDArray of float64 of shape (N,), optional
        Share of each sample in the score; equal without.

    Returns
    -------
    Draw
        Weights are share / chance, scaled to sum to 1: the weighted mean is unbiased although every
        group gives the same number of samples. A group without a draw (K < G) is left out.
    """
    if groups is None:
        chosen = rng.choice(n, size=k, replace=False)
        chances = np.full(n, k / n)
    else:
        names, codes = np.unique(groups, return_inverse=True)
        sizes = np.bincount(codes, minlength=len(names))
        quotas = allocate(sizes, k)
        drawn = [
            rng.choice(np.flatnonzero(codes == group), size=int(quota), replace=False)
            for group, quota in enumerate(quotas)
        ]
        # Interleaved by chance, so that ranks carry no order of groups.
        chosen = rng.permutation(np.concatenate(drawn))
        chances = (quotas / sizes)[codes]
    order = np.argsort(chosen, kind="stable")
    positions = chosen[order].astype(np.int64)
    weights = (1.0 if shares is None else shares[positions]) / chances[positions]
    return Draw(
        positions=positions,
        ranks=order + 1,
        scores=np.full(k, np.nan),
        roles=(RANDOM,) * k,
        inclusion_probabilities=chances[positions],
        weights=weights / weights.sum(),
    )


def allocate(sizes: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Share K samples among G groups: K // G each, the first K mod G groups one more.

    Groups that are too small give all they have, and the others share what is left evenly.

    Parameters
    ----------
    sizes : NDArray of int64 of shape (G,)
        Number of samples in each group; their sum is at least K.
    k : int
        Number of samples to share out.

    Returns
    -------
    NDArray of int64 of shape (G,)
        Samples to take of each group.
    """
    # The highest level to which every group can be filled without exceeding K in total.
    low, high = 0, k
    while low < high:
        level = (low + high + 1) // 2
        if int(np.minimum(sizes, level).sum()) <= k:
            low = level
        else:
            high = level - 1
    quotas = np.minimum(sizes, low).astype(np.int64)
    one_more = np.flatnonzero(sizes > low)[: k - int(quotas.sum())]
    quotas[one_more] += 1
    return quotas


def _top(
    scores: NDArray[np.float64], tie_breaker: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int64], int, int]:
    """Return the top K in rank order, how many tie for the last place, how many of those are in."""
    if k == 0:
        return np.empty(0, dtype=np.int64), 0, 0
    keys = np.where(np.isnan(scores), -np.inf, scores)
    # A partition is O(N); only what can be chosen is sorted.
    cut = np.partition(keys, len(keys) - k)[len(keys) - k]
    candidates = np.flatnonzero(keys >= cut)
    order = _ranking(keys[candidates], tie_breaker[candidates], candidates)
    chosen = candidates[order][:k]
    n_tied = int(np.count_nonzero(keys[candidates] == cut))
    if len(candidates) == k:
        return chosen, n_tied, 0
    return chosen, n_tied, k - int(np.count_nonzero(keys[candidates] > cut))


def _ranking(
    scores: NDArray[np.float64], tie_breaker: NDArray[np.float64], positions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Order by score, then tie breaker (both descending, NaN last), then position."""

    def descending(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.isnan(values), np.inf, -values)

    return np.lexsort((positions, descending(tie_breaker), descending(scores)))
