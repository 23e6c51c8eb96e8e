"""The combination, the gate and the interval."""

from dataclasses import replace

import numpy as np
import pytest

from disco_cli.estimation.combine import Calibration, Status, combine
from disco_cli.estimation.factor_fit import fit_factor_estimator
from disco_cli.selection.draw import certainty_draw
from disco_cli.selection.factors import fit_factors
from disco_cli.selection.strata import select_strata


def references(M=40, N=300, seed=0):
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(M, 1)) * 0.5
    return (ability - rng.normal(size=N) + rng.logistic(size=(M, N)) > 0).astype(float)


@pytest.fixture
def fitted():
    Y = references()
    factors = fit_factors(Y)
    weights = np.full(300, 1 / 300)
    draw = select_strata(factors, weights, 60, np.random.default_rng(0))
    scores = Y.mean(axis=1)
    calibration = Calibration(
        low=float(scores.min()),
        high=float(scores.max()),
        bounds=(0.0, 1.0),
        design_share=0.25,
        scale=0.05,
        near=np.linspace(0.1, 2.0, 40),
        far=np.linspace(0.05, 1.5, 40),
        strongest=np.linspace(0.01, 0.2, 10),
        n_models=40,
        misfit_limit=3.0,
        ridge_share=0.5,
    )
    return Y, draw, fit_factor_estimator(Y, factors, weights, draw), calibration


def test_inside_the_range_the_learned_weight_counts(fitted):
    Y, draw, estimator, calibration = fitted
    middle = np.argsort(Y.mean(axis=1))[20]
    result = combine(estimator, calibration, Y[middle, draw.positions], 0.9)
    parts = result.parts
    assert parts.beyond == 0.0
    assert result.status is Status.IN_RANGE
    assert result.estimate == pytest.approx(
        0.25 * parts.model + 0.25 * parts.design + 0.5 * parts.ridge
    )
    # ⌈41 · 0.9⌉ = 37th of 40 residuals.
    width = calibration.near[36] * np.sqrt(parts.standard_error * 0.05)
    assert result.high - result.estimate == pytest.approx(width)


def test_beyond_the_range_the_design_decides(fitted):
    _, _, estimator, calibration = fitted
    result = combine(estimator, calibration, np.ones(60), 0.9)
    assert result.status is Status.EXTRAPOLATED
    assert result.parts.beyond == 1.0
    assert result.estimate > calibration.high
    assert abs(result.estimate - result.parts.design) < 2 * result.parts.standard_error
    assert result.high == 1.0  # nothing lies beyond the bounds


def test_strange_targets_are_marked(fitted):
    Y, draw, estimator, calibration = fitted
    strict = replace(calibration, misfit_limit=0.0)
    middle = np.argsort(Y.mean(axis=1))[20]
    result = combine(estimator, strict, Y[middle, draw.positions], 0.9)
    assert result.status is Status.UNFAMILIAR


def test_too_few_models_give_no_interval_and_say_why(fitted):
    Y, draw, estimator, calibration = fitted
    few = replace(calibration, near=np.ones(8), far=np.ones(8), n_models=8)
    middle = np.argsort(Y.mean(axis=1))[20]
    result = combine(estimator, few, Y[middle, draw.positions], 0.9)
    assert result.low is None
    assert result.high is None
    assert result.reason == "8 reference models are too few for level 0.9; it needs 9"
    # Beyond the range the design's own error needs no reference model.
    assert combine(estimator, few, np.ones(60), 0.9).low is not None


def test_higher_levels_are_wider(fitted):
    Y, draw, estimator, calibration = fitted
    for y in (Y[0, draw.positions], np.ones(60), np.zeros(60)):
        widths = [
            combine(estimator, replace(calibration, bounds=None), y, level)
            for level in (0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.9999)
        ]
        # Where the models do not support the level, only the design's error gives an interval.
        sizes = [w.high - w.low for w in widths if w.low is not None]
        assert len(sizes) == 8 if widths[0].parts.beyond == 1.0 else len(sizes) == 5
        assert sizes == sorted(sizes)


def test_without_a_random_part_the_strongest_models_vouch_for_targets_beyond(fitted):
    Y, _, _, calibration = fitted
    factors = fit_factors(Y)
    certain = certainty_draw(np.arange(60), np.zeros(60))
    estimator = fit_factor_estimator(Y, factors, np.full(300, 1 / 300), certain)
    tight = replace(calibration, high=0.5, near=np.full(40, 1e-3))
    result = combine(estimator, tight, np.ones(60), 0.9)
    assert result.parts.assessment.design is None
    assert result.status is Status.EXTRAPOLATED
    assert result.low == pytest.approx(result.estimate - 0.2)
    unknown = replace(tight, strongest=np.empty(0))
    assert combine(estimator, unknown, np.ones(60), 0.9).low is None


def test_estimates_of_a_group_lean_on_the_design(fitted):
    Y, draw, _, calibration = fitted
    groups = np.repeat([0, 1], 150)
    estimator = fit_factor_estimator(Y, fit_factors(Y), np.full(300, 1 / 300), draw, groups)
    covered, widths = [], []
    for y in Y:
        whole = combine(estimator, calibration, y[draw.positions], 0.9)
        part = combine(estimator, calibration, y[draw.positions], 0.9, np.array([0]))
        assert part.parts.ridge is None
        widths.append((part.high - part.low, whole.high - whole.low))
        covered.append(part.low <= y[:150].mean() <= part.high)
    assert np.mean(covered) >= 0.85
    of_parts, of_wholes = np.mean(widths, axis=0)
    assert of_parts > of_wholes


def test_a_group_of_few_drawn_samples_has_no_interval(fitted):
    Y, draw, _, calibration = fitted
    groups = np.ones(300, dtype=np.int64)
    groups[draw.positions[:3]] = 0
    groups[draw.positions[3:7]] = 2
    estimator = fit_factor_estimator(Y, fit_factors(Y), np.full(300, 1 / 300), draw, groups)
    y = Y[3, draw.positions]
    three, many, four = (combine(estimator, calibration, y, 0.9, np.array([g])) for g in range(3))
    assert three.low is None
    assert "too few samples were drawn" in three.reason
    assert many.low is not None
    assert four.low is not None
