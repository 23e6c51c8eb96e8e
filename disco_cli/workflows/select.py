"""``disco select``: which K samples to evaluate a new model on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from disco_cli.disagreement.plan import EngineOptions
from disco_cli.disagreement.scores_file import ScoresFile, read_scores
from disco_cli.errors import UsageError
from disco_cli.files.atomic import atomic_write
from disco_cli.files.fingerprint import fingerprint
from disco_cli.progress import SILENT, Progress
from disco_cli.selection.draw import RANDOM, Draw
from disco_cli.selection.methods import select_random, select_top
from disco_cli.selection.subset import Selection
from disco_cli.workflows.inputs import ReadOptions, check_foreign, open_benchmark
from disco_cli.workflows.score import mean_or_none, score_aligned


class Method(str, Enum):
    """How the K samples are chosen."""

    PDS = "pds"
    JSD = "jsd"
    RANDOM = "random"
    STRATIFIED_RANDOM = "stratified-random"

    @property
    def by_score(self) -> bool:
        """Whether samples are ranked by disagreement."""
        return self in (Method.PDS, Method.JSD)


@dataclass(frozen=True)
class SelectResult:
    """A selection and what can be said about it.

    Attributes
    ----------
    selection : Selection
        The K samples.
    full_accuracy, subset_accuracy : float or None
        Mean over models of the accuracy on all N and on the K samples, where labels exist.
    biased : bool
        Whether samples were chosen for their disagreement, so that the subset's own mean is no
        estimate of the full one.
    path : str or None
        Where the artifact was written.
    notes : tuple of str
        What the person should know about the input.
    """

    selection: Selection
    full_accuracy: float | None
    subset_accuracy: float | None
    biased: bool
    path: str | None
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        selection, draw = self.selection, self.selection.draw
        return {
            "path": self.path,
            "method": selection.method,
            "k": selection.k,
            "n_samples": selection.n_samples,
            "seed": selection.seed,
            "n_tied": draw.n_tied,
            "n_tied_chosen": draw.n_tied_chosen,
            "full_accuracy": self.full_accuracy,
            "subset_accuracy": self.subset_accuracy,
            "biased": self.biased,
            "sample_ids": None if selection.sample_ids is None else selection.sample_ids.tolist(),
            "positions": draw.positions.tolist(),
            "notes": list(self.notes),
        }


def select(
    paths: Sequence[str | Path] = (),
    *,
    k: int = 100,
    method: Method = Method.PDS,
    stratify: bool = False,
    seed: int = 0,
    scores: Path | None = None,
    read: ReadOptions | None = None,
    engine: EngineOptions | None = None,
    output: Path | None = None,
    force: bool = False,
    progress: Progress = SILENT,
) -> SelectResult:
    """Choose K samples of the benchmark.

    Parameters
    ----------
    paths : sequence of paths
        Prediction files of the reference models; may be empty when ``scores`` is given.
    k : int
        Number of samples, 1 … N.
    method : Method
        How they are chosen.
    stratify : bool
        Take an equal share of every group.
    seed : int
        Seed of the random methods.
    scores : Path, optional
        ``scores.parquet`` of an earlier ``disco score``, used instead of scoring again.
    read, engine, output, force, progress
        As for :func:`disco_cli.workflows.score.score`.

    Raises
    ------
    DiscoError
        K is larger than N, groups are missing, a file is bad, or the artifact cannot be written.
    """
    if output is not None:
        check_foreign(output, force=force)
    if scores is not None and paths:
        raise UsageError("give either prediction files or --scores, not both")
    if scores is not None:
        content = read_scores(scores)
        notes: tuple[str, ...] = ()
    else:
        benchmark = open_benchmark(paths, read or ReadOptions())
        _check_size(k, benchmark.samples.n)
        content = score_aligned(benchmark, engine, progress)
        notes = benchmark.notes
    draw = draw_samples(content, k, method, stratify=stratify, seed=seed)
    ids = content.samples.ids
    selection = Selection(
        method=method.value,
        seed=seed,
        n_samples=content.samples.n,
        benchmark=fingerprint(content.samples),
        sample_ids=None if ids is None else ids[draw.positions],
        draw=draw,
        parameters={"stratify": stratify or method is Method.STRATIFIED_RANDOM},
    )
    if output is not None:
        with atomic_write(output) as file:
            file.write(selection.to_json().encode())
    full, subset = _accuracies(content, draw)
    return SelectResult(
        selection=selection,
        full_accuracy=full,
        subset_accuracy=subset,
        biased=RANDOM not in draw.roles,
        path=None if output is None else str(output),
        notes=notes,
    )


def draw_samples(content: ScoresFile, k: int, method: Method, *, stratify: bool, seed: int) -> Draw:
    """Choose K of the scored samples.

    Raises
    ------
    UsageError
        K does not fit the benchmark, or strata are asked for where there are no groups.
    """
    _check_size(k, content.samples.n)
    groups = None
    if stratify or method is Method.STRATIFIED_RANDOM:
        groups = content.samples.groups
        if groups is None:
            message = "strata need `groups` in the prediction files; these have none"
            raise UsageError(message)
    if not method.by_score:
        return select_random(content.samples.n, k, np.random.default_rng(seed), groups)
    measure = content.scores.pds if method is Method.PDS else content.scores.jsd
    return select_top(measure, content.scores.jsd, k, groups)


def _check_size(k: int, n: int) -> None:
    if not 1 <= k <= n:
        message = f"--k {k}: the benchmark has {n} samples; choose 1 to {n}"
        raise UsageError(message)


def _accuracies(content: ScoresFile, draw: Draw) -> tuple[float | None, float | None]:
    """Return the models' mean accuracy on all samples and on the chosen ones."""
    error_rate = content.scores.error_rate
    if error_rate is None:
        return None, None
    return mean_or_none(1 - error_rate), mean_or_none(1 - error_rate[draw.positions])
