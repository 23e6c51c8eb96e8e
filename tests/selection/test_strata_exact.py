"""Laws of the stratified draw without drawing: expectations over everything that can be drawn."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.selection.factors import fit_factors
from disco_cli.selection.strata import build_strata, draw_sizes, select_strata

COLUMN = st.lists(st.floats(-1e3, 1e3), min_size=10, max_size=10)


def strata_of(seed, k, weights):
    Y = (np.random.default_rng(seed).random((6, 10)) < 0.6).astype(float)
    factors = fit_factors(Y)
    features = np.column_stack([factors.means, factors.loadings])
    return build_strata(features, draw_sizes(factors, weights), k)


@settings(max_examples=60, deadline=None)
@given(COLUMN, st.integers(0, 50), st.integers(1, 10), st.booleans())
def test_the_weighted_mean_of_any_column_is_unbiased(column, seed, k, weighted):
    """The expectation over all possible draws is the mean itself, to rounding."""
    target = np.array(column)
    weights = np.random.default_rng(seed).random(10) + 0.1 if weighted else np.ones(10)
    weights /= weights.sum()
    strata = strata_of(seed, k, weights)
    expected, total = 0.0, 0.0
    for draw in itertools.product(*(members.tolist() for members in strata.members)):
        chosen = np.array(draw)
        chance = float(strata.chances[chosen].prod())
        expected += chance * float(weights[chosen] / strata.chances[chosen] @ target[chosen])
        total += chance
    assert total == pytest.approx(1.0)
    assert expected == pytest.approx(weights @ target, abs=1e-9 * (1 + np.abs(target).max()))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 12), st.permutations(range(9)))
def test_chances_belong_to_samples_and_not_to_the_order_of_models(seed, k, order):
    rng = np.random.default_rng(seed)
    Y = rng.random((9, 40))
    weights = np.full(40, 1 / 40)
    one = select_strata(fit_factors(Y), weights, k, np.random.default_rng(1))
    other = select_strata(fit_factors(Y[order]), weights, k, np.random.default_rng(1))
    assert one.positions.tolist() == other.positions.tolist()
    np.testing.assert_allclose(one.inclusion_probabilities, other.inclusion_probabilities)
    np.testing.assert_allclose(one.weights, other.weights)
