"""Scoring on real Dask processes: the same bits, also when one is killed; a lost scheduler is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from disco_cli.disagreement import cluster
from disco_cli.disagreement.engine import score_benchmark
from disco_cli.disagreement.plan import EngineOptions
from disco_cli.errors import ClusterError, InputError
from disco_cli.files.align import align
from disco_cli.files.matrix import Benchmark, Kind, Samples
from disco_cli.files.npz import write_npz
from disco_cli.files.open import open_predictions

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

M, N, C = 70, 300, 60


class Processes:
    """A scheduler and two workers on loopback."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.scheduler = self.start("scheduler", "--port", "0", "--host", "127.0.0.1")
        deadline = time.monotonic() + 60
        while not self.file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        self.address = json.loads(self.file.read_text())["address"]
        self.workers = [self.start("worker", "--nthreads", "1", "--no-nanny") for _ in range(2)]

    def start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        module = f"distributed.cli.dask_{what}"
        command = [sys.executable, "-m", module, *options, "--scheduler-file", str(self.file)]
        return subprocess.Popen(
            [*command, "--no-dashboard"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    rng = np.random.default_rng(0)
    ids, order = np.array([f"q{i}" for i in range(N)]), rng.permutation(N)
    found = []
    for m in range(M):
        P = rng.dirichlet(np.full(C, 0.5), N).astype((np.float32, np.float16)[m % 2])
        rows = order if m % 5 == 0 else np.arange(N)
        samples = Samples(N, ids=ids[rows], labels=np.arange(N)[rows] % C)
        found.append(tmp_path / f"m{m:03d}.npz")
        write_npz(found[-1], P[rows], Kind.PROBABILITIES, samples, compressed=m % 3 == 0)
    return found


def benchmark_of(paths: list[Path]) -> Benchmark:
    return align([open_predictions(path) for path in paths])


def bits(scores: object) -> list[bytes]:
    return [column.tobytes() for column in vars(scores).values()]


class Saboteur:
    """Progress that kills a process when half of the work is done."""

    def __init__(self, victim: subprocess.Popen[bytes]) -> None:
        self.victim, self.total, self.done = victim, 0, 0

    def start(self, total: int, what: str) -> None:
        self.total = total

    def advance(self, steps: int = 1) -> None:
        self.done += steps
        if self.done >= self.total / 2 and self.victim.poll() is None:
            self.victim.send_signal(signal.SIGKILL)
            self.victim.wait()


def test_a_killed_worker_changes_no_bit(processes: Processes, paths: list[Path]) -> None:
    benchmark = benchmark_of(paths)
    local = score_benchmark(benchmark)
    options = EngineOptions(memory_bytes=2**20, scheduler=processes.address)
    saboteur = Saboteur(processes.workers[0])
    found = cluster.score_on_cluster(benchmark, options=options, progress=saboteur)
    assert processes.workers[0].poll() == -signal.SIGKILL
    assert saboteur.done == saboteur.total >= 2 * M  # several panels
    assert bits(found) == bits(local)
    # A bad row in a file is named as it is without a cluster.
    P = np.full((N, C), 1 / C)
    P[123] = 0.5 / C
    np.savez(paths[7], predictions=P, sample_ids=[f"q{i}" for i in range(N)])
    with pytest.raises(InputError, match=r"m007\.npz: row 123 .*sum to 0\.5"):
        cluster.score_on_cluster(benchmark_of(paths), options=options)


def test_a_scheduler_that_is_not_there(paths: list[Path]) -> None:
    options = EngineOptions(scheduler="tcp://127.0.0.1:9")
    with pytest.raises(ClusterError, match=r"tcp://127\.0\.0\.1:9: cannot be reached"):
        cluster.score_on_cluster(benchmark_of(paths[:2]), options=options)


@pytest.mark.slow
def test_a_scheduler_that_vanishes_half_way(processes: Processes, paths: list[Path]) -> None:
    options = EngineOptions(memory_bytes=2**20, scheduler=processes.address)
    saboteur = Saboteur(processes.scheduler)
    began = time.monotonic()
    with pytest.raises(ClusterError, match=rf"{processes.address}: lost the scheduler"):
        cluster.score_on_cluster(benchmark_of(paths), options=options, progress=saboteur)
    assert time.monotonic() - began < 30


@pytest.mark.slow
def keep_busy(processes: Processes, seconds: float) -> None:
    """Give the only thread of each worker something else to do first."""
    with distributed.Client(processes.address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=30)
        for address in client.scheduler_info()["workers"]:
            pause = client.submit(time.sleep, seconds, workers=[address], pure=False)
            distributed.fire_and_forget(pause)


def test_the_command_survives_a_scheduler_that_vanishes(
    processes: Processes, paths: list[Path], tmp_path: Path
) -> None:
    old = tmp_path / "run" / "scores.parquet"
    command = [sys.executable, "-m", "disco_cli", "score", *map(str, paths), "-d", str(old.parent)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    before = old.read_bytes()
    command += ["--engine", "dask", "--scheduler", processes.address]
    keep_busy(processes, seconds=60)
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(4.0)
    assert running.poll() is None
    processes.scheduler.kill()
    lost = time.monotonic()
    out, err = running.communicate(timeout=60)
    assert time.monotonic() - lost < 30
    assert running.returncode == 3, err
    assert out == ""
    assert err.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in err
    assert old.read_bytes() == before
    assert sorted(path.name for path in old.parent.iterdir()) == ["scores.parquet"]


@pytest.mark.parametrize("n_models", [1, 16, 17, 400, 10_000])
@pytest.mark.parametrize(("n_threads", "n_panels"), [(1, 1), (2, 3), (64, 1), (256, 90)])
def test_blocks_of_models_hold_whole_groups(n_models: int, n_threads: int, n_panels: int) -> None:
    blocks = cluster.model_blocks(n_models, n_threads, n_panels)
    flat = [m for block in blocks for models in block for m in models]
    assert flat == list(range(n_models))
    assert all(models.start % 16 == 0 for block in blocks for models in block)
    assert len(blocks) * n_panels <= 4 * n_threads + n_panels
