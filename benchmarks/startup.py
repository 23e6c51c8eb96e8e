"""Start-up and prediction as whole processes, against baselines in the same run.

Runs every command in turn, ROUNDS times, so that a machine whose speed drifts treats all alike, and
keeps every sample in ``startup.json``. Ratios of medians are printed and are what the README quotes.

    python benchmarks/startup.py
"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 9
WITH_SKLEARN = """
import pickle, sys
import numpy as np
import typer
from pathlib import Path
folder = Path(sys.argv[1])
forest = pickle.loads((folder / "rf.pkl").read_bytes())
pca = np.load(folder / "pca.npz")
selection = __import__("json").loads((folder / "selection.json").read_text())
file = np.load(sys.argv[2])
rows = np.flatnonzero(np.isin(file["sample_ids"], selection["sample_ids"]))
signature = file["predictions"][rows].astype(float).reshape(1, -1)
print(forest.predict((signature - pca["mean"]) @ pca["components"].T)[0])
"""


def prepare(folder: Path, disco: str, recipe: str) -> Path:
    """Build the database of the sample data by a recipe; returns its folder of artifacts."""
    references = sorted(map(str, (ROOT / "sample_data").glob("*.npz")))
    for command in (["select", "--k", "100", "--recipe", recipe], ["build-db"]):
        arguments = [disco, *command, *references, "--dir", str(folder / recipe), "--quiet"]
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
    return folder / recipe


def compile_bytecode() -> None:
    """Compile the package, as installing it does; a clone may not have been run before."""
    command = [sys.executable, "-m", "compileall", "-q", str(ROOT / "disco_cli")]
    subprocess.run(command, check=True)


def seconds(command: list[str]) -> float:
    """Return how long one run takes, as a whole process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Measure, print and keep the samples."""
    compile_bytecode()
    python, disco = sys.executable, str(Path(sys.executable).with_name("disco"))
    with tempfile.TemporaryDirectory() as name:
        ours = str(prepare(Path(name), disco, "auto"))
        published = prepare(Path(name), disco, "disco")
        target = str(next(iter(sorted((ROOT / "sample_data" / "new").glob("*.npz")))))
        commands = {
            "import typer": [python, "-c", "import typer"],
            "disco --version": [disco, "--version"],
            "import numpy, typer": [python, "-c", "import numpy, typer"],
            "disco predict one.npz": [disco, "predict", target, "--dir", ours],
            "disco predict by the forest": [disco, "predict", target, "--dir", str(published)],
            "the same forest through scikit-learn": [
                python, "-c", WITH_SKLEARN, str(published / "db"), target,
            ],
        }  # fmt: skip
        samples: dict[str, list[float]] = {label: [] for label in commands}
        for command in commands.values():
            seconds(command)  # warm the file cache
        for _ in range(ROUNDS):
            for label, command in commands.items():
                samples[label].append(seconds(command))
    medians = {label: statistics.median(values) for label, values in samples.items()}
    for label, median in medians.items():
        print(f"{label:<40}{median * 1000:8.1f} ms")
    ratios = {
        "disco --version / import typer": ("disco --version", "import typer", 1.3),
        "disco predict / import numpy, typer": (
            "disco predict one.npz", "import numpy, typer", 1.8,
        ),
        "by the forest / import numpy, typer": (
            "disco predict by the forest", "import numpy, typer", None,
        ),
        "scikit-learn / disco, by the forest": (
            "the same forest through scikit-learn", "disco predict by the forest", None,
        ),
    }  # fmt: skip
    print()
    for label, (ours, baseline, goal) in ratios.items():
        note = "" if goal is None else f"   goal ≤ {goal}"
        print(f"{label:<40}{medians[ours] / medians[baseline]:8.2f}{note}")
    record = {
        "python": platform.python_version(),
        "unit": "seconds per process",
        "samples": samples,
    }
    (ROOT / "benchmarks" / "startup.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
