"""The weighted average of the estimates of one target, and how the weights are learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.factor_estimator import Assessment


class Shares(NamedTuple):
    """Weights of the estimates inside the references' range; the model estimate has the rest.

    Attributes
    ----------
    design, ridge : float
        Weight of the design estimate and of the ridge, each 0 … 1, together at most 1.
    """

    design: float
    ridge: float


DEFAULT_SHARES = Shares(1 / 3, 1 / 3)
"""Without evidence: the plain average, within 6 % of the best of eleven weightings on every set."""

_DESIGN_SHARE_BEYOND = 0.5
"""Least weight of the design estimate beyond the references' range; the others share the rest."""

_DESIGN_SHARE_WITHOUT_RIDGE = 0.5

_PRIOR_MODELS = 10.0
"""Weight of the default shares, in models."""


@dataclass(frozen=True)
class Parts:
    """The estimates of one target before they are combined.

    Attributes
    ----------
    model, design : float
        Model and design estimate; equal when nothing was drawn at random.
    ridge : float or None
        Estimate of the anchored ridge; ``None`` where it has none.
    standard_error : float
        Of the design estimate.
    beyond : float
        How far the gate is open, 0 (inside the references' range) … 1.
    excess : float
        How far ``design`` lies outside the range; negative inside.
    assessment : Assessment
        As for a target inside the range.
    """

    model: float
    design: float
    ridge: float | None
    standard_error: float
    beyond: float
    excess: float
    assessment: Assessment


def combine_parts(parts: Parts, shares: Shares) -> float:
    """Return the weighted average of the estimates.

    Parameters
    ----------
    parts : Parts
        All estimates of one target.
    shares : Shares
        Weights inside the references' range. Beyond it the design estimate gets at least one
        half, and the ridge at most half of what is left.
    """
    design, ridge = shares
    far_design = max(design, _DESIGN_SHARE_BEYOND)
    far_ridge = min(ridge, (1.0 - far_design) / 2)
    design += (far_design - design) * parts.beyond
    ridge += (far_ridge - ridge) * parts.beyond
    if parts.ridge is None:  # the two others keep their proportion
        design = design / (1.0 - ridge) if ridge < 1.0 else _DESIGN_SHARE_WITHOUT_RIDGE
        return parts.model + design * (parts.design - parts.model)
    return parts.model + design * (parts.design - parts.model) + ridge * (parts.ridge - parts.model)


def choose_shares(parts: Sequence[Parts], truths: Sequence[float], models: Sequence[int]) -> Shares:
    """Return the shares with the least squared error inside the range.

    The least-squares shares are shrunk to the default as if by ten more models, because with
    twenty models their own error is as large as what they could gain.

    Parameters
    ----------
    parts : sequence of Parts
        Of models that were left out at random.
    truths : sequence of float
        Their scores.
    models : sequence of int
        Which model each is; several trials of one model count as one.

    Returns
    -------
    Shares
        Neither below 0, nor together above 1.
    """
    if not parts:
        return DEFAULT_SHARES
    has_ridge = all(part.ridge is not None for part in parts)
    centre = np.array(DEFAULT_SHARES if has_ridge else (_DESIGN_SHARE_WITHOUT_RIDGE, 0.0))
    weight = np.array([1.0 - part.beyond for part in parts])
    weight *= len(set(models)) / len(parts)
    model = np.array([part.model for part in parts])
    design = np.array([part.design for part in parts])
    ridge = np.array([part.ridge for part in parts], dtype=np.float64) if has_ridge else model
    gaps = np.column_stack([design - model, ridge - model])
    curvature = (gaps.T * weight) @ gaps
    scale = float(np.trace(curvature))
    if scale <= 0:
        return Shares(*centre.tolist())
    prior = _PRIOR_MODELS * scale / (np.count_nonzero(gaps.any(axis=0)) * float(weight.sum()))
    pull = (gaps.T * weight) @ (np.asarray(truths) - model)
    return _least_in_simplex(curvature + prior * np.eye(2), pull + prior * centre)


def _least_in_simplex(curvature: NDArray[np.float64], pull: NDArray[np.float64]) -> Shares:
    """Return the point of the triangle x ≥ 0, y ≥ 0, x + y ≤ 1 with the least xᵀAx/2 − bᵀx."""
    inside = np.linalg.solve(curvature, pull)
    if inside.min() >= 0.0 and inside.sum() <= 1.0:
        return Shares(float(inside[0]), float(inside[1]))
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    best, least = corners[0], np.inf
    for start, end in ((0, 1), (0, 2), (1, 2)):
        step = corners[end] - corners[start]
        rise = step @ (pull - curvature @ corners[start])
        point = corners[start] + min(max(rise / (step @ curvature @ step), 0.0), 1.0) * step
        loss = point @ curvature @ point / 2 - pull @ point
        if loss < least:
            best, least = point, loss
    return Shares(float(best[0]), float(best[1]))
