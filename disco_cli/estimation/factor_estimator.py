"""The estimates of one target from its responses: the model's, the design's, and a ridge's.

A target's factors θ are inferred from its responses on the K samples (Gaussian noise, prior
θ ~ N(0, 4·I): the references have variance 1). The *model estimate* fills every unseen sample with its
prediction; it is precise for targets like the references. The *design estimate* adds the weighted
mean of the residuals, which makes it nearly unbiased for any target (a generalised regression
estimator; Särndal, Swensson & Wretman 1992, section 6.4). The *ridge* is a line from the responses
straight to the score, anchored in their weighted mean. Everything is a few small arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from disco_cli.selection.prior import PRIOR_VARIANCE

_FREE = 1e6
"""Prior standard deviation of an intercept that is as good as free."""

_MIN_SELECTED_TO_DROP = 3
"""A group of which a target answered nothing is left out if at least so many were selected."""


@dataclass(frozen=True)
class FactorEstimator:
    """What is needed to estimate a target from its responses on the K samples; d factors, G groups.

    Attributes
    ----------
    means, noise, shares : NDArray of float64 of shape (K,)
        Mean response, noise variance and share in the score of each selected sample.
    loadings : NDArray of float64 of shape (K, d)
        Loadings of the selected samples.
    weights : NDArray of float64 of shape (K,)
        Design weights, summing to 1; all 0 when nothing was drawn at random.
    chances : NDArray of float64 of shape (K,)
        Inclusion probabilities.
    drawn : NDArray of bool of shape (K,)
        Which samples were drawn at random.
    groups : NDArray of int64 of shape (K,)
        Group of each selected sample, 0 … G−1; all 0 when groups are unknown.
    group_shares, group_means : NDArray of float64 of shape (G,)
        Share of each group in the score, and its weighted mean response over all its samples.
    group_loadings : NDArray of float64 of shape (G, d)
        Weighted mean loading of all samples of each group.
    ridge_slopes : NDArray of float64 of shape (K,), optional
        Coefficients of the anchored ridge; ``None`` where there were too few models for one.
    ridge_intercept : float
        Its intercept, in units of the score.
    """

    means: NDArray[np.float64]
    noise: NDArray[np.float64]
    shares: NDArray[np.float64]
    loadings: NDArray[np.float64]
    weights: NDArray[np.float64]
    chances: NDArray[np.float64]
    drawn: NDArray[np.bool_]
    groups: NDArray[np.int64]
    group_shares: NDArray[np.float64]
    group_means: NDArray[np.float64]
    group_loadings: NDArray[np.float64]
    ridge_slopes: NDArray[np.float64] | None = None
    ridge_intercept: float = 0.0

    @property
    def has_design(self) -> bool:
        """Whether there is a random part, hence a design estimate."""
        return bool(self.drawn.any())


@dataclass(frozen=True)
class Assessment:
    """What one target's responses say; all in units of the score unless told otherwise.

    Attributes
    ----------
    model : float
        Model estimate.
    design : float or None
        Design estimate; ``None`` without answered random samples.
    ridge : float or None
        Estimate of the anchored ridge, missing responses filled as the factors predict them;
        ``None`` without a ridge, and for a part of the benchmark, of which it knows nothing.
    standard_error : float
        Of the design estimate; without one, of the model estimate under its own assumptions.
    misfit : float
        Mean squared residual in units of the noise variance; about 1 for a familiar target.
    dropped_groups : tuple of int
        Groups that are left out, because the target answered nothing of them.
    n_used : int
        Samples with a response.
    n_drawn : int
        Those of them that were drawn at random and belong to what is estimated.
    """

    model: float
    design: float | None
    ridge: float | None
    standard_error: float
    misfit: float
    dropped_groups: tuple[int, ...]
    n_used: int
    n_drawn: int


def assess(
    estimator: FactorEstimator,
    y: NDArray[np.float64],
    intercept_sd: float = 0.0,
    only_groups: NDArray[np.int64] | None = None,
) -> Assessment:
    """Estimate one target's score.

    Parameters
    ----------
    estimator : FactorEstimator
        Fitted to the K samples.
    y : NDArray of float64 of shape (K,)
        The target's responses, NaN = missing; at least one is known.
    intercept_sd : float
        Prior standard deviation of a shift common to all samples; 0 for a target like the
        references. With a wide prior the model estimate follows a target out of their range.
    only_groups : NDArray of int64, optional
        Estimate the score on these groups alone; factors are inferred from all samples.
    """
    answered = ~np.isnan(y)
    dropped = _dropped(estimator, answered)
    kept = np.ones(len(estimator.group_shares), dtype=bool)
    kept[list(dropped)] = False
    if only_groups is not None:
        kept &= np.isin(np.arange(len(kept)), only_groups)
    total = max(float(estimator.group_shares[kept].sum()), 1e-300)
    relative = np.where(kept, estimator.group_shares, 0.0) / total
    goal = relative @ estimator.group_loadings
    left = y[answered] - estimator.means[answered]
    loadings, noise = estimator.loadings[answered], estimator.noise[answered]
    fit = _infer(loadings, noise, left, goal, intercept_sd)
    inside = kept[estimator.groups[answered]]
    shares = np.where(inside, estimator.shares[answered], 0.0) / total
    mean = float(relative @ estimator.group_means)
    # The design's residuals come from a fit with a free intercept: residuals of a target far
    # from the references would otherwise follow the factors and bias their weighted mean.
    free = _infer(loadings, noise, left, goal, _FREE)
    correction, error = _design_part(estimator, answered, inside, shares, free)
    return Assessment(
        model=mean + fit.shift + float(shares @ fit.residuals),
        design=None if correction is None else mean + free.shift + correction,
        ridge=_ridge(estimator, y, fit) if kept.all() else None,
        standard_error=fit.error if correction is None else error,
        misfit=float(np.mean(fit.residuals**2 / noise)),
        dropped_groups=dropped,
        n_used=int(answered.sum()),
        n_drawn=int(np.count_nonzero(estimator.drawn[answered] & inside)),
    )


@dataclass(frozen=True)
class _Inference:
    """Factors of one target: shift of its mean, its error, residuals, degrees of freedom left.

    ``theta`` are the factors, followed by the common shift where there is one.
    """

    theta: NDArray[np.float64]
    shift: float
    error: float
    residuals: NDArray[np.float64]
    freedom: float


def _infer(
    loadings: NDArray[np.float64],
    noise: NDArray[np.float64],
    left: NDArray[np.float64],
    goal: NDArray[np.float64],
    intercept_sd: float,
) -> _Inference:
    """Infer factors (and a common shift with this prior) from what the means leave."""
    precision = np.full(loadings.shape[1], 1.0 / PRIOR_VARIANCE)
    if intercept_sd > 0:
        loadings = np.column_stack([loadings, np.ones(len(left))])
        precision = np.append(precision, 1.0 / intercept_sd**2)
        goal = np.append(goal, 1.0)
    scaled = loadings.T / noise
    posterior = np.linalg.inv(scaled @ loadings + np.diag(precision))
    theta = posterior @ (scaled @ left)
    # What remains to be explained after the fit: the trace of I − H.
    freedom = len(left) - float(np.einsum("dk,kd->", posterior @ scaled, loadings))
    error = float(np.sqrt(max(float(goal @ posterior @ goal), 0.0)))
    return _Inference(theta, float(goal @ theta), error, left - loadings @ theta, freedom)


def _ridge(estimator: FactorEstimator, y: NDArray[np.float64], fit: _Inference) -> float | None:
    """Return the ridge's estimate."""
    if estimator.ridge_slopes is None:
        return None
    d = estimator.loadings.shape[1]
    shift = fit.theta[d] if len(fit.theta) > d else 0.0
    expected = estimator.means + estimator.loadings @ fit.theta[:d] + shift
    filled = np.where(np.isnan(y), expected, y)
    return float(estimator.ridge_intercept + filled @ estimator.ridge_slopes)


