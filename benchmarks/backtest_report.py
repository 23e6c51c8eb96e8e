"""Turn ``backtest_results.json`` into ``docs/results.md``; measures nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

RESULT = Path(__file__).with_name("backtest_results.json")
TARGET = Path(__file__).resolve().parent.parent / "docs" / "results.md"
OURS, PLAIN = "auto", "random"
SPLITS = {
    "random": "targets drawn at random",
    "strongest": "targets are the best quarter",
    "newest": "targets are the newest quarter",
}

INTRO = """\
# Results

Every method on the same targets, the same numbers of samples and the same seeds; where a method starts from random
samples, on the same samples. Made by `benchmarks/backtest_results.py` (which runs `disco backtest`'s own code) and
`benchmarks/backtest_report.py`; all figures are in `benchmarks/backtest_results.json`. What the methods are:
[methods.md](methods.md).

* Errors are in **points** (a score of 0.713 is 71.3 points). ± is the standard deviation over {seeds} repeats; for *strongest*
  and *newest*, whose targets are always the same, it says only how much a method's own chance matters.
* **/random** is the mean absolute error divided by that of the mean of the same number of random samples. Below 1 a method is
  worth its trouble.
* **= random K** is how many random samples give the same error (from the law c·√(1/K − 1/N), fitted to the random rows).
* Intervals are made for 90 %; a dash means that the method, as published, has none.
* A quarter of the models are targets, the rest references; a model that lacks more than 5 % of the answers is left out.
"""

SETS = """\
## Data

`sample_data` is part of the project. The other sets are public results of real models; they are named here and stay out of
the project.

| set | models | samples | what | source, licence |
|---|---|---|---|---|
"""


def main() -> None:
    """Write the page."""
    result = json.loads(RESULT.read_text())
    for entry in result.values():
        for found in entry["splits"].values():
            for line in found["methods"]:
                line["mean"] = dict(zip(entry["figures"], line["mean"], strict=True))
    repeats = {m["repeats"] for _, _, methods in splits_of(result) for m in methods}
    parts = [INTRO.format(seeds=max(repeats)), SETS + "\n".join(data_rows(result)) + "\n"]
    parts += [overview(result), beaten(result), coverage(result)]
    for name, entry in result.items():
        parts.append(one_set(name, entry))
    TARGET.write_text("\n".join(parts))


def splits_of(result: dict[str, Any]) -> Iterable[tuple[str, str, list[dict[str, Any]]]]:
    """Yield (set, split, lines of all K and methods)."""
    for name, entry in result.items():
        for split, found in entry["splits"].items():
            yield name, split, found["methods"]


def data_rows(result: dict[str, Any]) -> Iterable[str]:
    """Yield a line for each set."""
    for name, e in result.items():
        yield f"| {name} | {e['models']} | {e['samples']} | {e['what']} | {e['source']} |"


def lines_at(methods: list[dict[str, Any]], k: int) -> dict[str, dict[str, Any]]:
    """Return the lines of one K that have figures, by method."""
    return {m["method"]: m for m in methods if m["k"] == k and m["error"] is None}


def names_of(result: dict[str, Any]) -> list[str]:
    """Return the methods in the order of tables."""
    return list(dict.fromkeys(m["method"] for _, _, methods in splits_of(result) for m in methods))


def overview(result: dict[str, Any]) -> str:
    """Return the geometric means of the relative error over sets, with the worst set."""
    text = [
        "## All sets together\n",
        "Mean absolute error divided by that of plain random sampling, geometric mean over sets, and the worst set. Lower is",
        "better; the best of each column is bold.\n",
    ]
    columns = [(split, k) for split in SPLITS for k in (30, 100)]
    table: dict[tuple[str, int], dict[str, list[float]]] = {column: {} for column in columns}
    for _, split, methods in splits_of(result):
        for k in (30, 100):
            for name, line in lines_at(methods, k).items():
                table[split, k].setdefault(name, []).append(line["relative"])
    n_sets = {c: len(table[c].get(PLAIN, [])) for c in columns}
    columns = [c for c in columns if n_sets[c]]
    head = [f"{split}, K = {k} ({n_sets[split, k]} sets)" for split, k in columns]
    text.append("| method | " + " | ".join(head) + " |")
    text.append("|---" * (len(columns) + 1) + "|")
    means = {
        (c, name): float(np.exp(np.mean(np.log(values))))
        for c in columns
        for name, values in table[c].items()
    }
    best = {c: min(v for (column, _), v in means.items() if column == c) for c in columns}
    for name in names_of(result):
        cells = []
        for c in columns:
            if (c, name) not in means:
                cells.append("–")
                continue
            value, worst = means[c, name], max(table[c][name])
            shown = f"**{value:.2f}**" if value == best[c] else f"{value:.2f}"
            cells.append(f"{shown} (worst {worst:.2f})")
        text.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def beaten(result: dict[str, Any]) -> str:
    """Return where another method has a smaller error than ours."""
    text = [
        "## Where another method beats ours\n",
        "The best of all other methods is known only afterwards; no single one of them is ahead everywhere. The last column",
        "divides the difference by the standard error of the two means, √((s₁² + s₂²)/repeats): below 2 it may well be chance,",
        "and with few repeats a larger one may be, too.\n",
        "| set | split | K | auto | best | its error | methods ahead of auto | difference / its error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    total = ahead = 0
    for name, split, methods in splits_of(result):
        for k in sorted({m["k"] for m in methods}):
            lines = lines_at(methods, k)
            if OURS not in lines:
                continue
            total += 1
            own = lines[OURS]
            better = [m for m in lines.values() if m["mean"]["mae"] < own["mean"]["mae"]]
            if not better:
                continue
            ahead += 1
            best = min(better, key=lambda m: m["mean"]["mae"])
            spread = np.hypot(own["mae_spread"] or 0, best["mae_spread"] or 0)
            error = spread / np.sqrt(own["repeats"])
            gap = own["mean"]["mae"] - best["mean"]["mae"]
            text.append(
                f"| {name} | {split} | {k} | {points(own['mean']['mae'])} | {best['method']} | "
                f"{points(best['mean']['mae'])} | {len(better)} | "
                f"{f'{gap / error:.1f}' if error > 0 else '–'} |"
            )
    text.insert(
        1,
        (
            f"At {ahead} of {total} combinations of set, split and K some method has a smaller mean absolute error than `auto`."
        ),
    )
    return "\n".join(text) + "\n"


def coverage(result: dict[str, Any]) -> str:
    """Return coverage and width of the intervals of every method that has them."""
    text = [
        "## Do the intervals hold?\n",
        "Share of targets whose true score lies inside the interval made for 90 %, at K = 100, mean over sets (and the lowest);",
        "then the mean width in points.\n",
        "| method | " + " | ".join(f"{split}: covered | width" for split in SPLITS) + " |",
        "|---" * (1 + 2 * len(SPLITS)) + "|",
    ]
    for name in names_of(result):
        cells = []
        for wanted in SPLITS:
            found = [
                lines_at(methods, 100)[name]["mean"]
                for _, split, methods in splits_of(result)
                if split == wanted and name in lines_at(methods, 100)
            ]
            covered = [m["coverage"] for m in found if m["coverage"] is not None]
            width = [m["width"] for m in found if m["width"] is not None]
            if covered:
                cells.append(
                    f"{np.mean(covered):.0%} ({min(covered):.0%}) | {points(np.mean(width))}"
                )
            else:
                cells.append("– | –")
        if any(cell != "– | –" for cell in cells):
            text.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def one_set(name: str, entry: dict[str, Any]) -> str:
    """Return the tables of one set."""
    text = [
        f"## {name}\n",
        f"{entry['models']} models, {entry['samples']} samples: {entry['what']}.",
    ]
    text += [f"{note[0].upper()}{note[1:]}." for note in entry["notes"]]
    for split, found in entry["splits"].items():
        text.append(
            f"\n### {name}: {SPLITS[split]} ({found['targets']} of {entry['models']}), K = 100\n"
        )
        text.append(
            "| method | MAE | ± | /random | RMSE | worst | bias low / mid / high third | Spearman | "
            "pairs right | covered | width | seconds |"
        )
        text.append("|---" * 12 + "|")
        text += [full_line(line) for line in found["methods"] if line["k"] == 100]
    text.append(f"\n### {name}: error against K\n")
    for split, found in entry["splits"].items():
        text.append(curve(split, found["methods"]))
    return "\n".join(text) + "\n"


def full_line(line: dict[str, Any]) -> str:
    """Return all figures of one method."""
    if line["error"]:
        return f"| {line['method']} | not possible: {line['error']} |" + " |" * 10
    m = line["mean"]
    bias = " / ".join(points(m[f"bias_thirds_{i}"], sign=True) for i in (1, 2, 3))
    width = points(m["width"])
    covered = "–" if m["coverage"] is None else f"{m['coverage']:.0%}"
    return (
        f"| {line['method']} | {points(m['mae'])} | {points(line['mae_spread'])} | "
        f"{line['relative']:.2f} | {points(m['rmse'])} | {points(m['worst'])} | {bias} | "
        f"{plain(m['spearman'], 3)} | {plain(m['pairs'], 3)} | {covered} | {width} | "
        f"{plain(line['seconds'], 2)} |"
    )


def curve(split: str, methods: list[dict[str, Any]]) -> str:
    """Return the table of error against K, with the number of random samples that do as well."""
    ks = sorted({m["k"] for m in methods})
    text = [f"{SPLITS[split].capitalize()}: MAE in points (= random K).\n"]
    text.append("| method | " + " | ".join(f"K = {k}" for k in ks) + " |")
    text.append("|---" * (len(ks) + 1) + "|")
    for name in dict.fromkeys(m["method"] for m in methods):
        cells = []
        for k in ks:
            line = lines_at(methods, k).get(name)
            cells.append(
                "–" if line is None else f"{points(line['mean']['mae'])} ({line['random_k']:.0f})"
            )
        text.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def points(value: float | None, *, sign: bool = False) -> str:
    """Return a score in points."""
    if value is None:
        return "–"
    return f"{100 * value:+.1f}" if sign else f"{100 * value:.2f}"


def plain(value: float | None, digits: int) -> str:
    """Return a number, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


if __name__ == "__main__":
    main()
