"""Running a backtest: leakage, resuming, interruption, and what the files hold."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from disco_cli.backtest.baselines.interface import Estimate, Fitted, draw
from disco_cli.backtest.baselines.registry import METHODS, Method
from disco_cli.backtest.cells import BacktestOptions, Cell, CellRunner, TimedMemo, make_tasks, plan
from disco_cli.backtest.data import BacktestData
from disco_cli.backtest.journal import read_rows, read_seconds, seconds_path
from disco_cli.backtest.run import LIBRARIES, run_backtest
from disco_cli.backtest.splits import SplitKind
from disco_cli.errors import ArtifactError, InputError, UsageError
from disco_cli.threads import single_threaded


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with single_threaded(*LIBRARIES):
        yield


QUICK = ("mean", "random", "stratified-random", "sort-search", "random-ridge", "random-aipw")


@dataclass(frozen=True)
class World:
    """A small benchmark, made anew in every process."""

    n_models: int = 24
    n_samples: int = 80
    scale: float = 1.0

    def __call__(self) -> BacktestData:
        rng = np.random.default_rng(0)
        logit = np.linspace(-2, 2, self.n_models)[:, None] + rng.normal(size=self.n_samples)
        y = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(np.float64) * self.scale
        return BacktestData(
            names=tuple(f"model-{m:02}" for m in range(self.n_models)),
            responses=y,
            weights=np.full(self.n_samples, 1 / self.n_samples),
            truth=y.mean(axis=1),
            dates=tuple(f"2024-{1 + m % 12:02}" for m in range(self.n_models)),
            groups=np.arange(self.n_samples) % 2,
        )


def run(path, options, world=World(), **more):
    return run_backtest(world(), world, options, path, **more)


def test_rows_are_written_in_cell_order(tmp_path):
    path = tmp_path / "backtest.jsonl"
    rows = run(path, BacktestOptions((5, 10), QUICK, seeds=2))
    assert read_rows(path) == rows
    cells, _ = plan(World()(), BacktestOptions((5, 10), QUICK, seeds=2))
    assert [(r["repeat"], r["k"], r["method"]) for r in rows] == [
        (c.repeat, c.k, c.method) for c in cells
    ]
    assert set(read_seconds(seconds_path(path))) == {cell.key for cell in cells}
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "backtest.jsonl",
        "backtest.seconds.jsonl",
    ]


def test_number_of_processes_changes_no_byte(tmp_path):
    options = BacktestOptions((5, 10), (*QUICK, "random-p-irt", "pds-knn"), seeds=2)
    run(tmp_path / "one.jsonl", options)
    run(tmp_path / "two.jsonl", options, jobs=2)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


@pytest.mark.parametrize("kept", [0, 1, 700, 4000, -1])
def test_a_file_cut_off_anywhere_is_completed_to_the_same_bytes(tmp_path, kept):
    path = tmp_path / "backtest.jsonl"
    options = BacktestOptions((5, 10), QUICK, seeds=2)
    run(path, options)
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    seconds_path(path).write_text('{"cell": "half a li')
    run(path, options)
    assert path.read_bytes() == whole


def test_finished_cells_do_not_run_again(tmp_path, monkeypatch):
    path = tmp_path / "backtest.jsonl"
    options = BacktestOptions((5,), QUICK, seeds=1)
    run(path, options)
    monkeypatch.setattr(CellRunner, "run", None)
    assert len(run(path, options)) == len(QUICK)


def test_more_methods_extend_a_finished_file(tmp_path):
    path = tmp_path / "backtest.jsonl"
    run(path, BacktestOptions((5,), ("mean", "random"), seeds=1))
    before = path.read_bytes()
    rows = run(path, BacktestOptions((5, 10), ("mean", "random", "sort-search"), seeds=1))
    assert len(rows) == 6
    assert path.read_bytes().startswith(before)


def test_rows_of_another_backtest_are_refused_and_dropped_by_force(tmp_path):
    path = tmp_path / "backtest.jsonl"
    run(path, BacktestOptions((5,), ("random",), seeds=1))
    other = BacktestOptions((5,), ("random",), seeds=1, split=SplitKind.STRONGEST)
    with pytest.raises(ArtifactError, match=r"line 1 is of a backtest on other data.*--force"):
        run(path, other)
    with pytest.raises(ArtifactError):
        run(path, BacktestOptions((5,), ("random",), seeds=1), World(n_samples=81))
    rows = run(path, other, force=True)
    assert read_rows(path) == rows


def test_a_file_that_holds_no_rows_is_refused(tmp_path):
    path = tmp_path / "backtest.jsonl"
    path.write_text('{"some": "thing"}\n')
    with pytest.raises(ArtifactError, match="line 1 is not a row of a backtest"):
        run(path, BacktestOptions((5,), ("random",), seeds=1))


def test_a_method_that_cannot_work_gives_a_row_with_the_reason(tmp_path):
    rows = run(
        tmp_path / "b.jsonl", BacktestOptions((5,), ("random", "pds-knn"), seeds=1), World(scale=10)
    )
    assert "error" not in rows[0]
    assert "responses between 0 and 1" in rows[1]["error"]


def test_a_bug_in_a_method_ends_the_backtest(tmp_path, monkeypatch):
    def broken(references, k, rng):
        raise ZeroDivisionError

    monkeypatch.setitem(METHODS, "random", Method("random", broken, "broken"))
    with pytest.raises(ZeroDivisionError):
        run(tmp_path / "b.jsonl", BacktestOptions((5,), ("random",), seeds=1))


def test_an_error_in_another_process_comes_back(tmp_path):
    def run_it():
        run_backtest(
            World()(), FailingSource(), BacktestOptions((5,), QUICK), tmp_path / "b.jsonl", jobs=2
        )

    with pytest.raises(InputError, match="the file has gone"):
        run_it()


@dataclass(frozen=True)
class FailingSource:
    def __call__(self) -> BacktestData:
        raise InputError("the file has gone")


def test_k_beyond_the_benchmark_is_refused(tmp_path):
    with pytest.raises(UsageError, match="--k 81: the benchmark has 80 samples"):
        run(tmp_path / "b.jsonl", BacktestOptions((5, 81), QUICK))


def test_methods_on_random_subsets_share_them_and_subsets_are_nested(tmp_path, monkeypatch):
    seen = {}

    def spy(name):
        def fit(references, k, rng):
            seen[name, k] = draw(rng, references.n_samples, k)
            return Fitted(seen[name, k], lambda *_: Estimate(0.5))

        return fit

    for name in ("random", "random-ridge"):
        monkeypatch.setitem(METHODS, name, Method(name, spy(name), name))
    run(tmp_path / "b.jsonl", BacktestOptions((5, 10), ("random", "random-ridge"), seeds=1))
    np.testing.assert_array_equal(seen["random", 5], seen["random-ridge", 5])
    assert set(seen["random", 5]) < set(seen["random", 10])


@pytest.mark.parametrize("method", METHODS)
def test_no_method_beats_the_mean_when_the_truths_of_targets_are_shuffled(method):
    data = World(n_models=40)()
    options = BacktestOptions((20,), ("mean", method), seeds=1)
    cells, splits = plan(data, options)
    targets = splits[0].targets
    errors = {"mean": [], method: []}
    for shuffle in range(3):
        truth = data.truth.copy()
        truth[targets] = truth[np.random.default_rng(shuffle).permutation(targets)]
        runner = CellRunner(dataclasses.replace(data, truth=truth), "run", 0.9)
        for cell, split in zip(cells, splits, strict=True):
            row, _ = runner.run(split, cell)
            error = np.array(row["estimate"]) - np.array(row["truth"])
            errors[cell.method].append(np.abs(error).mean())
    assert np.mean(errors[method]) >= 0.95 * np.mean(errors["mean"])


def test_changing_targets_outside_s_changes_no_row():
    data = World()()
    options = BacktestOptions((8,), tuple(METHODS), seeds=1)
    cells, splits = plan(data, options)
    runner = CellRunner(data, "run", 0.9)
    for cell, split in zip(cells, splits, strict=True):
        row, _ = runner.run(split, cell)
        fitted = METHODS[cell.method].fit(runner._references(split)[0], 8, _cell_rng(cell))
        y = data.responses.copy()
        outside = np.setdiff1d(np.arange(80), fitted.positions)
        y[np.ix_(split.targets, outside)] = 1 - y[np.ix_(split.targets, outside)]
        changed = CellRunner(dataclasses.replace(data, responses=y), "run", 0.9)
        assert changed.run(split, cell)[0] == row


def _cell_rng(cell: Cell) -> np.random.Generator:
    from disco_cli.backtest.splits import stable_rng

    return stable_rng("cell", cell.split, cell.repeat, cell.fold)


def test_leave_one_out_has_a_cell_for_each_model(tmp_path):
    rows = run(
        tmp_path / "b.jsonl",
        BacktestOptions((5,), ("random",), SplitKind.LEAVE_ONE_OUT, seeds=1),
        World(n_models=6),
    )
    assert [row["targets"] for row in rows] == [[f"model-{m:02}"] for m in range(6)]


def test_tasks_hold_the_cells_that_share_work():
    data = World()()
    cells, splits = plan(data, BacktestOptions((5, 10), ("random", "random-irt", "random-p-irt")))
    tasks = make_tasks(cells, splits, {cells[0].key})
    assert [len(task.cells) for task in tasks[:2]] == [4, 1]
    assert sum(len(task.cells) for task in tasks) == len(cells) - 1


def test_repeats_with_the_same_references_share_work():
    data = World()()
    options = BacktestOptions((5,), ("random-irt",), SplitKind.STRONGEST, seeds=3)
    cells, splits = plan(data, options)
    (task,) = make_tasks(cells, splits, set())
    assert [cell.repeat for _, cell in task.cells] == [0, 1, 2]


def test_shared_work_is_charged_to_everybody_who_uses_it():
    memo = TimedMemo()
    memo.begin()
    memo.once("slow", lambda: time.sleep(0.05))
    first = memo.seconds(0.05)
    memo.begin()
    memo.once("slow", lambda: time.sleep(0.05))
    assert memo.seconds(0.0) == pytest.approx(memo.seconds(0.0))
    assert memo.seconds(0.001) >= 0.05
    assert first >= 0.05


LARGE = World(n_models=60, n_samples=400)
LARGE_OPTIONS = BacktestOptions((20, 50), (*QUICK, "random-p-irt", "metabench"), seeds=2)
PROGRAM = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from test_backtest_run import LARGE, LARGE_OPTIONS
    from disco_cli.backtest.run import run_backtest

    if __name__ == "__main__":
        run_backtest(LARGE(), LARGE, LARGE_OPTIONS, Path(sys.argv[1]), jobs=2)
    """
)


