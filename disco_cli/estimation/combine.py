"""Which estimate for which target, and how sure: the combination, the gate and the interval.

Inside the references' range the estimates are averaged with weights that cross-validation chose. A
target whose design estimate lies beyond that range gets a shift of its own (an intercept with a prior
as wide as the excess), more weight on the design estimate, and an interval from the design's standard
error: nothing that was learned from the references can vouch for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.averaging import Parts, Shares, combine_parts
from disco_cli.estimation.factor_estimator import FactorEstimator, assess
from disco_cli.estimation.intervals import half_width, models_needed, normal_quantile

_HEAD_START = 2.0
"""The gate starts to open so many standard errors below the strongest reference model.

A target just above it often has a design estimate below, by chance. From 0 to 2 the error of
stronger targets falls by 4 % and no other changes. There is no head start at the weakest reference:
new models are seldom weaker than all, and there large sets of references are dense.
"""

_RAMP = 2.0
"""It is open after so many standard errors more."""

_PRIOR_PER_EXCESS = 4.0
"""Prior standard deviation of the target's own shift, in units of its reach into the gate."""

_MIN_DRAWN = 4
"""Fewer drawn samples of a group tell too little of their own spread: with two or three, intervals of
level 0.9 held 81 to 95 % of the truths (mmlu_pro), with four to seven 95 to 98 %."""

_MARK = 0.5
"""A target is called extrapolated from so many standard errors beyond the range."""


class Status(str, Enum):
    """How a target relates to the reference models."""

    IN_RANGE = "in-range"
    EXTRAPOLATED = "extrapolated"
    UNFAMILIAR = "unfamiliar"


@dataclass(frozen=True)
class Calibration:
    """What cross-validation among the reference models taught.

    Attributes
    ----------
    low, high : float
        Range of the reference models' full scores.
    bounds : tuple of float, optional
        Least and greatest score that is possible; estimates and intervals stay inside.
    design_share, ridge_share : float
        Weights of design estimate and ridge inside the range, see :class:`averaging.Shares`.
    scale : float
        Median standard error among the left-out models.
    near : NDArray of float64
        Errors of the combined estimate of models left out at random, divided by √(se · scale).
    far : NDArray of float64
        Errors of the design estimate of the same models, divided by se; empty without a design.
    strongest : NDArray of float64
        Errors of the combined estimate when the strongest models were left out together.
    n_models : int
        Number of different models behind ``near`` and ``far``.
    misfit_limit : float
        Largest misfit among the left-out models.
    """

    low: float
    high: float
    bounds: tuple[float, float] | None
    design_share: float
    scale: float
    near: NDArray[np.float64]
    far: NDArray[np.float64]
    strongest: NDArray[np.float64]
    n_models: int
    misfit_limit: float
    ridge_share: float = 0.0

    @property
    def shares(self) -> Shares:
        """Weights of the estimates inside the range."""
        return Shares(self.design_share, self.ridge_share)


@dataclass(frozen=True)
class Combined:
    """One target's estimate.

    Attributes
    ----------
    estimate : float
        In units of the score.
    low, high : float or None
        Ends of the interval; ``None`` with a ``reason``.
    status : Status
        How the target relates to the references.
    reason : str or None
        Why there is no interval.
    parts : Parts
        The estimates that were averaged.
    """

    estimate: float
    low: float | None
    high: float | None
    status: Status
    reason: str | None
    parts: Parts


def split_parts(
    estimator: FactorEstimator,
    y: NDArray[np.float64],
    low: float,
    high: float,
    only_groups: NDArray[np.int64] | None = None,
) -> Parts:
    """Assess one target and decide how far it is beyond the references' range.

    Parameters
    ----------
    estimator : FactorEstimator
        Fitted to the K samples.
    y : NDArray of float64 of shape (K,)
        The target's responses, NaN = missing; at least one is known.
    low, high : float
        Range of the reference models' full scores.
    only_groups : NDArray of int64, optional
        Estimate the score on these groups alone; the gate looks at the whole benchmark.
    """
    whole = assess(estimator, y)
    centre = whole.model if whole.design is None else whole.design
    error = max(whole.standard_error, 1e-12)
    excess = max(centre - high, low - centre)
    reach = max(centre - high + _HEAD_START * error, low - centre, 0.0)
    beyond = min(reach / (_RAMP * error), 1.0)
    prior = _PRIOR_PER_EXCESS * reach
    plain = whole if only_groups is None else assess(estimator, y, 0.0, only_groups)
    shifted = plain if prior == 0 else assess(estimator, y, prior, only_groups)
    is_known = only_groups is None or plain.n_drawn >= _MIN_DRAWN
    return Parts(
        model=shifted.model,
        design=shifted.model if plain.design is None else plain.design,
        ridge=plain.ridge,
        standard_error=plain.standard_error if is_known else float("nan"),
        beyond=beyond,
        excess=excess,
        assessment=whole,
    )


