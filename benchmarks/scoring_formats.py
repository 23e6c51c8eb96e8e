"""Compressed NPZ, Parquet and half precision, each against what it takes to read the same files.

python benchmarks/scoring_formats.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from scoring_common import (
    DISCO,
    PYTHON,
    in_turn,
    keep,
    make_files,
    median_seconds,
    show,
    show_ratio,
)

ROUNDS = 5
ROUNDS_OF_PAIR = 21  # they are so close that five tell nothing
COUNT = 64
INFLATE = """
import sys
import numpy as np
for f in sys.argv[1:]:
    np.load(f)["predictions"]
"""
INFLATE_TWICE = """
import subprocess, sys
files = sys.argv[2:]
halves = [[sys.executable, "-c", sys.argv[1], *files[i::2]] for i in (0, 1)]
sys.exit(any([process.wait() for process in [subprocess.Popen(half) for half in halves]]))
"""
READ_PARQUET = """
import sys
import pyarrow.parquet as pq
for f in sys.argv[1:]:
    pq.read_table(f, columns=["probs"])
"""
NO_ISAL = "import sys; sys.modules['isal'] = None; from disco_cli.cli import main; main()"


def main() -> None:
    """Measure, print and keep the samples."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        files = {
            form: make_files(folder / form, form, COUNT)
            for form in ("float32", "float16", "compressed", "parquet")
        }
        score = ["score", "--quiet", "-o", str(Path(temporary) / "scores.parquet")]
        commands = {
            "numpy inflates, one thread": [PYTHON, "-c", INFLATE, *files["compressed"]],
            "numpy inflates, two processes": [
                PYTHON, "-c", INFLATE_TWICE, INFLATE, *files["compressed"],
            ],
            "disco score, compressed, zlib": [
                PYTHON, "-c", NO_ISAL, *score, *files["compressed"],
            ],
            "pyarrow reads": [PYTHON, "-c", READ_PARQUET, *files["parquet"]],
            "disco score, parquet": [DISCO, *score, *files["parquet"]],
        }  # fmt: skip
        if find_spec("isal"):
            commands["disco score, compressed, isal"] = [DISCO, *score, *files["compressed"]]
        pair = {
            f"disco score, {form}": [DISCO, *score, *files[form]] for form in ("float32", "float16")
        }
        runs = in_turn(commands, ROUNDS) | in_turn(pair, ROUNDS_OF_PAIR)
    show(runs)
    print()
    took = {label: median_seconds(samples) for label, samples in runs.items()}
    inflate = took["numpy inflates, one thread"]
    show_ratio(
        "numpy inflates, one thread / two processes", inflate, took["numpy inflates, two processes"]
    )
    for library in ("zlib", "isal"):
        if (label := f"disco score, compressed, {library}") in took:
            show_ratio(f"numpy inflates / disco with {library}", inflate, took[label], "goal ≥ 1.7")
    show_ratio(
        "disco, parquet / pyarrow reads",
        took["disco score, parquet"], took["pyarrow reads"], "goal ≤ 1.3",
    )  # fmt: skip
    show_ratio(
        "disco, float16 / float32",
        took["disco score, float16"], took["disco score, float32"], "goal ≤ 1",
    )  # fmt: skip
    keep("scoring_formats", runs)


if __name__ == "__main__":
    main()
