"""Estimates of the whole program on real results, beside plain random samples of the same size.

    python benchmarks/recipes.py [--sets A,B] [--splits …] [--ks …] [--seeds N] [--recipes …]

Every figure comes through the command line: references and targets are written as prediction files
into a temporary folder, then `disco select`, `disco build-db` and `disco predict --json` run on them
(in this process, through the program's own entry point, which spares three interpreter starts a
cell). Raw results go to ``recipes.json``, a line per cell; rows of an earlier run that are not
measured again stay. ``--report`` prints the tables from there, ``--markdown`` as in the docs.

*alike*: a random quarter of the models are targets, once per seed. *stronger*, *newer*: the best and
the newest quarter; the targets are always the same. Errors of targets share the luck of a draw, so several
selections of each division are averaged (``--selections``).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: the processes share the cores

import numpy as np
from recipes_sets import (
    LEFT_OUT,
    NAMES,
    SPLITS,
    find_set,
    load_stack,
    plain_samples,
    splits_of,
    write_models,
)
from recipes_table import print_tables

from disco_cli.backtest.metrics import measure
from disco_cli.backtest.splits import stable_rng

if TYPE_CHECKING:
    from disco_cli.backtest.data import BacktestData
    from disco_cli.backtest.splits import Split

RESULT = Path(__file__).with_name("recipes.json")


@dataclass(frozen=True)
class Task:
    """One division of one set, measured in one process."""

    name: str
    split: str
    repeat: int
    ks: tuple[int, ...]
    recipes: tuple[str, ...]
    selection_seeds: tuple[int, ...]
    folder: str


def run_disco(*arguments: object) -> tuple[str, float]:
    """Run one command; returns its standard output and how many seconds it took."""
    from typer.testing import CliRunner

    from disco_cli.cli import app

    start = time.perf_counter()
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exit_code != 0:
        message = f"disco {' '.join(map(str, arguments))}: {result.output}"
        raise RuntimeError(message) from result.exception
    return result.stdout, time.perf_counter() - start


def measure_task(task: Task) -> list[dict[str, Any]]:
    """Return a row for every size, recipe and seed of one division."""
    chosen = find_set(task.name)
    source = chosen.files()
    if source is None:
        return []
    data, stack = source(), load_stack(source.paths)
    split = splits_of(data, task.split, task.repeat + 1)[task.repeat]
    targets = [data.names[m] for m in split.targets]
    references = [data.names[m] for m in split.references]
    if task.split == "alike":
        # Models that answered only a part of the benchmark: fit to learn from, not to be judged by.
        references += sorted(set(map(str, stack["model_names"])) - set(data.names))
    rows = []
    with tempfile.TemporaryDirectory(dir=task.folder) as name:
        folder = Path(name)
        write_models(folder / "references.npz", stack, references)
        write_models(folder / "targets.npz", stack, targets)
        options = ["--no-answer", "wrong"] if chosen.counts_no_answer else []
        for k in task.ks:
            plain = _plain(task, data, split, k)
            for recipe in task.recipes:
                for seed in task.selection_seeds:
                    row = _cell(folder, data, split, k, recipe, seed, options)
                    head = {"set": task.name, "split": task.split, "repeat": task.repeat}
                    rows.append({**head, "references": len(references), **row, **plain})
    return rows


def _plain(task: Task, data: BacktestData, split: Split, k: int) -> dict[str, float]:
    rng = stable_rng("plain", task.name, task.split, task.repeat, k)
    error, width = plain_samples(
        data.responses[split.targets], data.weights, data.truth[split.targets], k, rng
    )
    return {"random_mae": _short(error), "random_width": _short(width)}


def _cell(
    folder: Path,
    data: BacktestData,
    split: Split,
    k: int,
    recipe: str,
    seed: int,
    options: list[str],
) -> dict[str, Any]:
    """Select, learn and predict once."""
    at = ["--dir", folder / f"{recipe}-{k}", "--quiet"]
    references = folder / "references.npz"
    seeded = ["--seed", seed, *options, *at]
    _, select_seconds = run_disco("select", references, "--k", k, "--recipe", recipe, *seeded)
    _, build_seconds = run_disco("build-db", references, *seeded)
    printed, predict_seconds = run_disco("predict", folder / "targets.npz", "--json", *at)
    by_model = {entry["model"]: entry for entry in map(json.loads, printed.splitlines())}
    found = [by_model[data.names[m]] for m in split.targets]
    truth = data.truth[split.targets]
    columns = {
        name: np.array([entry[name] for entry in found], dtype=np.float64)
        for name in ("estimate", "low", "high")
    }
    figures = measure(truth, columns["estimate"], columns["low"], columns["high"])
    statuses = [entry["status"] for entry in found]
    return {
        "targets": len(truth),
        "k": k,
        "recipe": recipe,
        "seed": seed,
        "predictor": found[0]["predictor"],
        "mae": _short(figures.mae),
        "bias": _short(figures.bias),
        "spearman": _short(figures.spearman),
        "coverage": _short(figures.coverage),
        "width": _short(figures.width),
        "with_interval": _short(figures.with_interval),
        "statuses": {status: statuses.count(status) for status in sorted(set(statuses))},
        "truth": [_short(value) for value in truth],
        **{name: [_short(value) for value in values] for name, values in columns.items()},
        "seconds": [round(s, 2) for s in (select_seconds, build_seconds, predict_seconds)],
    }


def _short(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None


def plan(arguments: argparse.Namespace, folder: str) -> list[Task]:
    """Return the tasks, and say on stderr what is passed over and why."""
    tasks = []
    for name in arguments.sets:
        chosen = find_set(name)
        source = chosen.files()
        if source is None:
            say(f"{name}: passed over, ../shared/data does not hold it")
            continue
        n_samples = len(source().weights)
        ks = tuple(k for k in arguments.ks if k < n_samples)
        for split in arguments.splits:
            if split == "newer" and not chosen.has_dates:
                say(f"{name}: no dates, so there is no split `newer`")
                continue
            seeds = tuple(range(arguments.selections))
            tasks += [
                Task(name, split, repeat, ks, arguments.recipes, seeds, folder)
                for repeat in range(arguments.seeds if split == "alike" else 1)
            ]
    for name, reason in LEFT_OUT.items():
        say(f"{name}: left out, {reason}")
    return tasks


def measure_all(tasks: list[Task], result: dict[str, Any], path: Path, jobs: int) -> None:
    """Run the tasks and keep the rows of each as soon as it has finished."""
    rows = {_key(row): row for row in result.get("rows", [])}
    done = 0
    with ProcessPoolExecutor(jobs) as pool:
        futures = {pool.submit(measure_task, task): task for task in tasks}
        for future in as_completed(futures):
            task = futures[future]
            rows |= {_key(row): row for row in future.result()}
            done += 1
            say(f"{task.name} {task.split} {task.repeat} ({done} of {len(tasks)})")
            result["rows"] = [rows[key] for key in sorted(rows)]
            write_result(path, result)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("set", "split", "k", "recipe", "repeat", "seed"))


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Write the JSON, one row a line."""
    head = {key: value for key, value in result.items() if key != "rows"}
    lines = ",\n".join(json.dumps(row, allow_nan=False) for row in result["rows"])
    path.write_text(json.dumps(head)[:-1] + f', "rows": [\n{lines}\n]}}\n')


