"""Samples that are the same question twice: equal content, or equal answers of every model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.disagreement.correctness import UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from disco_cli.disagreement.engine import SampleScores

ROUNDING = 1e-9
"""So little disagreement or doubt is rounding."""

_LARGEST_SHARE = 0.9
"""Where more models than this answer alike, equal answers of all are no sign of a copy."""

_ELEMENTS = 1 << 20


def mix(bits: NDArray[np.uint64], m: int | NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each number for model m (splitmix64; Steele et al. 2014).

    Sums of these over models, modulo 2^64, agree for two samples that models answer differently
    with a chance of 2^-64.
    """
    z = bits + np.atleast_1d(np.asarray(m + 1, np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def hash_answers(pattern: NDArray[np.uint64], scores: SampleScores) -> NDArray[np.uint64]:
    """Return a hash of how all models answered each sample; 0 where all agree.

    Beside right and wrong it holds sums over all probabilities that were given, exact to 12
    digits, so that it differs wherever those do.
    """
    found = pattern
    for number, column in enumerate((scores.pds, scores.jsd, scores.confidence)):
        found = mix(found ^ column.view(np.uint64), number)
    return np.where(scores.jsd > ROUNDING, found, np.uint64(0))


def find_repeated(answers: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the samples, ascending, whose answers tell something and are found again."""
    _, group, size = np.unique(answers, return_inverse=True, return_counts=True)
    return np.flatnonzero((size[group] > 1) & (answers != 0))


def is_specific(values: NDArray[Any], samples: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether chance would hardly repeat the responses to each of these samples.

    Responses of M models with counts n_1, n_2 … of each value can be arranged in M! / (n_1! n_2! …)
    ways. N samples form N²/2 pairs: with more ways than N² not one pair is expected to agree by
    chance. Models are not alike, so that a question that only the weakest miss is like many others;
    hence no value may be that of more than nine in ten models, either. (On seven real sets this
    leaves none of the coincidences, of which there are thousands among the easy questions.)
    """
    M, N = values.shape
    found = np.empty(len(samples), dtype=np.bool_)
    step = max(1, _ELEMENTS // M)
    for start in range(0, len(samples), step):
        part = samples[start : start + step]
        columns = values[:, part].astype(np.float64)
        if values.dtype == np.uint8:
            columns[columns == UNKNOWN] = np.nan
        columns.sort(axis=0)  # what is missing comes last, and tells nothing
        ways, place, longest = (np.zeros(len(part)) for _ in range(3))
        for m in range(M):  # M! by its factors, over those of n_1!, n_2! …: places in their runs
            same = columns[m] == columns[m - 1] if m else np.zeros(len(part), dtype=np.bool_)
            place = np.where(same, place + 1, 1)
            ways += np.where(np.isnan(columns[m]), 0.0, np.log((m + 1) / place))
            longest = np.fmax(longest, np.where(np.isnan(columns[m]), 0.0, place))
        known = M - np.isnan(columns).sum(axis=0)
        varied = longest <= _LARGEST_SHARE * known
        found[start : start + step] = varied & (ways > 2 * np.log(N))
    return found


def find_units(
    answers: NDArray[np.uint64], hashes: NDArray[np.str_] | None = None
) -> NDArray[np.int64]:
    """Return the number of the first sample that is the same question, (N,).

    Parameters
    ----------
    answers : NDArray of uint64 of shape (N,)
        Equal where all models answered equally; 0 tells nothing.
    hashes : NDArray of str of shape (N,), optional
        Equal where the content is; an empty one tells nothing.
    """
    unit = np.arange(len(answers))
    keys: list[tuple[NDArray[Any], NDArray[np.bool_]]] = [(answers, answers != 0)]
    if hashes is not None:
        keys.append((hashes, hashes != ""))
    while True:  # two kinds of evidence may form a chain
        before = unit
        for key, tells in keys:
            known = np.flatnonzero(tells)
            _, group = np.unique(key[known], return_inverse=True)
            lowest = np.full(len(known), len(unit))
            np.minimum.at(lowest, group, unit[known])
            unit = unit.copy()
            unit[known] = lowest[group]
        if np.array_equal(unit, before):
            return unit
