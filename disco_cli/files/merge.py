"""Joining what several files say of the same samples, and refusing contradictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from disco_cli.errors import InputError
from disco_cli.files.matrix import PredictionFile, Samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Placed(NamedTuple):
    """A file and where its rows stand among all samples; ``None`` for all of them in order."""

    file: PredictionFile
    positions: NDArray[np.int64] | None


class _Column(NamedTuple):
    """A field of ``Samples``, what it is called, and what stands for unknown."""

    field: str
    spoken: str
    unknown: Any


_COLUMNS = (
    _Column("hashes", "hash", ""),
    _Column("labels", "label", -1),
    _Column("groups", "group", ""),
    _Column("weights", "weight", np.nan),
    _Column("n_options", "number of options", -1),
)


def merge_samples(
    placed: Sequence[Placed], n: int, ids: NDArray[np.str_] | None, n_classes: int | None
) -> Samples:
    """Return what is known of all N samples; what only some files tell counts for all.

    Parameters
    ----------
    placed : sequence of Placed
        The files.
    n : int
        N.
    ids : NDArray of str, shape (N,), optional
        Ids in canonical order; ``None`` if samples are known by position.
    n_classes : int, optional
        C.

    Raises
    ------
    InputError
        If two files contradict each other, or labels and options do not fit together.
    """
    merged = {column.field: _merge(column, placed, n, ids) for column in _COLUMNS}
    samples = Samples(n=n, ids=ids, class_names=_class_names(placed), **merged)
    if samples.weights is not None:
        _refuse(samples, "has no weight in any file, but others do", np.isnan(samples.weights))
    if n_classes is None:  # without classes there are no options to choose from
        merged["n_options"] = None
    elif samples.n_options is not None:
        options = np.where(samples.n_options < 0, n_classes, samples.n_options)
        _refuse(samples, f"has more options than the {n_classes} classes", options > n_classes)
        merged["n_options"] = options
    if samples.labels is not None:
        top = merged["n_options"] if merged["n_options"] is not None else n_classes
        if top is not None:
            _refuse(samples, "has a label beyond its options", samples.labels >= top)
    return Samples(n=n, ids=ids, class_names=samples.class_names, **merged)


def _merge(
    column: _Column, placed: Sequence[Placed], n: int, ids: NDArray[np.str_] | None
) -> NDArray[Any] | None:
    result: NDArray[Any] | None = None
    seen: set[tuple[int, int]] = set()
    for number, (file, positions) in enumerate(placed):
        values = getattr(file.samples, column.field)
        if values is None or (id(values), id(file.samples.ids)) in seen:
            continue
        seen.add((id(values), id(file.samples.ids)))  # a thousand files share one column
        spread = _spread(values, positions, n, column.unknown)
        if result is None:
            result = spread
            continue
        known = _known(spread, column.unknown)
        clash = known & _known(result, column.unknown) & _differ(spread, result)
        if clash.any():
            raise _contradiction(column, placed[: number + 1], int(np.argmax(clash)), n, ids)
        result = np.where(_known(result, column.unknown), result, spread)
    if result is None or not _known(result, column.unknown).any():
        return None
    return result


def _spread(
    values: NDArray[Any], positions: NDArray[np.int64] | None, n: int, unknown: Any
) -> NDArray[Any]:
    if positions is None:
        return values
    result = np.full(n, unknown, values.dtype)
    result[positions] = values
    return result


def _known(values: NDArray[Any], unknown: Any) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = ~np.isnan(values) if values.dtype.kind == "f" else values != unknown
    return known


def _differ(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where two columns differ by more than the rounding of weights to float32."""
    differ: NDArray[np.bool_] = left != right
    if left.dtype.kind == "f":
        differ &= ~np.isclose(left, right, rtol=1e-6, atol=0)
    return differ


def _contradiction(
    column: _Column,
    placed: Sequence[Placed],
    sample: int,
    n: int,
    ids: NDArray[np.str_] | None,
) -> InputError:
    *earlier, (last, positions) = placed
    value = _spread(getattr(last.samples, column.field), positions, n, column.unknown)[sample]
    where = f"sample {str(ids[sample])!r}" if ids is not None else f"sample {sample}"
    for file, rows in earlier:
        values = getattr(file.samples, column.field)
        other = None if values is None else _spread(values, rows, n, column.unknown)[sample]
        if other is not None and _known(other, column.unknown) and _differ(other, value):
            return InputError(
                f"{last.path}: {where} has {column.spoken} {value.item()!r}, but "
                f"{other.item()!r} in {file.path}; correct one of them"
            )
    raise AssertionError(f"no earlier file contradicts {last.path}")


def _class_names(placed: Sequence[Placed]) -> tuple[str, ...] | None:
    first: PredictionFile | None = None
    for file, _ in placed:
        names = file.samples.class_names
        if names is None or (first is not None and names is first.samples.class_names):
            continue
        if first is None:
            first = file
        elif names != first.samples.class_names:
            ours = first.samples.class_names or ()
            at = next(
                (i for i, (a, b) in enumerate(zip(names, ours, strict=False)) if a != b), None
            )
            found = (
                f"{len(names)} class names, but {len(ours)}"
                if at is None
                else f"class {at} named {names[at]!r}, but {ours[at]!r}"
            )
            raise InputError(f"{file.path}: has {found} in {first.path}; correct one of them")
    return None if first is None else first.samples.class_names


def _refuse(samples: Samples, found: str, broken: NDArray[np.bool_]) -> None:
    if broken.any():
        row = int(np.argmax(broken))
        name = row if samples.ids is None else repr(str(samples.ids[row]))
        raise InputError(f"sample {name} {found}; {int(broken.sum())} such samples")
