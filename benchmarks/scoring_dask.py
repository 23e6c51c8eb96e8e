"""``disco score`` on a Dask scheduler and two worker processes, one of them killed half-way.

python benchmarks/scoring_dask.py [FOLDER]
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scoring_common import DISCO, PYTHON, Run, keep, make_files, median_seconds, run, show

ROUNDS = 5
COUNT = 64


def start(what: str, file: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a scheduler or a worker on loopback."""
    command = [PYTHON, "-m", f"distributed.cli.dask_{what}", "--scheduler-file", str(file)]
    return subprocess.Popen(
        [*command, "--no-dashboard", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def start_worker(file: Path) -> subprocess.Popen[bytes]:
    """Start a worker of one thread that nobody starts again."""
    return start("worker", file, "--nthreads", "1", "--no-nanny")


def main() -> None:
    """Measure, print and keep the samples."""
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here
        files = make_files(folder / "float32", "float32", COUNT)
        file = here / "scheduler.json"
        scheduler = start("scheduler", file, "--host", "127.0.0.1", "--port", "0")
        while not file.exists():
            time.sleep(0.1)
        workers = [start_worker(file), start_worker(file)]
        time.sleep(5)
        address = json.loads(file.read_text())["address"]
        score = [DISCO, "score", "--quiet", *files]
        cluster = [*score, "--engine", "dask", "--scheduler", address]
        runs: dict[str, list[Run]] = {"local": [], "dask": [], "dask, a worker killed": []}
        for _ in range(ROUNDS):
            runs["local"].append(run([*score, "-o", str(here / "local.parquet")]))
            runs["dask"].append(run([*cluster, "-o", str(here / "dask.parquet")]))
            began = time.perf_counter()
            process = subprocess.Popen([*cluster, "-o", str(here / "killed.parquet")])
            time.sleep(median_seconds(runs["dask"]) * 0.6)
            workers[0].send_signal(signal.SIGKILL)
            workers[0].wait()
            if process.wait():
                sys.exit("the command failed after a worker was killed")
            runs["dask, a worker killed"].append(Run(time.perf_counter() - began, 0))
            expected = (here / "local.parquet").read_bytes()
            for name in ("dask", "killed"):
                if (here / f"{name}.parquet").read_bytes() != expected:
                    sys.exit(f"{name}: other bytes than the local engine's")
            workers[0] = start_worker(file)
            time.sleep(5)
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
    show(runs)
    print("\nidentical bytes in every round")
    keep("scoring_dask", runs)


if __name__ == "__main__":
    main()
