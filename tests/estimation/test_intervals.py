"""Conformal half-widths: ranks by hand, too few models, validity on exchangeable residuals."""

import numpy as np
import pytest

from disco_cli.estimation.intervals import half_width, models_needed, normal_quantile


@pytest.mark.parametrize(
    ("n", "level", "expected"),
    [(9, 0.9, 9), (10, 0.9, 10), (19, 0.9, 18), (8, 0.9, None), (3, 0.5, 2), (0, 0.5, None)],
)
def test_rank_by_hand(n, level, expected):
    residuals = -np.arange(1.0, n + 1)[::-1]
    assert half_width(residuals, level) == expected


def test_missing_residuals_do_not_count():
    assert half_width(np.array([np.nan, 1.0, 2.0]), 0.5) == 2.0


def test_several_residuals_per_model_count_as_one_model():
    residuals = np.repeat(np.arange(1.0, 9.0), 5)  # 8 models, 5 draws each
    assert half_width(residuals, 0.9) is not None
    assert half_width(residuals, 0.9, n_models=8) is None
    assert half_width(residuals, 0.8, n_models=8) == 8.0
    assert half_width(residuals, 0.5, n_models=8) == 5.0


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_models_needed(level):
    n = models_needed(level)
    assert half_width(np.ones(n), level) is not None
    assert half_width(np.ones(n - 1), level) is None


def test_normal_quantile():
    assert normal_quantile(0.9) == pytest.approx(1.6448536)


def test_coverage_of_exchangeable_residuals():
    rng = np.random.default_rng(0)
    residuals = rng.standard_t(3, size=(4000, 20))
    covered = [abs(row[0]) <= half_width(row[1:], 0.9) for row in residuals]
    # ⌈20 · 0.9⌉ / 20 = 0.9 exactly; standard error 0.005.
    assert np.mean(covered) == pytest.approx(0.9, abs=0.015)


def test_models_needed_is_the_first_number_with_an_interval():
    for level in (0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
        n = models_needed(level)
        assert half_width(np.zeros(n), level) is not None
        assert n == 1 or half_width(np.zeros(n - 1), level) is None
    assert models_needed(1 - 1e-6) == pytest.approx(1e6, rel=0.01)
