"""Scoring on Dask workers, on this machine or on many.

A task adds some groups of models to the state of one panel of samples; a tree of merges joins the
states of a panel, and its root is finished where it is. What comes back are a few numbers a
sample. Merging is exact (:mod:`disco_cli.disagreement.state`), so neither the tree nor which worker
did what changes a bit, and what a lost worker had done is simply done again elsewhere.
"""

from __future__ import annotations

import asyncio
import importlib
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli import __version__
from disco_cli.disagreement.correctness import Correctness, correctness_dtype
from disco_cli.disagreement.engine import SampleScores, collect
from disco_cli.disagreement.panel import Panel, groups, in_file_order, state_dtype
from disco_cli.disagreement.plan import EngineOptions, cut
from disco_cli.disagreement.state import State, finish, merge
from disco_cli.errors import ClusterError, DiscoError, UsageError
from disco_cli.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from disco_cli.files.matrix import Benchmark

_STATES_PER_TASK = 6
"""States that a worker may hold for each of its threads: under construction, finished and waiting
to be merged, two that are merged and their sum, and one on its way to another worker."""

_TASKS_PER_THREAD = 4
"""More, smaller tasks share the work better and lose less with a worker; fewer mean fewer merges."""

_PATIENCE_SECONDS = 10.0
"""How long a scheduler may be out of reach, or have no worker, before the work is given up."""

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Workers:
    """What a cluster has to offer: threads in all, and bytes for each of them."""

    n_threads: int
    bytes_per_thread: int


def score_on_cluster(
    benchmark: Benchmark,
    *,
    options: EngineOptions,
    progress: Progress = SILENT,
    kept: Correctness | None = None,
) -> SampleScores:
    """Score all samples of a benchmark on the workers of a cluster.

    Parameters
    ----------
    benchmark : Benchmark
        Aligned prediction files with at least one model. Workers read the files themselves, so
        every worker has to reach them under the same path or URL.
    options : EngineOptions
        The scheduler to join, if any; ``memory_bytes`` bounds what one task holds.
    progress : Progress
        Told of every model that is done.
    kept : Correctness, optional
        Where to keep how right each model is on each sample.

    Returns
    -------
    SampleScores
        The bits that :func:`disco_cli.disagreement.engine.score_benchmark` returns.

    Raises
    ------
    UsageError
        Dask is not installed.
    ClusterError
        The scheduler or its workers cannot be reached, are lost, or run other versions.
    InputError
        A row that cannot be used.
    """
    with _connected(options) as client:
        workers = _workers(client, options)
        panels = cut(benchmark.samples.n, panel_rows(benchmark, workers))
        blocks = model_blocks(len(benchmark.models), workers.n_threads, len(panels))
        progress.start(len(panels) * len(benchmark.models), "Scoring")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Dask's advice on large arguments
            shared = client.submit(_same, benchmark, [in_file_order(m) for m in benchmark.models])
        steps: dict[Any, int] = {}
        roots, parts = [], []
        for rows in panels:
            states = []
            for block in blocks:
                done = client.submit(
                    add_block, shared, rows, block, options, kept is not None, pure=False
                )
                state = client.submit(itemgetter(0), done, pure=False)
                if kept is not None:
                    parts.append(client.submit(itemgetter(1), done, pure=False))
                steps[state] = sum(map(len, block))
                states.append(state)
            roots.append(client.submit(finish, _tree(client, states), pure=False))
        _watch(client, roots, steps, progress)
        for part in parts:  # one after the other: together they may be more than fits
            if kept is not None:
                kept.paste(part.result())
        return collect(client.gather(roots))


