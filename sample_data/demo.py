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
SEEDS = range(5)
N_DRAWS = 1000


def run(*arguments: str, shown: str | None) -> str:
    """Run disco, show the command as a person would type it, and return what it prints."""
    command = [sys.executable, "-m", "disco_cli", *arguments]
    if shown is None:
        command.append("--quiet")
    else:
        print(f"$ disco {shown}", file=sys.stderr)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def correctness(path: Path) -> np.ndarray:
    """Return which samples a model gets right, (N,)."""
    with np.load(path, allow_pickle=False) as file:
        right: np.ndarray = file["predictions"].argmax(axis=1) == file["labels"]
        return right


def estimate(recipe: str, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Run the three commands and return what ``predict`` says of each held-out model."""
    is_shown = seed == 0
    references = sorted(map(str, HERE.glob("*.npz")))
    new = sorted(map(str, (HERE / "new").glob("*.npz")))
    option = "" if recipe == "auto" else f"--recipe {recipe} "
    shown = [
        f"select --k {K} {option}sample_data/*.npz",
        "build-db sample_data/*.npz",
        "predict sample_data/new/*.npz --json",
    ]
    select, build, predict = shown if is_shown else [None] * 3
    with tempfile.TemporaryDirectory() as folder:
        at = ["--dir", folder]
        seeded = ["--seed", str(seed), *at]
        run("select", "--k", str(K), "--recipe", recipe, *references, *seeded, shown=select)
        run("build-db", *references, *seeded, shown=build)
        out = run("predict", *new, *at, "--json", shown=predict)
    return {row["model"]: row for row in map(json.loads, out.splitlines())}


def main() -> None:
    """Print a row per held-out model, and how five selections of samples fare on average."""
    targets = sorted((HERE / "new").glob("*.npz"))
    runs = [estimate("auto", seed) for seed in SEEDS]
    estimates = runs[0]
    published = estimate("disco")

    rng = np.random.default_rng(0)
    print(f"\n{'model':<24}{'estimate':>9}{'low':>8}{'high':>8}{'truth':>8}{'error':>8}  status")
    errors, published_errors, random_errors, covered = [], [], [], []
    for path in targets:
        right = correctness(path)
        row, truth = estimates[path.stem], right.mean()
        errors.append([abs(found[path.stem]["estimate"] - truth) for found in runs])
        published_errors.append(abs(published[path.stem]["estimate"] - truth))
        draws = [rng.choice(right, K, replace=False).mean() for _ in range(N_DRAWS)]
        random_errors.append(np.abs(np.array(draws) - truth).mean())
        covered.append([f[path.stem]["low"] <= truth <= f[path.stem]["high"] for f in runs])
        print(
            f"{path.stem:<24}{row['estimate']:>9.4f}{row['low']:>8.4f}{row['high']:>8.4f}"
            f"{truth:>8.4f}{row['estimate'] - truth:>+8.4f}  {row['status']}"
        )
    level = next(iter(estimates.values()))["level"]
    n, n_all = len(targets), np.size(covered)
    lines = [
        ("", "this selection", f"{len(runs)} selections"),
        ("mean absolute error", f"{np.mean(errors, axis=0)[0]:.4f}", f"{np.mean(errors):.4f}"),
        ("  of the recipe as published", f"{np.mean(published_errors):.4f}", ""),
        (f"  of {K} plain random samples", f"{np.mean(random_errors):.4f}", ""),
        (
            f"truth inside the {level:.0%} interval",
            f"{np.sum(covered, axis=0)[0]} of {n}",
            f"{np.sum(covered)} of {n_all}",
        ),
    ]
    print()
    for line in lines:
        print(f"{line[0]:<32}{line[1]:>16}{line[2]:>16}".rstrip())


if __name__ == "__main__":
    main()