def say(message: str) -> None:
    """Print a line with the time on stderr."""
    print(time.strftime("%H:%M:%S"), message, file=sys.stderr, flush=True)


def read_arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the options."""

    def listed(text: str) -> tuple[str, ...]:
        return tuple(text.split(","))

    def sizes(text: str) -> tuple[int, ...]:
        return tuple(int(word) for word in text.split(","))

    parser = argparse.ArgumentParser(description="Measure the recipes through the command line.")
    default = tuple(name for name in NAMES if name != "sample_data")
    parser.add_argument("--sets", type=listed, default=default, help=f"of {', '.join(NAMES)}")
    parser.add_argument("--splits", type=listed, default=tuple(SPLITS), help=", ".join(SPLITS))
    parser.add_argument("--ks", type=sizes, default=(30, 100, 300), help="numbers of samples")
    parser.add_argument("--seeds", type=int, default=5, help="random quarters in `alike`")
    parser.add_argument("--selections", type=int, default=3, help="of each division and size")
    parser.add_argument("--recipes", type=listed, default=("auto", "disco"), help="auto, disco")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--json", type=Path, default=RESULT, help="where raw results are kept")
    parser.add_argument("--report", action="store_true", help="print what is kept, measure nothing")
    parser.add_argument("--markdown", action="store_true", help="print the tables for the docs")
    arguments = parser.parse_args(words)
    for option, known in (("sets", NAMES), ("splits", SPLITS), ("recipes", ("auto", "disco"))):
        for name in getattr(arguments, option):
            if name not in known:
                parser.error(f"--{option} {name}: choose of {', '.join(known)}")
    return arguments


def main(words: list[str] | None = None) -> None:
    """Measure and print."""
    arguments = read_arguments(words)
    path = arguments.json
    result = json.loads(path.read_text()) if path.exists() else {"rows": []}
    if not arguments.report:
        with tempfile.TemporaryDirectory() as folder:
            tasks = plan(arguments, folder)
            start = time.time()
            measure_all(tasks, result, path, arguments.jobs)
        run = {
            "start": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(start)),
            "end": time.strftime("%Y-%m-%d %H:%M:%S"),
            **{name: getattr(arguments, name) for name in ("sets", "splits", "ks", "recipes")},
            "python": platform.python_version(),
            "numpy": np.__version__,
            "processes": arguments.jobs,
        }
        result["runs"] = [*result.get("runs", []), run]
        write_result(path, result)
        say(f"measured in {time.time() - start:.0f} s")
    print_tables(result["rows"], markdown=arguments.markdown)


if __name__ == "__main__":
    main()
