"""``disco build-db`` from 400 models × 1,000 samples × 1,000 classes, signatures of 100 samples.

    python benchmarks/scoring_build.py [--folder FOLDER] [--rounds 5] [RECIPE…]

With recipes only those are measured, and the other samples in the JSON are left as they are.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path

from scoring_common import DISCO, PYTHON, ROOT, Run, keep, run, show

MODELS, SAMPLES, CLASSES, K = 400, 1_000, 1_000, 100
RECIPES = ("auto", "disco")
MAKE = """
import sys
import numpy as np
folder, models, n, C = sys.argv[1], *map(int, sys.argv[2:])
shared = np.random.default_rng(99)
labels = shared.integers(C, size=n)
alike = shared.standard_normal((30, n * C), dtype=np.float32)  # what classes models confuse
difficulty = shared.normal(size=n)
for m in range(models):
    rng = np.random.default_rng(m)
    x = (0.3 * rng.standard_normal(30, dtype=np.float32)) @ alike
    x = x.reshape(n, C) + rng.standard_normal((n, C), dtype=np.float32)
    x[np.arange(n), labels] += 5 + 4 * m / models - 2 * difficulty
    np.exp(x, out=x)
    x /= x.sum(axis=1, keepdims=True)
    np.savez(f"{folder}/m{m:03d}.npz", predictions=x, labels=labels)
"""


def main() -> None:
    """Measure, print and keep the samples."""
    parser = argparse.ArgumentParser(description="Time disco build-db on 400 models.")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("recipes", nargs="*", choices=[[], *RECIPES])
    arguments = parser.parse_args()
    place = nullcontext(arguments.folder) if arguments.folder else tempfile.TemporaryDirectory()
    runs: dict[str, list[Run]] = {}
    with place as name:
        folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        if len(list(folder.glob("m*.npz"))) < MODELS:
            sizes = map(str, (MODELS, SAMPLES, CLASSES))
            subprocess.run([PYTHON, "-c", MAKE, str(folder), *sizes], check=True)
        files = sorted(map(str, folder.glob("m*.npz")))
        for recipe in arguments.recipes or RECIPES:
            at = ["--quiet", "--dir", str(folder / recipe)]
            select = [DISCO, "select", "--k", str(K), "--recipe", recipe, *at, *files]
            subprocess.run(select, check=True)
            build = [DISCO, "build-db", *at, *files]
            runs[recipe] = [run(build) for _ in range(arguments.rounds)]
    show(runs)
    earlier = ROOT / "benchmarks" / "scoring_build.json"
    if arguments.recipes and earlier.exists():
        kept = json.loads(earlier.read_text())["samples"]
        runs = {r: [Run(*one) for one in samples] for r, samples in kept.items()} | runs
    keep("scoring_build", runs, models=MODELS, samples_of_benchmark=SAMPLES, classes=CLASSES, k=K)


if __name__ == "__main__":
    main()
