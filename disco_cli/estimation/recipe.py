"""The ``auto`` recipe: the share of informative samples, chosen inside the reference models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.averaging import combine_parts
from disco_cli.estimation.crossvalidation import (
    Selector,
    Trial,
    cross_validate,
    shares_of,
)
from disco_cli.progress import SILENT, Progress
from disco_cli.selection.draw import Draw
from disco_cli.selection.factors import Factors
from disco_cli.selection.greedy import select_hybrid

SHARES = (0.0, 0.1, 0.2)
"""Shares of informative samples that are tried; the first is the safe one.

More precise for targets like many references, less for all others: with a share of 0.25 the error
fell by 14 % alike and rose by 17 % for stronger targets on the two sets with more than 150 models.
"""

N_DRAWS = 20
"""Draws of which the best balanced is kept; 20 and 100 gave the same errors."""

_MIN_MODELS = 60
"""Below so many models the errors of the shares cannot be told apart; the safe one is taken."""

_MARGIN = 0.03
"""A share must beat the safe one by so much (in the logarithm of the error) to be taken."""

_PATIENCE_SECOND = 60.0
"""Above this estimated time for comparing shares, the safe one is taken."""

_FLOPS = 2e9
_SECONDS_PER_SAMPLE_AND_DRAW = 2e-7
"""Measured on one slow core."""


@dataclass(frozen=True)
class Candidate:
    """Errors of one share among the reference models, root mean square in units of the score.

    Attributes
    ----------
    share : float
        Share of informative samples.
    alike : float
        Error of models left out at random.
    strongest : float
        Error of the strongest quarter, left out together.
    """

    share: float
    alike: float
    strongest: float


@dataclass(frozen=True)
class Choice:
    """The chosen share, the candidates that were compared, and why.

    Attributes
    ----------
    share : float
        Share of informative samples.
    candidates : tuple of Candidate
        Empty when nothing was compared.
    trials : tuple of Trial
        Those of the chosen share; empty when nothing was compared.
    reason : str
        One line for the user.
    """

    share: float
    candidates: tuple[Candidate, ...]
    trials: tuple[Trial, ...]
    reason: str


def select_with_share(
    weights: NDArray[np.float64],
    k: int,
    share: float,
    units: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
) -> Selector:
    """Return the selector of ``auto`` with this share of informative samples.

    Parameters
    ----------
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    k : int
        Number of samples.
    share : float
        Share of informative samples, 0 … 1.
    units : NDArray of int64 of shape (N,), optional
        Unit of each sample, see ``duplicates``.
    groups : NDArray of int64 of shape (N,), optional
        Group number of each sample.
    """

    def select(_rows: NDArray[np.int64], factors: Factors, rng: np.random.Generator) -> Draw:
        return select_hybrid(
            factors, weights, k, share, rng, n_draws=N_DRAWS, units=units, groups=groups
        )

    return select


def choose_share(
    Y: NDArray[np.float64],
    weights: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
    *,
    units: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
    progress: Progress = SILENT,
) -> Choice:
    """Compare shares of informative samples on left-out reference models.

    A share is judged by the errors of models left out at random and of the strongest left out
    together, on equal terms (the geometric mean of both), and must clearly beat the safe share 0.

    Parameters
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses of different reference models, NaN = missing.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    k : int
        Number of samples.
    rng : numpy.random.Generator
        Folds and draws.
    units, groups : NDArray of int64 of shape (N,), optional
        Unit and group number of each sample.
    progress : Progress
        Told of every fold.
    """
    safe = SHARES[0]
    if len(Y) < _MIN_MODELS:
        return Choice(
            safe,
            (),
            (),
            f"auto: all samples drawn from strata; too few models ({len(Y)}) to compare shares",
        )
    if _seconds_needed(len(Y), Y.shape[1], k) > _PATIENCE_SECOND:
        return Choice(
            safe,
            (),
            (),
            "auto: all samples drawn from strata; comparing shares would take too long",
        )
    selectors = {
        f"{share:g}": select_with_share(weights, k, share, units, groups) for share in SHARES
    }
    trials = cross_validate(
        Y, weights, selectors, rng, groups=groups, n_repeats=2, progress=progress
    )
    candidates = tuple(_judge(share, trials[f"{share:g}"]) for share in SHARES)
    losses = np.array([np.log(c.alike * c.strongest + 1e-300) for c in candidates])
    losses[1:] += _MARGIN
    best = int(losses.argmin())
    share = SHARES[best]
    reason = (
        f"auto: {share:.0%} of the samples taken as informative, the others drawn from strata; root "
        f"mean square error {candidates[best].alike:.4f} on left-out models, "
        f"{candidates[best].strongest:.4f} on the strongest, left out together"
    )
    return Choice(share, candidates, trials[f"{share:g}"], reason)


def _judge(share: float, trials: tuple[Trial, ...]) -> Candidate:
    random = [trial for trial in trials if not trial.strongest]
    shares = shares_of(random)

    def error(strongest: bool) -> float:
        errors = [
            combine_parts(trial.parts, shares) - trial.truth
            for trial in trials
            if trial.strongest == strongest
        ]
        return float(np.sqrt(np.mean(np.square(errors))))

    return Candidate(share, error(strongest=False), error(strongest=True))


def _seconds_needed(M: int, N: int, k: int) -> float:
    """Return a rough time for six folds, three shares and two draws.

    From the shapes alone, not from a clock: the same input must give the same choice everywhere.
    """
    products = 6 * 2.0 * M * M * N / _FLOPS
    draws = 36 * (N * k * _SECONDS_PER_SAMPLE_AND_DRAW)
    return products + draws
