"""Peak memory of ``disco score --memory 256MiB`` on 50,000 samples × 1,000 classes, 600 MB of state.

python benchmarks/scoring_memory.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from scoring_common import DISCO, in_turn, keep, make_files, peak_mib, show

ROUNDS = 5
SHAPE = (50_000, 1_000)
COUNTS = (4, 8)
LIMIT_MIB = 256 + 150


def main() -> None:
    """Measure, print and keep the samples."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        target = str(Path(temporary) / "scores.parquet")
        commands = {}
        for form in ("float32", "compressed", "parquet"):
            files = make_files(folder / f"{form}-wide", form, max(COUNTS), SHAPE)
            for count in COUNTS:
                commands[f"{form}, {count} files"] = [
                    DISCO, "score", "--quiet", "--memory", "256MiB", "-o", target, *files[:count],
                ]  # fmt: skip
        runs = in_turn(commands, ROUNDS)
    show(runs)
    print(f"\nlimit {LIMIT_MIB} MiB")
    for label, samples in runs.items():
        peak = peak_mib(samples)
        print(f"{label:<44}{peak:8.0f} MiB   {'kept' if peak <= LIMIT_MIB else 'MISSED'}")
    keep("scoring_memory", runs, limit_mib=LIMIT_MIB)


if __name__ == "__main__":
    main()
