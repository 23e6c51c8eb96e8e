"""Telling from a spread of rows what the values of a file are.

Both the range and the sum of every row have to agree. The range alone would take probabilities
that were softmaxed again for logits, or logits that happen to lie in [0, 1] for probabilities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from disco_cli.files.matrix import Kind
from disco_cli.files.values import TOLERANCE, BadRowError, Floats, working

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHANCE = 0.05
"""Share of rows of logits that may look like probabilities: with two classes and small logits a
few rows sum to 1 by accident."""


def detect_kind(
    rows: NDArray[np.generic], n_options: NDArray[np.int64] | None = None, named: Kind | None = None
) -> Kind:
    """Return the kind of a spread of rows.

    Parameters
    ----------
    rows : NDArray of shape (n, C)
        Values as stored, from anywhere in the file.
    n_options : NDArray of int64, shape (n,), optional
        Valid classes of each row; values beyond them are not looked at.
    named : Kind, optional
        What the name of the array says. It is checked, not trusted: ``None`` if it says nothing.

    Returns
    -------
    Kind
        Probabilities, logits or log-probabilities.

    Raises
    ------
    BadRowError
        Rows of several kinds, or of doubtful kind, or not of the kind that the name says.
    """
    values, valid, index = _usable(working(rows), n_options)
    if not len(values):
        return named or Kind.PROBABILITIES
    low = np.where(valid, values, np.inf).min(axis=1)
    high = np.where(valid, values, -np.inf).max(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.where(valid, values, 0).sum(axis=1)
    within = (low >= -TOLERANCE) & (high <= 1 + TOLERANCE)
    probable = within & (np.abs(sums - 1) <= TOLERANCE)
    with np.errstate(over="ignore"):
        masses = np.where(valid, np.exp(values), 0).sum(axis=1)
    logarithmic = (high <= TOLERANCE) & (np.abs(masses - 1) <= TOLERANCE)

    if named is Kind.LOGITS:
        return _named_logits(probable, sums, index)
    if named is Kind.LOG_PROBABILITIES:
        return _all_or_blame(
            logarithmic, index, masses, Kind.LOG_PROBABILITIES, "exp(values) sum to"
        )
    if named is Kind.PROBABILITIES or probable.mean() > CHANCE:
        return _all_or_blame(probable, index, sums, Kind.PROBABILITIES, "values sum to")
    if logarithmic.mean() > CHANCE:
        return _all_or_blame(
            logarithmic, index, masses, Kind.LOG_PROBABILITIES, "exp(values) sum to"
        )
    if within.all():
        raise BadRowError(
            int(index[0]),
            f"values lie in [0, 1] but sum to {sums[0]:.4g} instead of 1: normalise them if they "
            "are probabilities, or say --kind logits if they are logits",
        )
    return Kind.LOGITS


def _usable(
    values: Floats, n_options: NDArray[np.int64] | None
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """Return the rows that are not missing, which of their columns count, and their numbers."""
    valid = np.ones(values.shape, bool)
    if n_options is not None:
        valid = np.arange(values.shape[1]) < n_options[:, None]
    nan = np.isnan(values) & valid
    missing = nan.sum(axis=1) == valid.sum(axis=1)
    partly = nan.any(axis=1) & ~missing
    if partly.any():
        row = int(np.argmax(partly))
        raise BadRowError(
            row,
            f"{nan[row].sum()} of {valid[row].sum()} options are NaN; a missing row is NaN "
            "throughout, and fewer options are told by n_options",
        )
    return values[~missing], valid[~missing], np.flatnonzero(~missing)


def _named_logits(probable: NDArray[np.bool_], sums: Floats, index: NDArray[np.int64]) -> Kind:
    if probable.mean() > CHANCE:
        row = int(np.argmax(probable))
        raise BadRowError(
            int(index[row]),
            f"named logits, but values lie in [0, 1] and sum to {sums[row]:.4g}, as probabilities "
            "do: name them predictions, or say --kind logits if they are logits",
        )
    return Kind.LOGITS


def _all_or_blame(
    alike: NDArray[np.bool_], index: NDArray[np.int64], sums: Floats, kind: Kind, what: str
) -> Kind:
    """Return ``kind`` if all rows are alike, else name the first that is not."""
    if alike.all():
        return kind
    row = int(np.argmin(alike))
    others = f"{alike.sum()} of {len(alike)} rows looked at are {kind.value}, but here "
    raise BadRowError(
        int(index[row]),
        f"{others if alike.any() else ''}{what} {sums[row]:.4g} instead of 1: normalise them, or "
        f"say --kind logits if they are logits (unnormalised log-likelihoods count as logits)",
    )
