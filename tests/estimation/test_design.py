"""Weighted mean and difference estimate: values by hand, unbiased, honest standard errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disco_cli.estimation.design import estimate_difference, estimate_weighted_mean
from disco_cli.selection.factors import fit_factors
from disco_cli.selection.strata import select_strata


def test_mean_and_error_by_hand():
    result = estimate_weighted_mean(np.array([0.0, 1.0, 1.0, 0.0]), np.ones(4))
    assert result.value == 0.5
    # √(n/(n−1) · Σ (¼ · ½)²) = √(4/3 · 4/64)
    assert result.standard_error == pytest.approx(np.sqrt(1 / 12))


def test_drawing_everything_leaves_no_error():
    result = estimate_weighted_mean(np.array([0.0, 1.0, 1.0]), np.ones(3), np.ones(3))
    assert result.standard_error == 0.0


def test_error_from_siblings_by_hand():
    y = np.array([0.0, 1.0, 5.0, 5.0])
    result = estimate_weighted_mean(y, np.ones(4), strata=np.array([0, 1, 2, 3]))
    # Pairs (0, 1) and (5, 5) at weight ¼: (¼)² + 0 = 1/16; what lies between pairs is no error.
    assert result.standard_error == pytest.approx(0.25)


def test_one_sample_has_no_error():
    assert estimate_weighted_mean(np.array([1.0]), np.ones(1)).standard_error == np.inf


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=20), st.integers(0, 99))
def test_a_shift_of_all_responses_shifts_the_mean(values, seed):
    y = np.array(values)
    weights = np.random.default_rng(seed).random(len(y)) + 0.1
    one = estimate_weighted_mean(y, weights)
    other = estimate_weighted_mean(y + 3.0, weights)
    assert other.value == pytest.approx(one.value + 3.0)
    assert other.standard_error == pytest.approx(one.standard_error, abs=1e-9)


def test_difference_estimate_of_a_linear_target_is_nearly_exact():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(5000, 2))
    target = 0.4 + features @ np.array([0.3, -0.1])
    chosen = rng.choice(5000, 200, replace=False)
    result = estimate_difference(
        target[chosen], features[chosen], features.mean(axis=0), np.ones(200)
    )
    plain = estimate_weighted_mean(target[chosen], np.ones(200))
    assert abs(result.value - target.mean()) < 0.003
    assert result.standard_error < 0.2 * plain.standard_error


def test_estimates_are_unbiased_and_know_their_error():
    """Over 800 draws, for targets unlike the references."""
    rng = np.random.default_rng(1)
    N, k = 400, 40
    Y = (rng.random((12, 1)) + rng.normal(size=(12, N)) > rng.normal(size=N)).astype(float)
    factors = fit_factors(Y, 3)
    features = np.column_stack([factors.means, factors.loadings])
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    targets = [rng.random(N), (rng.random(N) < 0.9).astype(float), 1.0 - Y[0]]
    for target in targets:
        found = {"mean": [], "siblings": [], "difference": []}
        for _ in range(300):
            draw = select_strata(factors, np.full(N, 1 / N), k, rng)
            y, w = target[draw.positions], draw.weights
            chances = draw.inclusion_probabilities
            found["mean"].append(estimate_weighted_mean(y, w, chances))
            found["siblings"].append(estimate_weighted_mean(y, w, chances, draw.strata))
            found["difference"].append(
                estimate_difference(y, features[draw.positions], np.zeros(4), w, chances)
            )
        for estimates in found.values():
            misses = np.array([e.value for e in estimates]) - target.mean()
            spread = misses.std(ddof=1)
            assert abs(misses.mean()) < 3 * spread / np.sqrt(len(misses))
            stated = np.mean([e.standard_error for e in estimates])
            # On the safe side: the formula of the mean does not see what the strata gain.
            assert 0.85 * spread < stated < 1.8 * spread
