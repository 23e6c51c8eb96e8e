"""Errors of the linear regressors with the selection made anew."""

import numpy as np
import pytest

from disco_cli.estimation.intervals import half_width
from disco_cli.estimation.linear_fit import fit_linear, leave_out_linear
from disco_cli.estimation.recipe import select_with_share
from disco_cli.selection.draw import certainty_draw
from disco_cli.selection.factors import fit_factors


def models(M, N=300, seed=0):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(-(rng.normal(size=(M, 1)) - rng.normal(size=N))))
    return (rng.random((M, N)) < chance).astype(float)


def equal(N):
    return np.full(N, 1.0 / N)


def test_a_model_is_estimated_without_itself_and_without_its_fold():
    Y = models(12)
    scores = Y.mean(axis=1)
    fixed = certainty_draw(np.arange(30), np.zeros(30))
    seen = []

    def select(rows, _factors, _rng):
        seen.append(rows)
        return fixed

    found = leave_out_linear(Y, scores, select, np.random.default_rng(0), is_comparable=True)
    assert set(found) == {"ridge", "anchored-ridge", "blend"}  # no design, no offset ridge
    by_hand = np.empty(12)
    for rows in seen:
        others = np.setdiff1d(np.arange(12), rows)
        fitted = fit_linear(Y[rows, :30], scores[rows], None, is_comparable=True)
        by_hand[others] = fitted["ridge"].predict(Y[others, :30]) - scores[others]
    np.testing.assert_allclose(found["ridge"], by_hand)


def test_missing_responses():
    Y = models(12)
    Y[3] = np.nan
    Y[3, 299] = 1.0
    Y[4, ::2] = np.nan
    scores = np.nanmean(Y, axis=1)
    fixed = certainty_draw(np.arange(30), np.zeros(30))
    found = leave_out_linear(
        Y, scores, lambda *_: fixed, np.random.default_rng(0), is_comparable=True
    )
    assert np.flatnonzero(np.isnan(found["blend"])).tolist() == [3]


@pytest.mark.parametrize("M", [12, 20])
def test_intervals_hold_with_few_models(M):
    """A model's own leave-one-out errors, the selection being fixed, held 60 to 80 %."""
    covered, k = {}, 40
    for seed in range(12):
        Y = models(M + 15, seed=seed)
        select = select_with_share(equal(300), k, 0.0)
        rng = np.random.default_rng(seed)
        draw = select(np.arange(M), fit_factors(Y[:M]), rng)
        scores = Y.mean(axis=1)
        fitted = fit_linear(Y[:M, draw.positions], scores[:M], draw.weights, is_comparable=True)
        residuals = leave_out_linear(Y[:M], scores[:M], select, rng, is_comparable=True)
        for name, each in fitted.items():
            width = half_width(residuals[name], 0.9)
            misses = np.abs(each.predict(Y[M:, draw.positions]) - scores[M:])
            covered.setdefault(name, []).append(np.mean(misses <= width))
    # 180 targets in 12 clusters: the standard error of a share is about 0.03.
    assert all(np.mean(shares) > 0.82 for shares in covered.values()), covered
