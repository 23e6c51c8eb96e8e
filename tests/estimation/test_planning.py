"""Plans measured by leaving models out: who learns from whom, and figures that are known."""

import numpy as np
import pytest

from disco_cli.estimation.planning import measure_plan
from disco_cli.estimation.recipe import select_with_share
from disco_cli.estimation.sample_size import describe_random_sample


def models(M, N=200, seed=0):
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(M, 2)) * 0.8
    skill = np.abs(rng.normal(size=(2, N)))
    chance = 1 / (1 + np.exp(-(ability @ skill - rng.normal(size=N))))
    return (rng.random((M, N)) < chance).astype(float)


def equal(N):
    return np.full(N, 1.0 / N)


def measure(Y, ks, counts, *, level=0.9, seed=0):
    N = Y.shape[1]
    selectors = {k: select_with_share(equal(N), k, 0.0) for k in ks}
    return measure_plan(Y, equal(N), selectors, counts, level, seed)


def test_points_come_by_models_and_then_by_samples_and_count_who_was_learned_from():
    points = measure(models(24), [10, 40], [6, 24])
    assert [(p.n_models, p.k) for p in points] == [(6, 10), (6, 40), (24, 10), (24, 40)]
    # Ten folds of 24 models leave out two or three.
    assert [p.n_learned for p in points] == [6, 6, 22, 22]


def test_a_point_does_not_depend_on_the_others():
    Y = models(16)
    alone = measure(Y, [20], [8])[0]
    assert alone in measure(Y, [10, 20, 40], [8, 16])
    assert alone != measure(Y, [20], [8], seed=1)[0]


def test_left_out_models_are_never_learned_from():
    Y = models(12)
    seen = []

    def spy(rows, factors, rng):
        seen.append(set(rows.tolist()))
        return select_with_share(equal(200), 20, 0.0)(rows, factors, rng)

    measure_plan(Y, equal(200), {20: spy}, [5, 12], 0.9, 0)
    strongest = set(np.argsort(-Y.mean(axis=1), kind="stable")[:3].tolist())
    by_count = [rows for rows in seen if len(rows) == 5]
    assert len(by_count) == len(seen) / 2
    assert not any(rows & strongest for rows in seen[-12:])  # six draws for each count
    # The twelve models are left out in turn: none is in every set of rows.
    assert not set.intersection(*seen[:-12])


def test_all_samples_leave_no_error():
    (point,) = measure(models(12, N=40), [40], [12])
    assert point.error == pytest.approx(0.0, abs=1e-9)
    assert point.width == pytest.approx(0.0, abs=1e-6)
    assert point.difference == pytest.approx(0.0, abs=1e-9)


def test_equal_responses_to_all_samples_leave_no_error():
    # Every model has the same score on every sample: one sample tells all.
    Y = np.repeat(np.linspace(0.2, 0.8, 12)[:, np.newaxis], 50, axis=1)
    (point,) = measure(Y, [10], [12])
    assert point.error < 0.01


def test_errors_fall_with_samples_and_lie_below_those_of_a_random_sample():
    Y = models(40, N=400)
    points = measure(Y, [20, 80], [40])
    random = describe_random_sample(Y, equal(400))
    assert points[1].error < 0.7 * points[0].error
    for point in points:
        assert point.error < random.error(point.k)
        # √½ of the width is a standard error of difference for independent errors, and these
        # are not far from it.
        assert 0.3 * point.width < point.difference < 1.0 * point.width


def test_higher_levels_are_wider():
    Y = models(30)
    (narrow,), (wide,) = (measure(Y, [30], [30], level=level) for level in (0.6, 0.9))
    assert narrow.error == wide.error
    assert narrow.width < wide.width
    assert narrow.difference < wide.difference


def test_too_few_models_for_the_level_have_no_interval():
    points = measure(models(16), [20], [5, 16])
    assert [point.width is None for point in points] == [True, False]
    assert measure(models(4), [20], [4])[0].difference is None


def test_missing_responses_are_left_out_of_the_truth():
    Y = models(16)
    holes = np.where(np.random.default_rng(3).random(Y.shape) < 0.2, np.nan, Y)
    (whole,), (part,) = measure(Y, [40], [16]), measure(holes, [40], [16])
    assert 0.5 * whole.error < part.error < 2.0 * whole.error


@pytest.mark.slow
def test_the_plan_foretells_errors_on_new_models():
    """Thirty references are asked what to expect; 300 other models tell what came of it."""
    expected, came = [], []
    weights = equal(300)
    select = select_with_share(weights, 40, 0.0)
    for seed in range(6):
        Y = models(330, N=300, seed=seed)
        (point,) = measure(Y[:30], [40], [30], seed=seed)
        expected.append((point.error, point.difference))
        from disco_cli.estimation.recipe_fit import fit_recipe
        from disco_cli.selection.factors import fit_factors

        errors, gaps = [], []
        for draw_seed in range(5):
            rng = np.random.default_rng(draw_seed)
            draw = select(np.arange(30), fit_factors(Y[:30]), rng)
            recipe = fit_recipe(Y[:30], weights, draw, select, rng)
            found = [recipe.estimate(y, 0.9).estimate for y in Y[30:, draw.positions]]
            missed = np.array(found) - Y[30:].mean(axis=1)
            errors.append(np.abs(missed).mean())
            gaps.append(np.mean(np.abs(missed[::2] - missed[1::2]) <= point.difference))
        came.append((np.mean(errors), np.mean(gaps)))
    expected, came = np.mean(expected, axis=0), np.mean(came, axis=0)
    assert expected[0] == pytest.approx(came[0], rel=0.12)
    assert 0.86 <= came[1] <= 0.96
