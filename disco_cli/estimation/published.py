"""DISCO's recipe as published: PCA of the signatures, then a random forest or nearest neighbours.

Source: arXiv 2510.07959. The signature of a model is its probabilities on the K selected samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.forest import fit_forest
from disco_cli.estimation.neighbours import predict_neighbours
from disco_cli.estimation.pca import Pca, fit_pca
from disco_cli.estimation.signature import n_components
from disco_cli.progress import Progress

N_FOLDS = 5


@dataclass(frozen=True)
class PublishedFit:
    """The recipe fitted to M reference models.

    Attributes
    ----------
    pca : Pca
        Of the signatures; min(256, M − 1) components at most.
    scores : NDArray of float64 of shape (M, q)
        The reference models' principal scores.
    forest : RandomForestRegressor
        scikit-learn's, fitted to ``scores`` and the known full scores.
    """

    pca: Pca
    scores: NDArray[np.float64]
    forest: Any


def fit_published(
    signatures: NDArray[np.floating[Any]], truth: NDArray[np.float64], seed: int
) -> PublishedFit:
    """Fit PCA and forest.

    Parameters
    ----------
    signatures : NDArray of float of shape (M, D)
        No NaN.
    truth : NDArray of float64 of shape (M,)
        Known full scores.
    seed : int
        Seed of the forest.
    """
    pca = fit_pca(signatures, n_components(len(signatures)))
    scores = pca.transform(signatures)
    return PublishedFit(pca, scores, fit_forest(scores, truth, seed, n_jobs=-1).regressor)


def cross_validate_published(
    signatures: NDArray[np.floating[Any]],
    truth: NDArray[np.float64],
    seed: int,
    n_neighbours: int,
    progress: Progress,
) -> dict[str, NDArray[np.float64]]:
    """Estimate each reference model from the others, fold by fold, everything fitted anew.

    Parameters
    ----------
    signatures, truth, seed
        As for :func:`fit_published`.
    n_neighbours : int
        Of the kNN predictor.
    progress : Progress
        Told of every fold.

    Returns
    -------
    dict of str to NDArray of float64 of shape (M,)
        Left-out estimates of ``rf``, ``knn`` and ``mean`` (the mean of the other references).
    """
    folds = deal_folds(len(truth), N_FOLDS, seed)
    estimates = {name: np.empty(len(truth)) for name in ("rf", "knn", "mean")}
    progress.start(N_FOLDS, "cross-validating")
    for fold in range(folds.max() + 1):
        out = np.flatnonzero(folds == fold)
        rest = np.flatnonzero(folds != fold)
        fit = fit_published(signatures[rest], truth[rest], seed)
        # One product for the fold: `project`, a row by itself, takes thirty times longer, and its
        # last digit matters to nobody but a target.
        targets = fit.pca.transform(signatures[out])
        estimates["rf"][out] = fit.forest.predict(targets)
        estimates["knn"][out] = [
            predict_neighbours(fit.scores, truth[rest], target, n_neighbours) for target in targets
        ]
        estimates["mean"][out] = truth[rest].mean()
        progress.advance()
    return estimates


def deal_folds(n_models: int, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each model: shuffled by the seed, sizes equal to within one."""
    order = np.random.default_rng(seed).permutation(n_models)
    folds = np.empty(n_models, dtype=np.int64)
    folds[order] = np.arange(n_models) % min(n_folds, n_models)
    return folds


def random_sample_errors(
    responses: NDArray[np.float64],
    truth: NDArray[np.float64],
    weights: NDArray[np.float64],
    k: int,
    seed: int,
    n_draws: int = 50,
) -> NDArray[np.float64]:
    """Return how far the plain mean of K random samples lies from the truth.

    Parameters
    ----------
    responses : NDArray of float64 of shape (M, N)
        NaN = missing; what a model did not answer is left out of its mean.
    truth : NDArray of float64 of shape (M,)
        Known full scores, in the units of the responses.
    weights : NDArray of float64 of shape (N,)
        Weight of each sample in the score.
    k : int
        Number of samples in a draw.
    seed : int
        Seed of the draws.
    n_draws : int
        Number of draws.

    Returns
    -------
    NDArray of float64 of shape (n_draws, M)
        Estimate minus truth; NaN where a model answered none of the drawn samples.
    """
    rng = np.random.default_rng(seed)
    errors = np.empty((n_draws, len(truth)))
    for draw in range(n_draws):
        chosen = rng.choice(responses.shape[1], size=k, replace=False)
        drawn = responses[:, chosen]
        present = ~np.isnan(drawn)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (np.where(present, drawn, 0.0) @ weights[chosen]) / (present @ weights[chosen])
        errors[draw] = means - truth
    return errors
