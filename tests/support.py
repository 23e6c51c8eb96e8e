"""What many tests share: running the real program, and writing a small benchmark."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_DATA = ROOT / "sample_data"


def run_disco(*arguments, cwd=None, env=None, stdin=None):
    """Run the real program; returns exit code, stdout and stderr as text."""
    environment = {k: v for k, v in os.environ.items() if k not in {"DISCO_DIR", "FORCE_COLOR"}}
    command = [sys.executable, "-W", "error", "-m", "disco_cli", *map(str, arguments)]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment | {"PYTHONPATH": str(ROOT)} | (env or {}),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def make_predictions(n_models=12, n=60, n_classes=4, seed=0):
    """Return (probabilities (M, N, C) float32, labels (N,)) of models of rising strength."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n)
    difficulty = rng.normal(size=n)
    strength = np.linspace(-1.0, 2.5, n_models)
    logits = rng.normal(size=(n_models, n, n_classes))
    right = 2 * (strength[:, None] - difficulty[None])
    np.put_along_axis(
        logits,
        np.broadcast_to(labels[None, :, None], (n_models, n, 1)),
        np.take_along_axis(logits, np.broadcast_to(labels[None, :, None], (n_models, n, 1)), axis=2)
        + right[:, :, None],
        axis=2,
    )
    exp = np.exp(logits - logits.max(axis=2, keepdims=True))
    return (exp / exp.sum(axis=2, keepdims=True)).astype(np.float32), labels


def write_models(folder, probabilities, labels, *, prefix="model", **extra):
    """Write one NPZ per model; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = np.array([f"s{i:04d}" for i in range(probabilities.shape[1])])
    paths = []
    for number, values in enumerate(probabilities):
        path = folder / f"{prefix}-{number:02d}.npz"
        np.savez(path, **{"predictions": values, "labels": labels, "sample_ids": ids} | extra)
        paths.append(path)
    return paths
