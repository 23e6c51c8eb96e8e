"""Backtest every method on every data set; write ``backtest_results.json``.

    python benchmarks/backtest_results.py [--only METHOD] [SET …]

Finished cells are kept in ``disco-run/backtest``: after a new method is registered only its cells
run. ``--only`` measures one method whose code has changed, beside the random sample it is compared
with, and leaves the figures of all others. ``backtest_report.py`` turns the JSON into ``docs/results.md``.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

from backtest_sets import CACHE, SETS, DataSet

from disco_cli.backtest.baselines.registry import METHODS
from disco_cli.backtest.cells import BacktestOptions
from disco_cli.backtest.journal import read_seconds, seconds_path
from disco_cli.backtest.run import run_backtest
from disco_cli.backtest.splits import SplitKind
from disco_cli.backtest.summary import flat, metric_names, summarise

RESULT = Path(__file__).with_name("backtest_results.json")
SEEDS = 3


def measure(chosen: DataSet, methods: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the figures of one set, or ``None`` where it is absent."""
    source = chosen.files()
    if source is None:
        return None
    data = source()
    entry: dict[str, Any] = {
        "what": chosen.what,
        "source": chosen.source,
        "models": len(data.names),
        "samples": len(data.weights),
        "notes": [note for note in data.notes if "left out" in note],
        "figures": metric_names(),
        "splits": {},
    }
    for split in chosen.splits:
        start = time.perf_counter()
        options = BacktestOptions(chosen.ks, methods, SplitKind(split), seeds=SEEDS)
        only = "" if len(methods) == len(METHODS) else f"-{methods[-1]}"
        path = CACHE / f"{chosen.name}-{split}{only}.jsonl"
        rows = run_backtest(data, source, options, path, jobs=os.cpu_count() or 1, force=True)
        print(f"{chosen.name} {split}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        entry["splits"][split] = {
            "targets": len(rows[0]["targets"]),
            "methods": [
                {
                    "k": found.k,
                    "method": found.method,
                    "repeats": found.repeats,
                    "mean": [_number(value) for value in flat(found.mean)],
                    "mae_spread": _number(found.spread.mae if found.spread else math.nan),
                    "relative": _number(found.relative),
                    "random_k": _number(found.random_k),
                    "seconds": _number(found.seconds),
                    "error": found.error,
                }
                for found in summarise(rows, read_seconds(seconds_path(path)))
            ],
        }
    return entry


def one_line_per_method(result: dict[str, object]) -> str:
    """Return JSON that a difference between two versions can be read in."""
    text = json.dumps(result, ensure_ascii=False)
    return text.replace('{"k":', '\n{"k":').replace(', "splits"', ',\n"splits"') + "\n"


def _number(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None


def merge(old: dict[str, Any], new: dict[str, Any], method: str) -> dict[str, Any]:
    """Return the old figures of a set with those of one method replaced."""
    for split, found in new["splits"].items():
        fresh = {entry["k"]: entry for entry in found["methods"] if entry["method"] == method}
        entries = old["splits"][split]["methods"]
        old["splits"][split]["methods"] = [
            fresh[entry["k"]] if entry["method"] == method else entry for entry in entries
        ]
    return old


def main(names: list[str]) -> None:
    """Measure the sets of these names, all by default, and merge them into the JSON."""
    only = names[1] if names[:1] == ["--only"] else None
    names = names[2:] if only else names
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for chosen in SETS:
        if not names or chosen.name in names:
            entry = measure(chosen, ("random", only) if only else tuple(METHODS))
            if entry is not None:
                result[chosen.name] = merge(result[chosen.name], entry, only) if only else entry
                result = {each.name: result[each.name] for each in SETS if each.name in result}
                RESULT.write_text(one_line_per_method(result))


if __name__ == "__main__":
    main(sys.argv[1:])
