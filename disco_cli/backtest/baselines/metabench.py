"""After metabench: the best of many random subsets by validation error, then ridge.

The published method filters items, fits several latent-variable models and spends hundreds of
samples; what is kept here is its core, choosing among random subsets by the error on held-out
models, at the same K as everybody else. Like any ridge it does not return the full score at K = N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from disco_cli.backtest.baselines.interface import Fitted, References, draw
from disco_cli.backtest.baselines.ridge import fit_ridge, ridge_on

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUBSETS = 100
"""Random subsets tried."""

VALIDATION_SHARE = 0.25
"""Share of the reference models held out to choose the subset."""


def fit_metabench(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by ridge on the best of :data:`SUBSETS` random subsets.

    The first subset tried is the one that plain random sampling uses. The interval comes from
    leave-one-out residuals on the chosen subset, which the choice has made a little too small.
    """
    candidates = [draw(rng, references.n_samples, k) for _ in range(SUBSETS)]
    n_held = max(1, round(references.n_models * VALIDATION_SHARE))
    held = rng.permutation(references.n_models)[:n_held]
    errors = [validation_error(references, subset, held) for subset in candidates]
    return ridge_on(references, candidates[int(np.argmin(errors))])


def validation_error(
    references: References, subset: NDArray[np.int64], held: NDArray[np.int64]
) -> float:
    """Return the root mean squared error on held-out models of ridge fitted to the rest."""
    features = references.filled()[:, subset]
    rest = np.setdiff1d(np.arange(references.n_models), held)
    ridge = fit_ridge(features[rest], references.truth[rest])
    error = ridge.value(features[held]) - references.truth[held]
    return float(np.sqrt(np.mean(error**2)))
