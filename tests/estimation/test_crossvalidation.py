"""Folds, trials, calibration and the choice of the share of informative samples."""

import numpy as np
import pytest

from disco_cli.estimation.combine import Status, combine
from disco_cli.estimation.crossvalidation import (
    calibrate,
    cross_validate,
    plan_folds,
    weighted_scores,
)
from disco_cli.estimation.factor_fit import fit_factor_estimator
from disco_cli.estimation.recipe import SHARES, choose_share, select_with_share
from disco_cli.selection.factors import complete_responses, distinct_models, fit_factors


def models(M, N=200, seed=0, spread=0.8):
    """Exchangeable models: two abilities each, logistic responses."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(M, 2)) * spread
    skill = np.abs(rng.normal(size=(2, N)))
    chance = 1 / (1 + np.exp(-(ability @ skill - rng.normal(size=N))))
    return (rng.random((M, N)) < chance).astype(float)


def equal(N):
    return np.full(N, 1.0 / N)


@pytest.mark.parametrize(("M", "n_random"), [(4, 4), (30, 10), (60, 5)])
def test_folds_partition_the_models_and_then_hold_out_the_strongest(M, n_random):
    scores = np.random.default_rng(0).permutation(M) / M
    folds = list(plan_folds(scores, np.random.default_rng(1)))
    random = [rows for strongest, rows in folds if not strongest]
    assert len(random) == n_random
    assert sorted(np.concatenate(random).tolist()) == list(range(M))
    (strongest,) = [rows for is_strongest, rows in folds if is_strongest]
    assert sorted(scores[strongest]) == sorted(np.sort(scores)[-(M // 4) :])


def test_three_models_have_no_strongest_quarter():
    folds = list(plan_folds(np.arange(3.0), np.random.default_rng(0)))
    assert [strongest for strongest, _ in folds] == [False] * 3


def test_selection_never_sees_the_models_of_its_fold():
    Y = models(20)
    seen = []

    def spy(rows, factors, rng):
        seen.append(rows)
        assert factors.n_models == len(rows)
        return select_with_share(equal(200), 20, 0.0)(rows, factors, rng)

    trials = cross_validate(Y, equal(200), {"spy": spy}, np.random.default_rng(0))["spy"]
    folds = list(plan_folds(weighted_scores(Y, equal(200)), np.random.default_rng(0)))
    assert len(seen) == len(folds)
    for rows, (_, left_out) in zip(seen, folds, strict=True):
        assert not set(rows) & set(left_out)
    assert len(trials) == 20 + 5


def test_scores_are_over_answered_samples():
    Y = np.array([[1.0, np.nan, 0.0], [np.nan, np.nan, np.nan]])
    scores = weighted_scores(Y, np.array([0.5, 0.25, 0.25]))
    assert scores[0] == pytest.approx(2 / 3)
    assert np.isnan(scores[1])


def test_calibration_counts_models_and_knows_the_range():
    Y = models(16)
    select = select_with_share(equal(200), 30, 0.0)
    trials = cross_validate(Y, equal(200), {"x": select}, np.random.default_rng(2), n_repeats=2)
    calibration = calibrate(Y, equal(200), trials["x"])
    assert calibration.n_models == 16
    assert len(calibration.near) == 32
    assert len(calibration.strongest) == 8
    assert calibration.low == pytest.approx(Y.mean(axis=1).min())
    assert calibration.high == pytest.approx(Y.mean(axis=1).max())
    assert calibration.bounds == (0.0, 1.0)
    assert calibrate(Y * 3, equal(200), trials["x"]).bounds is None


def predict(Y, target, k, seed):
    weights = equal(Y.shape[1])
    rng = np.random.default_rng(seed)
    select = select_with_share(weights, k, 0.0)
    factors = fit_factors(complete_responses(Y))
    draw = select(np.arange(len(Y)), factors, rng)
    trials = cross_validate(Y, weights, {"x": select}, rng)["x"]
    estimator = fit_factor_estimator(complete_responses(Y), factors, weights, draw)
    calibration = calibrate(Y, weights, trials)
    return [combine(estimator, calibration, y, 0.9) for y in target[:, draw.positions]]


@pytest.mark.slow
def test_intervals_are_valid_on_exchangeable_models():
    covered, widths = [], []
    for seed in range(40):
        Y = models(30, seed=seed)
        results = predict(Y[:20], Y[20:], 30, seed)
        for result, truth in zip(results, Y[20:].mean(axis=1), strict=True):
            covered.append(result.low <= truth <= result.high)
            widths.append(result.high - result.low)
    # 400 targets in 40 clusters; the standard error is about 0.02.
    assert 0.86 <= np.mean(covered) <= 0.97
    random_width = 2 * 1.645 * np.sqrt(0.24 / 30)
    assert np.mean(widths) < random_width


@pytest.mark.slow
def test_stronger_targets_are_marked_and_still_covered():
    covered, marked = [], []
    for seed in range(15):
        Y = models(40, seed=seed)
        order = np.argsort(Y.mean(axis=1))
        results = predict(Y[order[:30]], Y[order[30:]], 40, seed)
        for result, truth in zip(results, Y[order[30:]].mean(axis=1), strict=True):
            covered.append(result.low <= truth <= result.high)
            marked.append(result.status is Status.EXTRAPOLATED)
    assert np.mean(covered) >= 0.85
    assert np.mean(marked) > 0.4


def test_a_copied_model_silences_no_warning():
    Y = np.vstack([models(8)] * 3)
    kept = Y[distinct_models(Y)]
    assert len(kept) == 8
    (result,) = predict(kept, models(9)[8:], 30, 0)
    assert result.low is None
    assert "8 reference models are too few" in result.reason


def test_few_models_take_the_safe_share():
    choice = choose_share(models(20), equal(200), 20, np.random.default_rng(0))
    assert choice.share == SHARES[0] == 0.0
    assert "too few" in choice.reason


def test_a_choice_that_would_take_too_long_is_the_safe_one():
    Y = np.broadcast_to(np.zeros(1), (5000, 10_000))
    choice = choose_share(Y, equal(10_000), 100, np.random.default_rng(0))
    assert choice.share == 0.0
    assert "too long" in choice.reason


def test_shares_are_compared_on_the_same_models():
    choice = choose_share(models(80), equal(200), 20, np.random.default_rng(0))
    assert [candidate.share for candidate in choice.candidates] == list(SHARES)
    assert choice.share in SHARES
    assert len(choice.trials) == 2 * (80 + 20)
    assert all(0 < c.alike < 0.2 and 0 < c.strongest < 0.3 for c in choice.candidates)
    again = choose_share(models(80), equal(200), 20, np.random.default_rng(0))
    assert again.candidates == choice.candidates