def combine(
    estimator: FactorEstimator,
    calibration: Calibration,
    y: NDArray[np.float64],
    level: float,
    only_groups: NDArray[np.int64] | None = None,
) -> Combined:
    """Estimate one target's score, with an interval.

    Parameters
    ----------
    estimator : FactorEstimator
        Fitted to the K samples.
    calibration : Calibration
        From cross-validation of the same pipeline.
    y : NDArray of float64 of shape (K,)
        The target's responses, NaN = missing; at least one is known.
    level : float
        Wanted coverage of the interval, between 0 and 1.
    only_groups : NDArray of int64, optional
        Estimate the score on these groups alone. The interval then leans on the design's standard
        error, as for a target beyond the range.
    """
    parts = split_parts(estimator, y, calibration.low, calibration.high, only_groups)
    estimate = combine_parts(parts, calibration.shares)
    width, reason = interval_half_width(
        calibration,
        parts,
        level,
        has_design=estimator.has_design,
        part_only=only_groups is not None,
    )
    if parts.excess > _MARK * parts.assessment.standard_error:
        status = Status.EXTRAPOLATED
    elif parts.assessment.misfit > calibration.misfit_limit:
        status = Status.UNFAMILIAR
    else:
        status = Status.IN_RANGE
    low, high = calibration.bounds or (-np.inf, np.inf)
    estimate = float(min(max(estimate, low), high))
    return Combined(
        estimate=estimate,
        low=None if width is None else float(max(estimate - width, low)),
        high=None if width is None else float(min(estimate + width, high)),
        status=status,
        reason=reason,
        parts=parts,
    )


def interval_half_width(
    calibration: Calibration,
    parts: Parts,
    level: float,
    *,
    has_design: bool,
    part_only: bool = False,
) -> tuple[float | None, str | None]:
    """Return the half-width of one target's interval, or ``None`` and the reason.

    It glides from what left-out models taught (inside the range) to what can be relied on beyond:
    the design's standard error, or, without a design, the errors of the strongest left-out models.

    Parameters
    ----------
    calibration : Calibration
        From cross-validation of the same pipeline.
    parts : Parts
        The target's estimates.
    level : float
        Wanted coverage, between 0 and 1.
    has_design : bool
        Whether some of the samples were drawn at random.
    part_only : bool
        Whether the estimate is of some groups only, for which no left-out model can vouch.
    """
    n = calibration.n_models
    near = half_width(calibration.near, level, n)
    beyond = 1.0 if part_only else parts.beyond
    far = None
    if beyond > 0:
        far = _far_half_width(has_design, calibration, parts, level, part_only)
    if beyond < 1 and near is None:
        wanted = models_needed(level)
        return None, f"{n} reference models are too few for level {level:g}; it needs {wanted}"
    if beyond > 0 and far is None:
        return None, "out of the references' reach, and too few samples were drawn at random"
    inside = 0.0
    if not part_only:
        unit = float(np.sqrt(parts.standard_error * calibration.scale))
        inside = _reached(calibration.near, level, n) * unit
    if beyond == 0:
        return inside, None
    return inside + (max(far or 0.0, inside) - inside) * beyond, None


def _far_half_width(
    has_design: bool,
    calibration: Calibration,
    parts: Parts,
    level: float,
    part_only: bool,
) -> float | None:
    """Return the half-width beyond the references' range, ``None`` if nothing supports one."""
    if has_design and np.isfinite(parts.standard_error):
        learned = _reached(calibration.far, level, calibration.n_models)
        return max(normal_quantile(level), learned) * parts.standard_error
    return None if part_only else half_width(calibration.strongest, level)


def _reached(residuals: NDArray[np.float64], level: float, n_models: int) -> float:
    """Return the half-width at this level, or the largest residual where they do not support it.

    Beyond the range the design vouches for the level; that it was never less than what the models
    needed at lower ones keeps an interval of higher level from being the narrower one.
    """
    width = half_width(residuals, level, n_models)
    if width is None:
        width = float(np.nanmax(residuals, initial=0.0))
    return width
