"""Model and design estimate: the posterior by hand, unbiased, missing responses, groups."""

import numpy as np
import pytest

from disco_cli.estimation.factor_estimator import assess
from disco_cli.estimation.factor_fit import fit_factor_estimator
from disco_cli.selection.draw import certainty_draw
from disco_cli.selection.factors import Factors, fit_factors
from disco_cli.selection.greedy import noise_variance, select_hybrid
from disco_cli.selection.strata import select_strata


def responses(M=30, N=200, seed=0):
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=(M, 1)), rng.normal(size=N)
    return (ability - difficulty + rng.logistic(size=(M, N)) > 0).astype(float)


def equal(N):
    return np.full(N, 1.0 / N)


def fitted(k=30, seed=0, share=0.0, groups=None, N=200):
    Y = responses(N=N)
    factors = fit_factors(Y)
    draw = select_hybrid(factors, equal(N), k, share, np.random.default_rng(seed))
    return draw, fit_factor_estimator(Y, factors, equal(N), draw, groups)


def test_posterior_by_hand():
    factors = Factors(
        means=np.array([0.5, 0.2]),
        loadings=np.array([[1.0], [0.5]]),
        spread=np.ones(2),
        noise=np.ones(2),
        n_models=9,
    )
    chosen = certainty_draw(np.array([0]), np.array([1.0]))
    two = np.array([[1.0, 0.5], [0.0, 0.0]])  # too few models for a ridge
    estimator = fit_factor_estimator(two, factors, np.array([0.5, 0.5]), chosen)
    noise = noise_variance(factors)[0]
    assert noise == pytest.approx(1.5)
    result = assess(estimator, np.array([1.0]))
    theta = (0.5 / noise) / (1.0 / noise + 1 / 4)
    seen, unseen = 1.0, 0.2 + 0.5 * theta
    assert result.model == pytest.approx((seen + unseen) / 2)
    assert result.design is None
    assert result.ridge is None
    goal = 0.75
    assert result.standard_error == pytest.approx(goal / np.sqrt(1 / noise + 1 / 4))


def test_a_model_that_answered_everything_is_known():
    Y = responses(N=40)
    factors = fit_factors(Y)
    draw = select_strata(factors, equal(40), 40, np.random.default_rng(0))
    estimator = fit_factor_estimator(Y, factors, equal(40), draw)
    y = np.random.default_rng(1).random(40)
    result = assess(estimator, y)
    assert result.model == pytest.approx(y.mean())
    assert result.design == pytest.approx(y.mean())
    assert result.standard_error == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_design_estimate_is_unbiased_for_any_target(share):
    Y = responses()
    factors = fit_factors(Y)
    rng = np.random.default_rng(2)
    targets = np.vstack([1.0 - Y[:1], rng.random((2, 200)), np.ones((1, 200)) * 0.97])
    misses, stated = [], []
    for _ in range(400):
        draw = select_hybrid(factors, equal(200), 40, share, rng)
        estimator = fit_factor_estimator(Y, factors, equal(200), draw)
        found = [assess(estimator, target[draw.positions]) for target in targets]
        misses.append([r.design - t.mean() for r, t in zip(found, targets, strict=True)])
        stated.append([r.standard_error for r in found])
    # Exactly unbiased up to a term of order 1/K, as every regression estimate of a draw.
    spread = np.std(misses, axis=0, ddof=1)
    assert np.all(np.abs(np.mean(misses, axis=0)) < 3 * spread / np.sqrt(400) + 0.15 * spread)
    ratio = np.mean(stated, axis=0) / spread
    # Strata lower the error by more than residuals show: stated errors are on the safe side.
    assert np.all((ratio > 0.9) & (ratio < 2.2))


def test_missing_responses_are_estimated_around():
    draw, estimator = fitted()
    y = responses()[3, draw.positions].copy()
    whole = assess(estimator, y)
    y[::6] = np.nan
    part = assess(estimator, y)
    assert part.n_used == 25
    assert abs(part.design - whole.design) < 0.1
    assert part.standard_error > 0


def test_a_wide_intercept_brings_the_model_estimate_to_the_design():
    _, estimator = fitted()
    y = np.ones(30)
    inside, beyond = assess(estimator, y), assess(estimator, y, 5.0)
    assert abs(beyond.model - beyond.design) < 0.5 * abs(inside.model - inside.design)


def test_the_ridge_is_a_line_and_missing_responses_are_filled_as_the_factors_predict():
    draw, estimator = fitted()
    assert estimator.ridge_slopes is not None
    y = responses()[3, draw.positions].copy()
    line = estimator.ridge_intercept + y @ estimator.ridge_slopes
    assert assess(estimator, y).ridge == pytest.approx(line)
    y[:3] = np.nan
    scaled = estimator.loadings[3:].T / estimator.noise[3:]
    precision = scaled @ estimator.loadings[3:] + np.eye(estimator.loadings.shape[1]) / 4
    theta = np.linalg.solve(precision, scaled @ (y[3:] - estimator.means[3:]))
    y[:3] = (estimator.means + estimator.loadings @ theta)[:3]
    line = estimator.ridge_intercept + y @ estimator.ridge_slopes
    y[:3] = np.nan
    assert assess(estimator, y).ridge == pytest.approx(line)


def test_a_ridge_knows_nothing_of_a_part_of_the_benchmark():
    groups = np.repeat([0, 1], [150, 50])
    draw, estimator = fitted(groups=groups)
    y = responses()[5, draw.positions]
    assert assess(estimator, y).ridge is not None
    assert assess(estimator, y, 0.0, np.array([0])).ridge is None


def test_a_group_without_answers_is_left_out_and_named():
    groups = np.repeat([0, 1, 2], [80, 80, 40])
    draw, estimator = fitted(groups=groups)
    y = np.where(groups[draw.positions] == 1, np.nan, 1.0)
    result = assess(estimator, y)
    assert result.dropped_groups == (1,)
    # With nothing but right answers seen, the design estimate is near 1 on what is left.
    assert result.design == pytest.approx(1.0, abs=0.03)
    assert assess(estimator, np.ones(30)).dropped_groups == ()


def test_estimates_of_groups_add_up():
    groups = np.repeat([0, 1], [150, 50])
    draw, estimator = fitted(k=40, groups=groups)
    y = responses()[5, draw.positions]
    parts = [assess(estimator, y, 0.0, np.array([g])).model for g in (0, 1)]
    assert 0.75 * parts[0] + 0.25 * parts[1] == pytest.approx(assess(estimator, y).model)


def test_misfit_tells_a_target_that_is_unlike_the_references():
    draw, estimator = fitted(k=60)
    alike = [assess(estimator, y).misfit for y in responses()[:, draw.positions]]
    odd = 1.0 - responses()[0, draw.positions]
    assert assess(estimator, odd).misfit > max(alike)
