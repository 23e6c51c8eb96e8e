"""Benchmarks as one stack of models each, and files of some of the models in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from backtest_sets import SETS, DataSet

from disco_cli.backtest.splits import Split, SplitKind, make_splits
from disco_cli.estimation.intervals import normal_quantile

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from disco_cli.backtest.data import BacktestData

SPLITS = {
    "alike": SplitKind.RANDOM,
    "stronger": SplitKind.STRONGEST,
    "newer": SplitKind.NEWEST,
}
"""What the splits are called here, and their kind: a quarter of the models are targets."""

LEFT_OUT = {
    "mmlu_10k_logits": "it has no labels, so no model's true score is known",
}
"""Sets that cannot show an error, and why."""

NAMES = tuple(entry.name for entry in SETS if entry.name not in LEFT_OUT)

_VALUES = ("predictions", "logits", "logprobs", "predicted_labels", "responses")
_PER_MODEL = (*_VALUES, "model_names", "dates", "scores")
_PLAIN_DRAWS = 50
_LEVEL = 0.9


def find_set(name: str) -> DataSet:
    """Return the set of this name."""
    return next(entry for entry in SETS if entry.name == name)


def load_stack(paths: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Return the arrays of one stack of models, from a stack or from files of one model each."""
    from pathlib import Path

    files = []
    for path in paths:
        with np.load(path, allow_pickle=False) as stored:
            files.append(dict(stored))
    if len(files) == 1:
        return files[0]
    key = next(name for name in _VALUES if name in files[0])
    stack = {name: values for name, values in files[0].items() if name not in _PER_MODEL}
    stack[key] = np.stack([arrays[key] for arrays in files])
    stack["model_names"] = np.array([Path(path).stem for path in paths])
    return stack


def write_models(path: Path, stack: dict[str, NDArray[Any]], names: list[str]) -> None:
    """Write a prediction file with these models only."""
    row = {str(name): m for m, name in enumerate(stack["model_names"])}
    rows = [row[name] for name in names]
    np.savez(
        path,
        **{key: array[rows] if key in _PER_MODEL else array for key, array in stack.items()},
    )


def splits_of(data: BacktestData, split: str, seeds: int) -> tuple[Split, ...]:
    """Return the divisions into references and targets: one per seed where they are random."""
    return make_splits(
        SPLITS[split],
        seeds if split == "alike" else 1,
        scores=data.truth,
        dates=data.dates,
    )


def plain_samples(
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    truth: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return mean error and mean width of the 90 % interval of plain random samples' means.

    Parameters
    ----------
    y : NDArray of float64 of shape (T, N)
        The targets' responses, NaN = missing.
    weights : NDArray of float64 of shape (N,)
        Share of each sample in the score.
    truth : NDArray of float64 of shape (T,)
        The targets' full scores.
    k : int
        Number of samples.
    rng : numpy.random.Generator
        Source of the 50 draws, without replacement.
    """
    N = y.shape[1]
    errors, widths = [], []
    for _ in range(_PLAIN_DRAWS):
        drawn = np.sort(rng.choice(N, k, replace=False))
        known = ~np.isnan(y[:, drawn])
        share = known * weights[drawn]
        share /= share.sum(axis=1, keepdims=True)
        values = np.where(known, y[:, drawn], 0.0)
        means = np.einsum("tk,tk->t", share, values)
        variance = np.einsum("tk,tk->t", share, (values - means[:, np.newaxis]) ** 2)
        n = known.sum(axis=1)
        standard_error = np.sqrt(variance / np.maximum(n - 1, 1) * (1 - k / N))
        errors.append(np.abs(means - truth).mean())
        widths.append(2 * normal_quantile(_LEVEL) * standard_error.mean())
    return float(np.mean(errors)), float(np.mean(widths))
