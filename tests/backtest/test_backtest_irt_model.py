"""The item response model: its gradient, its fit, the choice of dimension."""

from __future__ import annotations

import numpy as np
import pytest

from disco_cli.backtest.baselines.irt_model import (
    PRECISION_B,
    choose_dimension,
    fit_ability,
    fit_irt,
    loss_and_gradient,
    response_range,
    unit_range,
)
from disco_cli.backtest.run import LIBRARIES
from disco_cli.threads import single_threaded


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with single_threaded(*LIBRARIES):
        yield


def simulate(n_models, n_samples, d, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n_models, d))
    a = 1 + rng.random((n_samples, d)) if d == 1 else rng.normal(size=(n_samples, d)) * 1.5
    b = rng.normal(size=n_samples)
    chance = 1 / (1 + np.exp(-(theta @ a.T - b)))
    return (rng.random(chance.shape) < chance).astype(float), chance, theta


@pytest.mark.parametrize("missing", [False, True])
def test_gradient_agrees_with_differences(missing):
    rng = np.random.default_rng(0)
    y = rng.random((5, 7))
    mask = (rng.random((5, 7)) < 0.7).astype(float) if missing else None
    point = rng.normal(size=5 * 2 + 7 * 2 + 7)
    _, gradient = loss_and_gradient(point, y if mask is None else y * mask, mask, 2)
    for i, step in enumerate(np.eye(len(point)) * 1e-6):
        up, _ = loss_and_gradient(point + step, y if mask is None else y * mask, mask, 2)
        down, _ = loss_and_gradient(point - step, y if mask is None else y * mask, mask, 2)
        assert gradient[i] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_loss_by_hand():
    # One model, one sample, θ = 2, a = 1, b = 1, y = 1: z = 1, ln(1 + e) − 1, and the penalties.
    loss, _ = loss_and_gradient(np.array([2.0, 1.0, 1.0]), np.ones((1, 1)), None, 1)
    assert loss == pytest.approx(np.log1p(np.e) - 1 + 2 + 0.005 + PRECISION_B / 2)


def test_ability_solves_its_equation():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(40, 2)), rng.normal(size=40)
    y = (rng.random(40) < 0.5).astype(float)
    theta = fit_ability(y, a, b)
    chance = 1 / (1 + np.exp(-(a @ theta - b)))
    np.testing.assert_allclose(a.T @ (y - chance), theta, atol=1e-8)


def test_ability_of_one_sample_by_hand():
    # a = 1, b = 0, y = 1: θ = 1 − σ(θ), whose solution is 0.4010581.
    theta = fit_ability(np.ones(1), np.ones((1, 1)), np.zeros(1))
    assert theta[0] == pytest.approx(0.4010581, abs=1e-6)


def test_ability_without_answers_is_that_of_the_prior():
    assert fit_ability(np.zeros(0), np.zeros((0, 3)), np.zeros(0)).tolist() == [0, 0, 0]


def test_fit_recovers_the_chances_it_was_simulated_with():
    y, chance, theta = simulate(300, 200, 1)
    model = fit_irt(y, 1)
    fitted = np.stack([model.predicted(ability) for ability in model.abilities])
    assert np.mean(np.abs(fitted - chance)) < 0.04
    assert np.corrcoef(model.abilities[:, 0], theta[:, 0])[0, 1] > 0.98


def test_fit_with_missing_responses_is_close_to_the_complete_fit():
    y, _, _ = simulate(200, 150, 1)
    holes = np.where(np.random.default_rng(0).random(y.shape) < 0.2, np.nan, y)
    complete, partial = fit_irt(y, 1), fit_irt(holes, 1)
    assert np.corrcoef(complete.difficulties, partial.difficulties)[0, 1] > 0.97


def test_fit_of_samples_that_nobody_or_everybody_solves_is_finite():
    y = np.column_stack([np.zeros(20), np.ones(20), np.arange(20) % 2])
    model = fit_irt(y, 2)
    predicted = model.predicted(model.ability(y[0], np.arange(3)))
    assert predicted[0] < 0.1
    assert predicted[1] > 0.9


def test_dimension_is_the_smallest_that_is_good_enough():
    y, _, _ = simulate(80, 200, 1)
    dimension, error = choose_dimension(y, np.full(200, 1 / 200))
    assert dimension == 1
    assert 0 < error < 0.05


def test_two_dimensions_fit_two_unlike_halves_better_than_one():
    halves = [simulate(120, 150, 1, seed=seed)[0] for seed in (1, 2)]
    y = np.hstack(halves)
    errors = []
    for d in (1, 2):
        model = fit_irt(y, d)
        fitted = np.stack([model.predicted(ability) for ability in model.abilities])
        errors.append(np.mean(np.abs(y - fitted)))
    assert errors[1] < errors[0] - 0.05


def test_other_scales_are_mapped_to_0_and_1():
    assert response_range(np.array([0.2, np.nan, 0.9])) == (0, 1)
    assert response_range(np.array([1.0, np.nan, 10.0])) == (1, 10)
    assert unit_range(np.array([1.0, 5.5, 12.0]), 1, 10).tolist() == [0, 0.5, 1]
