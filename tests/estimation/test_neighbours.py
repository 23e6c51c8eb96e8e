"""Nearest references: hand-computed, against scikit-learn, and the same under ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.errors import UsageError
from disco_cli.estimation.neighbours import (
    cosine_distances,
    leave_one_out,
    nearest,
    nearest_distances,
    predict_neighbours,
)

SCORES = np.array([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
TRUTH = np.array([0.1, 0.2, 0.4, 0.8, 0.6])


def test_distances_by_hand():
    distances = cosine_distances(SCORES, np.array([5.0, 0.0]))
    assert distances.tolist() == [0.0, 1.0, 2.0, round(1 - np.sqrt(0.5), 12), 1.0]
    assert cosine_distances(SCORES, np.zeros(2)).tolist() == [1.0] * 5
    assert cosine_distances(np.zeros((3, 0)), np.zeros(0)).tolist() == [1.0] * 3


def test_predictions_by_hand():
    z = np.array([5.0, 0.0])
    assert predict_neighbours(SCORES, TRUTH, z, 1) == 0.1
    assert predict_neighbours(SCORES, TRUTH, z, 2) == pytest.approx((0.1 + 0.8) / 2)
    # Third and fourth tie at distance 1: the first of them counts.
    assert predict_neighbours(SCORES, TRUTH, z, 3) == pytest.approx((0.1 + 0.8 + 0.2) / 3)
    assert predict_neighbours(SCORES, TRUTH, z, 5) == pytest.approx(TRUTH.mean())
    assert predict_neighbours(SCORES, TRUTH, z, 99) == pytest.approx(TRUTH.mean())
    assert nearest(SCORES, z) == (0, 0.0)
    with pytest.raises(UsageError, match="at least 1"):
        predict_neighbours(SCORES, TRUTH, z, 0)


def test_leave_one_out_by_hand():
    assert leave_one_out(SCORES, TRUTH, 1).tolist() == [0.8, 0.8, 0.2, 0.1, 0.1]
    others = [(TRUTH.sum() - own) / 4 for own in TRUTH]
    assert leave_one_out(SCORES, TRUTH, 99) == pytest.approx(others)
    half = round(1 - np.sqrt(0.5), 12)
    assert nearest_distances(SCORES).tolist() == [half, half, 1.0, half, 1.0]
    assert nearest_distances(SCORES[:1]).tolist() == [np.inf]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_models=st.integers(2, 30),
    n_components=st.integers(1, 12),
    n_neighbours=st.integers(1, 8),
)
def test_agrees_with_scikit_learn(seed, n_models, n_components, n_neighbours):
    from sklearn.neighbors import KNeighborsRegressor

    rng = np.random.default_rng(seed)
    scores, truth = rng.normal(size=(n_models, n_components)), rng.random(n_models)
    targets = rng.normal(size=(4, n_components))
    if n_components == 1:
        n_neighbours = n_models  # in one dimension all distances tie
    n_neighbours = min(n_neighbours, n_models)
    theirs = KNeighborsRegressor(n_neighbours, metric="cosine", algorithm="brute")
    expected = theirs.fit(scores, truth).predict(targets)
    ours = [predict_neighbours(scores, truth, z, n_neighbours) for z in targets]
    np.testing.assert_allclose(ours, expected, rtol=1e-10)


def test_leave_one_out_agrees_with_leaving_out():
    rng = np.random.default_rng(0)
    scores, truth = rng.normal(size=(20, 6)), rng.random(20)
    for i in range(20):
        rest = np.arange(20) != i
        slow = predict_neighbours(scores[rest], truth[rest], scores[i], 5)
        assert leave_one_out(scores, truth, 5)[i] == slow
        assert nearest_distances(scores)[i] == nearest(scores[rest], scores[i])[1]


def test_equal_references_tie_in_spite_of_rounding():
    rng = np.random.default_rng(1)
    base = rng.normal(size=7)
    scores = np.stack([base * (1 + 1e-15 * i) / (i + 1) for i in range(6)])
    z = base + 0.01 * rng.normal(size=7)
    assert len(set(cosine_distances(scores, z).tolist())) == 1
    assert predict_neighbours(scores, np.arange(6.0), z, 2) == 0.5
    assert nearest(scores, z)[0] == 0


def test_a_distance_depends_on_nothing_but_the_two_models():
    rng = np.random.default_rng(2)
    scores, z = rng.normal(size=(50, 33)), rng.normal(size=33)
    together = cosine_distances(scores, z)
    for row in range(50):
        assert cosine_distances(scores[row : row + 1], z)[0] == together[row]
    order = rng.permutation(50)
    assert np.array_equal(cosine_distances(scores[order], z), together[order])
    assert np.array_equal(cosine_distances(np.asfortranarray(scores), z), together)
