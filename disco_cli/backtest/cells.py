"""One cell of a backtest: one method with one K on one fold of one repeat."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from disco_cli import __version__
from disco_cli.backtest.baselines.interface import Memo, References
from disco_cli.backtest.baselines.registry import METHODS
from disco_cli.backtest.splits import Split, SplitKind, make_splits, stable_rng
from disco_cli.errors import DiscoError, UsageError

if TYPE_CHECKING:
    from disco_cli.backtest.data import BacktestData

T = TypeVar("T")


@dataclass(frozen=True)
class BacktestOptions:
    """What is measured.

    Attributes
    ----------
    ks : tuple of int
        Numbers of samples.
    methods : tuple of str
        Names of methods, see :data:`disco_cli.backtest.baselines.registry.METHODS`.
    split : SplitKind
        How targets are chosen.
    seeds : int
        Number of repeats.
    test_share : float
        Share of models that become targets.
    cutoff : str, optional
        With ``newest``: models of this date or later are the targets.
    families : tuple of str, optional
        Family of each model; relatives of a target then never are its references.
    level : float
        Level of intervals.
    """

    ks: tuple[int, ...]
    methods: tuple[str, ...] = tuple(METHODS)
    split: SplitKind = SplitKind.RANDOM
    seeds: int = 3
    test_share: float = 0.25
    cutoff: str | None = None
    families: tuple[str, ...] | None = None
    level: float = 0.9

    def run_id(self, data: BacktestData) -> str:
        """Return what rows must share to stand in one file: data, split, level and version.

        K, methods and seeds are left out, so a finished backtest can be extended.
        """
        chosen = {f.name: getattr(self, f.name) for f in fields(self)}
        parts = [chosen[name] for name in ("split", "test_share", "cutoff", "families", "level")]
        text = repr((data.fingerprint, __version__, *map(str, parts)))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Cell:
    """Coordinates of one cell."""

    split: str
    repeat: int
    fold: int
    k: int
    method: str

    @property
    def key(self) -> str:
        """The coordinates as text."""
        return f"{self.split}/{self.repeat}/{self.fold}/{self.k}/{self.method}"


@dataclass(frozen=True)
class Task:
    """Cells that can share work, each with its number in the whole plan, in that order."""

    split: Split
    cells: tuple[tuple[int, Cell], ...]


def plan(data: BacktestData, options: BacktestOptions) -> tuple[list[Cell], list[Split]]:
    """Return all cells in their order, and the split of each.

    Raises
    ------
    UsageError
        If a K exceeds N or a split cannot be made.
    """
    n_samples = len(data.weights)
    for k in options.ks:
        if not 1 <= k <= n_samples:
            raise UsageError(f"--k {k}: the benchmark has {n_samples} samples")
    splits = make_splits(
        options.split,
        options.seeds,
        scores=data.truth,
        dates=data.dates,
        test_share=options.test_share,
        cutoff=options.cutoff,
        families=options.families,
    )
    pairs = [
        (Cell(split.kind.value, split.repeat, split.fold, k, method), split)
        for split in splits
        for k in options.ks
        for method in options.methods
    ]
    return [cell for cell, _ in pairs], [split for _, split in pairs]


def make_tasks(cells: Sequence[Cell], splits: Sequence[Split], done: set[str]) -> list[Task]:
    """Group the cells that are not done: those that can share work belong together.

    Repeats with the same references (all but those of ``random``) share as well.
    """
    groups: dict[tuple[bytes, str], list[tuple[int, Cell]]] = {}
    for number, cell in enumerate(cells):
        if cell.key not in done:
            shares = METHODS[cell.method].shares or cell.method
            key = (splits[number].references.tobytes(), shares)
            groups.setdefault(key, []).append((number, cell))
    return [Task(splits[group[0][0]], tuple(group)) for group in groups.values()]


class TimedMemo(Memo):
    """Shared work that knows what it cost, so that every method that uses it can be charged."""

    def __init__(self) -> None:
        super().__init__()
        self._cost: dict[str, float] = {}
        self._used: set[str] = set()
        self._spent = 0.0
        self._depth = 0

    def begin(self) -> None:
        """Start a new account."""
        self._used, self._spent = set(), 0.0

    def once(self, key: str, compute: Callable[[], T]) -> T:
        """Return the value of ``compute``, called at most once for each key."""
        start = time.perf_counter()
        is_new = key not in self._cost
        self._depth += 1
        try:
            value = super().once(key, compute)
        finally:
            self._depth -= 1
        if is_new:
            self._cost[key] = time.perf_counter() - start
        if self._depth == 0:
            self._used.add(key)
            self._spent += self._cost[key] if is_new else 0.0
        return value

    def seconds(self, elapsed: float) -> float:
        """Return the elapsed time with all shared work used, whoever did it first."""
        return elapsed - self._spent + sum(self._cost[key] for key in self._used)


@dataclass
class CellRunner:
    """Runs cells on data; keeps the references of the last split, and their shared work.

    Attributes
    ----------
    data : BacktestData
        Everything; a method is shown only what it may see.
    run_id : str
        Stored with each row.
    level : float
        Level of intervals.
    """

    data: BacktestData
    run_id: str
    level: float
    _last: tuple[bytes, References, TimedMemo] | None = field(default=None, repr=False)

    def run(self, split: Split, cell: Cell) -> tuple[dict[str, Any], float]:
        """Return the row of one cell and the seconds it took.

        A method that cannot work on these data gives a row with ``error``.
        """
        references, memo = self._references(split)
        # The method is not in the seed: methods that start from a random subset start from the
        # same one. K is not either: subsets of one repeat are nested over K.
        rng = stable_rng("cell", cell.split, cell.repeat, cell.fold)
        memo.begin()
        start = time.perf_counter()
        row: dict[str, Any] = {
            "run": self.run_id,
            **asdict(cell),
            "n_samples": len(self.data.weights),
        }
        try:
            row |= self._estimate(references, split, cell, rng)
        except DiscoError as error:
            row["error"] = str(error)
        return row, memo.seconds(time.perf_counter() - start)

    def _estimate(
        self, references: References, split: Split, cell: Cell, rng: np.random.Generator
    ) -> dict[str, Any]:
        data = self.data
        fitted = METHODS[cell.method].fit(references, cell.k, rng)
        at = fitted.positions
        answers = [
            fitted.predict(
                data.responses[t, at],
                None
                if data.probabilities is None
                else np.asarray(data.probabilities(int(t), at), np.float64),
            )
            for t in split.targets
        ]
        return {
            "targets": [data.names[t] for t in split.targets],
            "truth": [_number(value) for value in data.truth[split.targets]],
            "estimate": [_number(answer.value) for answer in answers],
            "low": [_number(answer.low) for answer in answers],
            "high": [_number(answer.high) for answer in answers],
        }

    def _references(self, split: Split) -> tuple[References, TimedMemo]:
        key = split.references.tobytes()
        if self._last is None or self._last[0] != key:
            memo = TimedMemo()
            self._last = (key, references_of(self.data, split, self.level, memo), memo)
        return self._last[1], self._last[2]


def references_of(
    data: BacktestData, split: Split, level: float, memo: Memo | None = None
) -> References:
    """Return what methods may know on this split: the reference models and nothing else."""
    models = split.references
    read = data.probabilities
    return References(
        responses=data.responses[models],
        weights=data.weights,
        truth=data.truth[models],
        groups=data.groups,
        probabilities=None if read is None else lambda m, rows: read(int(models[m]), rows),
        n_classes=data.n_classes,
        level=level,
        memo=Memo() if memo is None else memo,
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
