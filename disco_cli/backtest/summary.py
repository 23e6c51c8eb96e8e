"""From rows to figures: mean and spread over repeats for each method and K."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.backtest.baselines.registry import METHODS, REFERENCE_METHOD
from disco_cli.backtest.metrics import Metrics, measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class MethodSummary:
    """How one method did with one K.

    Attributes
    ----------
    k : int
        K.
    method : str
        Name of the method.
    repeats : int
        Repeats that the figures are means over.
    mean : Metrics or None
        Mean of each figure over repeats (folds are pooled before); ``None`` if the method cannot
        work on these data.
    spread : Metrics or None
        Standard deviation over repeats; NaN for a single one.
    relative : float
        Mean absolute error divided by that of plain random sampling with the same K.
    random_k : float
        Samples that plain random sampling would need for the same mean absolute error.
    seconds : float
        Mean time of one cell (fit, and estimates of all its targets), shared work included.
    error : str or None
        Why the method cannot work on these data.
    """

    k: int
    method: str
    repeats: int
    mean: Metrics | None
    spread: Metrics | None
    relative: float
    random_k: float
    seconds: float
    error: str | None = None


def summarise(
    rows: Iterable[dict[str, Any]], seconds: Mapping[str, float] | None = None
) -> list[MethodSummary]:
    """Summarise rows by K (ascending) and method (in the order of tables).

    Parameters
    ----------
    rows : iterable of dict
        Rows of one backtest.
    seconds : mapping of str to float, optional
        Time of each cell by its key.
    """
    cells: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["k"], row["method"]), []).append(row)
    order = {name: number for number, name in enumerate(METHODS)}
    keys = sorted(cells, key=lambda key: (key[0], order.get(key[1], len(order)), key[1]))
    measured = {key: _repeats(cells[key]) for key in keys}
    scale = _random_scale(
        {k: found for (k, method), found in measured.items() if method == REFERENCE_METHOD},
        {k: part[0]["n_samples"] for (k, _), part in cells.items()},
    )
    result = []
    for k, method in keys:
        found = measured[k, method]
        errors = sorted({row["error"] for row in cells[k, method] if "error" in row})
        mae = float(np.mean([m.mae for m in found])) if found else math.nan
        plain = measured.get((k, REFERENCE_METHOD), [])
        plain_mae = float(np.mean([m.mae for m in plain])) if plain else math.nan
        result.append(
            MethodSummary(
                k=k,
                method=method,
                repeats=len(found),
                mean=_combine(found, np.mean) if found else None,
                spread=_combine(found, _deviation) if found else None,
                relative=mae / plain_mae if plain_mae > 0 else math.nan,
                random_k=equal_random_k(mae, scale, cells[k, method][0]["n_samples"]),
                seconds=_mean_seconds(cells[k, method], seconds or {}),
                error=errors[0] if errors else None,
            )
        )
    return result


def equal_random_k(mae: float, scale: float, n_samples: int) -> float:
    """Return how many samples plain random sampling needs for this mean absolute error.

    Its error follows c·√(1/K − 1/N), whatever the models; c is fitted to the random rows of the
    same backtest.

    Parameters
    ----------
    mae : float
        Mean absolute error to be reached.
    scale : float
        c.
    n_samples : int
        N.
    """
    if math.isnan(mae) or not scale > 0:
        return math.nan
    return 1 / ((mae / scale) ** 2 + 1 / n_samples)


def metric_names() -> tuple[str, ...]:
    """Return the names of all figures, those of several parts numbered from 1."""
    example = measure(np.zeros(1), np.zeros(1))
    names: list[str] = []
    for field in fields(Metrics):
        value = getattr(example, field.name)
        if isinstance(value, tuple):
            names += [f"{field.name}_{part}" for part in range(1, len(value) + 1)]
        else:
            names.append(field.name)
    return tuple(names)


def flat(metrics: Metrics | None) -> tuple[float, ...]:
    """Return all figures in the order of :func:`metric_names`, NaN without any."""
    if metrics is None:
        return (math.nan,) * len(metric_names())
    values: list[float] = []
    for value in astuple(metrics):
        values += value if isinstance(value, tuple) else [value]
    return tuple(values)


def _repeats(rows: Sequence[dict[str, Any]]) -> list[Metrics]:
    """Pool the folds of each repeat and measure it; repeats with a fold that failed are left out."""
    pooled: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        pooled.setdefault(row["repeat"], []).append(row)
    return [
        measure(*(_column(folds, name) for name in ("truth", "estimate", "low", "high")))
        for folds in pooled.values()
        if not any("error" in row for row in folds)
    ]


def _column(rows: Sequence[dict[str, Any]], name: str) -> NDArray[np.float64]:
    return np.array([value for row in rows for value in row[name]], dtype=np.float64)


def _combine(found: Sequence[Metrics], how: Any) -> Metrics:
    """Combine each figure over repeats, without the repeats where it is not defined."""
    table = np.array([flat(metrics) for metrics in found])
    values = []
    for column in table.T:
        known = column[~np.isnan(column)]
        values.append(float(how(known)) if len(known) else math.nan)
    rest = iter(values)
    parts: dict[str, Any] = {}
    for field in fields(Metrics):
        value = getattr(found[0], field.name)
        if isinstance(value, tuple):
            parts[field.name] = tuple(next(rest) for _ in value)
        else:
            parts[field.name] = next(rest)
    return Metrics(**parts)


def _deviation(values: NDArray[np.float64]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _random_scale(found: dict[int, list[Metrics]], n_samples: dict[int, int]) -> float:
    """Return c of MAE = c·√(1/K − 1/N), the root mean square over the K of plain sampling."""
    squares = [
        float(np.mean([m.mae for m in metrics])) ** 2 / (1 / k - 1 / n_samples[k])
        for k, metrics in found.items()
        if metrics and k < n_samples[k]
    ]
    return math.sqrt(float(np.mean(squares))) if squares else math.nan


def _mean_seconds(rows: Sequence[dict[str, Any]], seconds: Mapping[str, float]) -> float:
    keys = [f"{r['split']}/{r['repeat']}/{r['fold']}/{r['k']}/{r['method']}" for r in rows]
    known = [seconds[key] for key in keys if key in seconds]
    return float(np.mean(known)) if known else math.nan
