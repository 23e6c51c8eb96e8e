"""Factors of the samples, completion of missing responses, copies of models and of samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.selection.duplicates import sample_units
from disco_cli.selection.factors import (
    complete_responses,
    distinct_models,
    equal_models,
    fit_factors,
)


def test_one_factor_by_hand():
    # Rows are means (1, 0, 2) plus -1, 0, 1 times the loadings (1, 2, 0).
    Y = np.array([[0.0, -2.0, 2.0], [1.0, 0.0, 2.0], [2.0, 2.0, 2.0]])
    factors = fit_factors(Y, 5)
    assert factors.means.tolist() == [1.0, 0.0, 2.0]
    np.testing.assert_allclose(factors.loadings, [[1.0], [2.0], [0.0]], atol=1e-12)
    np.testing.assert_allclose(factors.spread, [1.0, 2.0, 0.0])
    np.testing.assert_allclose(factors.noise, 0.0, atol=1e-7)


def test_degrees_of_freedom_of_the_noise():
    Y = np.random.default_rng(0).random((10, 50))
    factors = fit_factors(Y, 3)
    _, s, Vt = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    left = Y - Y.mean(axis=0)
    left = left - left @ Vt[:3].T @ Vt[:3]
    np.testing.assert_allclose(factors.noise, np.sqrt((left**2).sum(axis=0) / 6))
    np.testing.assert_allclose((factors.loadings**2).sum(axis=0), s[:3] ** 2 / 9)


@pytest.mark.parametrize(("n_models", "n_factors"), [(1, 0), (2, 0), (3, 1), (6, 4)])
def test_a_degree_of_freedom_is_left(n_models, n_factors):
    factors = fit_factors(np.random.default_rng(1).random((n_models, 20)))
    assert factors.loadings.shape == (20, n_factors)
    assert factors.n_models == n_models
    assert np.all(np.isfinite(factors.noise))


def test_equal_models_have_no_factors():
    factors = fit_factors(np.tile([0.0, 1.0, 1.0], (6, 1)))
    assert factors.loadings.shape == (3, 0)
    assert factors.noise.tolist() == [0.0, 0.0, 0.0]


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 8), st.integers(5, 30), st.integers(0, 2**32 - 1))
def test_order_of_models_does_not_matter(M, N, seed):
    rng = np.random.default_rng(seed)
    Y = rng.random((M, N))
    order = rng.permutation(M)
    one, other = fit_factors(Y), fit_factors(Y[order])
    np.testing.assert_allclose(one.means, other.means)
    np.testing.assert_allclose(one.noise, other.noise, atol=1e-6)
    np.testing.assert_allclose(
        one.loadings @ one.loadings.T, other.loadings @ other.loadings.T, atol=1e-6
    )


def test_completion_leaves_what_is_known_and_stays_in_range():
    rng = np.random.default_rng(2)
    ability, difficulty = rng.random(30), rng.random(80)
    full = np.clip(ability[:, np.newaxis] - difficulty + 0.5, 0, 1)
    Y = np.where(rng.random(full.shape) < 0.3, np.nan, full)
    Y[4, :40] = np.nan
    filled = complete_responses(Y)
    known = ~np.isnan(Y)
    np.testing.assert_array_equal(filled[known], Y[known])
    assert filled.min() >= 0.0
    assert filled.max() <= 1.0
    plain = np.where(known, Y, np.nanmean(Y, axis=0))
    assert np.abs(filled - full)[~known].mean() < 0.35 * np.abs(plain - full)[~known].mean()


def test_completion_returns_complete_responses_untouched():
    Y = np.ones((3, 4))
    assert complete_responses(Y) is Y


def test_completion_of_a_sample_that_nobody_answered():
    Y = np.array([[1.0, np.nan, 0.0], [1.0, np.nan, 0.0]])
    assert np.all(np.isfinite(complete_responses(Y)))


def test_copies_of_a_model_count_once():
    Y = np.array([[1.0, np.nan], [0.0, 1.0], [1.0, np.nan], [0.0, 1.0], [0.0, 0.0]])
    assert distinct_models(Y).tolist() == [0, 1, 4]
    assert sorted(m for group in equal_models(Y) for m in group) == list(range(len(Y)))
    assert [group[0] for group in equal_models(Y)] == [0, 1, 4]


def test_samples_of_equal_content_are_one_unit():
    Y = np.random.default_rng(3).random((3, 6))
    hashes = np.array(["a", "b", "a", "", "", "b"])
    assert sample_units(Y, 2, hashes).tolist() == [0, 1, 0, 2, 3, 1]


def test_equal_columns_are_one_unit_unless_they_are_many():
    Y = np.zeros((2, 12))
    Y[:, :4] = [[1, 1, 0, 1], [0, 0, 1, 1]]  # columns 0 and 1 are equal, 4 … 11 are all zero
    assert sample_units(Y, 2).tolist() == [0, 0, *range(1, 11)]


def test_too_few_units_are_no_units():
    assert sample_units(np.zeros((2, 4)), 3, np.array(["a"] * 4)).tolist() == [0, 1, 2, 3]


def test_chains_of_copies_are_joined():
    Y = np.random.default_rng(4).random((3, 40))
    Y[:, 1] = Y[:, 0]
    hashes = np.array([f"h{i}" for i in range(40)])
    hashes[2] = hashes[1]
    assert sample_units(Y, 4, hashes)[:4].tolist() == [0, 0, 0, 1]


def test_a_copy_is_equal_in_all_that_is_given():
    Y = np.array([[1.0, np.nan], [1.0, np.nan], [1.0, np.nan]])
    truth = np.array([0.5, 0.6, 0.5])
    assert distinct_models(Y).tolist() == [0]
    assert distinct_models(Y, truth).tolist() == [0, 1]
