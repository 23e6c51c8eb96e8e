"""What stands beside the values of a file, brought into the form of ``Samples`` and ``ModelInfo``.

Ids, labels, groups and so on may have been saved as many types; here they are checked against the
number of samples, classes or models, and every fault is named with its file, key and row.
"""

from __future__ import annotations

import hashlib
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from disco_cli.errors import InputError
from disco_cli.files.matrix import ModelInfo, Samples
from disco_cli.files.values import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

_ISO_DATE = re.compile(
    r"\d{4}(-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?)?)?"
)

_INTEGER_LIMIT = 1 << 62

_Key = tuple[str, str, tuple[int, ...], bytes]
_shared: WeakValueDictionary[_Key, NDArray[Any]] = WeakValueDictionary()
_converted: WeakValueDictionary[_Key, NDArray[Any]] = WeakValueDictionary()


def shared(array: NDArray[Any]) -> NDArray[Any]:
    """Return one read-only array for all equal ones.

    A thousand files of one benchmark repeat the same ids and labels. Sharing them keeps one copy
    in memory, and lets files be compared by identity.
    """
    array = np.ascontiguousarray(array)
    key = _key("", array)
    known = _shared.get(key)
    if known is None:
        array.flags.writeable = False
        _shared[key] = known = array
    return known


def _shared_as(
    what: str, column: NDArray[Any], convert: Callable[[NDArray[Any]], NDArray[Any]]
) -> NDArray[Any]:
    """Return ``shared(convert(column))``, converted and checked once for all equal columns.

    ``what`` tells one conversion from another; converting a million ids takes longer than reading
    the predictions beside them.
    """
    key = _key(what, column)
    known = _converted.get(key)
    if known is None:
        _converted[key] = known = shared(convert(column))
    return known


def _key(what: str, array: NDArray[Any]) -> _Key:
    """Return what equal arrays have in common; sha256 is the fastest digest with no collisions."""
    flat = np.ascontiguousarray(array).reshape(-1)
    # Dates export no buffer.
    data = flat.data if array.dtype.kind not in "mM" else flat.tobytes()
    return what, array.dtype.str, array.shape, hashlib.sha256(data).digest()


def row_error(
    path: str,
    row: int,
    found: str,
    *,
    ids: NDArray[np.str_] | None = None,
    model: str | None = None,
) -> InputError:
    """Return the error that names one row of one model in a file, and what was found there."""
    sample = "" if ids is None else f" (sample {str(ids[row])!r})"
    return InputError(f"{path}: row {row}{sample}{f', model {model!r}' if model else ''}: {found}")


def read_samples(
    path: str, columns: Mapping[str, NDArray[Any]], n: int, n_classes: int | None
) -> Samples:
    """Return what a file says of its N samples.

    Parameters
    ----------
    path : str
        For messages.
    columns : mapping of str to NDArray
        Any of ``sample_ids``, ``sample_hashes``, ``labels``, ``groups``, ``weights``,
        ``n_options`` (each (N,)) and ``class_names`` (C,).
    n : int
        N.
    n_classes : int or None
        C, where the values tell it.

    Raises
    ------
    InputError
        If a column has the wrong length or type, or a value out of range.
    """
    for key, column in columns.items():
        if key != "class_names" and column.shape != (n,):
            raise InputError(
                f"{path}: {key} has shape {column.shape}, but the values have {n} samples; "
                f"it should have shape ({n},)"
            )
    names = _class_names(path, columns.get("class_names"), n_classes)
    limit = n_classes if n_classes is not None else (len(names) if names else None)
    ids = _maybe(_ids, path, columns, "sample_ids")
    n_options = _maybe(_integers, path, columns, "n_options")
    if n_options is not None:
        _refuse(
            path,
            "n_options",
            n_options,
            (n_options < 1) | (n_options > (limit if limit is not None else np.inf)),
            f"should lie between 1 and {limit}" if limit else "should be at least 1",
        )
    labels = _labels(path, columns.get("labels"), names)
    if labels is not None:
        top = n_options if n_options is not None else limit
        if top is not None:
            _refuse(
                path, "labels", labels, labels >= top, "lies beyond the options (0 is the first)"
            )
    weights = _maybe(_floats, path, columns, "weights")
    if weights is not None:
        broken = ~((weights >= 0) & (weights <= LARGEST))
        _refuse(path, "weights", weights, broken, "should be a finite number, at least 0")
        if not weights.any():
            raise InputError(f"{path}: weights are all 0; at least one has to be positive")
    return Samples(
        n=n,
        ids=ids,
        hashes=_maybe(_texts, path, columns, "sample_hashes"),
        labels=labels,
        groups=_maybe(_texts, path, columns, "groups"),
        weights=weights,
        n_options=n_options,
        class_names=names,
    )


