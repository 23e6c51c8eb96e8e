"""The whole pipeline, selection included, on reference models that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.averaging import Parts, Shares, choose_shares, combine_parts
from disco_cli.estimation.combine import Calibration, split_parts
from disco_cli.estimation.factor_estimator import FactorEstimator
from disco_cli.estimation.factor_fit import fit_factor_estimator
from disco_cli.progress import SILENT, Progress
from disco_cli.selection.draw import Draw
from disco_cli.selection.factors import Factors, complete_responses, fit_factors

Selector = Callable[[NDArray[np.int64], Factors, np.random.Generator], Draw]
"""(rows of the models that may be looked at, their factors, chance) -> a draw of K samples."""

_FEW_MODELS = 60


@dataclass(frozen=True)
class Trial:
    """One left-out model in one fold.

    Attributes
    ----------
    model : int
        Row of the model.
    strongest : bool
        Whether the strongest models were left out together, not some at random.
    truth : float
        Its score over the samples it answered.
    parts : Parts
        Its estimates from the K samples.
    """

    model: int
    strongest: bool
    truth: float
    parts: Parts


def plan_folds(
    scores: NDArray[np.float64], rng: np.random.Generator
) -> Iterator[tuple[bool, NDArray[np.int64]]]:
    """Yield (strongest?, rows to leave out): a partition by chance, then the strongest quarter.

    Five random folds, ten below sixty models, as many as there are models below ten. At least two
    models are always left in.

    Parameters
    ----------
    scores : NDArray of float64 of shape (M,)
        Full scores; M ≥ 3.
    rng : numpy.random.Generator
        Source of chance.
    """
    M = len(scores)
    n_folds = min(5 if M >= _FEW_MODELS else 10, M)
    order = rng.permutation(M)
    for fold in range(n_folds):
        yield False, np.sort(order[fold::n_folds])
    n_strongest = M // 4
    if n_strongest >= 1:
        by_score = np.lexsort((np.arange(M), -scores))
        yield True, np.sort(by_score[:n_strongest])


def cross_validate(
    Y: NDArray[np.float64],
    weights: NDArray[np.float64],
    selectors: dict[str, Selector],
    rng: np.random.Generator,
    *,
    groups: NDArray[np.int64] | None = None,
    n_repeats: int = 1,
    progress: Progress = SILENT,
) -> dict[str, tuple[Trial, ...]]:
    """Refit selection and estimator without each fold's models and estimate those.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses of different reference models (see ``distinct_models``), NaN = missing; M ≥ 3.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    selectors : dict of str to Selector
        Ways of selecting that are compared on the same folds.
    rng : numpy.random.Generator
        Folds and draws.
    groups : NDArray of int64 of shape (N,), optional
        Group number of each sample.
    n_repeats : int
        Draws per fold.
    progress : Progress
        Told of every fold.

    Returns
    -------
    dict of str to tuple of Trial
        One trial per selector, left-out model, fold and draw.
    """
    scores = weighted_scores(Y, weights)
    folds = list(plan_folds(scores, rng))
    trials: dict[str, list[Trial]] = {name: [] for name in selectors}
    progress.start(len(folds), "cross-validating")
    for strongest, left_out in folds:
        rows = np.setdiff1d(np.arange(len(Y)), left_out)
        known = complete_responses(Y[rows])
        factors = fit_factors(known)
        seen = known @ weights
        low, high = float(seen.min()), float(seen.max())
        for name, select in selectors.items():
            for _ in range(n_repeats):
                draw = select(rows, factors, rng)
                estimator = fit_factor_estimator(known, factors, weights, draw, groups)
                targets = Targets(Y[:, draw.positions], scores, left_out, strongest)
                trials[name] += try_targets(estimator, targets, low, high)
        progress.advance()
    return {name: tuple(found) for name, found in trials.items()}


@dataclass(frozen=True)
class Targets:
    """Models that were left out of a fit.

    Attributes
    ----------
    answers : NDArray of float64 of shape (M, K)
        Responses of all models to the K samples, NaN = missing.
    scores : NDArray of float64 of shape (M,)
        Full scores of all models.
    rows : NDArray of int64
        The models that were left out.
    strongest : bool
        Whether they are the strongest, not some at random.
    """

    answers: NDArray[np.float64]
    scores: NDArray[np.float64]
    rows: NDArray[np.int64]
    strongest: bool


def try_targets(
    estimator: FactorEstimator, targets: Targets, low: float, high: float
) -> list[Trial]:
    """Estimate left-out models; those that answered none of the samples are passed over.

    Parameters
    ----------
    estimator : FactorEstimator
        Fitted without them.
    targets : Targets
        The models.
    low, high : float
        Range of the scores of the models that it was fitted to.
    """
    trials = []
    for m in targets.rows:
        y = targets.answers[m]
        if np.isnan(y).all():
            continue
        parts = split_parts(estimator, y, low, high)
        trials.append(Trial(int(m), targets.strongest, float(targets.scores[m]), parts))
    return trials


def weighted_scores(Y: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted mean over the samples each model answered, (M,); NaN if it has none.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses, NaN = missing.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score.
    """
    known = ~np.isnan(Y)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((np.where(known, Y, 0.0) @ weights) / (known @ weights))


def calibrate(
    Y: NDArray[np.float64], weights: NDArray[np.float64], trials: tuple[Trial, ...]
) -> Calibration:
    """Turn trials into the weights of the estimates and the spread of errors.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses of all reference models, NaN = missing.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    trials : tuple of Trial
        Of the pipeline that is to be used, from :func:`cross_validate`; may be empty.
    """
    scores = complete_responses(Y) @ weights
    known = Y[~np.isnan(Y)]
    inside_unit = known.min() >= 0.0 and known.max() <= 1.0
    random = [trial for trial in trials if not trial.strongest]
    shares = shares_of(random)
    scale = float(np.median([t.parts.standard_error for t in random])) if random else 1.0
    scale = max(scale, 1e-12)
    near, far = [], []
    for trial in random:
        error = max(trial.parts.standard_error, 1e-12)
        near.append((combine_parts(trial.parts, shares) - trial.truth) / np.sqrt(error * scale))
        if trial.parts.assessment.design is not None:
            far.append((trial.parts.design - trial.truth) / error)
    strongest = [combine_parts(t.parts, shares) - t.truth for t in trials if t.strongest]
    misfits = [trial.parts.assessment.misfit for trial in random]
    return Calibration(
        low=float(scores.min()),
        high=float(scores.max()),
        bounds=(0.0, 1.0) if inside_unit else None,
        design_share=shares.design,
        scale=scale,
        near=np.sort(np.abs(near)),
        far=np.sort(np.abs(far)),
        strongest=np.sort(np.abs(strongest)),
        n_models=len({trial.model for trial in random}),
        misfit_limit=max(misfits, default=np.inf),
        ridge_share=shares.ridge,
    )


def shares_of(trials: list[Trial]) -> Shares:
    """Return the best weights for models left out at random, see ``choose_shares``."""
    return choose_shares(
        [trial.parts for trial in trials],
        [trial.truth for trial in trials],
        [trial.model for trial in trials],
    )
