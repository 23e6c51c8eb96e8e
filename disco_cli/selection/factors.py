"""What the reference models' responses tell of each sample: mean, loadings and remaining spread.

The responses of a model are described as ``y_i = mean_i + Σ_d θ_d · loading_id + noise_i``, with
θ of unit variance over the reference models: the principal components of the (M, N) responses,
found through their M × M inner products. Selection spreads its draw over these features, and the
estimators predict a target's unseen samples from them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_FACTORS = 8
"""Factors of the estimators and of the sizes. Measured: 4 to 16 give the same errors within 1 %."""

_RANK_TOLERANCE = 1e-10
"""Eigenvalues below this share of the largest are rounding."""

_BLOCK = 1 << 15
"""Samples worked at once."""

_COMPLETION_RANK = 3
_COMPLETION_ROUNDS = 15
_PRIOR_RESPONSES = 10.0
"""Missing responses: rank and rounds of the completion, weight of "an average model"."""


@dataclass(frozen=True)
class Factors:
    """Factor description of N samples, from M reference models.

    Attributes
    ----------
    means : NDArray of float64 of shape (N,)
        Mean response of each sample over the models.
    loadings : NDArray of float64 of shape (N, d)
        Change of each sample's response for one standard deviation of each factor, factors in
        order of falling variance.
    spread : NDArray of float64 of shape (N,)
        Standard deviation of each sample's response over the models, in units of the response.
    noise : NDArray of float64 of shape (N,)
        Standard deviation of what the factors leave, with M − 1 − d degrees of freedom.
    n_models : int
        M, without copies of a model.
    """

    means: NDArray[np.float64]
    loadings: NDArray[np.float64]
    spread: NDArray[np.float64]
    noise: NDArray[np.float64]
    n_models: int

    @property
    def n_samples(self) -> int:
        """Number of samples, N."""
        return len(self.means)

    def take(self, rows: NDArray[np.int64]) -> Factors:
        """Return the description of these samples, in their order."""
        return replace(
            self,
            means=self.means[rows],
            loadings=self.loadings[rows],
            spread=self.spread[rows],
            noise=self.noise[rows],
        )


def fit_factors(Y: NDArray[np.float64], n_factors: int = MAX_FACTORS) -> Factors:
    """Describe the samples by the principal components of the reference responses.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses of at least one model, without NaN (see :func:`complete_responses`).
    n_factors : int
        At most so many factors; never more than M − 2, so that a degree of freedom is left.

    Returns
    -------
    Factors
        With one model, no factors and no spread.
    """
    M, N = Y.shape
    means, squares = Y.mean(axis=0), np.empty(N)
    products = np.zeros((M, M))
    for block in _blocks(N):
        centred = Y[:, block] - means[block]
        squares[block] = np.einsum("mn,mn->n", centred, centred)
        products += centred @ centred.T
    wanted = max(0, min(n_factors, M - 2))
    values, vectors = np.linalg.eigh(products)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = int(np.count_nonzero(values[:wanted] > _RANK_TOLERANCE * max(values[0], 1e-300)))
    loadings = np.zeros((N, kept))
    if kept:
        for block in _blocks(N):
            loadings[block] = (Y[:, block] - means[block]).T @ vectors[:, :kept]
        # The sign of a component is arbitrary; fix it, so that equal inputs give equal bytes.
        largest = np.abs(loadings).argmax(axis=0)
        loadings *= np.where(loadings[largest, np.arange(kept)] < 0, -1.0, 1.0)
    left = np.maximum(squares - np.einsum("nd,nd->n", loadings, loadings), 0.0)
    return Factors(
        means=means,
        loadings=loadings / np.sqrt(max(M - 1, 1)),
        spread=np.sqrt(squares / max(M - 1, 1)),
        noise=np.sqrt(left / max(M - 1 - kept, 1)),
        n_models=M,
    )


def _blocks(n: int) -> Iterator[slice]:
    """Return slices that cover n samples; a copy of the whole Y may not fit into memory."""
    for start in range(0, n, _BLOCK):
        yield slice(start, start + _BLOCK)


def complete_responses(Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fill missing responses from what similar models did: a low-rank completion.

    Starts from sample mean plus model effect (shrunk as if by ten average responses), then repeats
    a rank-3 fit with shrunk singular values, as in soft-impute (Mazumder et al. 2010). Filled values
    stay inside the range of the observed ones.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses, NaN = missing; at least one is known.

    Returns
    -------
    NDArray of float64 of shape (M, N)
        The same object when nothing is missing.
    """
    known = ~np.isnan(Y)
    if known.all():
        return Y
    low, high = float(np.nanmin(Y)), float(np.nanmax(Y))
    counts = known.sum(axis=0)
    overall = float(np.nanmean(Y))
    effects: NDArray[np.float64] = np.zeros(len(Y))
    means = np.full(Y.shape[1], overall)
    for _ in range(5):
        left = np.where(known, Y - effects[:, np.newaxis], 0.0).sum(axis=0)
        means = np.where(counts > 0, left / np.maximum(counts, 1), overall)
        effects = np.where(known, Y - means, 0.0).sum(axis=1)
        effects /= known.sum(axis=1) + _PRIOR_RESPONSES
    filled = np.where(known, Y, np.clip(means + effects[:, np.newaxis], low, high))
    rank = min(_COMPLETION_RANK, len(Y) - 1)
    for _ in range(_COMPLETION_ROUNDS if rank > 0 else 0):
        means = filled.mean(axis=0)
        products = np.zeros((len(Y), len(Y)))
        for block in _blocks(Y.shape[1]):
            centred = filled[:, block] - means[block]
            products += centred @ centred.T
        values, vectors = np.linalg.eigh(products)
        noise = float(values[:-rank].mean())
        shrink = np.maximum(values[-rank:] - noise, 0.0) / np.maximum(values[-rank:], 1e-300)
        leading = vectors[:, -rank:]
        for block in _blocks(Y.shape[1]):
            centred = filled[:, block] - means[block]
            smooth = (leading * shrink) @ (leading.T @ centred)
            estimate = np.clip(means[block] + smooth, low, high)
            filled[:, block] = np.where(known[:, block], Y[:, block], estimate)
    return filled


def distinct_models(Y: NDArray[Any], *more: NDArray[Any]) -> NDArray[np.int64]:
    """Return the rows (ascending) that are no copy of an earlier row; NaN equals NaN.

    A copied reference model is no new evidence: counted twice it would narrow intervals and hide
    that there are too few models.

    Parameters
    ----------
    Y : NDArray of shape (M, ...)
        One row per model.
    *more : NDArray of shape (M, ...)
        What else has to be equal in a copy.
    """
    return np.array([rows[0] for rows in equal_models(Y, *more)], dtype=np.int64)


def equal_models(Y: NDArray[Any], *more: NDArray[Any]) -> list[list[int]]:
    """Return all rows in groups of equal ones, each ascending, by their first row.

    Parameters
    ----------
    Y, *more : NDArray of shape (M, ...)
        One row per model; rows are equal where they are so in every array.
    """
    seen: dict[bytes, list[int]] = {}
    for m in range(len(Y)):
        digest = hashlib.sha256()
        for array in (Y, *more):
            digest.update(np.ascontiguousarray(array[m]).reshape(-1).view(np.uint8).data)
        seen.setdefault(digest.digest(), []).append(m)
    return list(seen.values())