def _dropped(estimator: FactorEstimator, answered: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the groups of which the target answered none of at least three selected samples."""
    n_groups = len(estimator.group_shares)
    selected = np.bincount(estimator.groups, minlength=n_groups)
    known = np.bincount(estimator.groups[answered], minlength=n_groups)
    return tuple(np.flatnonzero((known == 0) & (selected >= _MIN_SELECTED_TO_DROP)).tolist())


def _design_part(
    estimator: FactorEstimator,
    answered: NDArray[np.bool_],
    inside: NDArray[np.bool_],
    shares: NDArray[np.float64],
    fit: _Inference,
) -> tuple[float | None, float]:
    """Return the weighted mean residual, certain samples at their own share, and its error."""
    drawn = estimator.drawn[answered] & inside
    weights = np.where(drawn, estimator.weights[answered], 0.0)
    if np.count_nonzero(drawn) < 2 or weights.sum() <= 0:
        return None, float("nan")
    certain = np.where(drawn, 0.0, shares)
    weights *= max(1.0 - certain.sum(), 0.0) / weights.sum()
    residuals = fit.residuals
    mean = float(weights @ residuals) / max(float(weights.sum()), 1e-300)
    unseen = np.clip(1.0 - estimator.chances[answered], 0.0, 1.0)
    variance = float(unseen @ (weights * (residuals - mean)) ** 2)
    # Residuals of a fit are too small; scale by the degrees of freedom that are left.
    variance *= len(residuals) / max(fit.freedom - 1.0, 1.0)
    return float((weights + certain) @ residuals), float(np.sqrt(variance))
