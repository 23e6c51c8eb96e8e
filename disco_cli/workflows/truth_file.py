"""Known full scores from a file of their own: CSV or Parquet with the columns model and score."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from disco_cli.errors import InputError
from disco_cli.files.values import LARGEST


def read_truth(path: Path) -> dict[str, float]:
    """Read known full scores.

    Parameters
    ----------
    path : Path
        CSV or Parquet with the columns ``model`` and ``score``; any metric, in its own units.

    Returns
    -------
    dict of str to float

    Raises
    ------
    InputError
        The file cannot be read, lacks a column, names a model twice, or holds a score that is not
        a finite number.
    """
    try:
        with path.open("rb") as file:
            is_parquet = file.read(4) == b"PAR1"
        rows = _parquet_rows(path) if is_parquet else _csv_rows(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    scores: dict[str, float] = {}
    for number, (model, text) in enumerate(rows, start=1):
        if model in scores:
            raise InputError(f"{path}: row {number}: model {model!r} a second time")
        try:
            scores[model] = float(str(text))
        except ValueError:
            scores[model] = math.nan
        if not abs(scores[model]) <= LARGEST:
            message = f"{path}: row {number}: score {text!r} of {model!r} is not a finite number"
            raise InputError(message)
    if not scores:
        raise InputError(f"{path}: holds no rows; expected columns model, score")
    return scores


def _csv_rows(path: Path) -> list[tuple[str, object]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        _check_columns(path, reader.fieldnames or ())
        return [(row["model"], row["score"]) for row in reader]


def _parquet_rows(path: Path) -> list[tuple[str, object]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            table = pq.read_table(file, use_threads=False, pre_buffer=False)
    except pa.ArrowException as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from error
    _check_columns(path, table.column_names)
    models = table.column("model").to_pylist()
    return list(zip(map(str, models), table.column("score").to_pylist(), strict=True))


def _check_columns(path: Path, found: object) -> None:
    columns = [str(name) for name in found] if isinstance(found, list | tuple) else []
    missing = [name for name in ("model", "score") if name not in columns]
    if missing:
        message = f"{path}: no column {missing[0]!r}, found {columns}; expected model, score"
        raise InputError(message)
