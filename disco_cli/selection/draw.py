"""What a selection method returns: the chosen samples and how each came to be chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CERTAINTY = "certainty"
"""Role of a sample that the method always takes: it is informative, not representative."""
RANDOM = "random"
"""Role of a sample that was drawn by chance, with a known probability."""


@dataclass(frozen=True)
class Draw:
    """K chosen samples, ascending by position; every array is (K,).

    Attributes
    ----------
    positions : NDArray of int64
        Positions in the benchmark's canonical order, ascending and unique.
    ranks : NDArray of int64
        1 for the sample that was chosen first.
    scores : NDArray of float64
        What the method ranked by; NaN where it does not rank.
    roles : tuple of str
        ``certainty`` or ``random``.
    inclusion_probabilities : NDArray of float64
        Chance of each sample to be chosen; 1 for certainty samples.
    weights : NDArray of float64 or None
        Weights of the design's mean, summing to 1, where the method gives a meaning to one.
    strata : NDArray of int64 or None
        Number of the stratum each sample was drawn from; strata 2i and 2i + 1 are siblings.
    n_tied : int
        Samples whose score equals that of the last place taken, chosen or not.
    n_tied_chosen : int
        How many of those were chosen, by JSD and then by position; 0 when no tie was broken.
    """

    positions: NDArray[np.int64]
    ranks: NDArray[np.int64]
    scores: NDArray[np.float64]
    roles: tuple[str, ...]
    inclusion_probabilities: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    strata: NDArray[np.int64] | None = None
    n_tied: int = 0
    n_tied_chosen: int = 0

    @property
    def is_biased(self) -> bool:
        """Whether the plain mean of the K samples is no estimate of the mean of all N."""
        chances = self.inclusion_probabilities
        return CERTAINTY in self.roles or float(np.ptp(chances)) > 1e-9


def certainty_draw(
    chosen: NDArray[np.int64],
    scores: NDArray[np.float64],
    *,
    n_tied: int = 0,
    n_tied_chosen: int = 0,
) -> Draw:
    """Return the draw of samples that were taken for their score.

    Parameters
    ----------
    chosen : NDArray of int64 of shape (K,)
        Positions in the order in which they were chosen.
    scores : NDArray of float64 of shape (K,)
        Their scores, in the same order.
    n_tied, n_tied_chosen : int
        See :class:`Draw`.
    """
    order = np.argsort(chosen, kind="stable")
    return Draw(
        positions=chosen[order],
        ranks=order + 1,
        scores=scores[order],
        roles=(CERTAINTY,) * len(chosen),
        inclusion_probabilities=np.ones(len(chosen)),
        n_tied=n_tied,
        n_tied_chosen=n_tied_chosen,
    )
