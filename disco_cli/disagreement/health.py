"""Samples that tell nothing or look wrong: solved by nobody or everybody, against the grain, twice.

The *item-rest correlation* of a sample is the correlation, over the models, of the response to it with the
mean response to all other samples (the corrected item-total correlation of test theory). On a sound sample
stronger models do better; where they do worse the label is likely wrong.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.disagreement.copies import (
    ROUNDING,
    find_repeated,
    find_units,
    hash_answers,
    is_specific,
    mix,
)
from disco_cli.disagreement.correctness import UNKNOWN
from disco_cli.disagreement.plan import cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from disco_cli.disagreement.correctness import Correctness
    from disco_cli.disagreement.engine import SampleScores

MIN_MODELS = 5
"""Fewer models say nothing of a correlation."""

CLEARLY = 2.0
"""A correlation is clearly negative from so many standard errors, 1 / √(models − 1), below 0."""

FLAGS = ("unsolved", "solved", "negative", "duplicate")
"""What the column ``health`` may say of a sample, several separated by commas."""

_TOLERANCE = 1e-9
"""A variance below this share of the mean square is rounding."""

_UNITS = 1 << 26
_MODELS, _TILE = 32, 1024
"""Models and samples of one product of matrices: so few that BLAS starts no threads, whose waiting
would cost more than the work."""

_ROWS = 1 << 13


@dataclass(frozen=True)
class Health:
    """Health of N samples; every array is (N,).

    Attributes
    ----------
    item_rest : NDArray of float64
        Item-rest correlation; NaN where models or scores do not vary, or are fewer than five.
    unit : NDArray of int64
        Number of the first sample that is the same question; the sample's own where it is the first.
    flags : NDArray of uint8
        Sum of 2^i over the ``FLAGS`` i that hold.
    suspicion : NDArray of float64
        Standard errors by which ``item_rest`` lies below 0; NaN with it.
    """

    item_rest: NDArray[np.float64]
    unit: NDArray[np.int64]
    flags: NDArray[np.uint8]
    suspicion: NDArray[np.float64]

    def has(self, flag: str) -> NDArray[np.bool_]:
        """Return where a flag holds, (N,)."""
        return (self.flags & (1 << FLAGS.index(flag))) > 0

    def columns(self, ids: NDArray[np.str_] | None) -> dict[str, NDArray[Any]]:
        """Return the columns of ``scores.parquet``."""
        own = np.arange(len(self.unit))
        names = own if ids is None else ids
        texts = [
            ",".join(flag for i, flag in enumerate(FLAGS) if code >> i & 1)
            for code in range(1 << len(FLAGS))
        ]
        return {
            "item_rest": self.item_rest,
            "duplicate_of": np.ma.masked_array(names[self.unit], self.unit == own),
            "health": np.array(texts)[self.flags],
        }


@dataclass(frozen=True)
class _Sums:
    """Sums over models for n samples: y the response, r the mean of the model's other responses."""

    count: NDArray[np.int64]
    y: NDArray[np.float64]
    yy: NDArray[np.float64]
    r: NDArray[np.float64]
    rr: NDArray[np.float64]
    ry: NDArray[np.float64]
    pattern: NDArray[np.uint64]


