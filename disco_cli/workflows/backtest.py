"""``disco backtest``: how well each method would have predicted the models already known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disco_cli.backtest.baselines.registry import choose_methods
from disco_cli.backtest.cells import BacktestOptions
from disco_cli.backtest.data import FileSource
from disco_cli.backtest.families import families, read_families
from disco_cli.backtest.journal import read_seconds, seconds_path
from disco_cli.backtest.run import run_backtest
from disco_cli.backtest.splits import DEFAULT_TEST_SHARE, SplitKind
from disco_cli.backtest.summary import MethodSummary, flat, metric_names, summarise
from disco_cli.errors import UsageError
from disco_cli.estimation.truth import Average
from disco_cli.progress import SILENT, Progress
from disco_cli.workflows.inputs import ReadOptions
from disco_cli.workflows.level import check_level

DEFAULT_READ = ReadOptions()

DEFAULT_KS = (10, 30, 60, 100, 200)
"""Numbers of samples if none is named; those beyond the benchmark are left out."""


@dataclass(frozen=True)
class BacktestResult:
    """What a backtest found.

    Attributes
    ----------
    path : Path
        The raw rows, one line per cell.
    split : str
        How targets were chosen.
    n_models, n_samples, n_targets : int
        M, N, and the targets of one repeat.
    seeds : int
        Repeats.
    methods : tuple of MethodSummary
        By K and method; plain random sampling is always among them.
    notes : tuple of str
        What was taken for what, for stderr.
    """

    path: Path
    split: str
    n_models: int
    n_samples: int
    n_targets: int
    seeds: int
    methods: tuple[MethodSummary, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values; figures that are not defined are ``None``."""
        return {
            "rows": str(self.path),
            "split": self.split,
            "n_models": self.n_models,
            "n_samples": self.n_samples,
            "n_targets": self.n_targets,
            "seeds": self.seeds,
            "methods": [method_dict(found) for found in self.methods],
        }


def method_dict(found: MethodSummary) -> dict[str, Any]:
    """Return one line of the comparison, flat: each figure, then its spread as ``…_spread``."""
    line: dict[str, Any] = {"k": found.k, "method": found.method, "repeats": found.repeats}
    for name, mean, spread in zip(
        metric_names(), flat(found.mean), flat(found.spread), strict=True
    ):
        line[name] = _number(mean)
        line[f"{name}_spread"] = _number(spread)
    del line["n_spread"]
    if found.mean is not None and float(found.mean.n).is_integer():
        line["n"] = int(found.mean.n)
    line["relative"] = _number(found.relative)
    line["random_k"] = _number(found.random_k)
    line["seconds"] = _number(found.seconds)
    line["error"] = found.error
    return line


def backtest(
    paths: Sequence[str | Path],
    *,
    output: Path,
    ks: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    split: SplitKind = SplitKind.RANDOM,
    seeds: int = 3,
    test_share: float | None = None,
    cutoff: str | None = None,
    by_family: bool = False,
    family_table: Path | None = None,
    level: float = 0.9,
    average: Average = Average.MICRO,
    read: ReadOptions = DEFAULT_READ,
    jobs: int = 1,
    force: bool = False,
    progress: Progress = SILENT,
) -> BacktestResult:
    """Backtest methods on prediction files; cells that are in ``output`` already do not run again.

    With ``jobs`` > 1 other processes import the calling program; it must not start work when it is
    imported (``if __name__ == "__main__"``).

    Parameters
    ----------
    paths : sequence of path
        Prediction files of models with labels or responses.
    output : Path
        ``backtest.jsonl``; the times go beside it.
    ks : sequence of int, optional
        Numbers of samples; those of :data:`DEFAULT_KS` that the benchmark has by default.
    methods : sequence of str, optional
        Names of methods; all by default.
    split, seeds, test_share, cutoff
        How targets are chosen, and how often.
    by_family : bool
        Whether relatives of a target never serve as its references.
    family_table : Path, optional
        Table of families, model and family in each line; implies ``by_family``.
    level : float
        Level of intervals.
    average : Average
        Micro or macro.
    read : ReadOptions
        How files are understood.
    jobs : int
        Number of processes.
    force : bool
        Drop rows of another backtest that are in the way.
    progress : Progress
        Told of every finished cell.

    Raises
    ------
    DiscoError
        If files, options or rows do not fit.
    """
    if ks is not None and not ks:
        raise UsageError("--k names no number of samples")
    check_level(level)
    _check_share(test_share, split, cutoff)
    chosen = choose_methods(methods)
    source = FileSource(
        tuple(map(str, paths)), read.kind, read.counts_no_answer, average, read.logs
    )
    data = source()
    if ks is None:
        ks = [k for k in DEFAULT_KS if k <= len(data.weights)] or [len(data.weights)]
    table = None if family_table is None else read_families(family_table)
    options = BacktestOptions(
        ks=tuple(sorted(set(ks))),
        methods=tuple(method.name for method in chosen),
        split=split,
        seeds=seeds,
        test_share=DEFAULT_TEST_SHARE if test_share is None else test_share,
        cutoff=cutoff,
        families=tuple(families(data.names, table)) if by_family or table is not None else None,
        level=level,
    )
    rows = run_backtest(data, source, options, output, jobs=jobs, force=force, progress=progress)
    first = [row for row in rows if row["method"] == "random" and row["k"] == options.ks[0]]
    return BacktestResult(
        path=output,
        split=split.value,
        n_models=len(data.names),
        n_samples=len(data.weights),
        n_targets=sum(len(row["targets"]) for row in first if row["repeat"] == 0),
        seeds=seeds,
        methods=tuple(summarise(rows, read_seconds(seconds_path(output)))),
        notes=data.notes,
    )


def _check_share(test_share: float | None, split: SplitKind, cutoff: str | None) -> None:
    """Refuse a share where something else says how many models become targets."""
    if test_share is not None and split is SplitKind.LEAVE_ONE_OUT:
        raise UsageError("--test-share: every model is a target once with --split leave-one-out")
    if test_share is not None and cutoff is not None:
        raise UsageError("--test-share: --cutoff says which models are the targets; give one")


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
