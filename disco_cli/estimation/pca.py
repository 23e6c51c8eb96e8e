"""Principal components of a wide matrix: few models, many features.

With D features and M < D models the components lie in the span of the models, so the M × M matrix
of inner products (the Gram matrix) holds all that a decomposition of the M × D matrix would find;
it costs M²·D operations and one symmetric M × M eigenproblem. With D ≤ M the D × D scatter matrix
does the same. Both are summed over blocks in float64, whatever the precision of the input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK_ELEMENTS = 1 << 21
"""Elements that are turned to float64 at a time: 16 MiB."""

_RANK_TOLERANCE = 1e-12
"""Eigenvalues below this share of the largest are rounding: squares lose half of the digits."""


@dataclass(frozen=True)
class Pca:
    """A fitted principal component analysis of D features, q components.

    Attributes
    ----------
    mean : NDArray of float64 of shape (D,)
        Mean of the features, taken off before projecting; features are not standardised.
    components : NDArray of float64 of shape (q, D)
        Orthonormal rows in order of falling variance. The entry of largest magnitude (the first
        of several) is positive in each row, which fixes the signs.
    variance : NDArray of float64 of shape (q,)
        Variance along each component, with M − 1 in the denominator.
    total_variance : float
        Sum over all features.
    """

    mean: NDArray[np.float64]
    components: NDArray[np.float64]
    variance: NDArray[np.float64]
    total_variance: float

    def transform(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scores (M, q) of X (M, D), block by block in float64."""
        scores = np.zeros((len(X), len(self.components)))
        for columns in _blocks(X.shape[1], len(X)):
            scores += (X[:, columns] - self.mean[columns]) @ self.components[:, columns].T
        return scores


def fit_pca(X: NDArray[Any], n_components: int) -> Pca:
    """Fit principal components; the method and the signs depend on nothing but the input.

    Parameters
    ----------
    X : NDArray of float of shape (M, D)
        One row per model, at least two rows and no NaN. Never copied as a whole.
    n_components : int
        At most so many components. There are fewer if the centred rows span less, as M rows never
        span more than M − 1 dimensions.

    Returns
    -------
    Pca
        With ``min(n_components, rank)`` components; none if all rows are equal.
    """
    M, D = X.shape
    mean = np.empty(D)
    for columns in _blocks(D, M):
        mean[columns] = X[:, columns].mean(axis=0, dtype=np.float64)
    if D >= M:
        values, vectors, total = _leading(_gram(X, mean), n_components)
        components = _lift(X, mean, vectors / np.sqrt(values))
    else:
        values, vectors, total = _leading(_scatter(X, mean), n_components)
        components = np.ascontiguousarray(vectors.T)
    _fix_signs(components)
    return Pca(mean, components, values / (M - 1), total / (M - 1))


def _fix_signs(components: NDArray[np.float64]) -> None:
    """Make the entry of largest magnitude positive in each row, in place and without a copy."""
    rows = np.arange(len(components))
    highest, lowest = components.argmax(axis=1), components.argmin(axis=1)
    up, down = components[rows, highest], -components[rows, lowest]
    is_negative = (down > up) | ((down == up) & (lowest < highest))
    components *= np.where(is_negative, -1.0, 1.0)[:, np.newaxis]


def _gram(X: NDArray[Any], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inner products (M, M) of the centred rows."""
    gram = np.zeros((len(X), len(X)))
    for columns in _blocks(X.shape[1], len(X)):
        centred = X[:, columns] - mean[columns]
        gram += centred @ centred.T
    return gram


def _scatter(X: NDArray[Any], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of products (D, D) of the centred columns."""
    scatter = np.zeros((X.shape[1], X.shape[1]))
    for rows in _blocks(len(X), X.shape[1]):
        centred = X[rows] - mean
        scatter += centred.T @ centred
    return scatter


def _lift(
    X: NDArray[Any], mean: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the combinations (q, D) of centred rows that ``weights`` (M, q) ask for."""
    components = np.empty((weights.shape[1], X.shape[1]))
    for columns in _blocks(X.shape[1], len(X)):
        components[:, columns] = weights.T @ (X[:, columns] - mean[columns])
    return components


def _leading(
    symmetric: NDArray[np.float64], n_components: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return the largest eigenvalues, their vectors as columns, and the sum of all eigenvalues."""
    from scipy.linalg import eigh

    total = float(np.trace(symmetric))
    values, vectors = eigh(symmetric)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = min(n_components, int(np.count_nonzero(values > _RANK_TOLERANCE * max(values[0], 0.0))))
    return values[:kept].copy(), vectors[:, :kept], total


def _blocks(length: int, width: int) -> list[slice]:
    """Cut ``length`` into slices so that a block of ``width`` × slice stays small."""
    step = max(1, _BLOCK_ELEMENTS // max(width, 1))
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]