def read_models(
    path: str, columns: Mapping[str, NDArray[Any]], n_models: int
) -> tuple[ModelInfo, ...]:
    """Return the M models of a file from ``model_names``, ``dates`` and ``scores``, each (M,).

    Without names the file's stem is the model, followed by a number where there are several.

    Raises
    ------
    InputError
        If a column has the wrong length, a name stands twice, or a date is not ISO.
    """
    columns = {key: np.atleast_1d(column) for key, column in columns.items()}
    for key, column in columns.items():
        if column.shape != (n_models,):
            raise InputError(
                f"{path}: {key} has shape {column.shape}, but the values have {n_models} "
                f"model{'s' if n_models > 1 else ''}; it should have shape ({n_models},)"
            )
    if "model_names" in columns:
        names = _texts(path, "model_names", columns["model_names"])
        _refuse(path, "model_names", names, names == "", "is empty")
        _check_unique(path, "model name", names)
        listed = [str(name) for name in names]
    else:
        listed = unnamed_models(path, n_models)
    dates = _dates(path, columns.get("dates"), n_models)
    scores = [None] * n_models if "scores" not in columns else _scores(path, columns["scores"])
    return tuple(
        ModelInfo(name, date, score)
        for name, date, score in zip(listed, dates, scores, strict=True)
    )


def unnamed_models(path: str, n_models: int) -> list[str]:
    """Return names made from the file's stem, numbered so that they sort as they stand."""
    stem = Path(path).stem
    if n_models == 1:
        return [stem]
    digits = len(str(n_models - 1))
    return [f"{stem}-{m:0{digits}d}" for m in range(n_models)]


def as_kept(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of text as plain unicode whatever it was saved as."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind in "iu" and array.size:
        # As wide as needed: numpy would take 84 bytes for every integer.
        width = max(len(str(array.min())), len(str(array.max())))
        return array.astype(f"U{width}")
    return array.astype(str)


def _maybe(read: Any, path: str, columns: Mapping[str, NDArray[Any]], key: str) -> Any:
    return read(path, key, columns[key]) if key in columns else None


def _ids(path: str, key: str, column: NDArray[Any]) -> NDArray[np.str_]:
    def convert(column: NDArray[Any]) -> NDArray[np.str_]:
        texts = _as_texts(path, key, column)
        _check_unique(path, "sample id", texts)
        return texts

    return _shared_as("ids", column, convert)


def _texts(path: str, key: str, column: NDArray[Any]) -> NDArray[np.str_]:
    return _shared_as("texts", column, partial(_as_texts, path, key))


def _as_texts(path: str, key: str, column: NDArray[Any]) -> NDArray[np.str_]:
    if column.dtype.kind not in "iuUS":
        raise InputError(f"{path}: {key} are {column.dtype}; they should be integers or strings")
    try:
        texts = as_kept(column)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {key} are not UTF-8 text ({error}); save them as str") from error
    if column.dtype.kind == "U":
        _refuse_surrogates(path, key, texts)
    return texts


def _refuse_surrogates(path: str, key: str, texts: NDArray[np.str_]) -> None:
    """Refuse halves of surrogate pairs, which no file and no terminal can be given."""
    points = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), -1)
    broken = np.asarray(((points >= 0xD800) & (points < 0xE000)).any(axis=1))
    _refuse(path, key, texts, broken, "is not Unicode text (it holds half a surrogate pair)")


def _floats(path: str, key: str, column: NDArray[Any]) -> NDArray[np.float64]:
    if column.dtype.kind not in "fiu":
        raise InputError(f"{path}: {key} are {column.dtype}; they should be numbers")
    return shared(column.astype(np.float64))


def _integers(path: str, key: str, column: NDArray[Any]) -> NDArray[np.int64]:
    return _shared_as("integers", column, partial(_as_integers, path, key))


