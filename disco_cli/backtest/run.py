"""Running the cells of a backtest, in this process or spread over several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import closing
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, cast

from disco_cli.backtest.cells import BacktestOptions, CellRunner, Task, make_tasks, plan
from disco_cli.backtest.journal import Journal
from disco_cli.progress import SILENT, Progress
from disco_cli.threads import single_threaded

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess
    from pathlib import Path

    from disco_cli.backtest.data import BacktestData

Source = Callable[[], "BacktestData"]
"""Loads the data; must be picklable to be used by several processes."""

LIBRARIES = ("sklearn.cluster", "sklearn.ensemble")
"""What methods compute with, beside numpy."""

Finished = tuple[dict[str, Any], float]
"""(row, seconds) of one cell."""


def run_backtest(
    data: BacktestData,
    source: Source,
    options: BacktestOptions,
    path: Path,
    *,
    jobs: int = 1,
    force: bool = False,
    progress: Progress = SILENT,
) -> list[dict[str, Any]]:
    """Run what is not yet in the file of rows; return the rows of all cells in their order.

    Parameters
    ----------
    data : BacktestData
        What ``source`` loads.
    source : Source
        How other processes load the data for themselves.
    options : BacktestOptions
        What is measured.
    path : Path
        The file of rows, see :mod:`disco_cli.backtest.journal`.
    jobs : int
        Number of processes; 1 runs in this one. The rows do not depend on it.
    force : bool
        Drop rows of another backtest that are in the way.
    progress : Progress
        Told of every finished cell.

    Raises
    ------
    UsageError
        If the options do not fit the data.
    ArtifactError
        If the file holds rows of another backtest.
    """
    cells, splits = plan(data, options)
    keys = [cell.key for cell in cells]
    run_id = options.run_id(data)
    with Journal(path, run_id, force=force) as journal:
        tasks = make_tasks(cells, splits, journal.done)
        if tasks:
            progress.start(sum(len(task.cells) for task in tasks), "backtest")
        turn = journal.advance(keys, 0)
        jobs = min(jobs, len(tasks))
        finished = (
            _in_processes(source, run_id, options.level, tasks, jobs)
            if jobs > 1
            else _in_this_process(CellRunner(data, run_id, options.level), tasks)
        )
        with closing(finished):  # ends the workers now, not when the garbage is collected
            for row, seconds in finished:
                journal.add(row, seconds)
                turn = journal.advance(keys, turn)
                progress.advance()
        journal.finish()
        return [journal.rows[key] for key in keys]


def _in_this_process(runner: CellRunner, tasks: list[Task]) -> Generator[Finished, None, None]:
    if not tasks:
        return  # nothing is worth the second that the libraries take to load
    with single_threaded(*LIBRARIES):
        for task in tasks:
            for _, cell in task.cells:
                yield runner.run(task.split, cell)


def _in_processes(
    source: Source, run_id: str, level: float, tasks: list[Task], jobs: int
) -> Generator[Finished, None, None]:
    """Yield rows as other processes finish them, in no particular order."""
    context = multiprocessing.get_context("spawn")
    workers: dict[Connection, SpawnProcess] = {}
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(theirs, source, run_id, level))
            worker.start()
            theirs.close()
            workers[ours] = worker
        yield from _hand_out(list(workers), tasks)
    finally:
        for connection, worker in workers.items():
            connection.close()
            worker.terminate()
            worker.join()


def _hand_out(connections: list[Connection], tasks: list[Task]) -> Generator[Finished, None, None]:
    """Give every idle worker the next task, until all are done."""
    queue = iter(tasks)
    busy = list(connections)
    while busy:
        for connection in cast("list[Connection]", wait(busy)):
            try:
                message = connection.recv()
            except EOFError:
                raise RuntimeError("a worker of the backtest died; out of memory?") from None
            if isinstance(message, BaseException):
                raise message
            if message is not None:
                yield message
                continue
            task = next(queue, None)
            connection.send(task)
            if task is None:
                busy.remove(connection)


def _work(connection: Connection, source: Source, run_id: str, level: float) -> None:
    """Load the data and run tasks until there are none; the body of a worker."""
    # Ctrl-C reaches the whole group of processes; the parent ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    try:
        runner = CellRunner(source(), run_id, level)
        with single_threaded(*LIBRARIES):
            connection.send(None)
            while (task := connection.recv()) is not None:
                for _, cell in task.cells:
                    connection.send(runner.run(task.split, cell))
                connection.send(None)
    except (BrokenPipeError, ConnectionResetError, EOFError):
        return  # the parent is gone, so nobody wants the rest
    except Exception as error:  # noqa: BLE001  (raised again in the parent)
        connection.send(error)


def _leave_with_the_parent() -> None:
    """End this process when its parent has been killed, even in the middle of a long cell."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
