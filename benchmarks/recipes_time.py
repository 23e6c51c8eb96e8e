"""How long recipe `auto` takes on 400 models × 5,000 samples, and whether threads change its result.

    python benchmarks/recipes_time.py [--models 400] [--samples 5000] [--rounds 3]

Synthetic models, seeded: right answers by a logistic model of four abilities, as probabilities of
four classes in one file per model. `disco select` and `disco build-db` run as whole processes, with
their standard error on a pseudo-terminal, so that the progress bar is drawn and paid for. Every
setting of the linear-algebra threads must give the same bytes. Raw seconds go to
``recipes_time.json``; a busy machine shows as wall time above the processor time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import pty
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

RESULT = Path(__file__).with_name("recipes_time.json")
GOAL_SECOND = 120
THREADS = (None, 1, 2)
"""Settings of OPENBLAS_NUM_THREADS; ``None`` leaves it to the library."""

N_CLASSES = 4


def write_synthetic(folder: Path, M: int, N: int) -> list[str]:
    """Write M models that answer N questions, and return their files."""
    rng = np.random.default_rng(0)
    labels = rng.integers(N_CLASSES, size=N)
    abilities = np.column_stack([rng.normal(0.5, 1.0, M), rng.normal(0.0, 0.6, (M, 3))])
    loadings = np.column_stack([rng.lognormal(0.0, 0.4, N), rng.normal(0.0, 0.7, (N, 3))])
    difficulty = rng.normal(0.0, 1.5, N)
    ids = np.array([f"q{i:05d}" for i in range(N)])
    paths = []
    for m in range(M):
        right = 1 / (1 + np.exp(difficulty - loadings @ abilities[m]))
        logits = rng.gumbel(size=(N, N_CLASSES))
        logits[np.arange(N), labels] += np.log((N_CLASSES - 1) * right / (1 - right))
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        path = folder / f"model-{m:03d}.npz"
        p = (p / p.sum(axis=1, keepdims=True)).astype(np.float16)
        np.savez(path, predictions=p, labels=labels, sample_ids=ids)
        paths.append(str(path))
    return paths


def run_on_terminal(command: list[str], environment: dict[str, str]) -> dict[str, float | bool]:
    """Run a command with stderr on a pseudo-terminal; returns its seconds and if a bar was drawn."""
    parent, child = pty.openpty()
    drawn = bytearray()

    def drain() -> None:
        try:
            while block := os.read(parent, 65536):
                drawn.extend(block)
        except OSError:  # Linux reports the end of a pseudo-terminal as an error
            pass

    reader = threading.Thread(target=drain)
    reader.start()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=child)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.close(child)
    reader.join()
    os.close(parent)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    bar = b"cross-validating" in drawn
    return {"wall": round(wall, 2), "processor": round(processor, 2), "bar": bar}


def digest(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every artifact."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def measure(disco: str, paths: list[str], folder: Path, threads: int | None) -> dict[str, Any]:
    """Run both commands once."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    environment["TERM"] = "xterm"
    if threads is not None:
        environment["OPENBLAS_NUM_THREADS"] = str(threads)
    at = ["--dir", str(folder)]
    select = run_on_terminal([disco, "select", *paths, *at], environment)
    build = run_on_terminal([disco, "build-db", *paths, *at], environment)
    return {"threads": threads, "select": select, "build-db": build, "files": digest(folder)}


def main() -> None:
    """Measure, print and keep the seconds; exit with 1 if a setting changes the result."""
    parser = argparse.ArgumentParser(description="Time recipe auto.")
    parser.add_argument("--models", type=int, default=400)
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    disco = str(Path(sys.executable).with_name("disco"))
    runs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_synthetic(folder, arguments.models, arguments.samples)
        for number in range(arguments.rounds):
            for threads in THREADS:
                run = measure(disco, paths, folder / f"{number}-{threads}", threads)
                runs.append(run)
                steps = [run[step] for step in ("select", "build-db")]
                wall = sum(step["wall"] for step in steps)
                work = sum(step["processor"] for step in steps)
                print(f"threads {threads or 'unset':>5}: {wall:6.1f} s, processor {work:6.1f} s")
    different = sorted({
        name for run in runs for name, value in run["files"].items() if runs[0]["files"][name] != value
    })  # fmt: skip
    print(f"goal: under {GOAL_SECOND} s; artifacts that threads change: {different or 'none'}")
    record = {
        "models": arguments.models,
        "samples": arguments.samples,
        "classes": N_CLASSES,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "unit": "seconds per process",
        "load_average": [round(value, 1) for value in os.getloadavg()],
        "runs": runs,
    }
    RESULT.write_text(json.dumps(record, indent=1) + "\n")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
