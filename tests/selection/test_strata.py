"""The stratified draw: stated chances, unbiased weights, balance, copies, certain samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.selection.draw import RANDOM
from disco_cli.selection.factors import fit_factors
from disco_cli.selection.greedy import select_hybrid
from disco_cli.selection.strata import build_strata, draw_sizes, select_strata


def responses(M=25, N=300, seed=0):
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=(M, 1)), rng.normal(size=N)
    skill = rng.normal(size=(M, 3)) @ rng.normal(size=(3, N)) * 0.5
    return (ability - difficulty + skill + rng.logistic(size=(M, N)) > 0).astype(float)


def equal(N):
    return np.full(N, 1.0 / N)


def test_strata_of_a_line_are_its_pieces():
    strata = build_strata(np.arange(8.0)[:, np.newaxis], np.ones(8), 4)
    pieces = sorted(members.tolist() for members in strata.members)
    assert pieces == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert strata.chances.tolist() == [0.5] * 8
    siblings = {frozenset(strata.members[0]) | frozenset(strata.members[1])}
    assert siblings <= {frozenset({0, 1, 2, 3}), frozenset({4, 5, 6, 7})}


def test_strata_have_nearly_equal_total_size():
    rng = np.random.default_rng(1)
    sizes = rng.random(2000) + 0.1
    strata = build_strata(rng.normal(size=(2000, 4)), sizes, 13)
    totals = [sizes[members].sum() for members in strata.members]
    assert max(totals) - min(totals) < 5 * sizes.max()


@given(st.integers(1, 40), st.data())
def test_every_unit_is_in_one_stratum(n, data):
    k = data.draw(st.integers(1, n))
    seed = data.draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    strata = build_strata(rng.integers(0, 3, size=(n, 2)).astype(float), rng.random(n) + 0.01, k)
    assert len(strata.members) == k
    assert sorted(np.concatenate(strata.members).tolist()) == list(range(n))
    for members in strata.members:
        assert strata.chances[members].sum() == pytest.approx(1.0)


def test_sizes_by_hand():
    factors = fit_factors(np.array([[0.0, 0.0], [1.0, 0.0]]))
    # Noise 0.7071 and 0, over its mean 2 and 0. Chances 1/2 and 1/6, odds 1 and 1/5; e^1.5 times
    # that for a stronger model, and √odds / (1 + odds) is 0.3861 and 0.4992, over its mean
    # 0.8723 and 1.1277. The roots of 4 + 0.7609 + 1 and 0 + 1.2717 + 1.
    sizes = draw_sizes(factors, np.array([0.5, 0.5]))
    np.testing.assert_allclose(sizes, [0.5 * 2.4002, 0.5 * 1.5072], rtol=1e-4)
    # No share of success, no such doubt: half the mean of one instead.
    other = fit_factors(np.array([[0.0, 0.0], [10.0, 0.0]]))
    np.testing.assert_allclose(
        draw_sizes(other, np.array([0.5, 0.5])), [0.5 * 5.25**0.5, 0.5 * 1.25**0.5]
    )
    same = fit_factors(np.ones((3, 4)))
    assert draw_sizes(same, equal(4)) == pytest.approx(0.25)


def test_draw_is_well_formed():
    factors = fit_factors(responses())
    draw = select_strata(factors, equal(300), 21, np.random.default_rng(0))
    assert len(np.unique(draw.positions)) == 21
    assert np.all(np.diff(draw.positions) > 0)
    assert sorted(draw.ranks.tolist()) == list(range(1, 22))
    assert draw.weights.sum() == pytest.approx(1.0)
    assert set(draw.roles) == {RANDOM}
    assert sorted(draw.strata.tolist()) == list(range(21))


def test_same_seed_same_draw_and_all_samples_can_be_taken():
    factors = fit_factors(responses(N=40))
    one = select_strata(factors, equal(40), 7, np.random.default_rng(5), n_draws=4)
    other = select_strata(factors, equal(40), 7, np.random.default_rng(5), n_draws=4)
    assert one.positions.tolist() == other.positions.tolist()
    everything = select_strata(factors, equal(40), 40, np.random.default_rng(5))
    assert everything.positions.tolist() == list(range(40))
    np.testing.assert_allclose(everything.inclusion_probabilities, 1.0)
    np.testing.assert_allclose(everything.weights, 1 / 40)


@pytest.mark.slow
def test_every_sample_has_its_stated_chance_and_the_weighted_mean_is_unbiased():
    """Counted over 4000 draws; targets are arbitrary columns, unlike any reference."""
    Y = responses()
    N, k, n_draws = 300, 20, 4000
    factors = fit_factors(Y)
    rng = np.random.default_rng(7)
    targets = np.vstack(
        [rng.random((3, N)), rng.normal(size=(1, N)) ** 3, 1 - Y[:2], factors.means[np.newaxis]]
    )
    counts, stated = np.zeros(N), np.full(N, np.nan)
    errors, ratio_errors = np.empty((n_draws, len(targets))), np.empty((n_draws, len(targets)))
    for i in range(n_draws):
        draw = select_strata(factors, equal(N), k, rng)
        chosen = draw.positions
        counts[chosen] += 1
        stated[chosen] = draw.inclusion_probabilities
        exact = targets[:, chosen] @ (1.0 / (N * draw.inclusion_probabilities))
        errors[i] = exact - targets.mean(axis=1)
        ratio_errors[i] = targets[:, chosen] @ draw.weights - targets.mean(axis=1)
    assert stated.sum() == pytest.approx(k)  # every sample was seen, and chances sum to K
    z = (counts - n_draws * stated) / np.sqrt(n_draws * stated * (1 - stated))
    assert np.abs(z).max() < 4.5
    assert 0.85 < np.mean(z**2) < 1.15
    standard_error = errors.std(axis=0, ddof=1) / np.sqrt(n_draws)
    assert np.all(np.abs(errors.mean(axis=0)) < 3 * standard_error)
    # The weights that are stored sum to 1; what that costs in bias is small beside the error.
    bias = np.abs(ratio_errors.mean(axis=0))
    assert np.all(bias < 3 * standard_error + 0.05 * ratio_errors.std(axis=0))


def test_the_best_of_several_draws_changes_chances_little_and_lowers_the_error():
    Y = responses(M=40)
    factors = fit_factors(Y[:30])
    N, k, n = 300, 20, 400
    errors = {}
    for n_draws in (1, 20):
        rng = np.random.default_rng(11)
        counts, stated = np.zeros(N), np.full(N, np.nan)
        misses = []
        for _ in range(n):
            draw = select_strata(factors, equal(N), k, rng, n_draws=n_draws)
            counts[draw.positions] += 1
            stated[draw.positions] = draw.inclusion_probabilities
            misses.append(Y[:, draw.positions] @ draw.weights - Y.mean(axis=1))
        errors[n_draws] = np.sqrt(np.mean(np.square(misses), axis=0))
        # Relative differences that chance alone gives: √(2 / π / (n · chance)), about 0.15 here.
        assert np.nanmean(np.abs(counts / n / stated - 1)) < 0.2
        assert np.abs(np.mean(misses, axis=0)).max() < 0.25 * errors[n_draws].mean()
    assert errors[20][:30].mean() < 0.97 * errors[1][:30].mean()  # references
    assert errors[20][30:].mean() < 1.02 * errors[1][30:].mean()  # other models


def test_weights_of_samples_are_kept():
    Y = responses(N=120)
    weights = np.random.default_rng(3).random(120)
    weights /= weights.sum()
    factors = fit_factors(Y)
    rng = np.random.default_rng(4)
    target = rng.random(120)
    errors = []
    for _ in range(500):
        draw = select_strata(factors, weights, 12, rng)
        share = weights[draw.positions] / draw.inclusion_probabilities
        errors.append(share @ target[draw.positions] - weights @ target)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))


def test_a_sample_of_no_weight_is_hardly_ever_drawn():
    weights = np.r_[np.zeros(50), np.full(50, 0.02)]
    factors = fit_factors(responses(N=100))
    draw = select_strata(factors, weights, 10, np.random.default_rng(0))
    assert draw.positions.min() >= 50


def test_of_copies_one_is_drawn_and_the_mean_stays_unbiased():
    Y = responses(N=60)
    Y[:, 30:60] = Y[:, :30]
    units = np.tile(np.arange(30), 2)
    factors = fit_factors(Y)
    rng = np.random.default_rng(8)
    half = rng.random(30)
    target = np.r_[half, half]
    errors = []
    for _ in range(500):
        draw = select_strata(factors, equal(60), 12, rng, units=units)
        assert len(set(units[draw.positions])) == 12
        share = 1.0 / (60 * draw.inclusion_probabilities)
        errors.append(share @ target[draw.positions] - target.mean())
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))


def test_copies_are_drawn_when_there_is_nothing_else():
    factors = fit_factors(responses(N=10))
    units = np.repeat(np.arange(5), 2)
    draw = select_strata(factors, equal(10), 8, np.random.default_rng(0), units=units)
    assert len(np.unique(draw.positions)) == 8
    assert draw.weights.sum() == pytest.approx(1.0)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 30), st.floats(0, 1), st.integers(0, 99))
def test_hybrid_is_well_formed(k, share, seed):
    factors = fit_factors(responses(M=12, N=40))
    draw = select_hybrid(factors, equal(40), k, share, np.random.default_rng(seed))
    certain = np.array([role != RANDOM for role in draw.roles])
    assert certain.sum() == min(round(share * k), k - 1)
    assert len(np.unique(draw.positions)) == k
    assert draw.weights.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(draw.inclusion_probabilities[certain], 1.0)
    np.testing.assert_allclose(draw.weights[certain], 1 / 40)
    assert np.all(draw.strata[certain] == -1)


def test_hybrid_is_unbiased_for_any_target():
    factors = fit_factors(responses(N=100))
    rng = np.random.default_rng(9)
    target = rng.random(100)
    errors = []
    for _ in range(500):
        draw = select_hybrid(factors, equal(100), 16, 0.25, rng)
        exact = target[draw.positions] @ (0.01 / draw.inclusion_probabilities)
        errors.append(exact - target.mean())
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))


def test_groups_are_represented_in_proportion():
    """Samples that all models answer at random, but in four groups of unequal size."""
    rng = np.random.default_rng(0)
    Y = (rng.random((12, 400)) < 0.5).astype(float)
    groups = rng.permutation(np.repeat([0, 1, 2, 3], [200, 100, 60, 40]))
    factors = fit_factors(Y)

    def spread(groups_given):
        counts = [
            np.bincount(
                groups[select_strata(factors, equal(400), 40, rng, groups=groups_given).positions],
                minlength=4,
            )
            for _ in range(200)
        ]
        return np.mean(counts, axis=0), np.std(counts, axis=0)

    mean, deviation = spread(groups)
    np.testing.assert_allclose(mean, [20, 10, 6, 4], rtol=0.1)
    assert np.all(deviation < 0.7 * spread(None)[1])


def test_more_groups_than_strata_are_not_told_apart():
    rng = np.random.default_rng(0)
    factors = fit_factors((rng.random((12, 400)) < 0.5).astype(float))
    many = np.arange(400) % 50
    one = select_strata(factors, equal(400), 40, np.random.default_rng(1), groups=many)
    other = select_strata(factors, equal(400), 40, np.random.default_rng(1))
    np.testing.assert_array_equal(one.positions, other.positions)
