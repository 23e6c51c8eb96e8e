"""Prediction files as NPZ: reading whatever people save, and writing our own layout."""

from __future__ import annotations

import struct
import zipfile
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from disco_cli.errors import InputError
from disco_cli.files.arrays import UNNAMED, StoredArray, find_arrays
from disco_cli.files.assemble import Source, assemble
from disco_cli.files.atomic import atomic_write
from disco_cli.files.fetch import ModelReader, load_array
from disco_cli.files.matrix import Kind, ModelInfo, PredictionFile, Samples

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

VALUE_KEYS: Mapping[str, Kind | None] = {
    "predictions": None,
    "preds": None,
    "probs": Kind.PROBABILITIES,
    "probabilities": Kind.PROBABILITIES,
    "logits": Kind.LOGITS,
    "logprobs": Kind.LOG_PROBABILITIES,
    "predicted_labels": Kind.LABELS,
    UNNAMED: None,
}
"""Names under which values are found, and the kind that the name says."""

RESPONSES_KEY = "responses"
SAMPLE_KEYS = (
    "sample_ids", "sample_hashes", "labels", "groups", "weights", "n_options", "class_names",
)  # fmt: skip
MODEL_KEYS = ("model_names", "dates", "scores")
ALIASES = {"y_true": "labels", "targets": "labels"}

_WRITTEN_KEYS = {
    Kind.PROBABILITIES: "predictions",
    Kind.LOGITS: "logits",
    Kind.LOG_PROBABILITIES: "logprobs",
    Kind.LABELS: "predicted_labels",
    Kind.RESPONSES: RESPONSES_KEY,
}
_ALIGNMENT_BYTES = 64
_PADDING_FIELD = 0xD935  # the zip extra field that zipalign uses too
_LOCAL_HEADER_BYTES = 30
_ZIP64_FIELD_BYTES = 20


def open_npz(path: str, kind: Kind | None = None) -> PredictionFile:
    """Open an ``.npz`` or ``.npy`` prediction file; values stay in the file until they are read.

    Parameters
    ----------
    path : str
        The file.
    kind : Kind, optional
        What the values are; ``None`` decides from their name and a spread of rows.

    Raises
    ------
    InputError
        If the file or anything in it cannot be used.
    """
    arrays, notes = _renamed(path, find_arrays(path))
    key = _values_key(path, arrays, kind)
    named = kind or VALUE_KEYS.get(key, Kind.RESPONSES)
    stored = arrays[key]
    if named is None and stored.ndim == 1:
        named = _kind_of_column(path, key, stored)
        notes.append(f"{_spoken(key)} taken for {named.value}")
    shape, stacked = _shape(path, key, stored, named)
    reader = ModelReader(stored, stacked=stacked)
    responses = None
    if key != RESPONSES_KEY and kind is not Kind.RESPONSES and RESPONSES_KEY in arrays:
        responses = _responses_beside(path, arrays[RESPONSES_KEY], shape[:2])
    source = Source(
        path=path,
        key=_spoken(key),
        named=named,
        shape=shape,
        dtype=stored.dtype.newbyteorder("="),
        read=reader,
        first_rows=None if reader.random_access else reader.first_rows,
        responses=responses,
    )
    file = assemble(
        source,
        _loaded(path, arrays, SAMPLE_KEYS, shape[1]),
        _loaded(path, arrays, MODEL_KEYS, shape[0]),
        kind,
    )
    return replace(file, notes=(*notes, *file.notes))


def _spoken(key: str) -> str:
    return "the unnamed array" if key == UNNAMED else key


def _renamed(
    path: str, arrays: Mapping[str, StoredArray]
) -> tuple[dict[str, StoredArray], list[str]]:
    """Return the arrays under our own names, and what was taken for what."""
    notes: list[str] = []
    renamed: dict[str, StoredArray] = {}
    for key, array in arrays.items():
        name = ALIASES.get(key, key)
        if name not in {*VALUE_KEYS, RESPONSES_KEY, *SAMPLE_KEYS, *MODEL_KEYS}:
            allowed = ", ".join([*VALUE_KEYS, RESPONSES_KEY, *SAMPLE_KEYS, *MODEL_KEYS, *ALIASES])
            raise InputError(f"{path}: unknown key {key!r}; known are {allowed}")
        if name in renamed:
            raise InputError(f"{path}: holds both {renamed[name].key} and {key}; keep one of them")
        if name != key:
            notes.append(f"{key} taken for {name}")
        renamed[name] = array
    return renamed, notes


def _values_key(path: str, arrays: Mapping[str, StoredArray], kind: Kind | None) -> str:
    """Return under which name the values are: responses only if nothing else holds values."""
    found = [key for key in VALUE_KEYS if key in arrays]
    if len(found) > 1:
        raise InputError(f"{path}: holds both {found[0]} and {found[1]}; keep one of them")
    if RESPONSES_KEY in arrays and (not found or kind is Kind.RESPONSES):
        return RESPONSES_KEY
    if not found:
        raise InputError(
            f"{path}: holds no values; one of {', '.join([*VALUE_KEYS][:-1])}, {RESPONSES_KEY} "
            "is needed"
        )
    return found[0]


