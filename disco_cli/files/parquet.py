"""Prediction files as Parquet, one row per model and sample: reading and writing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import InputError
from disco_cli.files.assemble import Source, assemble
from disco_cli.files.atomic import atomic_write
from disco_cli.files.matrix import Kind, ModelInfo, PredictionFile, Samples
from disco_cli.files.parquet_rows import ParquetTable
from disco_cli.files.parquet_values import RowReader

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

LIST_COLUMNS: Mapping[str, Kind | None] = {
    "probs": Kind.PROBABILITIES,
    "logits": Kind.LOGITS,
    "logprobs": Kind.LOG_PROBABILITIES,
    "predictions": None,
}
"""Columns with a list of values per row, and the kind that the name says."""

LABEL_COLUMN = "predicted_label"
RESPONSE_COLUMN = "response"
SAMPLE_COLUMNS = {
    "label": "labels",
    "group": "groups",
    "weight": "weights",
    "n_options": "n_options",
    "sample_hash": "sample_hashes",
}
"""Columns that are the same in all rows of a sample, and what they are called in NPZ files."""

MODEL_COLUMNS = {"date": "dates", "score": "scores"}
ALIASES = {
    "sample_ids": "sample_id",
    "sample_hashes": "sample_hash",
    "model_names": "model",
    "model_name": "model",
    "dates": "date",
    "scores": "score",
    "labels": "label",
    "y_true": "label",
    "target": "label",
    "targets": "label",
    "groups": "group",
    "weights": "weight",
    "preds": "predictions",
    "probabilities": "probs",
    "predicted_labels": LABEL_COLUMN,
    "responses": RESPONSE_COLUMN,
}
_WIDE = re.compile(r"p_(0|[1-9][0-9]*)")
_KIND, _CLASS_NAMES, _N_CLASSES = b"disco.kind", b"disco.class_names", b"disco.n_classes"
_VALUES_PER_GROUP = 1 << 22
"""A row group is decoded as a whole: 16 MiB in single precision."""


def open_parquet(path: str, kind: Kind | None = None) -> PredictionFile:
    """Open a Parquet prediction file; values stay in the file until they are read.

    Rows may stand in any order. Sorted by model they are read one model at a time; in another
    order every model of a large file takes a pass over the whole of it.

    Parameters
    ----------
    path : str
        The file.
    kind : Kind, optional
        What the values are; ``None`` decides from the file's metadata, the name of the column and
        a spread of rows.

    Raises
    ------
    InputError
        If the file or anything in it cannot be used.
    """
    table = ParquetTable.open(path)
    names, notes = _renamed(path, table.names)
    columns, named = _value_columns(path, names, table.metadata, kind)
    table.locate(names.get("model"), names.get("sample_id"))
    sample_columns = _sample_columns(table, names)
    shape: tuple[int, ...] = (table.n_models, table.n)
    if named not in (Kind.LABELS, Kind.RESPONSES):
        n_classes, options = table.widths(columns, _told_classes(path, table.metadata))
        shape = (*shape, n_classes)
        if options is not None:
            sample_columns.setdefault("n_options", options)
    reader = RowReader(table, columns, shape, -2 if named is Kind.LABELS else np.nan)
    responses = None
    if named is not Kind.RESPONSES and RESPONSE_COLUMN in names:
        responses = RowReader(table, [names[RESPONSE_COLUMN]], shape[:2], np.nan)
    source = Source(
        path=path,
        key=columns[0] if len(columns) == 1 else "p_0 …",
        named=named,
        shape=shape,
        dtype=reader.dtype,
        read=reader,
        first_rows=reader.first_rows,
        responses=responses,
    )
    file = assemble(source, sample_columns, _model_columns(table, names), kind)
    held = sum(one.held_bytes for one in (reader, responses) if one is not None)
    return replace(file, notes=(*notes, *file.notes), held_bytes=held)


def _renamed(path: str, found: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the file's columns by our own names, and what was taken for what or ignored."""
    known = {
        *LIST_COLUMNS, LABEL_COLUMN, RESPONSE_COLUMN, *SAMPLE_COLUMNS, *MODEL_COLUMNS,
        "model", "sample_id",
    }  # fmt: skip
    names: dict[str, str] = {}
    notes: list[str] = []
    ignored = []
    for column in found:
        name = ALIASES.get(column, column)
        if name not in known and not _WIDE.fullmatch(name):
            ignored.append(column)
            continue
        if name in names:
            raise InputError(f"{path}: holds both {names[name]} and {column}; keep one of them")
        if name != column:
            notes.append(f"{column} taken for {name}")
        names[name] = column
    if ignored:
        notes.append(f"columns not used: {', '.join(ignored)}")
    return names, notes


def _value_columns(
    path: str, names: Mapping[str, str], metadata: Mapping[bytes, bytes], kind: Kind | None
) -> tuple[list[str], Kind | None]:
    """Return the columns that hold the values, and the kind that their name says."""
    wide = sorted((name for name in names if _WIDE.fullmatch(name)), key=lambda name: int(name[2:]))
    found: list[tuple[list[str], Kind | None]] = [
        ([names[name]], named) for name, named in LIST_COLUMNS.items() if name in names
    ]
    if wide:
        if wide != [f"p_{c}" for c in range(len(wide))]:
            raise InputError(
                f"{path}: has {len(wide)} columns from {wide[0]} to {wide[-1]}; they should be "
                f"p_0 to p_{len(wide) - 1} without gaps"
            )
        found.append((wide, Kind.PROBABILITIES))
    if LABEL_COLUMN in names:
        found.append(([names[LABEL_COLUMN]], Kind.LABELS))
    if len(found) > 1:
        raise InputError(
            f"{path}: holds both {found[0][0][0]} and {found[1][0][0]}; keep one of them"
        )
    if RESPONSE_COLUMN in names and (not found or kind is Kind.RESPONSES):
        return [names[RESPONSE_COLUMN]], Kind.RESPONSES
    if not found:
        raise InputError(
            f"{path}: holds no values; one of {', '.join(LIST_COLUMNS)} (lists), p_0 p_1 …, "
            f"{LABEL_COLUMN} or {RESPONSE_COLUMN} is needed"
        )
    columns, named = found[0]
    flat = named is Kind.LABELS
    if kind is None and not flat and _KIND in metadata:
        named = _told_kind(path, metadata[_KIND].decode(errors="replace"))
    if kind is not None and (kind in (Kind.LABELS, Kind.RESPONSES)) is not flat:
        raise InputError(f"{path}: {columns[0]} cannot be {kind.value}; see docs/formats.md")
    return columns, kind or named


