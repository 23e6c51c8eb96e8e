"""Tables of what ``recipes.py`` measured, with the goals beside them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import Any

GOALS = {"alike": 0.58, "stronger": 0.70, "newer": 0.65}
"""Geometric mean over sets of the error relative to plain random samples, recipe auto, K = 100."""

GOAL_WORST = 1.05
GOAL_COVERAGE = {"alike": (0.87, 0.96), "stronger": (0.85, 1.0), "newer": (0.87, 0.96)}
GOAL_NARROWER = 0.75
GOAL_K = 100


@dataclass(frozen=True)
class Figures:
    """One recipe on one set, split and K; over all repeats and seeds."""

    ratio: float
    spearman: float
    coverage: float
    width_ratio: float
    with_interval: float


@dataclass(frozen=True)
class Overall:
    """One recipe on one split and K over all sets; coverage is of all sets alike."""

    n_sets: int
    ratio: float
    worst: float
    worst_set: str
    spearman: float
    coverage: float
    lowest_coverage: float
    width_ratio: float
    narrower: int


def summarise(rows: list[dict[str, Any]]) -> dict[tuple[str, str, int, str], Figures]:
    """Return the figures of each (recipe, split, k, set)."""
    cells = defaultdict(list)
    for row in rows:
        cells[row["recipe"], row["split"], row["k"], row["set"]].append(row)
    return {key: _figures(found) for key, found in sorted(cells.items())}


def _figures(rows: list[dict[str, Any]]) -> Figures:
    covered = [row for row in rows if row["coverage"] is not None]
    return Figures(
        ratio=fmean(row["mae"] for row in rows) / fmean(row["random_mae"] for row in rows),
        spearman=_mean([row["spearman"] for row in rows if row["spearman"] is not None]),
        coverage=_mean([row["coverage"] for row in covered]),
        width_ratio=_mean([row["width"] for row in covered])
        / fmean(row["random_width"] for row in rows),
        with_interval=fmean(row["with_interval"] for row in rows),
    )


def overall(figures: dict[str, Figures]) -> Overall:
    """Return what a recipe reaches over the sets."""
    worst = max(figures, key=lambda name: figures[name].ratio)
    known = [found for found in figures.values() if not math.isnan(found.coverage)]
    return Overall(
        n_sets=len(figures),
        ratio=_geometric([found.ratio for found in figures.values()]),
        worst=figures[worst].ratio,
        worst_set=worst,
        spearman=_mean([f.spearman for f in figures.values() if not math.isnan(f.spearman)]),
        coverage=_mean([found.coverage for found in known]),
        lowest_coverage=min((found.coverage for found in known), default=math.nan),
        width_ratio=_geometric([found.width_ratio for found in known]),
        narrower=sum(found.width_ratio < 1 for found in known),
    )


def group_by_set(
    summary: dict[tuple[str, str, int, str], Figures],
) -> dict[tuple[str, str, int], dict[str, Figures]]:
    """Return the figures of each set under (recipe, split, k)."""
    grouped: dict[tuple[str, str, int], dict[str, Figures]] = defaultdict(dict)
    for (recipe, split, k, name), found in summary.items():
        grouped[recipe, split, k][name] = found
    return dict(grouped)


def print_tables(rows: list[dict[str, Any]], *, markdown: bool) -> None:
    """Print a table of all sets, one of the means over sets, and the goals."""
    grouped = group_by_set(summarise(rows))
    order = sorted(grouped, key=lambda key: (list(GOALS).index(key[1]), key[2], key[0]))
    columns = ("split", "k", "recipe", "set", "error", "Spearman", "covered", "width", "interval")
    body = [
        (split, k, recipe, name, _two(f.ratio), _two(f.spearman), _two(f.coverage),
         _two(f.width_ratio), f"{f.with_interval:.0%}")
        for recipe, split, k in order
        for name, f in grouped[recipe, split, k].items()
    ]  # fmt: skip
    _print(columns, body, markdown)
    totals = {key: overall(grouped[key]) for key in order}
    columns = ("split", "k", "recipe", "sets", "error", "worst", "of", "Spearman", "covered",
               "least", "width", "narrower")  # fmt: skip
    body = [
        (split, k, recipe, t.n_sets, _two(t.ratio), _two(t.worst), t.worst_set, _two(t.spearman),
         _two(t.coverage), _two(t.lowest_coverage), _two(t.width_ratio),
         f"{t.narrower} of {t.n_sets}")
        for (recipe, split, k), t in totals.items()
    ]  # fmt: skip
    _print(columns, body, markdown)
    body = [
        line
        for (recipe, split, k), t in totals.items()
        if (recipe, k) == ("auto", GOAL_K)
        for line in goal_lines(split, t)
    ]
    _print(("split", "goal for auto, k = 100", "measured", "met"), body, markdown)


def goal_lines(split: str, total: Overall) -> list[tuple[str, str, str, str]]:
    """Return goal, what was measured and whether it is met."""
    low, high = GOAL_COVERAGE[split]
    return [
        (split, f"error, geometric mean ≤ {GOALS[split]:.2f}", f"{total.ratio:.3f}",
         _met(total.ratio <= GOALS[split])),
        (split, f"error, worst set ≤ {GOAL_WORST}", f"{total.worst:.3f}",
         _met(total.worst <= GOAL_WORST)),
        (split, f"intervals cover {low:.2f}–{high:.2f}", f"{total.coverage:.3f}",
         _met(low <= total.coverage <= high)),
        (split, "narrower in three sets of four", f"{total.narrower} of {total.n_sets}",
         _met(total.narrower >= GOAL_NARROWER * total.n_sets)),
    ]  # fmt: skip


def _met(is_met: bool) -> str:
    return "yes" if is_met else "no"


def _print(columns: tuple[str, ...], body: list[tuple[Any, ...]], markdown: bool) -> None:
    """Print a table in columns, or in Markdown."""
    cells = [columns, *[tuple(map(str, line)) for line in body]]
    if markdown:
        cells.insert(1, ("---",) * len(columns))
        print(*("| " + " | ".join(line) + " |" for line in cells), sep="\n")
    else:
        widths = [max(len(line[j]) for line in cells) for j in range(len(columns))]
        for line in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))
    print()


def _two(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _mean(values: list[float]) -> float:
    return fmean(values) if values else math.nan


def _geometric(values: list[float]) -> float:
    return math.exp(fmean(math.log(value) for value in values)) if values else math.nan
