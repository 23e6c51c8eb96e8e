"""What the reference models tell of every sample: responses, or agreement where nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import InputError
from disco_cli.estimation.truth import Average, sample_weights
from disco_cli.files.align import has_correctness, read_probabilities, responses
from disco_cli.files.matrix import Benchmark
from disco_cli.progress import Progress
from disco_cli.selection.consensus import consensus_classes, consensus_responses
from disco_cli.selection.duplicates import sample_units
from disco_cli.selection.factors import distinct_models, equal_models

_MOST_TOLD = 3
"""So many models, and groups of them, are named in notes."""


@dataclass(frozen=True)
class Evidence:
    """Responses of M reference models and what else selection and estimation look at.

    Attributes
    ----------
    Y : NDArray of float64 of shape (M, N)
        Responses, NaN = missing; agreement with the consensus where ``is_proxy``.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score.
    groups : NDArray of int64 of shape (N,), or None
        Group number of each sample.
    group_names : tuple of str
        Their names; empty without groups.
    hashes : NDArray of str of shape (N,), or None
        Content hashes.
    is_proxy : bool
        Whether there are neither labels nor responses, so that the consensus stands in.
    """

    Y: NDArray[np.float64]
    weights: NDArray[np.float64]
    groups: NDArray[np.int64] | None
    group_names: tuple[str, ...]
    hashes: NDArray[np.str_] | None
    is_proxy: bool

    def distinct(self) -> NDArray[np.float64]:
        """Return the responses of the different models: copies are no new evidence."""
        rows = distinct_models(self.Y)
        return self.Y if len(rows) == len(self.Y) else self.Y[rows]

    def units(self, k: int) -> NDArray[np.int64]:
        """Return the unit of each sample; of copies of a question only one is drawn."""
        return sample_units(self.Y, k, self.hashes, self.weights)


def copy_notes(rows: NDArray[Any], names: Sequence[str]) -> tuple[str, ...]:
    """Say which models are counted once, their rows (M, ...) being equal."""
    groups = [group for group in equal_models(rows) if len(group) > 1]
    notes = [
        f"{_listed([names[m] for m in group])} answer alike: counted once"
        for group in groups[:_MOST_TOLD]
    ]
    if len(groups) > _MOST_TOLD:
        notes.append(f"so do models of {len(groups) - _MOST_TOLD} more groups")
    return tuple(notes)


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST_TOLD + 1:
        names = [*names[:_MOST_TOLD], f"{len(names) - _MOST_TOLD} more"]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def gather_evidence(benchmark: Benchmark, average: Average, progress: Progress) -> Evidence:
    """Read the responses of all models, or their agreement with the consensus.

    Raises
    ------
    InputError
        A row cannot be used, or no model answered anything.
    """
    samples = benchmark.samples
    known = has_correctness(benchmark)
    Y = responses(benchmark) if known else _agreement(benchmark, progress)
    if np.isnan(Y).all():
        raise InputError("no model has a response to any sample; add labels or responses")
    names: tuple[str, ...] = ()
    codes = None
    if samples.groups is not None:
        found, inverse = np.unique(samples.groups, return_inverse=True)
        names, codes = tuple(found.tolist()), inverse.astype(np.int64)
    return Evidence(
        Y=Y,
        weights=sample_weights(samples, average),
        groups=codes,
        group_names=names,
        hashes=samples.hashes,
        is_proxy=not known,
    )


def _agreement(benchmark: Benchmark, progress: Progress) -> NDArray[np.float64]:
    """Return the probability that each model gives to the class all favour, (M, N)."""
    M = len(benchmark.models)
    progress.start(2 * M, "reading")
    total = np.zeros((benchmark.samples.n, benchmark.width))
    count = np.zeros((benchmark.samples.n, 1))
    for m in range(M):
        probabilities = read_probabilities(benchmark, m)
        missing = np.isnan(probabilities[:, :1])
        total += np.where(missing, 0.0, probabilities)
        count += ~missing
        progress.advance()
    with np.errstate(invalid="ignore"):
        favourite = consensus_classes(total / count)
    Y = np.empty((M, benchmark.samples.n))
    for m in range(M):
        Y[m] = consensus_responses(read_probabilities(benchmark, m), favourite)
        progress.advance()
    return Y
