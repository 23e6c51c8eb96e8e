"""How many samples and how many reference models: what an estimate would cost in error.

Measured on the reference models alone. Some are left out, some of the others serve as references,
and the selection is drawn and the estimator fitted as for a real target. The same models are left
out at every number of samples and of references, so that the figures can be compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.averaging import combine_parts
from disco_cli.estimation.combine import Calibration, interval_half_width
from disco_cli.estimation.crossvalidation import (
    Selector,
    Targets,
    Trial,
    calibrate,
    try_targets,
    weighted_scores,
)
from disco_cli.estimation.factor_fit import fit_factor_estimator
from disco_cli.estimation.intervals import half_width
from disco_cli.progress import SILENT, Progress
from disco_cli.selection.factors import complete_responses, fit_factors

MIN_MODELS = 4
"""Two are left out and two are left in."""

_FEW_MODELS = 60
_TRIALS = 800
_MOST_REPEATS = {True: 6, False: 3}
"""Draws per fold, with few models and with many: enough for so many trials in all."""


@dataclass(frozen=True)
class PlanPoint:
    """What K samples and some reference models give; all but counts in units of the score.

    Attributes
    ----------
    k : int
        Number of samples.
    n_models : int
        Number of reference models.
    n_learned : int
        Models that the left-out ones were really estimated from; fewer than ``n_models`` where
        these are all, because some had to be left out.
    error : float
        Mean absolute error of models left out at random.
    error_strongest : float
        Mean absolute error of the strongest quarter, left out together.
    width : float or None
        Mean width of their intervals; ``None`` where the models are too few for the level.
    difference : float or None
        Difference between two estimates that is exceeded by chance in 1 − level of the pairs of
        equal models; ``None`` where pairs are too few.
    """

    k: int
    n_models: int
    n_learned: int
    error: float
    error_strongest: float
    width: float | None
    difference: float | None


@dataclass(frozen=True)
class _Cell:
    """Trials of one number of samples and models: a list for each draw."""

    n_learned: int
    draws: list[list[Trial]]

    def trials(self, *, strongest: bool) -> list[Trial]:
        return [t for t in itertools.chain(*self.draws) if t.strongest is strongest]


def measure_plan(
    Y: NDArray[np.float64],
    weights: NDArray[np.float64],
    selectors: dict[int, Selector],
    counts: Sequence[int],
    level: float,
    seed: int,
    *,
    groups: NDArray[np.int64] | None = None,
    progress: Progress = SILENT,
) -> tuple[PlanPoint, ...]:
    """Measure errors at every number of samples and of reference models.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses of different models (see ``distinct_models``), NaN = missing; M ≥ 4.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    selectors : dict of int to Selector
        How K samples are selected, for every K ≥ 2 that is asked for.
    counts : sequence of int
        Numbers of reference models, 2 … M.
    level : float
        Coverage of intervals and differences, between 0 and 1.
    seed : int
        Seed of folds and draws; a point does not depend on which others are measured.
    groups : NDArray of int64 of shape (N,), optional
        Group number of each sample.
    progress : Progress
        Told of every fold and number of models.

    Returns
    -------
    tuple of PlanPoint
        By number of models, then by number of samples.
    """
    scores = weighted_scores(Y, weights)
    folds = list(_folds(scores, np.random.default_rng(seed)))
    cells = {(n, k): _Cell(0, []) for n in counts for k in selectors}
    n_repeats = min(_MOST_REPEATS[len(Y) < _FEW_MODELS], max(1, _TRIALS // len(Y)))
    progress.start(len(folds) * len(counts), "leaving models out")
    for fold, (strongest, left_out) in enumerate(folds):
        rest = np.setdiff1d(np.arange(len(Y)), left_out)
        # One order for all counts: a half of the models contains the quarter.
        order = np.random.default_rng([seed, fold]).permutation(rest)
        for n in counts:
            rows = np.sort(order[:n])
            known = complete_responses(Y[rows])
            factors, seen = fit_factors(known), known @ weights
            for k, select in selectors.items():
                rng = np.random.default_rng([seed, fold, n, k])
                cell = cells[n, k]
                for _ in range(n_repeats):
                    draw = select(rows, factors, rng)
                    estimator = fit_factor_estimator(known, factors, weights, draw, groups)
                    targets = Targets(Y[:, draw.positions], scores, left_out, strongest)
                    found = try_targets(estimator, targets, seen.min(), seen.max())
                    cell.draws.append(found)
                if not strongest:
                    cells[n, k] = replace(cell, n_learned=len(rows))
            progress.advance()
    complete = complete_responses(Y)
    return tuple(
        _point(k, n, cell, calibrate(complete, weights, tuple(itertools.chain(*cell.draws))), level)
        for (n, k), cell in cells.items()
    )


def _folds(
    scores: NDArray[np.float64], rng: np.random.Generator
) -> list[tuple[bool, NDArray[np.int64]]]:
    """Return (strongest?, rows to leave out): a partition by chance, then the strongest quarter.

    No fold of a single model where that can be: differences need pairs.
    """
    M = len(scores)
    n_folds = max(2, min(5 if M >= _FEW_MODELS else 10, M // 2))
    order = rng.permutation(M)
    by_score = np.lexsort((np.arange(M), -scores))
    folds = [(False, np.sort(order[fold::n_folds])) for fold in range(n_folds)]
    return [*folds, (True, np.sort(by_score[: M // 4]))]


def _point(k: int, n: int, cell: _Cell, calibration: Calibration, level: float) -> PlanPoint:
    """Summarise the trials of a cell, as calibrated among ``n`` models."""

    def error(trial: Trial) -> float:
        return combine_parts(trial.parts, calibration.shares) - trial.truth

    alike = cell.trials(strongest=False)
    strongest = cell.trials(strongest=True)
    calibration = replace(calibration, n_models=min(n, calibration.n_models))
    gaps = [
        abs(error(first) - error(second))
        for draw in cell.draws
        for first, second in itertools.combinations(draw, 2)
        if not first.strongest
    ]
    return PlanPoint(
        k=k,
        n_models=n,
        n_learned=cell.n_learned,
        error=float(np.mean([abs(error(trial)) for trial in alike])),
        error_strongest=float(np.mean([abs(error(trial)) for trial in strongest])),
        width=_mean_width(alike, calibration, level),
        difference=half_width(np.array(gaps), level, len({trial.model for trial in alike})),
    )


def _mean_width(trials: list[Trial], calibration: Calibration, level: float) -> float | None:
    """Return the mean width of the intervals that ``disco predict`` would give these models."""
    low, high = calibration.bounds or (-np.inf, np.inf)
    widths = []
    for trial in trials:
        half, _ = interval_half_width(calibration, trial.parts, level, has_design=True)
        if half is None:
            return None
        centre = min(max(combine_parts(trial.parts, calibration.shares), low), high)
        widths.append(min(centre + half, high) - max(centre - half, low))
    return float(np.mean(widths))
