"""PCA against its alternatives on DISCO's signatures; write ``pca_alternatives.json``.

    python benchmarks/pca_alternatives.py [SET …]

The 100 samples with the highest PDS among the references, their signatures reduced in each way, then
a forest or one nearest neighbour as published. Errors are means over splits; times are the best of some
repeats on one thread: fitting the reduction, reducing the signature of one new model, fitting the forest.
UMAP needs ``pip install 'disco-cli[umap]'`` and is passed over without it.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from backtest_sets import SETS
from numpy.typing import NDArray

from disco_cli.backtest.baselines.disco import (
    forest,
    nearest,
    reference_signatures,
    top_positions,
)
from disco_cli.backtest.baselines.interface import fill
from disco_cli.backtest.cells import references_of
from disco_cli.backtest.data import BacktestData
from disco_cli.backtest.run import LIBRARIES
from disco_cli.backtest.splits import Split, SplitKind, make_splits, stable_rng
from disco_cli.threads import single_threaded

RESULT = Path(__file__).with_suffix(".json")
DEFAULT = ("sample_data", "open_llm_v2", "mmlu_10k_logits")
"""The sets with probabilities, and the one with the most models."""

K = 100
SEEDS = 2
COMPONENTS = (8, 16, 32, 64, 128, 256)
REPEATS = 10
PATIENCE_MS = 1000
"""Repeats of each timing, fewer if they take long; the first compiles and loads."""

Array = NDArray[np.float64]
Transform = Callable[[Array], Array]


def reduce_pca(x: Array, n: float) -> Transform:
    """Fit scikit-learn's PCA: a number of components or a share of variance."""
    from sklearn.decomposition import PCA

    limit = min(n, len(x) - 1, x.shape[1]) if isinstance(n, int) else n
    return PCA(limit, svd_solver="full").fit(x).transform


def reduce_own(x: Array, n: int) -> Transform:
    """Fit the PCA of disco, through inner products."""
    from disco_cli.estimation.pca import fit_pca

    return fit_pca(x, min(n, len(x) - 1)).transform


def reduce_umap(x: Array, n: int) -> Transform:
    """Fit UMAP with its defaults."""
    import umap

    return umap.UMAP(n_components=min(n, len(x) - 2), random_state=0, n_jobs=1).fit(x).transform


def keep_all(x: Array) -> Transform:  # noqa: ARG001
    """Reduce nothing."""
    return lambda rows: rows


def standardised(reduce: Callable[..., Transform], *arguments: Any) -> Callable[[Array], Transform]:
    """Divide every feature by its standard deviation before reducing."""

    def fit(x: Array) -> Transform:
        centre, spread = x.mean(axis=0), x.std(axis=0)
        spread = np.where(spread > 1e-12, spread, 1.0)
        transform = reduce((x - centre) / spread, *arguments)
        return lambda rows: transform((rows - centre) / spread)

    return fit


def variants() -> dict[str, Callable[[Array], Transform]]:
    """Return every reduction by name."""
    found: dict[str, Callable[[Array], Transform]] = {"none": keep_all}
    for n in COMPONENTS:
        found[f"pca {n}"] = lambda x, n=n: reduce_pca(x, n)
        found[f"pca {n} standardised"] = standardised(reduce_pca, n)
    found["pca 95 %"] = lambda x: reduce_pca(x, 0.95)
    found["pca 95 % standardised"] = standardised(reduce_pca, 0.95)
    found["pca 256 (disco)"] = lambda x: reduce_own(x, 256)
    if importlib.util.find_spec("umap"):
        for n in (2, 8):
            found[f"umap {n}"] = lambda x, n=n: reduce_umap(x, n)
    return found


def best_ms(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the best time of some repeats in milliseconds, and the last result."""
    times: list[float] = []
    while len(times) < 2 or (len(times) < REPEATS and sum(times) < PATIENCE_MS):
        start = time.perf_counter()
        result = work()
        times.append(1000 * (time.perf_counter() - start))
    return min(times), result


def measure_split(data: BacktestData, split: Split) -> dict[str, dict[str, float]]:
    """Return errors and times of every variant on one split."""
    references = references_of(data, split, 0.9)
    at = top_positions(references, "pds", K)
    signatures = reference_signatures(references, at)
    means = np.nan_to_num(np.nanmean(signatures, axis=0))
    x = fill(signatures, means)
    targets = np.stack([fill(signature_of(data, int(t), at), means) for t in split.targets])
    truth = data.truth[split.targets]
    found = {}
    for name, fit in variants().items():
        fit_ms, transform = best_ms(lambda fit=fit: fit(x))
        scores = transform(x)
        one_ms, _ = best_ms(lambda transform=transform: transform(targets[:1]))
        start = time.perf_counter()
        by_forest = forest(scores, references.truth, stable_rng("pca"), 0.9)
        forest_ms = 1000 * (time.perf_counter() - start)
        by_nearest = nearest(scores, references.truth, stable_rng("pca"), 0.9)
        reduced = transform(targets)
        found[name] = {
            "components": scores.shape[1],
            "fit_ms": fit_ms,
            "transform_one_ms": one_ms,
            "forest_fit_ms": forest_ms,
            "forest_mae": mae(by_forest, reduced, truth),
            "knn_mae": mae(by_nearest, reduced, truth),
        }
    return found


def signature_of(data: BacktestData, model: int, at: NDArray[np.int64]) -> Array:
    """Return the signature of one model."""
    if data.probabilities is None:
        return data.responses[model, at]
    return np.asarray(data.probabilities(model, at), np.float64).ravel()


def mae(estimate: Callable[[Array], Any], rows: Array, truth: Array) -> float:
    """Return the mean absolute error of an estimator on reduced signatures."""
    return float(
        np.mean([abs(estimate(row).value - t) for row, t in zip(rows, truth, strict=True)])
    )


def measure(data: BacktestData) -> dict[str, Any]:
    """Return the means over splits, for targets at random and for the strongest."""
    entry: dict[str, Any] = {"models": len(data.names), "samples": len(data.weights)}
    for kind, seeds in ((SplitKind.RANDOM, SEEDS), (SplitKind.STRONGEST, 1)):
        splits = make_splits(kind, seeds, scores=data.truth, dates=data.dates)
        runs = [measure_split(data, split) for split in splits]
        entry["references"] = len(splits[0].references)
        entry[kind.value] = {
            name: {
                field: float(f"{np.mean([run[name][field] for run in runs]):.4g}")
                for field in runs[0][name]
            }
            for name in runs[0]
        }
    return entry


def main(names: list[str]) -> None:
    """Measure the sets of these names."""
    warnings.filterwarnings("ignore", module="umap")
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for chosen in SETS:
        wanted = chosen.name in (names or DEFAULT)
        source = chosen.files() if wanted else None
        if source is None:
            continue
        with single_threaded(*LIBRARIES):
            result[chosen.name] = measure(source())
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
        print(chosen.name, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
