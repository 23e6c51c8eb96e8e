"""Our own recipe, ``auto``: balanced strata, factors and the design's estimate, and a gate.

See :mod:`disco_cli.estimation.recipe`. The whole pipeline sees the reference models alone; with the
design's estimate the full score comes back exactly at K = N.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.backtest.baselines.interface import Estimate, Fitted, References
from disco_cli.estimation.recipe import choose_share, select_with_share
from disco_cli.estimation.recipe_fit import fit_recipe
from disco_cli.selection.duplicates import sample_units
from disco_cli.selection.factors import complete_responses, distinct_models, fit_factors

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fit_auto(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target as ``disco select --method auto``, ``build-db`` and ``predict`` would."""
    Y, weights, groups = references.responses, references.weights, references.groups
    different = Y[distinct_models(Y)]
    units = sample_units(Y, k, weights=weights)
    choice = choose_share(different, weights, k, rng, units=units, groups=groups)
    select = select_with_share(weights, k, choice.share, units, groups)
    factors = references.once("factors", lambda: fit_factors(complete_responses(different)))
    drawn = select(np.arange(len(different)), factors, rng)
    recipe = fit_recipe(Y, weights, drawn, select, rng, groups=groups)

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:  # noqa: ARG001
        if np.isnan(y).all():
            return Estimate(math.nan)
        found = recipe.estimate(y, references.level)
        if found.low is None or found.high is None:
            return Estimate(found.estimate)
        return Estimate(found.estimate, found.low, found.high)

    return Fitted(drawn.positions, predict)