@pytest.fixture(scope="module")
def through(tmp_path_factory):
    path = tmp_path_factory.mktemp("through") / "backtest.jsonl"
    run(path, LARGE_OPTIONS, LARGE)
    return path.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_killed_half_way_and_started_again_gives_the_same_bytes(tmp_path, through, name):
    if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        pytest.skip("a job in the background ignores Ctrl-C, and so do its children")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    path = tmp_path / "backtest.jsonl"
    process = subprocess.Popen(
        [sys.executable, str(program), str(path)],
        env=dict(os.environ, PYTHONPATH=str(Path(__file__).parent)),
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if seconds_path(path).exists() and seconds_path(path).read_bytes().count(b"\n") >= 9:
            process.send_signal(getattr(signal, name))
            break
        time.sleep(0.005)
    process.wait(timeout=60)
    assert path.read_bytes() != through, "it was too fast to be killed"
    finished_before = len(read_seconds(seconds_path(path)))
    assert finished_before >= 9
    run(path, LARGE_OPTIONS, LARGE)
    assert path.read_bytes() == through
    # A kill may fall between a row and its time, which is then missing.
    assert 31 <= len(seconds_path(path).read_bytes().splitlines()) <= 32, "a cell ran twice"
    assert not path.with_name("backtest.pending.jsonl").exists()
