"""Each published method on a case small enough to work by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.backtest.baselines import aipw, anchors, direct, disco, irt, metabench, ridge
from disco_cli.backtest.baselines import mean as mean_method
from disco_cli.backtest.baselines.interface import References, weighted_mean
from disco_cli.backtest.baselines.sort_search import fit_sort_search, threshold
from disco_cli.backtest.run import LIBRARIES
from disco_cli.backtest.splits import stable_rng
from disco_cli.threads import single_threaded


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with single_threaded(*LIBRARIES):
        yield


def references(y, weights=None, groups=None, **more):
    y = np.asarray(y, dtype=np.float64)
    weights = np.full(y.shape[1], 1 / y.shape[1]) if weights is None else np.asarray(weights)
    groups = None if groups is None else np.asarray(groups)
    return References(y, weights, weighted_mean(y, weights), groups, **more)


STAIRCASE = np.array([[1.0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])
"""Four models; sample i is solved by all but the first i of them: means 1, ¾, ½, ¼, 0."""


# --- the mean -----------------------------------------------------------------------------------


def test_mean_predicts_the_mean_of_the_references():
    answer = mean_method.fit_mean(references(STAIRCASE), 2, stable_rng(0)).predict(np.ones(2), None)
    assert answer.value == pytest.approx(0.5)


def test_mean_interval_comes_from_distances_to_the_mean_of_the_others():
    # Truths .1 … .9; left out, .1 is .45 from the mean of the others, the largest of nine.
    y = np.array([[i / 10] for i in range(1, 10)])
    answer = mean_method.fit_mean(references(y), 1, stable_rng(0)).predict(np.ones(1), None)
    assert answer.high - answer.value == pytest.approx(0.4 * 9 / 8)


# --- plain sampling -----------------------------------------------------------------------------


def test_random_is_the_weighted_mean_with_a_sampling_error():
    fitted = direct.fit_random(references(np.zeros((3, 8))), 4, stable_rng(0))
    answer = fitted.predict(np.array([1.0, 1, 0, 0]), None)
    assert answer.value == 0.5
    # s² = 4·¼/3, error = √(s²/4·(1 − 4/8)) = √(1/24), t(3 degrees, 95 %) = 2.353363.
    assert answer.high - 0.5 == pytest.approx(2.353363 * math.sqrt(1 / 24), abs=1e-6)


def test_random_uses_the_weights_of_the_score():
    weights = np.array([0.7, 0.1, 0.1, 0.1])
    fitted = direct.fit_random(references(np.zeros((3, 4)), weights), 4, stable_rng(0))
    assert fitted.predict(np.array([1.0, 0, 0, 0]), None).value == pytest.approx(0.7)


def test_stratified_adds_the_means_of_groups():
    groups = np.array([0, 0, 0, 0, 0, 0, 1, 1])
    fitted = direct.fit_stratified(references(np.zeros((3, 8)), groups=groups), 4, stable_rng(0))
    assert groups[fitted.positions].tolist() == [0, 0, 0, 1]
    answer = fitted.predict(np.array([1.0, 0, 0, 1.0]), None)
    assert answer.value == pytest.approx(0.75 / 3 + 0.25)


def test_stratified_passes_over_groups_without_an_answer():
    groups = np.array([0, 0, 1, 1])
    fitted = direct.fit_stratified(references(np.zeros((3, 4)), groups=groups), 2, stable_rng(0))
    assert fitted.predict(np.array([np.nan, 1.0]), None).value == 1.0


@pytest.mark.parametrize(
    ("share", "sizes", "k", "counts"),
    [
        ([0.5, 0.3, 0.2], [50, 30, 20], 10, [5, 3, 2]),
        ([0.5, 0.5], [2, 50], 10, [2, 8]),
        ([1, 1, 1], [5, 5, 5], 4, [2, 1, 1]),
        ([1.0, 0.0], [3, 5], 6, [3, 3]),
    ],
)
def test_allocate_by_hand(share, sizes, k, counts):
    assert direct.allocate(np.array(share, float), np.array(sizes), k).tolist() == counts


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.data())
def test_allocate_spends_k_and_never_more_than_there_is(sizes, data):
    share = data.draw(st.lists(st.floats(0, 1), min_size=len(sizes), max_size=len(sizes)))
    k = data.draw(st.integers(1, sum(sizes)))
    counts = direct.allocate(np.array(share), np.array(sizes), k)
    assert counts.sum() == k
    assert np.all((counts >= 0) & (counts <= sizes))


# --- anchor points ------------------------------------------------------------------------------


def test_anchors_stand_for_their_clusters():
    # Three tight bunches of 4, 3 and 1 samples: one anchor each, weighted by size.
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0], [10, 0], [0, 10]], [4, 3, 1], axis=0)
    points = centres + rng.normal(size=(8, 2)) / 100
    found = anchors.choose_anchors(points, np.full(8, 1 / 8), 3, stable_rng(0))
    assert [set(range(4)), {4, 5, 6}, {7}] == [
        {0, 1, 2, 3} if p < 4 else {4, 5, 6} if p < 7 else {7} for p in found.positions
    ]
    np.testing.assert_allclose(found.weights, [4 / 8, 3 / 8, 1 / 8])


def test_an_anchor_is_the_sample_nearest_to_the_centre():
    points = np.array([[0.0], [0.9], [2.0], [50.0]])
    found = anchors.choose_anchors(points, np.full(4, 0.25), 2, stable_rng(0))
    assert found.positions.tolist() == [1, 3]


def test_equal_samples_share_the_weight_of_their_cluster():
    points = np.array([[0.0], [0.0], [0.0], [1.0]])
    found = anchors.choose_anchors(points, np.full(4, 0.25), 3, stable_rng(0))
    assert 3 in found.positions
    np.testing.assert_allclose(found.weights, [0.375, 0.375, 0.25])


def test_anchor_corr_sums_with_the_weights_of_clusters():
    y = np.repeat([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [3, 1], axis=1)
    fitted = anchors.fit_anchor_corr(references(y), 2, stable_rng(0))
    assert fitted.predict(np.array([1.0, 0.0]), None).value == pytest.approx(0.75)
    assert fitted.predict(np.array([np.nan, 0.5]), None).value == pytest.approx(0.5)


# --- Sort & Search ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "length"),
    [
        ([1, 1, 1, 0, 0], 3),
        ([1, 0, 1, 1, 0], 4),
        ([0, 0, 1], 0),
        ([1, 0, 1], 1),
        ([1, np.nan, 1, 0], 3),
        ([0.9, 0.6, 0.4], 2),
    ],
)
def test_threshold_by_hand(y, length):
    assert threshold(np.array(y, float)) == length


def test_sort_search_by_hand():
    # Shuffled staircase: K = 5 = N, solved up to the third easiest.
    order = [3, 0, 4, 1, 2]
    fitted = fit_sort_search(references(STAIRCASE[:, order]), 5, stable_rng(0))
    y = np.array([0.0, 1, 0, 1, 1])
    assert fitted.predict(y, None).value == pytest.approx(0.6)


def test_sort_search_queries_evenly_spaced_samples():
    y = np.array([[1.0] * (10 - i) + [0.0] * i for i in range(10)])
    fitted = fit_sort_search(references(y), 2, stable_rng(0))
    assert fitted.positions.tolist() == [2, 7]
    assert fitted.predict(np.array([1.0, 0.0]), None).value == pytest.approx(0.5)


def test_sort_search_counts_weights_before_the_threshold():
    weights = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    fitted = fit_sort_search(references(STAIRCASE, weights), 5, stable_rng(0))
    assert fitted.predict(np.array([1.0, 1, 0, 0, 0]), None).value == pytest.approx(0.7)


# --- ridge and metabench ------------------------------------------------------------------------


def test_ridge_by_hand():
    # One centred feature (−1, 0, 1), scores (0, 1, 2): slope Σxy/(Σx² + α) = 2/(2 + 2).
    found = ridge.fit_ridge(np.array([[0.0], [1], [2]]), np.array([0.0, 1, 2]), np.array([2.0]))
    assert found.value(np.array([[3.0]])) == pytest.approx([1 + 2 * 0.5])


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_ridge_residuals_are_those_of_models_left_out(seed):
    rng = np.random.default_rng(seed)
    x, y, alpha = rng.normal(size=(9, 4)), rng.normal(size=9), np.array([0.7])
    found = ridge.fit_ridge(x, y, alpha)
    for m in range(9):
        rest = np.arange(9) != m
        left_out = ridge.fit_ridge(x[rest], y[rest], alpha)
        assert found.residuals[m] == pytest.approx(y[m] - float(left_out.value(x[m])), abs=1e-9)


def test_ridge_agrees_with_scikit_learn():
    from sklearn.linear_model import RidgeCV

    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 50))
    y = x[:, 0] + rng.normal(size=30) / 10
    found = ridge.fit_ridge(x, y)
    other = RidgeCV(alphas=ridge.ALPHAS).fit(x, y)
    assert found.alpha == pytest.approx(other.alpha_)
    np.testing.assert_allclose(found.value(x), other.predict(x), atol=1e-9)


def test_random_ridge_recovers_a_score_that_its_samples_determine():
    rng = np.random.default_rng(0)
    y = np.repeat((rng.random((200, 4)) < 0.5).astype(float), 5, axis=1)
    fitted = ridge.fit_random_ridge(references(y), 15, stable_rng(0))
    target = np.repeat([1.0, 0, 1, 1], 5)
    assert fitted.predict(target[fitted.positions], None).value == pytest.approx(0.75, abs=0.01)


def test_metabench_picks_the_subset_with_the_smallest_validation_error():
    rng = np.random.default_rng(0)
    # Samples 0–3 carry the score, the other 16 are coin flips without weight.
    y = (rng.random((60, 20)) < 0.5).astype(float)
    weights = np.where(np.arange(20) < 4, 0.25, 0.0)
    fitted = metabench.fit_metabench(references(y, weights), 6, stable_rng(0))
    plain = ridge.fit_random_ridge(references(y, weights), 6, stable_rng(0))
    assert np.sum(fitted.positions < 4) > np.sum(plain.positions < 4)
    assert np.sum(fitted.positions < 4) >= 3


# --- the difference estimate --------------------------------------------------------------------


def test_difference_estimate_by_hand():
    # Without features the prediction of a fold is the mean of the other fold.
    y = np.array([1.0, 1, 0, 1])
    answer = aipw.difference_estimate(
        y,
        np.arange(4),
        np.zeros((8, 0)),
        np.full(8, 1 / 8),
        fold=np.array([0, 0, 1, 1]),
        level=0.9,
    )
    # Fold means: 0.5 for the first two, 1 for the last two. Residuals ½, ½, −1, 0: mean 0.
    # Seen 3/8, unseen 4/8·¾ = 3/8.
    assert answer.value == pytest.approx(0.75)


def test_difference_estimate_corrects_a_wrong_prediction():
    # The feature says nothing; a target that is right everywhere is estimated as right everywhere.
    rng = np.random.default_rng(0)
    answer = aipw.difference_estimate(
        np.ones(10),
        np.arange(10),
        rng.normal(size=(100, 2)),
        np.full(100, 0.01),
        fold=np.arange(10) % 5,
        level=0.9,
    )
    assert answer.value == pytest.approx(1)
    assert answer.high - answer.low == pytest.approx(0, abs=1e-12)


def test_difference_estimate_is_nearly_unbiased_for_a_model_unlike_the_references():
    rng = np.random.default_rng(0)
    y = (rng.random((20, 400)) < np.linspace(0.1, 0.9, 400)).astype(float)
    features = aipw.sample_features(y)
    target = 1 - y[0]
    errors = []
    for _ in range(300):
        s = rng.permutation(400)[:40]
        answer = aipw.difference_estimate(
            target[s], s, features, np.full(400, 1 / 400), fold=np.arange(40) % 5, level=0.9
        )
        errors.append(answer.value - target.mean())
    assert abs(np.mean(errors)) < 3 * np.std(errors) / math.sqrt(300)


def test_sample_features_are_means_and_principal_scores():
    features = aipw.sample_features(STAIRCASE, 2)
    np.testing.assert_allclose(features[:, 0], STAIRCASE.mean(axis=0))
    columns = STAIRCASE.T - STAIRCASE.mean(axis=1)
    singular = np.linalg.svd(columns, compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(features[:, 1:], axis=0), singular[:2])


# --- IRT on S, p-IRT, gp-IRT --------------------------------------------------------------------


def test_gp_weight_by_hand():
    # b = 0.02, v = 0.2, c·K = 100: .0004/(.0004 + .002).
    assert irt.gp_weight(0.02, 0.2, 1, 100) == pytest.approx(1 / 6)
    assert irt.gp_weight(0.02, 0.2, 4, 25) == pytest.approx(1 / 6)
    assert irt.gp_weight(0.0, 0.0, 1, 10) == 1


def test_p_irt_is_measured_on_s_and_predicted_elsewhere():
    y = (np.random.default_rng(0).random((20, 30)) < 0.6).astype(float)
    world = references(y)
    fitted = irt.fit_random_p_irt(world, 10, stable_rng(0))
    plain = irt.fit_random_irt(world, 10, stable_rng(0))
    np.testing.assert_array_equal(fitted.positions, plain.positions)
    target = np.ones(10)
    model = irt.shared_irt(world).model
    predicted = model.predicted(model.ability(target, fitted.positions))
    outside = np.setdiff1d(np.arange(30), fitted.positions)
    assert plain.predict(target, None).value == pytest.approx(predicted.mean())
    assert fitted.predict(target, None).value == pytest.approx(
        10 / 30 + 20 / 30 * predicted[outside].mean()
    )


def test_gp_irt_mixes_the_weighted_sum_and_p_irt():
    y = (np.random.default_rng(0).random((20, 30)) < 0.6).astype(float)
    world = references(y)
    target = np.array([1.0] * 3 + [0.0] * 7)
    known = irt.shared_irt(world)
    share = irt.gp_weight(known.error, known.variance, irt.C_RANDOM, 10)
    p = irt.fit_random_p_irt(world, 10, stable_rng(0)).predict(target, None).value
    gp = irt.fit_random_gp_irt(world, 10, stable_rng(0)).predict(target, None).value
    assert gp == pytest.approx(share * 0.3 + (1 - share) * p)


# --- DISCO --------------------------------------------------------------------------------------


def test_disagreement_of_responses_counts_them_as_two_probabilities():
    pds, jsd = disco.disagreement(references([[1.0, 0, 0.5], [1, 1, 0.5]]))
    np.testing.assert_allclose(pds, [1, 2, 1])
    np.testing.assert_allclose(jsd, [0, math.log(2), 0], atol=1e-15)


def test_ties_of_pds_go_by_jsd_and_then_by_position():
    # PDS is 2 on the first three; an even split of models has the larger JSD.
    y = [[1.0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1], [1, 0, 1, 1]]
    assert disco.top_positions(references(y), "pds", 2).tolist() == [0, 1]
    assert disco.top_positions(references(y), "pds", 1).tolist() == [1]
    assert disco.top_positions(references(y), "jsd", 3).tolist() == [0, 1, 2]


def test_nearest_takes_the_score_of_the_most_similar_reference():
    scores = np.array([[1.0, 0], [0, 1], [-1, 0]])
    estimate = disco.nearest(scores, np.array([0.2, 0.5, 0.9]), stable_rng(0), 0.9)
    assert estimate(np.array([0.1, 3.0])).value == 0.5
    assert estimate(np.array([-5.0, 1.0])).value == 0.9


def test_forest_stays_inside_the_range_of_the_references():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 3))
    truth = scores[:, 0]
    estimate = disco.forest(scores, truth, stable_rng(0), 0.9)
    assert truth.min() <= estimate(np.array([100.0, 0, 0])).value <= truth.max()
    assert estimate(scores[0]).value == pytest.approx(truth[0], abs=0.5)


def test_signatures_are_flattened_probabilities():
    p = np.arange(24.0).reshape(2, 4, 3)
    world = references(np.ones((2, 4)), probabilities=lambda m, rows: p[m, rows], n_classes=3)
    found = disco.reference_signatures(world, np.array([1, 3]))
    assert found.tolist() == [[3, 4, 5, 9, 10, 11], [15, 16, 17, 21, 22, 23]]