def examine(
    kept: Correctness,
    scores: SampleScores,
    hashes: NDArray[np.str_] | None = None,
    *,
    has_probabilities: bool = False,
    n_threads: int = 1,
) -> Health:
    """Return the health of all samples, the same bits for any number of threads.

    Parameters
    ----------
    kept : Correctness
        Of all M models, in ascending order of names, on all N samples.
    scores : SampleScores
        Disagreement of the same samples.
    hashes : NDArray of str of shape (N,), optional
        Content hashes; an empty one is unknown.
    has_probabilities : bool
        Whether models gave probabilities of classes, not labels or responses alone.
    n_threads : int
        Threads.
    """
    totals, counts = _totals(kept.values)
    blocks = cut(kept.values.shape[1], _ROWS)
    with ThreadPoolExecutor(n_threads, thread_name_prefix="disco-health") as pool:
        parts = list(pool.map(lambda rows: _add_up(kept.values, rows, totals, counts), blocks))
    names = _Sums.__dataclass_fields__
    sums = _Sums(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
    answered = counts > 0
    # Where all models have one score, "the rest" of a right answer is lower by that answer alone.
    item_rest = np.full(kept.values.shape[1], np.nan)
    if answered.any() and np.ptp(totals[answered] / counts[answered]) > 0:
        item_rest = _correlation(sums)
    suspicion = -item_rest * np.sqrt(np.maximum(sums.count - 1, 0))
    answers = hash_answers(sums.pattern, scores)
    twice = find_repeated(answers)
    if has_probabilities:  # where a model was not certain, probabilities tell samples apart
        twice = twice[scores.confidence[twice] > 1.0 - ROUNDING]
    answers[twice[~is_specific(kept.values, twice)]] = 0
    unit = find_units(answers, hashes)
    several = sums.count > 1
    error_rate = np.full(len(unit), np.nan) if scores.error_rate is None else scores.error_rate
    holds = (
        several & (error_rate == 1.0),
        several & (error_rate == 0.0),
        suspicion >= CLEARLY,
        unit != np.arange(len(unit)),
    )
    flags = sum(where.astype(np.uint8) << i for i, where in enumerate(holds))
    return Health(item_rest, unit, np.asarray(flags, np.uint8), suspicion)


def _totals(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the sum and the number of the known responses of each model, (M,)."""
    totals, counts = np.zeros(len(values)), np.zeros(len(values), np.int64)
    for m, row in enumerate(values):  # the whole row at once: the order of a sum decides its bits
        if values.dtype == np.uint8:
            totals[m] = np.count_nonzero(row == 1)
            counts[m] = len(row) - np.count_nonzero(row == UNKNOWN)
        else:
            known = ~np.isnan(row)
            totals[m], counts[m] = np.where(known, row, 0.0).sum(), known.sum()
    return totals, counts


def _add_up(
    values: NDArray[Any],
    rows: slice,
    totals: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> _Sums:
    """Add up all models for a range of samples."""
    models = np.flatnonzero(counts > 1)  # without another sample there is no rest
    totals, counts = totals[models], counts[models]
    # Centred, so that squares do not swallow the differences between models.
    centre = float((totals / counts).mean()) if len(models) else 0.0
    if values.dtype == np.uint8 and len(models):
        return _add_codes(values, models, rows, totals, counts, centre)
    n = rows.stop - rows.start
    y, yy, r, rr, ry = (np.zeros(n) for _ in range(5))
    sums = _Sums(np.zeros(n, np.int64), y, yy, r, rr, ry, np.zeros(n, np.uint64))
    for m, total, count in zip(models, totals, counts, strict=True):
        _add_responses(sums, values[m, rows], int(m), float(total), int(count), centre)
    return sums


def _add_codes(
    values: NDArray[np.uint8],
    models: NDArray[np.int64],
    rows: slice,
    totals: NDArray[np.float64],
    counts: NDArray[np.int64],
    centre: float,
) -> _Sums:
    """Add up models whose responses are codes, by products of matrices.

    Every term is one number for 0 and another for 1. In whole units of 2^-26 their sums are exact,
    so that it does not matter in which order the products are added.
    """
    wrong = totals / (counts - 1) - centre
    right = wrong - 1.0 / (counts - 1)
    largest = float(np.abs([wrong, right]).max())  # a correlation has no scale
    wrong, right = wrong / largest, right / largest
    keys = mix(np.arange(4, dtype=np.uint64)[:, np.newaxis], models) & np.uint64(_UNITS - 1)
    zero, ones = np.zeros(len(models)), np.ones(len(models))
    terms = [(zero, ones), (wrong, right), (wrong**2, right**2), (zero, right)]
    units = [np.rint(np.stack(pair) * _UNITS) for pair in terms]
    base = np.stack([ones, *(pair[0] for pair in units), *keys[:2]]).astype(np.float64)
    more = np.stack([zero, *(pair[1] - pair[0] for pair in units), *keys[2:]]).astype(np.float64)
    found = np.zeros((len(base), rows.stop - rows.start))
    for some, part in itertools.product(cut(found.shape[1], _TILE), cut(len(models), _MODELS)):
        codes = values[models[part], rows.start + some.start : rows.start + some.stop]
        found[:, some] += more[:, part] @ (codes == 1).astype(np.float64)
        if codes.max() < UNKNOWN:
            found[:, some] += base[:, part].sum(axis=1)[:, np.newaxis]
        else:
            found[:, some] += base[:, part] @ (codes != UNKNOWN).astype(np.float64)
    y, r, rr, ry = found[1:5] / _UNITS
    first, second = found[5:].astype(np.uint64)
    return _Sums(found[0].astype(np.int64), y, y, r, rr, ry, mix(mix(first, 0) + second, 1))


def _add_responses(
    sums: _Sums, row: NDArray[np.float64], m: int, total: float, count: int, centre: float
) -> None:
    """Add a model whose responses are numbers, NaN where missing."""
    known = ~np.isnan(row)
    y = np.where(known, row, 0.0) + 0.0  # no negative zero
    r = np.where(known, (total - y) / (count - 1) - centre, 0.0)
    sums.count[...] += known
    sums.y[...] += y
    sums.yy[...] += y * y
    sums.r[...] += r
    sums.rr[...] += r * r
    sums.ry[...] += r * y
    bits = np.where(known, y, np.nan).view(np.uint64)
    sums.pattern[...] += mix(bits, m)


def _correlation(sums: _Sums) -> NDArray[np.float64]:
    """Return the correlation of y and r over the models; NaN where one of them does not vary."""
    n = sums.count
    y = n * sums.yy - sums.y**2
    r = n * sums.rr - sums.r**2
    varies = (y > _TOLERANCE * n * sums.yy) & (r > _TOLERANCE * n * sums.rr) & (n >= MIN_MODELS)
    together = n * sums.ry - sums.r * sums.y
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.clip(together / np.sqrt(y * r), -1.0, 1.0)
    return np.where(varies, found, np.nan)
