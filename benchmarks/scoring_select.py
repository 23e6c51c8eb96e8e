"""``disco select`` on a million samples and 64 models: time and memory of every method.

    python benchmarks/scoring_select.py [--folder FOLDER] [--rounds 5] [LABEL…]

With labels only those commands are measured, and the other samples in the JSON are left as they are.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path

from scoring_common import DISCO, PYTHON, ROOT, Run, in_turn, keep, show

MODELS = 64
SAMPLES = 1_000_000
MAKE = """
import sys
import numpy as np
folder, models, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
difficulty = np.random.default_rng(99).standard_normal(n).astype(np.float32)
for m in range(models):
    rng = np.random.default_rng(m)
    right = rng.standard_normal(n, dtype=np.float32) + 4 * m / models - 2 > difficulty
    predicted = np.where(right, 0, rng.integers(1, 4, n)).astype(np.int8)
    np.savez(f"{folder}/m{m:02d}.npz", predicted_labels=predicted, labels=np.zeros(n, np.int8),
             groups=np.arange(n) % 50, sample_ids=np.arange(n, dtype=np.int32))
"""
OF_SCORES = {
    "pds": ["--method", "pds"],
    "jsd": ["--method", "jsd"],
    "pds, stratified": ["--method", "pds", "--stratify"],
    "random": ["--method", "random"],
    "stratified-random": ["--method", "stratified-random"],
}
OF_FILES = ("random", "stratified-random", "strata", "hybrid", "greedy", "anchor")


def commands_in(folder: Path) -> dict[str, list[str]]:
    """Return every command by its label, making the files if need be."""
    if not list(folder.glob("m*.npz")):
        subprocess.run([PYTHON, "-c", MAKE, str(folder), str(MODELS), str(SAMPLES)], check=True)
    files = sorted(map(str, folder.glob("m*.npz")))
    scores, target = str(folder / "scores.parquet"), str(folder / "selection.json")
    select = [DISCO, "select", "--quiet", "--k", "100", "-o", target]
    commands = {"score": [DISCO, "score", "--quiet", "-o", scores, *files]}
    for label, options in OF_SCORES.items():
        commands[f"{label}, of scores"] = [*select, *options, "--scores", scores]
    commands["auto, of files"] = [*select, *files]
    for method in OF_FILES:
        commands[f"{method}, of files"] = [*select, "--method", method, *files]
    return commands


def main() -> None:
    """Measure, print and keep the samples."""
    parser = argparse.ArgumentParser(description="Time disco select on a million samples.")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("labels", nargs="*")
    arguments = parser.parse_args()
    place = nullcontext(arguments.folder) if arguments.folder else tempfile.TemporaryDirectory()
    with place as folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        commands = commands_in(Path(folder))
        wanted = arguments.labels or list(commands)
        runs = in_turn({label: commands[label] for label in wanted}, arguments.rounds)
    show(runs)
    earlier = ROOT / "benchmarks" / "scoring_select.json"
    if arguments.labels and earlier.exists():
        kept = json.loads(earlier.read_text())["samples"]
        kept = {label: [Run(*one) for one in samples] for label, samples in kept.items()}
        kept.update(runs)
        runs = {label: kept[label] for label in commands if label in kept}
    keep("scoring_select", runs, samples_of_benchmark=SAMPLES, models=MODELS)


if __name__ == "__main__":
    main()