def model_blocks(n_models: int, n_threads: int, n_panels: int) -> list[list[range]]:
    """Return blocks of whole groups of models, enough of them to keep all threads busy.

    The more panels there are, the fewer blocks are needed: every block of every panel is a state
    that travels to be merged.
    """
    whole = groups(n_models)
    n_blocks = min(len(whole), -(-_TASKS_PER_THREAD * n_threads // n_panels))
    bounds = [len(whole) * block // n_blocks for block in range(n_blocks + 1)]
    return [whole[bounds[block] : bounds[block + 1]] for block in range(n_blocks)]


def panel_rows(benchmark: Benchmark, workers: Workers) -> int:
    """Return how many samples a panel may have so that a worker's states fit its memory."""
    item_bytes = 8 + 2 * state_dtype(benchmark).itemsize
    kept_dtype = correctness_dtype(benchmark)
    kept_bytes = 0 if kept_dtype is None else kept_dtype.itemsize * len(benchmark.models)
    row_bytes = _STATES_PER_TASK * (item_bytes * benchmark.width + 100) + kept_bytes
    return max(2, workers.bytes_per_thread // row_bytes)


def add_block(
    shared: tuple[Benchmark, Sequence[bool]],
    rows: slice,
    block: Sequence[range],
    options: EngineOptions,
    keeps: bool = False,
) -> tuple[State, Correctness | None]:
    """Return the state of some samples with some groups of models; runs on a worker.

    Where it ``keeps``, how right these models are on these samples comes with it.
    """
    benchmark, ordered = shared
    dtype = correctness_dtype(benchmark) if keeps else None
    kept = None
    if dtype is not None:
        shape = (sum(map(len, block)), rows.stop - rows.start)
        kept = Correctness(np.empty(shape, dtype), block[0].start, rows.start)
    panel = Panel(benchmark, rows, options, ordered, kept)
    state = panel.empty()
    for models in block:
        panel.add(models, state)
    return state, kept


def _same(benchmark: Benchmark, ordered: Sequence[bool]) -> tuple[Benchmark, Sequence[bool]]:
    """Return what it is given: a task, so that it can be repeated when a worker is lost."""
    return benchmark, ordered


def _tree(client: Any, states: Sequence[Any]) -> Any:
    """Merge states in pairs, pairs of pairs, and so on."""
    level = list(states)
    while len(level) > 1:
        pairs = [
            client.submit(merge, first, second, pure=False)
            for first, second in zip(level[::2], level[1::2], strict=False)
        ]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


@contextmanager
def _connected(options: EngineOptions) -> Iterator[Any]:
    """Join the scheduler, or start one with a worker for each core."""
    import logging

    try:
        dask: Any = importlib.import_module("dask")
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise UsageError(f"--engine dask: {error}; pip install 'disco-cli[dask]'") from error
    # What happens to the cluster is told by our own errors, in one line.
    for name in ("distributed", "distributed.core", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    timeouts = {"distributed.comm.timeouts.connect": "10s", "distributed.comm.timeouts.tcp": "15s"}
    with dask.config.set(timeouts):
        cluster = None
        try:
            if options.scheduler is None:
                cluster = distributed.LocalCluster(
                    n_workers=options.n_threads,
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            client = distributed.Client(
                options.scheduler if cluster is None else cluster, timeout="10s"
            )
        except (OSError, ValueError, TypeError) as error:
            if cluster is not None:
                cluster.close()
            where = options.scheduler or "a cluster of this machine"
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ClusterError(f"{where}: cannot be reached: {reason}") from error
        where = client.scheduler.address
        try:
            yield client
        except _lost_errors(distributed) as error:
            raise _lost(where) from error
        finally:
            client.close(timeout=2)
            if cluster is not None:
                cluster.close(timeout=5)


def _workers(client: Any, options: EngineOptions) -> Workers:
    """Return what the workers offer, after a look at their versions."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not client.nthreads():
        if time.monotonic() > deadline:
            raise ClusterError(f"{client.scheduler.address}: has no workers; start dask worker")
        time.sleep(_POLL_SECONDS)
    n_threads = 0
    per_thread = [options.memory_bytes]
    for address, offer in client.run(_offer).items():
        if offer["versions"] != _versions():
            raise ClusterError(
                f"worker {address}: has {offer['versions']}, but here is {_versions()}; the same "
                "bits need the same versions everywhere"
            )
        n_threads += offer["n_threads"]
        if offer["memory_bytes"]:
            per_thread.append(offer["memory_bytes"] // offer["n_threads"])
    return Workers(n_threads, min(per_thread))


def _offer(dask_worker: Any) -> dict[str, Any]:
    """Return what a worker has; runs there."""
    return {
        "versions": _versions(),
        "n_threads": dask_worker.state.nthreads,
        "memory_bytes": dask_worker.memory_manager.memory_limit,
    }


def _versions() -> dict[str, str]:
    """Return the versions that decide on the bits of a result."""
    return {"numpy": np.__version__, "disco_cli": __version__}


def _watch(client: Any, roots: Sequence[Any], steps: dict[Any, int], progress: Progress) -> None:
    """Wait until all is done, telling of progress; give up when the cluster is lost.

    Asked for rather than waited for: a client waits for a lost scheduler much longer than a person
    does.
    """
    pending = dict(steps)
    where = client.scheduler.address
    lost_since: float | None = None
    asked = time.monotonic()
    while not all(root.status == "finished" for root in roots):
        for future in [future for future in pending if future.status == "finished"]:
            progress.advance(pending.pop(future))
        for future in (*pending, *roots):
            if future.status == "error":
                raise _told(future.exception())
        now = time.monotonic()
        reachable = client.status == "running"
        if reachable and now - asked > _PATIENCE_SECONDS / 5:
            asked = now
            reachable = _has_workers(client)
        lost_since = None if reachable else lost_since or now
        if lost_since is not None and now - lost_since > _PATIENCE_SECONDS:
            raise _lost(where)
        time.sleep(_POLL_SECONDS)
    progress.advance(sum(pending.values()))


def _has_workers(client: Any) -> bool:
    """Return whether the scheduler answers and has workers."""
    try:
        return bool(client.nthreads())
    except (OSError, RuntimeError):  # what the client raises while it is not connected
        return False


def _lost(where: str) -> ClusterError:
    return ClusterError(
        f"{where}: lost the scheduler or all of its workers; nothing was "
        "written, run the command again"
    )


def _lost_errors(distributed: Any) -> tuple[type[BaseException], ...]:
    """Return what the client raises when its scheduler goes away while it waits for an answer."""
    return (
        distributed.comm.CommClosedError,
        distributed.client.FutureCancelledError,
        asyncio.CancelledError,
        TimeoutError,
    )


def _told(error: BaseException | None) -> Exception:
    """Return the error of a task as one that can be shown."""
    if isinstance(error, DiscoError):
        return error
    if type(error).__name__ == "KilledWorker":
        return ClusterError(
            "workers died again and again on the same task; give them more memory, or less to do "
            "at once with --memory"
        )
    return error if isinstance(error, Exception) else ClusterError(f"a task failed: {error!r}")