def _kind_of_column(path: str, key: str, stored: StoredArray) -> Kind:
    """Return what one number per sample is when its name does not tell: labels or responses."""
    if stored.dtype.kind in "fb":
        return Kind.RESPONSES
    if stored.dtype.kind in "iu" and load_array(stored).max(initial=-1) > 1:
        return Kind.LABELS
    raise InputError(
        f"{path}: {_spoken(key)} has one {stored.dtype} per sample, which may be predicted labels "
        "or correct answers; name it predicted_labels or responses, or say --kind"
    )


def _shape(
    path: str, key: str, stored: StoredArray, kind: Kind | None
) -> tuple[tuple[int, ...], bool]:
    """Return (M, N) or (M, N, C), and whether the array is a stack of models."""
    classless = kind in (Kind.LABELS, Kind.RESPONSES)
    if stored.dtype.kind not in "fiub":
        raise InputError(f"{path}: {_spoken(key)} are {stored.dtype}; they should be numbers")
    if stored.ndim not in ((1, 2) if classless else (2, 3)):
        wanted = "(N,) or (M, N)" if classless else "(N, C) or (M, N, C)"
        what = "" if kind is None else f" for {kind.value}"
        raise InputError(
            f"{path}: {_spoken(key)} has shape {stored.shape}; it should be {wanted}{what} "
            "(M models, N samples, C classes)"
        )
    stacked = stored.ndim == (2 if classless else 3)
    return (stored.shape if stacked else (1, *stored.shape)), stacked


def _responses_beside(path: str, stored: StoredArray, shape: tuple[int, ...]) -> ModelReader:
    found, stacked = _shape(path, RESPONSES_KEY, stored, Kind.RESPONSES)
    if found != shape:
        raise InputError(
            f"{path}: {RESPONSES_KEY} has shape {stored.shape}, but the values have "
            f"{shape[0]} × {shape[1]} models × samples"
        )
    return ModelReader(stored, stacked=stacked)


def _loaded(
    path: str, arrays: Mapping[str, StoredArray], keys: Sequence[str], length: int
) -> dict[str, NDArray[Any]]:
    """Load the arrays of these names, after a look at their shape: a wrong one may be huge."""
    loaded = {}
    for key in keys:
        if key in arrays:
            stored = arrays[key]
            if stored.ndim > 1 or (key != "class_names" and prod(stored.shape) != length):
                raise InputError(
                    f"{path}: {stored.key} has shape {stored.shape}; it should be ({length},)"
                )
            loaded[key] = load_array(stored)
    return loaded


def write_npz(
    path: str | os.PathLike[str],
    values: NDArray[Any],
    kind: Kind,
    samples: Samples,
    models: Sequence[ModelInfo] = (),
    *,
    responses: NDArray[Any] | None = None,
    compressed: bool = False,
) -> None:
    """Write a prediction file as NPZ, the same bytes for the same content.

    Parameters
    ----------
    path : path
        The file to write.
    values : NDArray of shape (N, C), (M, N, C), or (N,), (M, N) for labels and responses
        Written as they are, in their own dtype.
    kind : Kind
        What they are; it decides the key they are written under.
    samples : Samples
        What is known of the N samples.
    models : sequence of ModelInfo
        The M models. None at all leaves the one model to be named by the file's stem.
    responses : NDArray of shape (N,) or (M, N), optional
        The metric that was logged beside the values.
    compressed : bool
        Deflate the arrays. Smaller, but rows can then not be fetched by themselves.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    arrays = {_WRITTEN_KEYS[kind]: values}
    if responses is not None:
        arrays[RESPONSES_KEY] = responses
    columns: dict[str, Any] = {
        "sample_ids": samples.ids,
        "sample_hashes": samples.hashes,
        "labels": samples.labels,
        "groups": samples.groups,
        "weights": samples.weights,
        "n_options": samples.n_options,
        "class_names": samples.class_names,
    }
    if models:
        columns["model_names"] = [model.name for model in models]
    if any(model.date is not None for model in models):
        columns["dates"] = [model.date or "" for model in models]
    if any(model.score is not None for model in models):
        columns["scores"] = [np.nan if model.score is None else model.score for model in models]
    arrays.update({key: np.array(column) for key, column in columns.items() if column is not None})
    write_arrays(path, arrays, compressed=compressed)


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], *, compressed: bool = False
) -> None:
    """Write arrays as ``numpy.savez`` does, but whole or not at all, and the same bytes each time.

    Uncompressed arrays begin at multiples of 64 bytes, so that they can be mapped and used in
    place.
    """
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        for key, array in arrays.items():
            info = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            info.external_attr = 0o644 << 16
            if compressed:
                info.compress_type = zipfile.ZIP_DEFLATED
            else:
                info.extra = _padding(file.tell(), info.filename)
            with archive.open(info, "w", force_zip64=True) as member:
                npy.write_array(member, np.asanyarray(array), allow_pickle=False)


def _padding(position: int, name: str) -> bytes:
    """Return an extra field that moves the member written at ``position`` to an aligned byte."""
    begin = position + _LOCAL_HEADER_BYTES + len(name) + _ZIP64_FIELD_BYTES + 4
    return struct.pack("<HH", _PADDING_FIELD, -begin % _ALIGNMENT_BYTES).ljust(
        4 + -begin % _ALIGNMENT_BYTES, b"\0"
    )
