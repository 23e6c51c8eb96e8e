"""Details of lighteval (also the Open LLM Leaderboard's first ones) -> a table a model and task.

One Parquet file a task, ``details_{task}|{examples}_{date}.parquet``. Since 0.11 its columns are
structures; before, each may also be the text of a Python value, which is read as a literal and
never evaluated.
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import InputError
from disco_cli.harness.choices import Choices, ImportOptions, choose_one
from disco_cli.harness.imported import (
    Imported,
    ImportedTable,
    check_hashes_agree,
    check_unique_names,
)
from disco_cli.harness.json_stream import read_object

TOLERANCE = 1e-9
_NAME = re.compile(
    r"details_(?P<task>.+?)_(?P<date>\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d.*)\.parquet"
)
_ROWS_AT_ONCE = 256
_NUMPY_NUMBER = re.compile(r"(?:np|numpy)\.\w+\(([^()]*)\)")
_SHAPE_ERRORS = (KeyError, TypeError, ValueError, IndexError, AttributeError, SyntaxError)
_SCORES = ("metric", "metrics")
_UNUSED = frozenset(
    [
        "full_prompt",
        "input_tokens",
        "cont_tokens",
        "truncated",
        "padded",
        "instruction",
        "specifics",
    ]
)


@dataclass
class _Rows:
    """What the rows of one file hold, in their order."""

    ids: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    likelihoods: list[list[float]] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=dict)


def read_lighteval(paths: Iterable[str | Path], options: ImportOptions | None = None) -> Imported:
    """Import details files of lighteval.

    Parameters
    ----------
    paths : iterable of str or Path
        ``details_*.parquet`` files, or folders that hold them.
    options : ImportOptions, optional
        ``metrics`` chooses the metric.

    Raises
    ------
    InputError
        If a file is damaged or its rows are not what lighteval writes.
    UsageError
        If there are several metrics and none is chosen.
    """
    options = options or ImportOptions()
    newest: dict[tuple[str, str], Path] = {}
    notes = []
    for path in sorted(one for given in paths for one in _files_in(Path(given))):
        task, _ = _task_and_date(path)
        if options.tasks and not {task, task.rpartition("|")[0]} & set(options.tasks):
            continue
        key = (options.model or _model_of(path), task)
        if key in newest:
            older, newer = sorted((newest[key], path), key=lambda p: _task_and_date(p)[1] or "")
            notes.append(f"{older}: left out, {newer} is a newer run of it")
            newest[key] = newer
        else:
            newest[key] = path
    if not newest:
        raise InputError(f"none of these details is of {' or '.join(options.tasks)}")
    tables: list[ImportedTable] = []
    choices = Choices()
    for key, path in newest.items():
        with choices.each():
            tables.append(_table(path, key, options))
    choices.check()
    ordered = tuple(sorted(tables, key=lambda table: (table.task, table.model)))
    check_unique_names(ordered)
    check_hashes_agree(ordered)
    return Imported(ordered, tuple(notes))


def _files_in(path: Path) -> list[Path]:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.is_file():
        return [path]
    found = sorted(path.rglob("details_*.parquet"))
    if not found:
        raise InputError(
            f"{path}: no details of lighteval here (details_*.parquet); run it with --save-details"
        )
    return found


def _task_and_date(path: Path) -> tuple[str, str | None]:
    match = _NAME.fullmatch(path.name)
    return (match["task"], match["date"]) if match else (path.stem, None)


def _model_of(path: Path) -> str:
    """Return the model: the folders between ``details`` and the date."""
    parts = path.resolve().parts
    if "details" in parts:
        start = len(parts) - parts[::-1].index("details")
        if parts[start:-2]:
            return "/".join(parts[start:-2])
    return path.resolve().parent.name


def _table(path: Path, key: tuple[str, str], options: ImportOptions) -> ImportedTable:
    model, task = key
    rows = _read_rows(path)
    metric = choose_one(sorted(rows.metrics), options.metrics, "metric", path, task)
    responses = np.array(rows.metrics[metric])
    k = np.array([len(one) for one in rows.likelihoods], dtype=np.int64)
    has_options = bool(np.all(k > 1))
    short = task.replace("/", "_")
    score, notes = _reported(path, task, metric, responses)
    return ImportedTable(
        source=str(path),
        model=model,
        date=_iso(_task_and_date(path)[1]),
        task=short,
        metric=metric,
        ids=np.array([f"{short}/{one}" for one in rows.ids], dtype=np.str_),
        responses=responses,
        hashes=np.array(rows.digests, dtype=np.str_),
        labels=np.array(rows.labels, dtype=np.int64) if has_options else None,
        n_options=k if has_options else None,
        groups=np.full(len(responses), short, dtype=np.str_),
        loglikelihoods=_padded(rows.likelihoods, k) if has_options else None,
        score=score,
        complete=not np.isnan(responses).any(),
        notes=notes,
    )


def _iso(date: str | None) -> str | None:
    if date is None:
        return None
    day, _, clock = date.partition("T")
    return f"{day}T{clock[:8].replace('-', ':')}"


def _padded(likelihoods: list[list[float]], k: NDArray[np.int64]) -> NDArray[np.float64]:
    result = np.full((len(k), int(k.max())), -np.inf)
    result[np.arange(k.max()) < k[:, None]] = [value for row in likelihoods for value in row]
    return result


def _read_rows(path: Path) -> _Rows:
    rows = _Rows()
    number = 0
    try:
        for number, row in enumerate(_parquet_rows(path)):
            _add_row(rows, row, number)
    except _SHAPE_ERRORS as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path}: row {number}: not what lighteval writes: {what}") from None
    if not rows.ids:
        raise InputError(f"{path}: holds no rows")
    if not rows.metrics:
        raise InputError(f"{path}: its rows have no metric that is a number")
    if len(set(rows.ids)) < len(rows.ids):
        raise InputError(f"{path}: two rows have the same doc.id; damaged, or two runs in one file")
    return rows


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            wanted = [name for name in file.schema_arrow.names if name not in _UNUSED]
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=wanted):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: not a whole Parquet file: {reason}") from None


_UNUSED = frozenset(
    [
        "full_prompt",
        "input_tokens",
        "cont_tokens",
        "truncated",
        "padded",
        "instruction",
        "specifics",
    ]
)


def _add_row(rows: _Rows, row: Mapping[str, Any], number: int) -> None:
    if "doc" in row:
        doc, answer = _literal(row["doc"]), _literal(row["model_response"])
        question, choices, gold = doc["query"], doc.get("choices"), doc.get("gold_index")
        likelihoods = answer.get("logprobs")
        own = doc.get("id")
    else:
        question = row["example"]
        choices, gold = _literal(row.get("choices")), _literal(row.get("gold_index"))
        likelihoods = _literal(row.get("predictions"))
        own = None
    choices = choices if isinstance(choices, list) else []
    values = _numbers(likelihoods)
    rows.likelihoods.append(values if len(values) == len(choices) else [])
    rows.labels.append(_label(gold, len(choices)))
    rows.ids.append(str(number) if own in (None, "") else str(own))
    content = f"{question}\0" + "\0".join(str(one) for one in choices)
    rows.digests.append(hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest())
    for name, value in _scores(row):
        column = rows.metrics.setdefault(name, [])
        column.extend([math.nan] * (number - len(column)))
        column.append(value)
    for column in rows.metrics.values():
        column.extend([math.nan] * (number + 1 - len(column)))


def _scores(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the metrics of a row that are numbers; null where another row has the metric."""
    found = next((_literal(row[name]) for name in _SCORES if name in row), None)
    if isinstance(found, dict):
        for name, value in found.items():
            if isinstance(value, bool | int | float):
                yield str(name), float(value)
        return
    for name in ("acc", "acc_norm", "mc1", "mc2", "em", "exact_match"):
        if isinstance(row.get(name), bool | int | float):
            yield name, float(row[name])


