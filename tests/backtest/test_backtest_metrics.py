"""Quality of estimates, against values worked out by hand and against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from disco_cli.backtest.metrics import bias_by_third, kendall, measure, ranked_pairs, spearman

TRUTH = np.array([0.1, 0.2, 0.5, 0.8])
ESTIMATE = np.array([0.2, 0.1, 0.5, 0.6])


def test_errors_by_hand():
    found = measure(TRUTH, ESTIMATE)
    assert found.n == 4
    assert found.mae == pytest.approx(0.1)
    assert found.rmse == pytest.approx(math.sqrt(0.06 / 4))
    assert found.worst == pytest.approx(0.2)
    assert found.bias == pytest.approx(-0.05)


def test_bias_by_third_by_hand():
    # Thirds of the range 0.1 … 0.8 end at 1/3 and 17/30; two targets, one and one.
    assert bias_by_third(TRUTH, ESTIMATE) == pytest.approx((0.0, 0.0, -0.2))


def test_bias_of_a_third_without_targets_is_not_available():
    low, middle, high = bias_by_third(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    assert (low, high) == (0.5, -0.5)
    assert math.isnan(middle)


def test_ranks_by_hand():
    found = measure(TRUTH, ESTIMATE)
    assert found.kendall == pytest.approx((5 - 1) / 6)
    assert found.spearman == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert found.pairs == pytest.approx(5 / 6)


def test_pairs_by_gap_by_hand():
    truth = np.array([0.0, 0.005, 0.02, 0.1])
    estimate = np.array([0.0, -1.0, 0.5, 0.5])
    # Gaps: .005 wrong; .015 (1,2) right; .02 (0,2) right; .1 right, .095 right, .08 tied.
    found = measure(truth, estimate)
    assert found.pairs_by_gap[0] == 0
    assert found.pairs_by_gap[1] == 1
    assert math.isnan(found.pairs_by_gap[2])
    assert found.pairs_by_gap[3] == pytest.approx(2.5 / 3)


def test_pairs_with_equal_truth_do_not_count():
    right, gap = ranked_pairs(np.array([0.5, 0.5, 0.7]), np.array([0.1, 0.2, 0.3]))
    assert right.tolist() == [1, 1]
    np.testing.assert_allclose(gap, 0.2)


def test_intervals_by_hand():
    low = np.array([0.0, 0.3, np.nan, 0.7])
    high = np.array([0.2, 0.4, np.nan, 0.9])
    found = measure(TRUTH, ESTIMATE, low, high)
    assert found.coverage == pytest.approx(2 / 3)
    assert found.width == pytest.approx((0.2 + 0.1 + 0.2) / 3)
    assert found.with_interval == 0.75


def test_without_intervals_coverage_is_not_available():
    found = measure(TRUTH, ESTIMATE)
    assert math.isnan(found.coverage)
    assert math.isnan(found.width)
    assert found.with_interval == 0


def test_constant_estimates_have_no_rank_correlation():
    found = measure(TRUTH, np.full(4, 0.4))
    assert math.isnan(found.spearman)
    assert math.isnan(found.kendall)
    assert found.pairs == 0.5


def test_one_target_has_errors_but_no_ranks():
    found = measure(np.array([0.4]), np.array([0.5]))
    assert found.mae == pytest.approx(0.1)
    assert math.isnan(found.pairs)


scores = arrays(np.float64, 12, elements=st.integers(0, 6).map(lambda i: i / 6))


@given(scores, scores)
def test_rank_correlations_agree_with_scipy(a, b):
    from scipy.stats import kendalltau, spearmanr

    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert math.isnan(spearman(a, b))
        assert math.isnan(kendall(a, b))
        return
    assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)
    assert kendall(a, b) == pytest.approx(kendalltau(a, b).statistic, abs=1e-12)


@given(scores, scores)
def test_reversed_estimates_rank_the_opposite_pairs(truth, estimate):
    right, _ = ranked_pairs(truth, estimate)
    wrong, _ = ranked_pairs(truth, -estimate)
    np.testing.assert_allclose(right + wrong, 1)
