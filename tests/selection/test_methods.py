"""Selection methods against values worked out by hand, and the laws of a draw."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disco_cli.selection.methods import allocate, select_random, select_top


def test_top_takes_the_highest_and_ranks_them():
    draw = select_top(np.array([1.0, 3.0, 2.0, 5.0]), np.zeros(4), 2)
    assert draw.positions.tolist() == [1, 3]
    assert draw.ranks.tolist() == [2, 1]
    assert draw.scores.tolist() == [3.0, 5.0]
    assert (draw.n_tied, draw.n_tied_chosen) == (1, 0)


def test_ties_are_broken_by_the_tie_breaker_and_then_by_position():
    scores = np.array([2.0, 2.0, 2.0, 2.0, 9.0])
    draw = select_top(scores, np.array([0.1, 0.3, 0.2, 0.3, 0.0]), 3)
    assert draw.positions.tolist() == [1, 3, 4]
    assert draw.ranks.tolist() == [2, 3, 1]
    assert (draw.n_tied, draw.n_tied_chosen) == (4, 2)


def test_samples_that_nobody_answered_come_last():
    draw = select_top(np.array([np.nan, 1.0, 2.0]), np.array([np.nan, 0.0, 0.0]), 2)
    assert draw.positions.tolist() == [1, 2]


def test_stratified_top_takes_an_equal_share_of_each_group():
    groups = np.array(["b", "a", "a", "a", "b"])
    draw = select_top(np.array([0.0, 3.0, 2.0, 1.0, 9.0]), np.zeros(5), 3, groups)
    assert draw.positions.tolist() == [1, 2, 4]
    assert draw.ranks.tolist() == [2, 3, 1]


@pytest.mark.parametrize(
    ("sizes", "k", "quotas"),
    [
        ([10, 10, 10], 7, [3, 2, 2]),
        ([1, 10, 10], 9, [1, 4, 4]),
        ([2, 1, 9], 12, [2, 1, 9]),
        ([5, 5], 1, [1, 0]),
    ],
)
def test_allocation(sizes, k, quotas):
    assert allocate(np.array(sizes), k).tolist() == quotas


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.data())
def test_allocation_gives_k_and_never_more_than_a_group_has(sizes, data):
    k = data.draw(st.integers(1, sum(sizes)))
    quotas = allocate(np.array(sizes), k)
    assert quotas.sum() == k
    assert np.all(quotas <= sizes)
    # Equal share: a group gets two fewer than another only when it has no more to give.
    unfilled = quotas[quotas < np.array(sizes)]
    if len(unfilled):
        assert quotas.max() - unfilled.min() <= 1


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=1, max_size=30),
    st.data(),
)
def test_top_agrees_with_a_full_sort(values, data):
    scores = np.array(values)
    k = data.draw(st.integers(1, len(values)))
    draw = select_top(scores, np.zeros(len(values)), k)
    keys = np.where(np.isnan(scores), -np.inf, scores)
    expected = sorted(range(len(values)), key=lambda i: (-keys[i], i))[:k]
    assert draw.positions.tolist() == sorted(expected)


def test_random_draw_states_its_chances():
    draw = select_random(50, 10, np.random.default_rng(3))
    assert len(set(draw.positions.tolist())) == 10
    assert draw.inclusion_probabilities.tolist() == [0.2] * 10
    assert draw.weights.sum() == pytest.approx(1)


def test_stratified_random_weights_make_the_mean_unbiased():
    groups = np.array(["big"] * 30 + ["small"] * 6)
    values = np.concatenate([np.linspace(0, 1, 30), np.linspace(2, 3, 6)])
    means = []
    for seed in range(3000):
        draw = select_random(36, 8, np.random.default_rng(seed), groups)
        assert draw.inclusion_probabilities[0] == 4 / 30
        means.append(draw.weights @ values[draw.positions])
    standard_error = np.std(means) / np.sqrt(len(means))
    assert abs(np.mean(means) - values.mean()) < 3 * standard_error


def test_same_seed_same_draw():
    first = select_random(1000, 30, np.random.default_rng(1))
    again = select_random(1000, 30, np.random.default_rng(1))
    other = select_random(1000, 30, np.random.default_rng(2))
    assert first.positions.tolist() == again.positions.tolist()
    assert first.positions.tolist() != other.positions.tolist()
