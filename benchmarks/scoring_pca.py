"""PCA of 400 signatures of 100,000 features: through inner products, and scikit-learn's full SVD.

OPENBLAS_NUM_THREADS=2 python benchmarks/scoring_pca.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from scoring_common import keep
from sklearn.decomposition import PCA

from disco_cli.estimation.pca import fit_pca

ROUNDS = 5
M, K, C = 400, 100, 1_000
COMPONENTS = 256


def signatures() -> np.ndarray:
    """Return probabilities that vary along a few dozen directions, as real models' do."""
    rng = np.random.default_rng(0)
    ability = rng.standard_normal((M, 30))
    X = np.empty((M, K, C), np.float32)
    for k in range(K):
        x = 0.5 * ability @ rng.standard_normal((30, C)) + rng.standard_normal((M, C))
        x = np.exp(x)
        X[:, k] = x / x.sum(axis=1, keepdims=True)
    return X.reshape(M, K * C)


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Measure, print and keep the samples."""
    X = signatures()
    full = PCA(COMPONENTS, svd_solver="full")
    ours = fit_pca(X, COMPONENTS)
    expected, found = full.fit_transform(X.astype(np.float64)), ours.transform(X)
    error = float(np.abs(np.abs(found) - np.abs(expected)).max() / np.abs(expected).max())
    samples: dict[str, list[float]] = {"scikit-learn, full SVD": [], "disco, inner products": []}
    for _ in range(ROUNDS):
        samples["scikit-learn, full SVD"].append(seconds(lambda: full.fit(X)))
        samples["disco, inner products"].append(seconds(lambda: fit_pca(X, COMPONENTS)))
    medians = [statistics.median(taken) for taken in samples.values()]
    for label, median in zip(samples, medians, strict=True):
        print(f"{label:<44}{median:8.2f} s")
    print(f"{'faster':<44}{medians[0] / medians[1]:8.1f} ×  goal ≥ 5")
    print(f"{'largest difference of scores / largest score':<44}{error:8.1e}    goal ≤ 1e-5")
    keep("scoring_pca", {}, seconds=samples, shape=[M, K * C], relative_error=error)


if __name__ == "__main__":
    main()
