"""``disco score`` on a Dask scheduler and two worker processes, beside the local engine.

python benchmarks/scoring_dask.py [FOLDER]

The curve over the number of files, and a worker killed with SIGKILL half-way; every result must have
the bytes of the local engine's.
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
COUNTS = (16, 64, 128)
COUNT_KILLED = 64
WAIT = "import sys, distributed; distributed.Client(sys.argv[1]).wait_for_workers(2, timeout=60)"


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


class Cluster:
    """A scheduler and two workers on this machine."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.scheduler = start("scheduler", self.file, "--host", "127.0.0.1", "--port", "0")
        while not self.file.exists():
            time.sleep(0.1)
        self.address = json.loads(self.file.read_text())["address"]
        self.workers = [start_worker(self.file), start_worker(self.file)]
        self.wait()

    def wait(self) -> None:
        """Wait for both workers."""
        subprocess.run([PYTHON, "-c", WAIT, self.address], check=True)

    def kill_worker(self) -> None:
        """Kill a worker where it stands."""
        self.workers[0].send_signal(signal.SIGKILL)
        self.workers[0].wait()

    def start_again(self) -> None:
        """Put another in place of the killed worker."""
        self.workers[0] = start_worker(self.file)
        self.wait()

    def stop(self) -> None:
        """End all three."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def run_and_kill(command: list[str], cluster: Cluster, after: float) -> Run:
    """Run a command and kill a worker some seconds later."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    time.sleep(after)
    if process.poll() is not None:
        sys.exit("the command ended before a worker was killed")
    cluster.kill_worker()
    if process.wait():
        sys.exit("the command failed after a worker was killed")
    return Run(time.perf_counter() - began, 0)


def main() -> None:
    """Measure, print and keep the samples."""
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here
        files = make_files(folder / "float32", "float32", max(COUNTS))
        cluster = Cluster(here)
        runs: dict[str, list[Run]] = {}

        def measure(label: str, count: int, *, killed: bool = False) -> None:
            """Run once and compare the bytes with the local engine's."""
            name = f"{label}, {count} files"
            command = [DISCO, "score", "--quiet", "-o", str(here / name), *files[:count]]
            if label != "local":
                command += ["--engine", "dask", "--scheduler", cluster.address]
            if killed:
                after = 0.6 * median_seconds(runs[f"dask, {count} files"])
                one = run_and_kill(command, cluster, after)
                cluster.start_again()
            else:
                one = run(command)
            runs.setdefault(name, []).append(one)
            if (here / name).read_bytes() != (here / f"local, {count} files").read_bytes():
                sys.exit(f"{name}: other bytes than the local engine's")

        try:
            run([DISCO, "score", "--quiet", "-o", str(here / "warm"), *files])
            for _ in range(ROUNDS):
                for count in COUNTS:
                    measure("local", count)
                    measure("dask", count)
                measure("dask with a worker killed", COUNT_KILLED, killed=True)
        finally:
            cluster.stop()
    show(runs)
    print("\nidentical bytes in every round")
    keep("scoring_dask", runs)


if __name__ == "__main__":
    main()