def _sample_columns(table: ParquetTable, names: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Return what the file says of its samples, under the names of NPZ files."""
    columns = {
        ours: table.per_sample(names[name])
        for name, ours in SAMPLE_COLUMNS.items()
        if name in names
    }
    if "sample_id" in names:
        columns["sample_ids"] = table.sample_ids
    class_names = _class_names(table.path, table.metadata)
    if class_names is not None:
        columns["class_names"] = class_names
    return columns


def _model_columns(table: ParquetTable, names: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Return what the file says of its models, under the names of NPZ files."""
    columns = {
        ours: table.per_model(names[name]) for name, ours in MODEL_COLUMNS.items() if name in names
    }
    if "model" in names:
        columns["model_names"] = table.model_names
    return columns


def _told_classes(path: str, metadata: Mapping[bytes, bytes]) -> int | None:
    """Return the length of the lists, where the file's metadata tells it."""
    text = metadata.get(_N_CLASSES)
    if text is None:
        return None
    if not text.isdigit():
        raise InputError(
            f"{path}: disco.n_classes is {text.decode(errors='replace')!r}; it should be a whole "
            "number"
        )
    return int(text)


def _told_kind(path: str, text: str) -> Kind:
    """Return the kind that the file's metadata names."""
    kinds = [kind.value for kind in Kind if kind.has_classes]
    if text not in kinds:
        raise InputError(f"{path}: disco.kind is {text!r}; it should be one of {', '.join(kinds)}")
    return Kind(text)


def _class_names(path: str, metadata: Mapping[bytes, bytes]) -> NDArray[np.str_] | None:
    text = metadata.get(_CLASS_NAMES)
    if text is None:
        return None
    try:
        names = json.loads(text)
    except ValueError as error:
        raise InputError(
            f"{path}: disco.class_names is not JSON ({error}); write a list"
        ) from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path}: disco.class_names is not a JSON list of texts")
    return np.array(names, dtype=str)


def write_parquet(
    path: str | os.PathLike[str],
    values: NDArray[Any],
    kind: Kind,
    samples: Samples,
    models: Sequence[ModelInfo] = (),
    *,
    responses: NDArray[Any] | None = None,
) -> None:
    """Write a prediction file as Parquet, the same bytes for the same content.

    Rows are sorted by model and row groups hold one model each, so that reading one model reads
    nothing else. The parameters are those of :func:`disco_cli.files.npz.write_npz`.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    stacked = values.ndim == (3 if kind.has_classes else 2)
    metadata = {_KIND: kind.value.encode()}
    if kind.has_classes:
        metadata[_N_CLASSES] = str(values.shape[-1]).encode()
    if samples.class_names is not None:
        metadata[_CLASS_NAMES] = json.dumps(samples.class_names, ensure_ascii=False).encode()
    repeated = {
        "sample_id": samples.ids,
        "label": samples.labels,
        "group": samples.groups,
        "weight": samples.weights,
        "n_options": samples.n_options,
        "sample_hash": samples.hashes,
    }
    common = {name: pa.array(column) for name, column in repeated.items() if column is not None}
    take = partial(_of_model, stacked)

    def rows(m: int) -> pa.Table:
        columns: dict[str, Any] = {}
        if models:
            columns["model"] = pa.array([models[m].name] * samples.n)
        if any(model.date is not None for model in models):
            columns["date"] = pa.array([models[m].date] * samples.n, pa.string())
        if any(model.score is not None for model in models):
            columns["score"] = pa.array([models[m].score] * samples.n, pa.float64())
        columns.update(common)
        columns[_written_column(kind)] = _arrow_values(take(values, m))
        if responses is not None:
            columns[RESPONSE_COLUMN] = pa.array(take(responses, m))
        return pa.table(columns).replace_schema_metadata(metadata)

    first = rows(0)
    width = values.shape[-1] if kind.has_classes else 1
    rows_per_group = max(_VALUES_PER_GROUP // width, 1)
    with (
        atomic_write(path) as file,
        pq.ParquetWriter(
            file, first.schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        for m in range(len(values) if stacked else 1):
            writer.write_table(first if m == 0 else rows(m), row_group_size=rows_per_group)


def _of_model(stacked: bool, array: NDArray[Any], m: int) -> NDArray[Any]:
    return array[m] if stacked else array


def _written_column(kind: Kind) -> str:
    listed = {named: name for name, named in LIST_COLUMNS.items() if named is not None}
    return {**listed, Kind.LABELS: LABEL_COLUMN, Kind.RESPONSES: RESPONSE_COLUMN}[kind]


def _arrow_values(values: NDArray[Any]) -> Any:
    import pyarrow as pa

    if values.ndim == 1:
        return pa.array(values)
    offsets = np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.shape[1])
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(np.ascontiguousarray(values).ravel())
    )
