"""Estimate the held-out classifiers from 100 samples each and show the truth beside.

Runs the three commands of the README on the files in this folder, then reads the truth from the
held-out files (``predict`` never sees it) and compares with the published recipe and with plain
random samples of 100.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
K = 100
N_DRAWS = 1000


def run(*arguments: str, shown: str) -> str:
    """Run disco, show the command as a person would type it, and return what it prints."""
    print(f"$ disco {shown}", file=sys.stderr)
    command = [sys.executable, "-m", "disco_cli", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def correctness(path: Path) -> np.ndarray:
    """Return which samples a model gets right, (N,)."""
    with np.load(path, allow_pickle=False) as file:
        right: np.ndarray = file["predictions"].argmax(axis=1) == file["labels"]
        return right


def estimate(recipe: str, shown: str) -> dict[str, dict[str, Any]]:
    """Run the three commands and return what ``predict`` says of each held-out model."""
    references = sorted(map(str, HERE.glob("*.npz")))
    new = sorted(map(str, (HERE / "new").glob("*.npz")))
    select = f"select --k {K} {shown}sample_data/*.npz"
    with tempfile.TemporaryDirectory() as folder:
        at = ["--dir", folder]
        run("select", "--k", str(K), "--recipe", recipe, *references, *at, shown=select)
        run("build-db", *references, *at, shown="build-db sample_data/*.npz")
        out = run("predict", *new, *at, "--json", shown="predict sample_data/new/*.npz --json")
    return {row["model"]: row for row in map(json.loads, out.splitlines())}


def main() -> None:
    """Print a row per held-out model and the mean absolute errors."""
    targets = sorted((HERE / "new").glob("*.npz"))
    estimates = estimate("auto", "")
    published = estimate("disco", "--recipe disco ")

    rng = np.random.default_rng(0)
    print(f"\n{'model':<24}{'estimate':>9}{'low':>8}{'high':>8}{'truth':>8}{'error':>8}  status")
    errors, published_errors, random_errors, covered = [], [], [], 0
    for path in targets:
        right = correctness(path)
        row, truth = estimates[path.stem], right.mean()
        errors.append(abs(row["estimate"] - truth))
        published_errors.append(abs(published[path.stem]["estimate"] - truth))
        draws = [rng.choice(right, K, replace=False).mean() for _ in range(N_DRAWS)]
        random_errors.append(np.abs(np.array(draws) - truth).mean())
        covered += row["low"] <= truth <= row["high"]
        print(
            f"{path.stem:<24}{row['estimate']:>9.4f}{row['low']:>8.4f}{row['high']:>8.4f}"
            f"{truth:>8.4f}{row['estimate'] - truth:>+8.4f}  {row['status']}"
        )
    level = next(iter(estimates.values()))["level"]
    print(f"\nmean absolute error of disco, {K} samples a model:    {np.mean(errors):.4f}")
    print(f"mean absolute error of the recipe as published:      {np.mean(published_errors):.4f}")
    print(f"mean absolute error of {K} plain random samples:      {np.mean(random_errors):.4f}")
    print(f"truth inside the {level:.0%} interval:                    {covered} of {len(targets)}")


if __name__ == "__main__":
    main()
