"""The selection methods by name, and those among them that work on responses."""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from disco_cli.selection.anchor import select_anchor
from disco_cli.selection.draw import Draw
from disco_cli.selection.factors import Factors, complete_responses, fit_factors
from disco_cli.selection.greedy import select_greedy, select_hybrid
from disco_cli.selection.strata import select_strata


class Method(str, Enum):
    """How the K samples are chosen."""

    AUTO = "auto"
    PDS = "pds"
    JSD = "jsd"
    RANDOM = "random"
    STRATIFIED_RANDOM = "stratified-random"
    STRATA = "strata"
    HYBRID = "hybrid"
    GREEDY = "greedy"
    ANCHOR = "anchor"

    @property
    def by_score(self) -> bool:
        """Whether samples are ranked by disagreement."""
        return self in (Method.PDS, Method.JSD)

    @property
    def by_chance(self) -> bool:
        """Whether nothing needs to be known of the models."""
        return self in (Method.RANDOM, Method.STRATIFIED_RANDOM)


DEFAULT_SHARE = 0.5
"""Share of informative samples in ``hybrid``: half and half."""


def select_by_responses(
    method: Method,
    Y: NDArray[np.float64],
    weights: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
    *,
    share: float = DEFAULT_SHARE,
    units: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
    factors: Factors | None = None,
) -> Draw:
    """Choose K samples from the responses of reference models.

    Parameters
    ----------
    method : Method
        ``strata``, ``hybrid``, ``greedy`` or ``anchor``.
    Y : NDArray of float64 of shape (M, N)
        Responses, NaN = missing; no copies of a model.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score, summing to 1.
    k : int
        Number of samples, 1 … N.
    rng : numpy.random.Generator
        Source of chance.
    share : float
        Share of informative samples, for ``hybrid``.
    units : NDArray of int64 of shape (N,), optional
        Unit of each sample, of which ``strata`` and ``hybrid`` draw one at most.
    groups : NDArray of int64 of shape (N,), optional
        Group number of each sample, which ``strata`` and ``hybrid`` respect.
    factors : Factors, optional
        Of ``Y``, where they are known already.
    """
    if method in (Method.STRATA, Method.HYBRID):
        known = fit_factors(complete_responses(Y)) if factors is None else factors
        if method is Method.STRATA:
            return select_strata(known, weights, k, rng, units=units, groups=groups)
        return select_hybrid(known, weights, k, share, rng, units=units, groups=groups)
    complete = complete_responses(Y)
    if method is Method.GREEDY:
        return select_greedy(complete, complete @ weights, k)
    if method is Method.ANCHOR:
        return select_anchor(complete, weights, k, rng)
    raise ValueError(f"{method.value} does not work on responses")
