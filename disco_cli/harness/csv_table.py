"""Tables of scores as CSV: long (a row for each model and sample) or wide (models × samples)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from disco_cli.errors import InputError
from disco_cli.harness.choices import Choices, ImportOptions, choose_one
from disco_cli.harness.imported import (
    Imported,
    ImportedTable,
    check_unique_names,
)

_ALIASES = {
    "sample": ("sample_id", "sample", "id", "item_id", "item", "question_id", "doc_id"),
    "model": ("model", "model_name"),
    "group": ("group", "task", "subject", "subtask"),
    "weight": ("weight",),
    "label": ("label", "target", "gold"),
    "predicted": ("predicted_label", "prediction", "predicted"),
    "date": ("date",),
}
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
_WORDS = {"true": 1.0, "false": 0.0, "correct": 1.0, "incorrect": 0.0}


@dataclass
class _Model:
    """What the rows of one model hold, in their order."""

    lines: list[int] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    responses: list[float] = field(default_factory=list)
    predicted: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    date: str | None = None


def read_csv(paths: Iterable[str | Path], options: ImportOptions | None = None) -> Imported:
    """Import CSV (or tab- or semicolon-separated) tables of scores.

    The header decides: columns ``model`` and ``sample_id`` make a long table, ``sample_id`` alone
    one column for each model, ``model`` alone one column for each sample.

    Parameters
    ----------
    paths : iterable of str or Path
        Text files in UTF-8, with a header.
    options : ImportOptions, optional
        ``metrics`` chooses the column of scores of a long table.

    Raises
    ------
    InputError
        If a cell is no number, a sample stands twice, or the header names neither.
    UsageError
        If there are several columns of scores and none is chosen.
    """
    options = options or ImportOptions()
    tables: list[ImportedTable] = []
    notes: list[str] = []
    choices = Choices()
    for path in map(Path, paths):
        with choices.each():
            metric, models = _read_table(path, options)
            tables += _with_gaps(
                [_table(path, name, model, metric, options) for name, model in models.items()]
            )
        if not _ends_in_line_break(path):
            notes.append(f"{path}: no line break at its end; check that it was not cut off")
    choices.check()
    ordered = tuple(sorted(tables, key=lambda table: (table.task, table.model)))
    check_unique_names(ordered)
    return Imported(ordered, tuple(notes))


def _with_gaps(tables: list[ImportedTable]) -> list[ImportedTable]:
    """Tell of models that lack samples which others of the same file have."""
    known = {sample for table in tables for sample in table.ids.tolist()}
    told = []
    for table in tables:
        lacking = len(known) - table.n
        note = f"{table.source}: {table.model!r} lacks {lacking} of the {len(known)} samples"
        told.append(
            replace(table, complete=False, notes=(*table.notes, note)) if lacking else table
        )
    return told


def _ends_in_line_break(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, io.SEEK_END)
        return file.read(1) in (b"\n", b"\r")


def _read_table(path: Path, options: ImportOptions) -> tuple[str, dict[str, _Model]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            rows = csv.reader(file, delimiter=max("\t;,", key=first.count))
            header = [name.strip() for name in next(rows, [])]
            columns = _columns(path, header)
            cells = _numbered(path, header, rows)
            if "sample" in columns and "model" in columns:
                return _read_long(path, header, columns, cells, options)
            metric = choose_one(["response"], options.metrics, "metric", path, "the wide table")
            return metric, _read_wide(path, header, columns, cells)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error}") from None
    except csv.Error as error:
        raise InputError(f"{path}: not a CSV file: {error}") from None


def _columns(path: Path, header: Sequence[str]) -> dict[str, int]:
    """Return which column has which meaning."""
    lowered = [name.lower() for name in header]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{path}: two columns are named {twice!r}")
    found = {
        meaning: lowered.index(next(name for name in names if name in lowered))
        for meaning, names in _ALIASES.items()
        if any(name in lowered for name in names)
    }
    if "sample" not in found and "model" not in found:
        raise InputError(
            f"{path}: the header ({', '.join(header[:6])}) has neither a column sample_id nor model"
        )
    return found


def _numbered(
    path: Path, header: Sequence[str], rows: Iterable[list[str]]
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of rows that are not blank."""
    for number, row in enumerate(rows, start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise InputError(
                f"{path}: row {number} has {len(row)} cells, the header {len(header)}: cut off or "
                "damaged"
            )
        yield number, row


def _read_long(
    path: Path,
    header: Sequence[str],
    columns: Mapping[str, int],
    rows: Iterator[tuple[int, list[str]]],
    options: ImportOptions,
) -> tuple[str, dict[str, _Model]]:
    values = [name for i, name in enumerate(header) if i not in columns.values()]
    if not values:
        raise InputError(f"{path}: no column of scores; the header is {', '.join(header)}")
    metric = choose_one(values, options.metrics, "metric", path, "the table")
    at = header.index(metric)
    models: dict[str, _Model] = {}
    for number, row in rows:
        model = models.setdefault(row[columns["model"]].strip(), _Model())
        model.lines.append(number)
        model.samples.append(row[columns["sample"]].strip())
        model.responses.append(_number(row[at], path, number, metric))
        if "group" in columns:
            model.groups.append(row[columns["group"]].strip())
        if "weight" in columns:
            model.weights.append(_weight(row[columns["weight"]], path, number))
        if "label" in columns:
            model.labels.append(_whole(row[columns["label"]], path, number, "label", -1))
        if "predicted" in columns:
            cell = row[columns["predicted"]]
            model.predicted.append(_whole(cell, path, number, "predicted_label", -2))
        if "date" in columns:
            model.date = row[columns["date"]].strip() or None
    if not models:
        raise InputError(f"{path}: holds a header but no rows")
    return metric, models


def _read_wide(
    path: Path,
    header: Sequence[str],
    columns: Mapping[str, int],
    rows: Iterator[tuple[int, list[str]]],
) -> dict[str, _Model]:
    others = [i for i in range(len(header)) if i not in columns.values()]
    models: dict[str, _Model] = {}
    if "sample" not in columns:
        for number, row in rows:
            name = row[columns["model"]].strip()
            if name in models:
                raise InputError(f"{path}: row {number}: model {name!r} stands twice")
            values = [_number(row[i], path, number, header[i]) for i in others]
            models[name] = _Model(
                lines=[number] * len(others), samples=[header[i] for i in others], responses=values
            )
    else:
        models = {header[i]: _Model() for i in others}
        for number, row in rows:
            for i in others:
                model = models[header[i]]
                model.lines.append(number)
                model.samples.append(row[columns["sample"]].strip())
                model.responses.append(_number(row[i], path, number, header[i]))
                if "group" in columns:
                    model.groups.append(row[columns["group"]].strip())
                if "weight" in columns:
                    model.weights.append(_weight(row[columns["weight"]], path, number))
                if "label" in columns:
                    model.labels.append(_whole(row[columns["label"]], path, number, "label", -1))
    if not models or not any(model.samples for model in models.values()):
        raise InputError(f"{path}: holds no scores; the header is {', '.join(header[:6])}")
    return models


def _number(cell: str, path: Path, row: int, column: str) -> float:
    text = cell.strip().lower()
    if text in _MISSING:
        return math.nan
    try:
        value = _WORDS[text] if text in _WORDS else float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise InputError(f"{path}: row {row}, column {column!r}: {cell!r} is no number")
    return value


def _whole(cell: str, path: Path, row: int, column: str, missing: int) -> int:
    value = _number(cell, path, row, column)
    if math.isnan(value):
        return missing
    if value != int(value):
        raise InputError(f"{path}: row {row}, column {column!r}: {cell!r} is no whole number")
    return int(value)


def _weight(cell: str, path: Path, row: int) -> float:
    value = _number(cell, path, row, "weight")
    if not value >= 0:  # NaN too
        raise InputError(f"{path}: row {row}: weight {cell!r} should be a number, at least 0")
    return value


def _table(
    path: Path, name: str, model: _Model, metric: str, options: ImportOptions
) -> ImportedTable:
    ids = model.samples
    if model.groups and len(set(ids)) < len(ids):
        # Numbers that begin anew in every group.
        ids = [f"{group}/{sample}" for group, sample in zip(model.groups, ids, strict=True)]
    seen: dict[str, int] = {}
    for sample, line in zip(ids, model.lines, strict=True):
        if sample in seen:
            raise InputError(
                f"{path}: rows {seen[sample]} and {line}: sample {sample!r} of model {name!r} "
                "stands twice"
            )
        seen[sample] = line
    responses = np.array(model.responses)
    missing = int(np.isnan(responses).sum())
    return ImportedTable(
        source=str(path),
        model=options.model or name,
        date=model.date,
        task=path.name.partition(".")[0],
        metric=metric,
        ids=np.array(ids, dtype=np.str_),
        responses=responses,
        labels=np.array(model.labels, dtype=np.int64) if model.labels else None,
        groups=np.array(model.groups, dtype=np.str_) if model.groups else None,
        weights=np.array(model.weights) if model.weights else None,
        predicted_labels=np.array(model.predicted, dtype=np.int64) if model.predicted else None,
        complete=missing == 0,
        notes=(f"{path}: {name!r} lacks {missing} of {len(ids)} scores",) if missing else (),
    )
