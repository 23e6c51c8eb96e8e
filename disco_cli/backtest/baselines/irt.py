"""IRT, p-IRT and gp-IRT (tinyBenchmarks), on random subsets and on anchor points.

* ``irt``: the mean predicted response to all N samples. At K = N it does not return the full score:
  D numbers for each model cannot reproduce N responses.
* ``p-irt``: measured responses on S, predicted ones elsewhere. Exact at K = N.
* ``gp-irt``: λ·(weighted sum on S) + (1 − λ)·p-irt with λ = b²/(b² + v/(cK)). Exact at K = N, where
  both parts are.

The item parameters depend on the references alone and are fitted once for all K and all methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.backtest.baselines.anchors import Anchors, choose_anchors, weighted_sum
from disco_cli.backtest.baselines.interface import (
    Estimate,
    Fitted,
    Predict,
    References,
    draw,
)
from disco_cli.backtest.baselines.irt_model import IrtModel, choose_dimension, fit_irt

if TYPE_CHECKING:
    from numpy.typing import NDArray

C_RANDOM = 1.0
C_ANCHORS = 4.0
"""How much more a weighted sum of anchors is worth than one of a random subset."""


@dataclass(frozen=True)
class FittedIrt:
    """Item parameters and what gp-IRT needs to know of their error.

    Attributes
    ----------
    model : IrtModel
        Fitted to all references, with the dimension chosen among them.
    error : float
        b, the mean absolute validation error at that dimension.
    variance : float
        v, the mean over models of the variance of a model's responses.
    """

    model: IrtModel
    error: float
    variance: float


def shared_irt(references: References) -> FittedIrt:
    """Return the IRT model of these references, fitted once."""

    def fit() -> FittedIrt:
        dimension, error = choose_dimension(references.responses, references.weights)
        model = fit_irt(references.responses, dimension)
        return FittedIrt(model, error, float(np.mean(np.nanvar(references.responses, axis=1))))

    return references.once("irt", fit)


def fit_random_irt(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by its mean predicted response, its ability from a random subset."""
    positions = draw(rng, references.n_samples, k)
    model = shared_irt(references).model

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:  # noqa: ARG001
        predicted = model.predicted(model.ability(y, positions))
        return Estimate(float(references.weights @ predicted))

    return Fitted(positions, predict)


def fit_random_p_irt(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by measured responses on a random subset and predicted ones elsewhere."""
    positions = draw(rng, references.n_samples, k)
    return Fitted(positions, _p_irt(references, positions))


def fit_random_gp_irt(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by gp-IRT on a random subset."""
    positions = draw(rng, references.n_samples, k)
    own = references.weights[positions]
    direct = Anchors(positions, own / own.sum() if own.sum() > 0 else own)
    return Fitted(positions, _gp_irt(references, direct, C_RANDOM))


def fit_anchor_irt(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by the weighted sum over anchors of item parameters."""
    anchors = _anchors_of_items(references, k, rng)
    return Fitted(anchors.positions, weighted_sum(anchors))


def fit_anchor_irt_gp(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by gp-IRT on anchors of item parameters."""
    anchors = _anchors_of_items(references, k, rng)
    return Fitted(anchors.positions, _gp_irt(references, anchors, C_ANCHORS))


def fit_anchor_corr_gp(references: References, k: int, rng: np.random.Generator) -> Fitted:
    """Estimate a target by gp-IRT on anchors of correctness."""
    anchors = choose_anchors(references.filled().T, references.weights, k, rng)
    return Fitted(anchors.positions, _gp_irt(references, anchors, C_ANCHORS))


def gp_weight(error: float, variance: float, c: float, k: int) -> float:
    """Return λ, the weight of the weighted sum: b²/(b² + v/(cK)).

    Parameters
    ----------
    error : float
        b, the error of the item response model.
    variance : float
        v, the variance of single responses.
    c : float
        Efficiency of the subset, 1 for a random one.
    k : int
        K.
    """
    noise = variance / (c * k)
    return error**2 / (error**2 + noise) if error**2 + noise > 0 else 1.0


def _anchors_of_items(references: References, k: int, rng: np.random.Generator) -> Anchors:
    model = shared_irt(references).model
    items = np.column_stack([model.discriminations, model.difficulties])
    return choose_anchors(items, references.weights, k, rng)


def _p_irt(references: References, positions: NDArray[np.int64]) -> Predict:
    model, weights = shared_irt(references).model, references.weights

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:  # noqa: ARG001
        response = model.predicted(model.ability(y, positions))
        known = ~np.isnan(y)
        response[positions[known]] = y[known]
        return Estimate(float(weights @ response))

    return predict


def _gp_irt(references: References, anchors: Anchors, c: float) -> Predict:
    fitted = shared_irt(references)
    share = gp_weight(fitted.error, fitted.variance, c, len(anchors.positions))
    direct, model_based = weighted_sum(anchors), _p_irt(references, anchors.positions)

    def predict(y: NDArray[np.float64], p: NDArray[np.float64] | None) -> Estimate:
        value = share * direct(y, p).value + (1 - share) * model_based(y, p).value
        return Estimate(value)

    return predict
