"""What the scoring benchmarks share: making files, running processes in turn, keeping samples.

Files are made by a process of their own, so that the one that measures stays small: on Linux a
child's peak memory is never reported lower than that of the process which started it.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from startup import compile_bytecode

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
DISCO = str(Path(sys.executable).with_name("disco"))
MIB = 1 << 20

_MAKE = """
import sys
import numpy as np
from disco_cli.files.matrix import Kind, ModelInfo, Samples
from disco_cli.files.parquet import write_parquet
folder, form, first, last, n, C = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
for m in range(first, last):
    x = np.random.default_rng(m).standard_normal((n, C), dtype=np.float32)
    x *= 2
    np.exp(x, out=x)
    x /= x.sum(axis=1, keepdims=True)
    path = f"{folder}/m{m:04d}"
    if form == "parquet":
        model = [ModelInfo(f"m{m:04d}")]
        write_parquet(path + ".parquet", x[None], Kind.PROBABILITIES, Samples(n), model)
    elif form == "compressed":
        np.savez_compressed(path + ".npz", predictions=x)
    else:
        np.savez(path + ".npz", predictions=x.astype(form))
"""


class Run(NamedTuple):
    """One process: how long it took, its most memory, and the time of all its cores together."""

    seconds: float
    peak_bytes: int
    core_seconds: float = 0.0


def make_files(
    folder: Path, form: str, count: int, shape: tuple[int, int] = (20_000, 200)
) -> list[str]:
    """Make prediction files of random models: ``float32``, ``float16``, ``compressed``, ``parquet``."""
    folder.mkdir(parents=True, exist_ok=True)
    have = len(list(folder.iterdir()))
    if have < count:
        numbers = map(str, (have, count, *shape))
        subprocess.run([PYTHON, "-c", _MAKE, str(folder), form, *numbers], check=True)
    return sorted(map(str, folder.iterdir()))[:count]


def run(command: Sequence[str]) -> Run:
    """Run a process to its end."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command[:4])} …: exit {process.returncode}")
    return Run(seconds, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


def in_turn(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, list[Run]]:
    """Run all commands once to warm the file cache, then in turn, so that drift treats all alike."""
    compile_bytecode()
    for command in commands.values():
        run(command)
    runs: dict[str, list[Run]] = {label: [] for label in commands}
    for _ in range(rounds):
        for label, command in commands.items():
            runs[label].append(run(command))
    return runs


def median_seconds(runs: Sequence[Run]) -> float:
    """Return the median time."""
    return statistics.median(one.seconds for one in runs)


def median_core_seconds(runs: Sequence[Run]) -> float:
    """Return the median time of all cores together, which other processes disturb less."""
    return statistics.median(one.core_seconds for one in runs)


def peak_mib(runs: Sequence[Run]) -> float:
    """Return the largest peak memory."""
    return max(one.peak_bytes for one in runs) / MIB


def show(runs: Mapping[str, Sequence[Run]]) -> None:
    """Print medians, ranges and peaks."""
    for label, samples in runs.items():
        seconds = [one.seconds for one in samples]
        print(
            f"{label:<44}{statistics.median(seconds):8.2f} s  "
            f"({min(seconds):.2f} … {max(seconds):.2f}){median_core_seconds(samples):8.2f} core s"
            f"{peak_mib(samples):9.0f} MiB"
        )


def show_ratio(label: str, ours: float, baseline: float, goal: str = "") -> None:
    """Print how ours compares."""
    print(f"{label:<64}{ours / baseline:8.2f}   {goal}")


def keep(name: str, runs: Mapping[str, Sequence[Run]], **facts: Any) -> None:
    """Keep every sample in ``benchmarks/<name>.json``."""
    record = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_at_end": os.getloadavg()[0],  # more than one core a process waits for others
        "unit": "[seconds per process, peak bytes, core seconds]",
        "samples": {label: [list(one) for one in samples] for label, samples in runs.items()},
        **facts,
    }
    (ROOT / "benchmarks" / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
