"""The fitted recipe: arrays and back, few and equal models, order of models and samples."""

from dataclasses import replace

import numpy as np
import pytest

from disco_cli.estimation.combine import Status
from disco_cli.estimation.fitted import FittedRecipe
from disco_cli.estimation.recipe import select_with_share
from disco_cli.estimation.recipe_fit import fit_recipe
from disco_cli.selection.factors import distinct_models, fit_factors
from disco_cli.selection.methods import select_top


def models(M, N=150, seed=0):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(-(rng.normal(size=(M, 1)) - rng.normal(size=N))))
    return (rng.random((M, N)) < chance).astype(float)


def equal(N):
    return np.full(N, 1.0 / N)


def fitted(Y, k=25, groups=None, share=0.0):
    select = select_with_share(equal(Y.shape[1]), k, share)
    kept = Y[distinct_models(Y)]
    draw = select(np.arange(len(kept)), fit_factors(kept), np.random.default_rng(1))
    recipe = fit_recipe(Y, equal(Y.shape[1]), draw, select, np.random.default_rng(2), groups=groups)
    return draw, recipe


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_arrays_and_back(scale, tmp_path):
    Y = models(14) * scale
    draw, recipe = fitted(Y)
    np.savez(tmp_path / "recipe.npz", **recipe.to_arrays())
    with np.load(tmp_path / "recipe.npz", allow_pickle=False) as stored:
        again = FittedRecipe.from_arrays(dict(stored))
    y = Y[3, draw.positions]
    assert again.estimate(y, 0.9) == recipe.estimate(y, 0.9)


def test_arrays_that_do_not_fit_are_refused():
    _, recipe = fitted(models(12))
    arrays = recipe.to_arrays()
    with pytest.raises(ValueError, match="unequal length where 25"):
        FittedRecipe.from_arrays({**arrays, "noise": np.ones(3)})
    with pytest.raises(ValueError, match="group loadings"):
        FittedRecipe.from_arrays({**arrays, "group_loadings": np.ones((2, 2))})


@pytest.mark.parametrize("n_models", [1, 2, 3, 4])
def test_hardly_any_models(n_models):
    draw, recipe = fitted(models(n_models))
    result = recipe.estimate(models(9)[8, draw.positions], 0.9)
    assert 0.0 <= result.estimate <= 1.0
    if result.parts.beyond < 1.0:
        assert result.low is None
        assert "too few" in result.reason


def test_equal_models():
    Y = np.tile(models(1), (12, 1))
    draw, recipe = fitted(Y)
    result = recipe.estimate(Y[0, draw.positions], 0.9)
    assert result.estimate == pytest.approx(Y[0].mean(), abs=1e-6)
    other = recipe.estimate(1.0 - Y[0, draw.positions], 0.9)
    assert other.status is not Status.IN_RANGE


def test_copies_of_a_model_change_nothing():
    Y = models(12)
    one, other = fitted(Y)[1], fitted(np.vstack([Y, Y[:6], Y[:6]]))[1]
    assert one.calibration.n_models == other.calibration.n_models == 12
    np.testing.assert_array_equal(one.calibration.near, other.calibration.near)


def test_order_of_samples_does_not_matter_to_a_given_draw():
    Y = models(12)
    draw, _ = fitted(Y)
    order = np.random.default_rng(3).permutation(150)
    place = np.argsort(order)  # old position -> new position
    moved = place[draw.positions]
    by_place = np.argsort(moved)
    other = replace(
        draw,
        positions=moved[by_place],
        inclusion_probabilities=draw.inclusion_probabilities[by_place],
        weights=draw.weights[by_place],
    )
    again = fit_recipe(Y[:, order], equal(150), other, None, np.random.default_rng(0))
    fixed = fit_recipe(Y, equal(150), draw, None, np.random.default_rng(0))
    target = models(13)[12]
    one = fixed.estimate(target[draw.positions], 0.9)
    two = again.estimate(target[order][other.positions], 0.9)
    assert one.estimate == pytest.approx(two.estimate)
    assert one.high == pytest.approx(two.high)


def test_a_top_k_selection_has_no_design_estimate():
    Y = models(30)
    draw = select_top(Y.var(axis=0), np.zeros(150), 25)
    recipe = fit_recipe(Y, equal(150), draw, None, np.random.default_rng(0))
    result = recipe.estimate(models(31)[30, draw.positions], 0.9)
    assert result.parts.assessment.design is None
    assert result.parts.design == result.parts.model
    shares = recipe.calibration.shares
    between = result.parts.model + shares.ridge * (result.parts.ridge - result.parts.model)
    assert result.estimate == pytest.approx(between)


def test_a_recipe_of_an_earlier_version_has_no_ridge():
    draw, recipe = fitted(models(14))
    arrays = {k: v for k, v in recipe.to_arrays().items() if "ridge" not in k}
    old = FittedRecipe.from_arrays(arrays)
    result = old.estimate(models(14)[3, draw.positions], 0.9)
    assert result.parts.ridge is None
    share = old.calibration.design_share
    mean = (1 - share) * result.parts.model + share * result.parts.design
    assert result.estimate == pytest.approx(mean)


def test_missing_reference_responses_are_used():
    Y = models(30)
    holes = np.where(np.random.default_rng(4).random(Y.shape) < 0.2, np.nan, Y)
    holes[5, :100] = np.nan
    draw, _ = fitted(Y)
    recipe = fit_recipe(holes, equal(150), draw, None, np.random.default_rng(0))
    target = models(31)[30]
    result = recipe.estimate(target[draw.positions], 0.9)
    assert abs(result.estimate - target.mean()) < 0.12
    assert recipe.calibration.n_models == 30
