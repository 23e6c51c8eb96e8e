"""DISCO as published (arXiv 2510.07959): {PDS, JSD} top-K, PCA of signatures, {forest, kNN}.

The signature is the flattened probabilities on S, without labels; where only responses are known
they are the signature. Neither predictor returns the full score at K = N: a forest returns a mean
of reference scores, kNN the score of a reference, so nothing outside their range, either.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from disco_cli.backtest.baselines.interface import (
    Estimate,
    Fitted,
    References,
    fill,
    residual_interval,
)
from disco_cli.disagreement.measures import jensen_shannon, predictive_diversity
from disco_cli.errors import UsageError
from disco_cli.estimation.pca import fit_pca

if TYPE_CHECKING:
    from disco_cli.backtest.baselines.interface import FitMethod

MAX_COMPONENTS = 256
N_TREES = 100
NEIGHBOURS = 1
"""Neighbours in the authors' code."""

BLOCK_ELEMENTS = 1 << 23
"""Probabilities held at a time while samples are scored: 32 MiB in single precision."""

Regressor = Callable[
    [NDArray[np.float64], NDArray[np.float64], np.random.Generator, float],
    Callable[[NDArray[np.float64]], Estimate],
]
"""(principal scores (M, q), full scores (M,), rng, level) -> (scores (q,) -> estimate)."""


def fit_disco(
    references: References,
    k: int,
    rng: np.random.Generator,
    *,
    measure: str,
    regressor: Regressor,
) -> Fitted:
    """Estimate a target by a regression on the principal scores of its signature.

    Parameters
    ----------
    references : References
        The reference models.
    k : int
        K.
    rng : Generator
        Used by the forest.
    measure : str
        ``pds`` or ``jsd``; ties of PDS go by JSD, then by position.
    regressor : Regressor
        :func:`forest` or :func:`nearest`.
    """
    positions = top_positions(references, measure, k)
    signatures = reference_signatures(references, positions)
    means = np.nan_to_num(_column_means(signatures))
    filled = fill(signatures, means)
    pca = fit_pca(filled, min(MAX_COMPONENTS, references.n_models - 1))
    estimate = regressor(pca.transform(filled), references.truth, rng, references.level)

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:
        signature = y if references.probabilities is None or p is None else p.ravel()
        return estimate(pca.transform(fill(signature, means)[None, :])[0])

    return Fitted(positions, predict)


def forest(
    scores: NDArray[np.float64],
    truth: NDArray[np.float64],
    rng: np.random.Generator,
    level: float,
) -> Callable[[NDArray[np.float64]], Estimate]:
    """Fit a random forest of :data:`N_TREES` trees; the interval is from out-of-bag residuals."""
    from sklearn.ensemble import RandomForestRegressor

    if not scores.shape[1]:
        scores = np.zeros((len(truth), 1))
    model = RandomForestRegressor(
        N_TREES, oob_score=_no_score, random_state=int(rng.integers(2**31))
    )
    model.fit(scores, truth)
    out_of_bag = np.asarray(model.oob_prediction_, dtype=np.float64).ravel()
    residuals = (truth - out_of_bag)[~np.isnan(out_of_bag)]
    width = scores.shape[1]

    def estimate(at: NDArray[np.float64]) -> Estimate:
        row = at if len(at) == width else np.zeros(width)
        return residual_interval(float(model.predict(row[None, :])[0]), residuals, level)

    return estimate


def nearest(
    scores: NDArray[np.float64],
    truth: NDArray[np.float64],
    rng: np.random.Generator,  # noqa: ARG001
    level: float,
) -> Callable[[NDArray[np.float64]], Estimate]:
    """Take the mean score of the nearest references by cosine; ties go by the order of models.

    The interval is from the residuals of references when each is left out.
    """
    directions = _unit(scores)
    similarity = directions @ directions.T
    np.fill_diagonal(similarity, -np.inf)
    others = np.argsort(-similarity, axis=1, kind="stable")[:, :NEIGHBOURS]
    residuals = truth - truth[others].mean(axis=1)

    def estimate(at: NDArray[np.float64]) -> Estimate:
        order = np.argsort(-(directions @ _unit(at)), kind="stable")[:NEIGHBOURS]
        return residual_interval(float(truth[order].mean()), residuals, level)

    return estimate


def top_positions(references: References, measure: str, k: int) -> NDArray[np.int64]:
    """Return the K samples of the highest disagreement, ascending."""
    pds, jsd = references.once("disagreement", lambda: disagreement(references))
    first, second = (pds, jsd) if measure == "pds" else (jsd, pds)
    order = np.lexsort((np.arange(len(pds)), -np.nan_to_num(second), -np.nan_to_num(first)))
    return np.sort(order[:k])


def disagreement(references: References) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return PDS and JSD (N,) of every sample among the references.

    Responses without classes count as the two probabilities y and 1 − y.

    Raises
    ------
    UsageError
        If responses without classes lie outside [0, 1].
    """
    n_classes = references.n_classes if references.probabilities is not None else 2
    step = max(2, BLOCK_ELEMENTS // (references.n_models * (n_classes or 2)))
    parts = []
    for first in range(0, references.n_samples, step):
        block = _block(references, slice(first, min(first + step, references.n_samples)))
        parts.append((predictive_diversity(block), jensen_shannon(block)))
    return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])


def reference_signatures(
    references: References, positions: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the signatures (M, K·C) or, of responses, (M, K); NaN = missing."""
    read = references.probabilities
    if read is None:
        return references.responses[:, positions]
    rows = [np.asarray(read(m, positions), np.float64) for m in range(references.n_models)]
    return np.stack([row.ravel() for row in rows])


def _block(references: References, rows: slice) -> NDArray[np.float64]:
    """Return the probabilities (M, n, C) of some samples."""
    read = references.probabilities
    if read is not None:
        return np.stack([np.asarray(read(m, rows)) for m in range(references.n_models)])
    y = references.responses[:, rows]
    if np.nanmin(y, initial=0.0) < 0 or np.nanmax(y, initial=1.0) > 1:
        raise UsageError(
            "PDS and JSD need probabilities, labels, or responses between 0 and 1; "
            f"found responses from {np.nanmin(y):g} to {np.nanmax(y):g}"
        )
    return np.stack([y, 1 - y], axis=2)


def _column_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    with np.errstate(invalid="ignore"):
        means: NDArray[np.float64] = total / known.sum(axis=0)
    return means


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def _no_score(truth: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:  # noqa: ARG001
    """Stand in for a score nobody reads; only the out-of-bag predictions are wanted."""
    return 0.0


fit_pds_forest: FitMethod = partial(fit_disco, measure="pds", regressor=forest)
fit_pds_nearest: FitMethod = partial(fit_disco, measure="pds", regressor=nearest)
fit_jsd_forest: FitMethod = partial(fit_disco, measure="jsd", regressor=forest)
fit_jsd_nearest: FitMethod = partial(fit_disco, measure="jsd", regressor=nearest)