def _literal(value: Any) -> Any:
    """Return the value that a text writes out as a Python literal, anything else as it is."""
    if not isinstance(value, str) or not value.strip().startswith(("[", "{", "(")):
        return _as_int(value)
    plain = _NUMPY_NUMBER.sub(r"\1", value)
    for word, stand_in in (("inf", "1e999"), ("nan", "None")):
        plain = re.sub(rf"(?<![\w'\"]){word}(?![\w'\"])", stand_in, plain)
    for text in (value, plain):
        found = _python_literal(text)
        if found is not None:
            return found
    return value  # an answer's own text that begins with a bracket


def _python_literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (MemoryError, RecursionError):
        raise ValueError("nested too deeply") from None
    except (ValueError, SyntaxError):
        return None


def _as_int(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.strip().isdigit() else value


def _numbers(values: Any) -> list[float]:
    """Return one number per option; texts, and pairs of likelihood and greediness, told apart."""
    if not isinstance(values, list | tuple):
        return []
    found = []
    for value in values:
        first = value[0] if isinstance(value, list | tuple) and value else value
        if first is None:
            found.append(math.nan)
        elif isinstance(first, bool) or not isinstance(first, int | float):
            return []
        else:
            found.append(float(first))
    return found


def _label(gold: Any, k: int) -> int:
    if isinstance(gold, list | tuple):
        gold = gold[0] if len(gold) == 1 else -1
    return gold if type(gold) is int and 0 <= gold < k else -1


def _reported(
    path: Path, task: str, metric: str, responses: NDArray[np.float64]
) -> tuple[float | None, tuple[str, ...]]:
    """Compare with ``results_{date}.json`` of the run, and return the score that it reports."""
    _, date = _task_and_date(path)
    parts = path.resolve().parts
    if date is None or "details" not in parts:
        return None, (f"{path}: no results file at hand: the mean cannot be checked",)
    at = len(parts) - 1 - parts[::-1].index("details")
    results = Path(*parts[:at], "results", *parts[at + 1 : -2], f"results_{date}.json")
    if not results.exists():
        return None, (f"{path}: no results file at hand: the mean cannot be checked",)
    told = read_object(results)
    try:
        values = told["results"].get(task) or told["results"].get(task.replace(":", "|")) or {}
        reported = values.get(metric)
        limit = (told.get("config_general") or {}).get("max_samples")
    except _SHAPE_ERRORS as error:
        raise InputError(f"{results}: not what lighteval writes: {error!r}") from None
    if not isinstance(reported, int | float):
        return None, (f"{results}: reports no {metric} of {task}: the mean cannot be checked",)
    mean = float(np.mean(responses))
    if abs(mean - reported) > TOLERANCE:
        note = (
            f"{path}: the mean {metric} of {len(responses)} rows is {mean:.10g}, but {results.name} "
            f"reports {reported:.10g}: aggregated otherwise, or damaged; what is estimated is the "
            "mean"
        )
        return None, (note,)
    return (None if limit else float(reported)), ()
