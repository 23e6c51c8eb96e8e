"""Linear regressors: exact leave-one-out, what each shrinks to, order of models."""

import numpy as np
import pytest

from disco_cli.estimation import regressors as module
from disco_cli.estimation.regressors import (
    blend,
    fit_anchored_ridge,
    fit_offset_ridge,
    fit_ridge,
)

FITS = [fit_ridge, fit_anchored_ridge, fit_offset_ridge]


def models(M=30, N=400, K=25, seed=0):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(rng.normal(size=(M, 1)) * 1.5 - rng.normal(size=N))))
    Y = (rng.random((M, N)) < p).astype(float)
    return Y[:, :K], Y.mean(axis=1)


@pytest.mark.parametrize("fit", FITS)
def test_leave_one_out_is_what_leaving_out_gives(fit, monkeypatch):
    Y, scores = models()
    # One fixed penalty: choosing it again without a model would be another estimator.
    unit = {}

    def fixed(fit_all):
        def inner(free, X, target):
            left = X - free @ np.linalg.lstsq(free, X, rcond=None)[0]
            unit.setdefault("value", 3.0 * np.mean(np.linalg.eigvalsh(left @ left.T)))
            mean = np.mean(np.linalg.eigvalsh(left @ left.T))
            monkeypatch.setattr(module, "_PENALTIES", np.array([unit["value"] / mean]))
            return fit_all(free, X, target)

        return inner

    monkeypatch.setattr(module, "_fit", fixed(module._fit))
    whole = fit(Y, scores)
    for m in (0, 7, 29):
        rest = np.delete(np.arange(30), m)
        left_out = fit(Y[rest], scores[rest]).predict(Y[m : m + 1])[0] - scores[m]
        assert whole.residuals[m] == pytest.approx(left_out, abs=1e-9)


def test_ridge_finds_a_linear_score():
    rng = np.random.default_rng(1)
    Y = rng.random((50, 4))
    slope = np.array([0.1, 0.0, 0.5, -0.2])
    estimator = fit_ridge(Y, Y @ slope + 0.3)
    assert estimator.error < 1e-2
    np.testing.assert_allclose(estimator.coefficients, slope, atol=0.03)


@pytest.mark.parametrize("fit", FITS)
def test_predictions_follow_the_order_of_models_nowhere(fit):
    Y, scores = models()
    order = np.random.default_rng(2).permutation(30)
    one, other = fit(Y, scores), fit(Y[order], scores[order])
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-9)
    np.testing.assert_allclose(one.residuals[order], other.residuals, atol=1e-9)


def test_anchored_and_offset_ridge_follow_a_target_beyond_the_references():
    Y, scores = models(M=40)
    weak = scores < np.median(scores)
    strongest = np.argmax(scores)
    plain = fit_ridge(Y[weak], scores[weak]).predict(Y[strongest : strongest + 1])[0]
    for fit in (fit_anchored_ridge, fit_offset_ridge):
        beyond = fit(Y[weak], scores[weak]).predict(Y[strongest : strongest + 1])[0]
        assert abs(beyond - scores[strongest]) < abs(plain - scores[strongest])


def test_offset_ridge_of_unhelpful_references_is_the_weighted_mean():
    rng = np.random.default_rng(3)
    weights = np.array([0.5, 0.25, 0.25])
    Y = rng.random((60, 3))
    estimator = fit_offset_ridge(Y, Y @ weights, weights)
    np.testing.assert_allclose(estimator.coefficients, weights, atol=1e-6)
    assert estimator.intercept == pytest.approx(0.0, abs=1e-6)


def test_equal_responses_give_the_mean_score():
    estimator = fit_anchored_ridge(np.ones((6, 3)), np.arange(6.0))
    assert estimator.predict(np.ones((1, 3)))[0] == pytest.approx(2.5)


def test_blend_is_the_average():
    Y, scores = models()
    parts = [fit(Y, scores) for fit in FITS]
    mixed = blend(parts)
    expected = np.mean([part.predict(Y) for part in parts], axis=0)
    np.testing.assert_allclose(mixed.predict(Y), expected)
    np.testing.assert_allclose(mixed.residuals, np.mean([p.residuals for p in parts], axis=0))
