"""``disco plan``: how many samples and reference models an estimate of given precision takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import InputError, UsageError
from disco_cli.estimation.planning import MIN_MODELS, PlanPoint, measure_plan
from disco_cli.estimation.recipe import SHARES, select_with_share
from disco_cli.estimation.sample_size import (
    RandomSample,
    SmallestK,
    describe_random_sample,
    find_smallest_k,
)
from disco_cli.estimation.truth import Average
from disco_cli.progress import SILENT, Progress
from disco_cli.selection.factors import complete_responses
from disco_cli.threads import single_threaded
from disco_cli.workflows.evidence import Evidence, gather_evidence
from disco_cli.workflows.inputs import ReadOptions, open_benchmark
from disco_cli.workflows.level import check_level

DEFAULT_KS = (10, 30, 60, 100, 200, 400, 1000)
"""Those that are at most half of the benchmark are measured."""

_MIN_K = 2
_MIN_REFERENCES = 3


@dataclass(frozen=True)
class PlanRow:
    """One line of the plan: our estimate beside the plain random sample of the same size.

    Attributes
    ----------
    point : PlanPoint
        What was measured.
    random_error, random_width, random_difference : float or None
        The same of the plain mean of a random sample of K; the difference is ``None`` if all models
        answer alike.
    """

    point: PlanPoint
    random_error: float
    random_width: float
    random_difference: float

    def as_dict(self) -> dict[str, Any]:
        """Return the columns of the line."""
        point = self.point
        return {
            "k": point.k,
            "models": point.n_models,
            "learned_from": point.n_learned,
            "error": point.error,
            "error_strongest": point.error_strongest,
            "width": point.width,
            "difference": point.difference,
            "random_error": self.random_error,
            "random_width": self.random_width,
            "random_difference": self.random_difference,
        }


@dataclass(frozen=True)
class PlanResult:
    """What samples and reference models would give.

    Attributes
    ----------
    n_models, n_samples : int
        Different reference models and samples at hand.
    level : float
        Coverage of intervals and differences.
    rows : tuple of PlanRow
        By number of models, then by number of samples.
    target_error : float or None
        The error that is asked for.
    smallest : SmallestK or None
        The smallest number of samples for it, with all models.
    random_smallest : int or None
        The smallest plain random sample for it.
    notes : tuple of str
        What the person should know about the input.
    """

    n_models: int
    n_samples: int
    level: float
    rows: tuple[PlanRow, ...]
    target_error: float | None
    smallest: SmallestK | None
    random_smallest: int | None
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "n_models": self.n_models,
            "n_samples": self.n_samples,
            "level": self.level,
            "rows": [row.as_dict() for row in self.rows],
            "target_error": self.target_error,
            "smallest_k": None if self.smallest is None else asdict(self.smallest),
            "random_smallest_k": self.random_smallest,
            "notes": list(self.notes),
        }


def plan(
    paths: Sequence[str | Path],
    *,
    ks: Sequence[int] | None = None,
    models: Sequence[int] | None = None,
    target_error: float | None = None,
    level: float = 0.9,
    average: Average | str = Average.MICRO,
    seed: int = 0,
    read: ReadOptions | None = None,
    progress: Progress = SILENT,
) -> PlanResult:
    """Measure errors for several numbers of samples and reference models, by leaving models out.

    Parameters
    ----------
    paths : sequence of paths
        Prediction files of the reference models.
    ks : sequence of int, optional
        Numbers of samples; by default those of ``DEFAULT_KS`` up to half of the benchmark.
    models : sequence of int, optional
        Numbers of reference models; by default a quarter, half and all of them.
    target_error : float, optional
        Mean absolute error to be reached.
    level : float
        Coverage of intervals and differences.
    average : Average
        Micro or macro.
    seed : int
        Seed of folds and draws.
    read, progress
        As for :func:`disco_cli.workflows.score.score`.

    Raises
    ------
    DiscoError
        There are too few models, a number does not fit them, or a file is bad.
    """
    check_level(level)
    if target_error is not None and target_error <= 0:
        raise UsageError(f"--target-error {target_error:g}: choose an error above 0")
    benchmark = open_benchmark(paths, read or ReadOptions())
    evidence = gather_evidence(benchmark, Average(average), progress)
    Y = _usable(evidence)
    M, N = Y.shape
    sizes = _sizes(ks, N)
    with single_threaded():
        points = measure_plan(
            Y,
            evidence.weights,
            {
                k: select_with_share(
                    evidence.weights, k, SHARES[0], evidence.units(k), evidence.groups
                )
                for k in sizes
            },
            _counts(models, M),
            level,
            seed,
            groups=evidence.groups,
            progress=progress,
        )
        random = describe_random_sample(complete_responses(Y), evidence.weights)
    return PlanResult(
        n_models=M,
        n_samples=N,
        level=level,
        rows=tuple(_row(point, random, level) for point in points),
        target_error=target_error,
        smallest=None if target_error is None else _smallest(points, target_error),
        random_smallest=None if target_error is None else random.smallest_k(target_error),
        notes=(*benchmark.notes, *_notes(evidence, len(benchmark.models) - M)),
    )


def _usable(evidence: Evidence) -> NDArray[np.float64]:
    """Return the responses of the different models that answered anything.

    Raises
    ------
    InputError
        There are fewer than four.
    """
    Y = evidence.distinct()
    Y = Y[~np.isnan(Y).all(axis=1)]
    if len(Y) < MIN_MODELS:
        message = (
            f"{len(Y)} different reference models: a plan leaves some out and learns from the "
            f"others, which takes at least {MIN_MODELS}"
        )
        raise InputError(message)
    return Y


def _sizes(ks: Sequence[int] | None, n: int) -> list[int]:
    """Return the numbers of samples, ascending."""
    if ks is None:
        found = [k for k in DEFAULT_KS if k <= n / 2]
        return found or [max(_MIN_K, n // 2)]
    for k in ks:
        if not _MIN_K <= k <= n:
            raise UsageError(f"--k {k}: the benchmark has {n} samples; choose {_MIN_K} to {n}")
    return sorted(set(ks))


def _counts(models: Sequence[int] | None, m: int) -> list[int]:
    """Return the numbers of reference models, ascending."""
    if models is None:
        return sorted({max(_MIN_REFERENCES, part) for part in (m // 4, m // 2, m)})
    for count in models:
        if not _MIN_REFERENCES <= count <= m:
            message = (
                f"--models {count}: there are {m} different reference models; choose "
                f"{_MIN_REFERENCES} to {m}"
            )
            raise UsageError(message)
    return sorted(set(models))


def _row(point: PlanPoint, random: RandomSample, level: float) -> PlanRow:
    return PlanRow(
        point=point,
        random_error=random.error(point.k),
        random_width=random.width(point.k, level),
        random_difference=random.difference(point.k, level),
    )


def _smallest(points: Sequence[PlanPoint], target: float) -> SmallestK:
    """Return the smallest number of samples with as many models as were measured."""
    most = max(point.n_models for point in points)
    curve = [point for point in points if point.n_models == most]
    return find_smallest_k([point.k for point in curve], [point.error for point in curve], target)


def _notes(evidence: Evidence, n_unused: int) -> list[str]:
    notes = []
    if n_unused:
        notes.append(f"models not counted, being copies of others or empty: {n_unused}")
    if evidence.is_proxy:
        notes.append(
            "no labels or responses: agreement with the consensus stands in, and errors are in "
            "its units"
        )
    return notes