def _as_integers(path: str, key: str, column: NDArray[Any]) -> NDArray[np.int64]:
    if column.dtype.kind not in "iuf":
        raise InputError(f"{path}: {key} are {column.dtype}; they should be whole numbers")
    if column.dtype.kind == "f":
        column = column.astype(np.float64)
        broken = np.asarray((column != np.trunc(column)) | ~(np.abs(column) < _INTEGER_LIMIT))
        _refuse(path, key, column, broken, "should be a whole number")
    elif column.dtype.kind == "u":
        _refuse(path, key, column, column >= _INTEGER_LIMIT, "is too large")
    return column.astype(np.int64)


def _labels(
    path: str, column: NDArray[Any] | None, names: tuple[str, ...] | None
) -> NDArray[np.int64] | None:
    """Return right classes; NaN and negative ones are unknown, class names are looked up."""
    if column is None:
        return None
    if column.dtype.kind not in "US":
        return _shared_as("labels", column, partial(_as_labels, path))
    if names is None:
        raise InputError(
            f"{path}: labels are text; save them as numbers from 0, or class_names beside them"
        )
    texts = as_kept(column)
    order = np.argsort(names)
    place = np.searchsorted(np.array(names)[order], texts).clip(max=len(names) - 1)
    found = order[place]
    unknown = np.array(names)[found] != texts
    _refuse(path, "labels", texts, unknown & (texts != ""), "is none of class_names")
    return shared(np.where(unknown, -1, found))


def _as_labels(path: str, column: NDArray[Any]) -> NDArray[np.int64]:
    if column.dtype.kind == "f":
        column = np.where(np.isnan(column), -1, column)
    return np.maximum(_as_integers(path, "labels", column), -1)


def _class_names(
    path: str, column: NDArray[Any] | None, n_classes: int | None
) -> tuple[str, ...] | None:
    if column is None:
        return None
    if column.ndim != 1 or (n_classes is not None and len(column) != n_classes):
        raise InputError(
            f"{path}: class_names has shape {column.shape}, but the values have {n_classes} classes"
        )
    names = _texts(path, "class_names", column)
    _check_unique(path, "class name", names)
    return tuple(str(name) for name in names)


def _dates(path: str, column: NDArray[Any] | None, n_models: int) -> list[str | None]:
    if column is None:
        return [None] * n_models
    texts = as_kept(column) if column.dtype.kind in "USMiu" else None
    if texts is None:
        raise InputError(f"{path}: dates are {column.dtype}; they should be text as 2026-01-31")
    texts = np.where(texts == "NaT", "", texts)
    for row, text in enumerate(texts):
        if text and not _is_date(str(text)):
            raise InputError(f"{path}: dates[{row}] is {str(text)!r}; it should be as 2026-01-31")
    return [str(text) or None for text in texts]


def _is_date(text: str) -> bool:
    """Return whether a text is a year, a month or a day in ISO form, perhaps with a time."""
    if not _ISO_DATE.fullmatch(text):
        return False
    month, day = int(text[5:7] or 1), int(text[8:10] or 1)
    try:
        np.datetime64(f"{text[:4]}-{month:02d}-{day:02d}")
    except ValueError:
        return False
    return True


def _scores(path: str, column: NDArray[Any]) -> list[float | None]:
    scores = _floats(path, "scores", column)
    broken = np.asarray(np.abs(scores) > LARGEST)
    _refuse(path, "scores", scores, broken, "should be finite, or NaN where unknown")
    return [None if np.isnan(score) else float(score) for score in scores]


def _check_unique(path: str, what: str, texts: NDArray[np.str_]) -> None:
    order = np.argsort(texts, kind="stable")
    same = np.flatnonzero(texts[order][1:] == texts[order][:-1])
    if len(same):
        first, second = order[same[0]], order[same[0] + 1]
        raise InputError(
            f"{path}: {what} {str(texts[first])!r} stands twice, in rows {first} and {second}"
        )


def _refuse(
    path: str, key: str, column: NDArray[Any], broken: NDArray[np.bool_], should: str
) -> None:
    if broken.any():
        row = int(np.argmax(broken))
        value = column[row].item()
        raise InputError(f"{path}: {key}[{row}] is {value!r}: {should}")
