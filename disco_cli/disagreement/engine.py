"""Scoring every sample of a benchmark in one pass over the files, on the cores of one machine.

Nothing about how the work is cut or shared changes a bit of the result; see
:mod:`disco_cli.disagreement.state` for why.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.disagreement.panel import Panel, groups, in_file_order, state_dtype
from disco_cli.disagreement.plan import (
    EngineOptions,
    cut,
    decoding_threads,
    panel_rows,
    panel_rows_in_place,
)
from disco_cli.disagreement.state import Figures, State, finish
from disco_cli.disagreement.turns import Turns
from disco_cli.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from disco_cli.disagreement.correctness import Correctness
    from disco_cli.disagreement.measures import Floats
    from disco_cli.files.matrix import Benchmark


@dataclass(frozen=True)
class SampleScores:
    """Disagreement on each sample of a benchmark; every array is (N,).

    Attributes
    ----------
    pds, jsd, confidence : NDArray of float64
        As :mod:`disco_cli.disagreement.measures` defines them; NaN where no model has the sample.
    n_models : NDArray of int64
        Models that have the sample.
    error_rate : NDArray of float64 or None
        1 − mean correctness (or response) over the models; NaN where none is known, ``None`` where
        neither labels nor responses in [0, 1] exist.
    """

    pds: NDArray[np.float64]
    jsd: NDArray[np.float64]
    confidence: NDArray[np.float64]
    n_models: NDArray[np.int64]
    error_rate: NDArray[np.float64] | None


def score_benchmark(
    benchmark: Benchmark,
    *,
    options: EngineOptions | None = None,
    progress: Progress = SILENT,
    kept: Correctness | None = None,
) -> SampleScores:
    """Score all samples of a benchmark.

    Parameters
    ----------
    benchmark : Benchmark
        Aligned prediction files with at least one model.
    options : EngineOptions, optional
        Bounds on memory and threads.
    progress : Progress
        Told of every model that is done.
    kept : Correctness, optional
        Where to keep how right each model is on each sample.

    Returns
    -------
    SampleScores
        The same bits whatever the options and the order of files and rows.

    Raises
    ------
    InputError
        A row that cannot be used; names file, row and sample.
    """
    M, N = len(benchmark.models), benchmark.samples.n
    options = (options or EngineOptions()).for_values(M * N * benchmark.width)
    ordered = [in_file_order(model) for model in benchmark.models]
    held = max(model.file.held_bytes for model in benchmark.models)
    in_place = all(ordered) and all(model.file.random_access for model in benchmark.models)
    if in_place:
        size = panel_rows_in_place(N, benchmark.width, options)
    else:
        item_bytes = state_dtype(benchmark).itemsize
        size = panel_rows(
            benchmark.width, item_bytes, options, scattered=not all(ordered), held_bytes=held
        )
    panels = [Panel(benchmark, rows, options, ordered, kept) for rows in cut(N, size)]
    _keep_freed_memory()
    progress.start(len(panels) * M, "Scoring")
    if in_place:
        return collect(_score_panels_at_once(panels, options.n_threads, progress))
    return collect(_score_panels_in_turn(panels, decoding_threads(options, held), progress))


def _keep_freed_memory() -> None:
    """Let the C library keep the memory of freed blocks for the next ones.

    glibc gives blocks of more than 128 KiB back to the system and gets them anew, zeroed, each
    time, until it has seen a larger one being freed. Measured on 64 files of 16 MB: 100,000 page
    faults and a sixth of the time.
    """
    np.empty(1 << 24, np.uint8)


def _score_panels_at_once(
    panels: Sequence[Panel], n_threads: int, progress: Progress
) -> list[Figures]:
    """Let each thread take a panel through all models."""
    stop = threading.Event()

    def score(panel: Panel) -> Figures | None:
        state = panel.empty()
        for models in groups(len(panel.benchmark.models)):
            if stop.is_set():
                return None
            panel.add(models, state)
            progress.advance(len(models))
        return finish(state)

    return _run([partial(score, panel) for panel in panels], n_threads, stop.set)


def _score_panels_in_turn(
    panels: Sequence[Panel], n_threads: int, progress: Progress
) -> list[Figures]:
    """Let the threads take models through one panel after the other."""

    def add(panel: Panel, m: int, state: State, sums: Floats, turns: Turns) -> None:
        panel.add_model(m, state, sums, turns)
        progress.advance(1)

    def score(panel: Panel) -> Figures:
        state, turns = panel.empty(), Turns(len(panel.blocks), 0)
        sums = np.zeros_like(state.maximum)
        models = range(len(panel.benchmark.models))
        _run([partial(add, panel, m, state, sums, turns) for m in models], n_threads, turns.stop)
        return finish(state)

    return [score(panel) for panel in panels]  # a state is freed before the next is made


def _run(tasks: Sequence[Callable[[], Any]], n_threads: int, stop: Callable[[], None]) -> list[Any]:
    """Return what the tasks return; of several that fail the first one tells why."""
    if min(n_threads, len(tasks)) == 1:
        return [task() for task in tasks]
    with ThreadPoolExecutor(n_threads, thread_name_prefix="disco-score") as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:  # a bad file, or Ctrl-C: do not finish the rest first
            stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def collect(figures: Sequence[Figures]) -> SampleScores:
    """Join the figures of consecutive ranges of samples."""

    def join(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in figures])

    error_rate = join("error_rate")
    return SampleScores(
        pds=join("pds"),
        jsd=join("jsd"),
        confidence=join("confidence"),
        n_models=join("n_models"),
        error_rate=None if np.isnan(error_rate).all() else error_rate,
    )
