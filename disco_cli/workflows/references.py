"""What the reference models said on the K samples, and their full scores, wherever those come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.database import ACCURACY, MEAN_RESPONSE
from disco_cli.errors import InputError
from disco_cli.estimation.truth import Average, full_scores
from disco_cli.files.matrix import Benchmark
from disco_cli.selection.subset import Selection
from disco_cli.workflows.inputs import read_outputs
from disco_cli.workflows.truth_file import read_truth


@dataclass(frozen=True)
class References:
    """What is known of the M reference models.

    Attributes
    ----------
    outputs : NDArray of float of shape (M, K, C)
        Probabilities on the K samples, or responses with C = 1; missing ones are all-NaN rows.
    responses : NDArray of float64 of shape (M, N), or None
        Correctness or score of every sample, NaN = missing; ``None`` where nothing tells it.
    truth : NDArray of float64 of shape (M,)
        Known full scores.
    metric : str
        What the truth is in.
    comparable : bool
        Whether the mean of responses is in the same units.
    notes : tuple of str
        What the person should know.
    """

    outputs: NDArray[np.floating[Any]]
    responses: NDArray[np.float64] | None
    truth: NDArray[np.float64]
    metric: str
    comparable: bool
    notes: tuple[str, ...]


def read_references(
    benchmark: Benchmark,
    selection: Selection,
    truth: Path | None,
    average: Average,
    known: NDArray[np.float64] | None,
) -> References:
    """Read what the reference models said and what their full scores are.

    Parameters
    ----------
    benchmark : Benchmark
        The reference models.
    selection : Selection
        The K samples.
    truth : Path or None
        File of known full scores; without it ``scores`` in the files, labels or responses tell.
    average : Average
        Micro or macro, where labels or responses tell.
    known : NDArray of float64 of shape (M, N), or None
        Responses, where labels or the files tell them.

    Raises
    ------
    InputError
        A file is bad, or some model's full score is not known.
    """
    positions = selection.draw.positions
    outputs = np.stack(
        [read_outputs(benchmark, m, positions) for m in range(len(benchmark.models))]
    )
    given = np.array(
        [np.nan if model.info.score is None else model.info.score for model in benchmark.models]
    )
    notes: tuple[str, ...] = ()
    if truth is not None:
        scores = _match_truth(benchmark, truth)
        metric, comparable = f"score of {truth.name}", False
    elif not np.isnan(given).any():
        scores, metric, comparable = given, "score of the prediction files", False
    elif known is not None:
        scores = full_scores(known, benchmark.samples, average)
        metric, comparable = _metric_name(benchmark), True
        notes = _missing_notes(benchmark, known)
    else:
        message = (
            "no truth: the files have neither labels nor responses nor `scores`; "
            "give known full scores with --truth scores.csv (columns model, score)"
        )
        raise InputError(message)
    if known is not None and not comparable:
        # The mean of responses may still be in the same units; the data tells.
        own = full_scores(known, benchmark.samples, average)
        comparable = bool(np.all(np.abs(own - scores) < 1e-6))
    _check_finite(benchmark, scores)
    return References(outputs, known, scores, metric, comparable, notes)


def _metric_name(benchmark: Benchmark) -> str:
    return ACCURACY if benchmark.n_classes is not None else MEAN_RESPONSE


def _missing_notes(benchmark: Benchmark, known: NDArray[np.float64]) -> tuple[str, ...]:
    lacking = np.isnan(known).sum(axis=1)
    if not lacking.any():
        return ()
    worst = int(lacking.argmax())
    return (
        (
            f"{np.count_nonzero(lacking)} of {len(lacking)} models lack samples (most: "
            f"{benchmark.models[worst].name}, {lacking[worst]}); their truth is over what they have"
        ),
    )


def _match_truth(benchmark: Benchmark, path: Path) -> NDArray[np.float64]:
    known = read_truth(path)
    unknown = [name for name in benchmark.names if name not in known]
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        message = f"{path}: no score for model {unknown[0]!r}{more}; add a row for each model"
        raise InputError(message)
    return np.array([known[name] for name in benchmark.names])


def _check_finite(benchmark: Benchmark, scores: NDArray[np.float64]) -> None:
    if np.isfinite(scores).all():
        return
    name = benchmark.names[int(np.flatnonzero(~np.isfinite(scores))[0])]
    message = f"model {name!r}: has no full score, it answered nothing (in a group); leave it out"
    raise InputError(message)
