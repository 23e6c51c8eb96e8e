"""``disco score`` against a plain loop over the same files, and against stacking everything.

    python benchmarks/scoring_speed.py [FOLDER]

FOLDER (default: a temporary one) receives 256 files of 20,000 × 200 probabilities, 4 GB.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from scoring_common import (
    DISCO,
    PYTHON,
    in_turn,
    keep,
    make_files,
    median_core_seconds,
    median_seconds,
    peak_mib,
    show,
    show_ratio,
)

ROUNDS = 5
COUNTS = (16, 64, 128, 256)
LOOP = """
import sys
import numpy as np
files = sys.argv[1:]
state = np.load(files[0])["predictions"]
for f in files[1:]:
    np.maximum(state, np.load(f)["predictions"], out=state)
"""
STACK = """
import sys
import numpy as np
from scipy.special import entr
P = np.stack([np.load(f)["predictions"] for f in sys.argv[1:]])
pds = P.max(axis=0).sum(axis=1)
jsd = entr(P.mean(axis=0)).sum(axis=1) - entr(P).sum(axis=2).mean(axis=0)
confidence = P.max(axis=2).mean(axis=0)
"""


UNCOMPILED = """
import sys
sys.modules["disco_cli._kernel"] = None
from disco_cli.__main__ import main
main()
"""


def main() -> None:
    """Measure, print and keep the samples."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        files = make_files(folder / "float32", "float32", max(COUNTS))
        target = str(Path(temporary) / "scores.parquet")
        commands = {}
        for count in COUNTS:
            score = [DISCO, "score", "--quiet", "-o", target, *files[:count]]
            commands[f"plain loop, {count} files"] = [PYTHON, "-c", LOOP, *files[:count]]
            commands[f"disco score, {count} files"] = score
        runs = in_turn(commands, ROUNDS)
        pair = {
            "stack and entr, 64 files": [PYTHON, "-c", STACK, *files[:64]],
            "disco score beside it, 64 files": commands["disco score, 64 files"],
            "disco score without compiled loops, 64 files": [
                PYTHON, "-c", UNCOMPILED, *commands["disco score, 64 files"][1:],
            ],
        }  # fmt: skip
        runs |= in_turn(pair, ROUNDS)
    show(runs)
    print()
    for count, goal in ((64, "goal ≤ 1.3"), (256, "goal ≤ 1.1")):
        ours, loop = (
            median_seconds(runs[f"{what}, {count} files"]) for what in ("disco score", "plain loop")
        )
        show_ratio(f"time, disco / plain loop, {count} files", ours, loop, goal)
        mine, other = (
            median_core_seconds(runs[f"{what}, {count} files"])
            for what in ("disco score", "plain loop")
        )
        show_ratio(f"core seconds, disco / plain loop, {count} files", mine, other)
    stack, beside = runs["stack and entr, 64 files"], runs["disco score beside it, 64 files"]
    show_ratio(
        "time, stack and entr / disco, 64 files",
        median_seconds(stack), median_seconds(beside), "goal ≥ 8",
    )  # fmt: skip
    show_ratio(
        "time, disco without compiled loops / with them, 64 files",
        median_seconds(runs["disco score without compiled loops, 64 files"]),
        median_seconds(beside),
    )
    show_ratio(
        "peak memory, disco / stack and entr", peak_mib(beside), peak_mib(stack), "goal ≤ 0.1"
    )
    show_ratio(
        "peak memory, 64 / 16 files",
        peak_mib(runs["disco score, 64 files"]),
        peak_mib(runs["disco score, 16 files"]),
        "goal ≤ 1.05",
    )
    print("\nmilliseconds a model beyond those of 16 models")
    first = median_seconds(runs["disco score, 16 files"])
    for count in COUNTS[1:]:
        more = median_seconds(runs[f"disco score, {count} files"]) - first
        print(f"{count:>6} files{more / (count - 16) * 1000:8.2f} ms")
    keep("scoring_speed", runs)


if __name__ == "__main__":
    main()
