"""Statistical promises that take many draws: unbiased estimates, valid intervals."""

import numpy as np
import pytest

from disco_cli.estimation.design import estimate_difference, estimate_weighted_mean
from disco_cli.estimation.factor_estimator import assess
from disco_cli.estimation.factor_fit import fit_factor_estimator
from disco_cli.estimation.recipe import select_with_share
from disco_cli.estimation.recipe_fit import fit_recipe
from disco_cli.selection.factors import fit_factors
from disco_cli.selection.strata import select_strata

pytestmark = pytest.mark.slow


def exchangeable(M, N, seed):
    """Models drawn from one population, with two abilities each."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(M, 2)) * 0.8
    skill = np.abs(rng.normal(size=(2, N)))
    chance = 1 / (1 + np.exp(-(ability @ skill - rng.normal(size=N))))
    return (rng.random((M, N)) < chance).astype(float)


def arbitrary_targets(N, Y, rng):
    """Columns that no model of this population would give."""
    return np.stack(
        [
            rng.random(N),
            rng.normal(size=N) ** 3,
            (rng.random(N) < 0.97).astype(float),
            1.0 - Y[0],
            (np.arange(N) % 7 == 0).astype(float),
            Y.mean(axis=0) ** 2,
        ]
    )


def test_weighted_mean_and_difference_estimate_are_unbiased_for_arbitrary_columns():
    rng = np.random.default_rng(5)
    N, k, n_draws = 500, 50, 1500
    Y = exchangeable(20, N, 1)
    factors = fit_factors(Y)
    features = np.column_stack([factors.means, factors.loadings])
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    targets = arbitrary_targets(N, Y, rng)
    misses = np.empty((n_draws, 2, len(targets)))
    for i in range(n_draws):
        draw = select_strata(factors, np.full(N, 1 / N), k, rng)
        chosen, own = draw.positions, draw.inclusion_probabilities
        for j, target in enumerate(targets):
            y = target[chosen]
            mean = estimate_weighted_mean(y, draw.weights, own)
            difference = estimate_difference(
                y, features[chosen], np.zeros(features.shape[1]), draw.weights, own
            )
            misses[i, :, j] = mean.value - target.mean(), difference.value - target.mean()
    spread = misses.std(axis=0, ddof=1)
    bias = misses.mean(axis=0)
    # Weights that are scaled to sum to 1 and a fitted slope cost a bias of order 1/K of the spread.
    assert np.all(np.abs(bias) < 3 * spread / np.sqrt(n_draws) + 0.05 * spread)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_design_estimate_of_our_recipe_is_unbiased_for_arbitrary_columns(share):
    rng = np.random.default_rng(6)
    N, n_draws = 500, 800
    Y = exchangeable(20, N, 2)
    weights, factors = np.full(N, 1 / N), fit_factors(Y)
    targets = arbitrary_targets(N, Y, rng)
    select = select_with_share(weights, 60, share)
    misses = np.empty((n_draws, len(targets)))
    for i in range(n_draws):
        draw = select(np.arange(20), factors, rng)
        estimator = fit_factor_estimator(Y, factors, weights, draw)
        misses[i] = [assess(estimator, t[draw.positions]).design - t.mean() for t in targets]
    spread = misses.std(axis=0, ddof=1)
    # The best balanced of twenty draws, and a fit: a bias of order 1/K.
    assert np.all(np.abs(misses.mean(axis=0)) < 3 * spread / np.sqrt(n_draws) + 0.15 * spread)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_of_the_fitted_recipe_are_valid_on_exchangeable_models(level):
    """Calibrated as `disco build-db` does, with copies of some models among the references."""
    covered = []
    for seed in range(25):
        Y = exchangeable(44, 200, seed)
        references = np.vstack([Y[:24], Y[:6]])
        weights, rng = np.full(200, 1 / 200), np.random.default_rng(seed)
        select = select_with_share(weights, 30, 0.0)
        draw = select(np.arange(24), fit_factors(Y[:24]), rng)
        recipe = fit_recipe(references, weights, draw, select, rng)
        for y in Y[24:]:
            found = recipe.estimate(y[draw.positions], level)
            covered.append(found.low <= y.mean() <= found.high)
    # 500 targets in 25 clusters: a standard error of about 0.025 at 0.8.
    assert level - 0.06 <= np.mean(covered) <= min(level + 0.08, 1.0)
