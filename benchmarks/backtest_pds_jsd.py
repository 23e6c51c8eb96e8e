"""PDS against JSD: time, and agreement of their rankings; write ``backtest_pds_jsd.json``.

    python benchmarks/backtest_pds_jsd.py

Times are the best of some repeats of the plain functions on one thread and single-precision
probabilities; agreement is measured on real outputs, which rank correlation and overlap of the
first 100 of N sum up.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from backtest_sets import SETS
from numpy.typing import NDArray

from disco_cli.backtest.baselines.disco import disagreement
from disco_cli.backtest.cells import references_of
from disco_cli.backtest.metrics import kendall, spearman
from disco_cli.backtest.run import LIBRARIES
from disco_cli.backtest.splits import Split, SplitKind
from disco_cli.disagreement.measures import entropy, jensen_shannon, predictive_diversity
from disco_cli.threads import single_threaded

RESULT = Path(__file__).with_suffix(".json")
SHAPES = ((10, 20000, 4), (100, 10000, 4), (400, 5000, 4), (100, 2000, 100), (50, 200, 1000))
"""(models, samples, classes)."""

TOPS = (30, 100, 300)
REPEATS = 20


def best_ms(work: Any) -> float:
    """Return the best time of some repeats, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def lean_jsd(p: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return JSD in single precision, without care for missing rows: the least it can cost."""
    own = np.zeros(p.shape[1], np.float32)
    for rows in p:
        own += entropy(rows)
    return entropy(p.mean(axis=0)) - own / len(p)


def measure_times() -> list[dict[str, Any]]:
    """Return the times of both measures for each shape."""
    rng = np.random.default_rng(0)
    found = []
    for n_models, n_samples, n_classes in SHAPES:
        p = rng.random((n_models, n_samples, n_classes), dtype=np.float32) ** 4
        p /= p.sum(axis=2, keepdims=True)
        pds, jsd, lean = (
            best_ms(lambda f=f, p=p: f(p)) for f in (predictive_diversity, jensen_shannon, lean_jsd)
        )
        found.append(
            {
                "models": n_models,
                "samples": n_samples,
                "classes": n_classes,
                "pds_ms": round(pds, 2),
                "jsd_ms": round(jsd, 2),
                "lean_jsd_ms": round(lean, 2),
                "ratio": round(jsd / pds, 1),
                "lean_ratio": round(lean / pds, 1),
            }
        )
    return found


def agreement(pds: NDArray[np.float64], jsd: NDArray[np.float64]) -> dict[str, Any]:
    """Return how much two rankings of the same samples agree."""
    few = np.random.default_rng(0).permutation(len(pds))[:3000]
    first = np.lexsort((np.arange(len(pds)), -jsd, -pds))
    second = np.lexsort((np.arange(len(pds)), -pds, -jsd))
    return {
        "spearman": round(spearman(pds, jsd), 4),
        "kendall_of_3000": round(kendall(pds[few], jsd[few]), 4),
        "distinct_pds": len(np.unique(np.round(pds, 9))),
        "samples": len(pds),
    } | {f"overlap_{k}": round(len(set(first[:k]) & set(second[:k])) / k, 3) for k in TOPS}


def main() -> None:
    """Measure and write."""
    result: dict[str, Any] = {"agreement": {}}
    with single_threaded(*LIBRARIES):
        result["times"] = measure_times()
        for chosen in SETS:
            source = chosen.files()
            if source is None:
                continue
            data = source()
            everybody = Split(
                SplitKind.RANDOM, 0, 0, np.arange(len(data.names)), np.zeros(0, np.int64)
            )
            pds, jsd = disagreement(references_of(data, everybody, 0.9))
            result["agreement"][chosen.name] = agreement(pds, jsd)
            print(chosen.name, file=sys.stderr)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
