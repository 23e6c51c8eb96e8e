"""``disco select`` on a million samples: time and memory of every method.

python benchmarks/scoring_select.py
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from scoring_common import DISCO, PYTHON, in_turn, keep, show

ROUNDS = 5
MODELS = 16
MAKE = """
import sys
import numpy as np
folder, models, n = sys.argv[1], int(sys.argv[2]), 1_000_000
difficulty = np.random.default_rng(99).standard_normal(n).astype(np.float32)
for m in range(models):
    rng = np.random.default_rng(m)
    right = (rng.standard_normal(n, dtype=np.float32) + (m - models / 2) / 4 > difficulty)
    predicted = np.where(right, 0, rng.integers(1, 4, n)).astype(np.int8)
    np.savez(f"{folder}/m{m:02d}.npz", predicted_labels=predicted, labels=np.zeros(n, np.int8),
             groups=np.arange(n) % 50)
"""
OPTIONS = {
    "pds": ["--method", "pds"],
    "jsd": ["--method", "jsd"],
    "pds, stratified": ["--method", "pds", "--stratify"],
    "random": ["--method", "random"],
    "stratified-random": ["--method", "stratified-random"],
}
OF_PREDICTIONS = ("strata", "greedy", "anchor", "hybrid")


def main() -> None:
    """Measure, print and keep the samples."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run([PYTHON, "-c", MAKE, temporary, str(MODELS)], check=True)
        files = sorted(map(str, folder.glob("*.npz")))
        scores, target = str(folder / "scores.parquet"), str(folder / "selection.json")
        score = [DISCO, "score", "--quiet", "-o", scores, *files]
        select = [DISCO, "select", "--quiet", "--k", "100", "-o", target]
        commands = {"score": score}
        for label, options in OPTIONS.items():
            commands[f"select, {label}"] = [*select, *options, "--scores", scores]
        listed = subprocess.run(
            [DISCO, "select", "--help"], capture_output=True, text=True, check=True
        ).stdout
        for method in OF_PREDICTIONS:
            if method in listed:
                commands[f"select, {method}, from files"] = [*select, "--method", method, *files]
        runs = in_turn(commands, ROUNDS)
    show(runs)
    keep("scoring_select", runs, samples_of_benchmark=1_000_000, models=MODELS)


if __name__ == "__main__":
    main()
