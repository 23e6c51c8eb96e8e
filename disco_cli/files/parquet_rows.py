"""Rows of a Parquet file: which model and sample each belongs to, and fetching their values."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import InputError
from disco_cli.files.kept import SMALL_BYTES, keep
from disco_cli.files.location import local_path, opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from disco_cli.files.matrix import Rows


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Turn what pyarrow raises about a file into one line."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(
            f"{path}: truncated or damaged Parquet file ({reason}); write or copy it again"
        ) from error


def _as_array(column: Any) -> NDArray[Any]:
    """Return an arrow column of numbers as one array; chunked ones need pandas in older pyarrow."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    result: NDArray[Any] = whole.to_numpy(zero_copy_only=False)
    return result


@contextmanager
def _parquet_file(path: str, **options: Any) -> Iterator[Any]:
    """Open a Parquet file of this machine or behind a URL."""
    import pyarrow.parquet as pq

    local = local_path(path)
    if local is not None:
        with pq.ParquetFile(local, **options) as file:
            yield file
    else:
        with opened(path) as source, pq.ParquetFile(source, **options) as file:
            yield file


@dataclass
class ParquetTable:
    """An opened Parquet file; :meth:`locate` finds out which row belongs to what.

    Attributes
    ----------
    models, samples : NDArray of int64, shape (R,)
        Model and sample of each row, numbered as they first appear.
    leaves : Counter of str
        Number of single values in each column.
    rows : NDArray of int64, shape (M, N), or None
        Row of each model and sample, -1 where there is none; ``None`` if rows are sorted by model
        and have the same samples in the same order for each.
    """

    path: str
    names: list[str]
    metadata: Mapping[bytes, bytes]
    group_starts: NDArray[np.int64]
    schema: Any
    leaves: Counter[str]
    models: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    samples: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    model_names: NDArray[np.str_] = field(default_factory=lambda: np.zeros(0, str))
    sample_ids: NDArray[Any] = field(default_factory=lambda: np.zeros(0, str))
    n_models: int = 1
    n: int = 0
    rows: NDArray[np.int64] | None = None

    @classmethod
    def open(cls, path: str) -> ParquetTable:
        """Read the footer of a file."""
        with _readable(path), _parquet_file(path) as file:
            schema = file.schema_arrow
            groups = file.metadata
            sizes = [groups.row_group(g).num_rows for g in range(groups.num_row_groups)]
            leaves: Counter[str] = Counter()
            for g in range(groups.num_row_groups):
                for number in range(groups.num_columns):
                    column = groups.row_group(g).column(number)
                    leaves[column.path_in_schema.split(".")[0]] += column.num_values
        if not sum(sizes):
            raise InputError(f"{path}: is empty; it has no rows")
        starts = np.cumsum([0, *sizes])
        return cls(path, list(schema.names), schema.metadata or {}, starts, schema, leaves)

    def locate(self, model_column: str | None, sample_column: str | None) -> None:
        """Find the model and the sample of every row.

        Raises
        ------
        InputError
            If a pair stands twice, or samples without ids are not the same number in each model.
        """
        count = int(self.group_starts[-1])
        self.models = np.zeros(count, np.int64)
        if model_column is not None:
            self.models, names = self._codes(model_column)
            self.model_names = names.astype(str)
            self.n_models = len(names)
        if sample_column is not None:
            self.samples, self.sample_ids = self._codes(sample_column)
            self.n = len(self.sample_ids)
        else:
            self._number_samples()
        regular = count == self.n_models * self.n and (
            (self.models == np.repeat(np.arange(self.n_models), self.n)).all()
            and (self.samples == np.tile(np.arange(self.n), self.n_models)).all()
        )
        if not regular:
            self.rows = self._rows(count)

    def forget_rows(self) -> None:
        """Let go of what is known of each row where the order of rows tells it too."""
        if self.rows is None:
            self.models = self.samples = np.zeros(0, np.int64)

    def _number_samples(self) -> None:
        sizes = np.bincount(self.models)
        if (sizes != sizes[0]).any():
            odd = int(np.argmax(sizes != sizes[0]))
            raise InputError(
                f"{self.path}: model {str(self.model_names[odd])!r} has {sizes[odd]} rows, but "
                f"{str(self.model_names[0])!r} has {sizes[0]}; without sample_id all models need "
                "the same samples in the same order: add sample_id"
            )
        self.n = int(sizes[0])
        self.samples = np.empty(len(self.models), np.int64)
        self.samples[np.argsort(self.models, kind="stable")] = np.tile(
            np.arange(self.n), self.n_models
        )

    def _rows(self, count: int) -> NDArray[np.int64]:
        rows = np.full((self.n_models, self.n), -1, np.int64)
        rows[self.models, self.samples] = np.arange(count)
        twice = rows[self.models, self.samples] != np.arange(count)
        if twice.any():
            first = int(np.argmax(twice))
            sample = str(self.sample_ids[self.samples[first]])
            model = (
                f" of model {str(self.model_names[self.models[first]])!r}"
                if len(self.model_names)
                else ""
            )
            second = int(rows[self.models[first], self.samples[first]])
            raise InputError(
                f"{self.path}: sample id {sample!r}{model} stands twice, in rows {first} and {second}"
            )
        return rows

    def per_sample(self, column: str) -> NDArray[Any]:
        """Return a column by sample, (N,), after checking that all rows of a sample agree."""
        names = self.sample_ids if len(self.sample_ids) else np.arange(self.n)
        return self._per(column, self.samples, names, "sample")

    def per_model(self, column: str) -> NDArray[Any]:
        """Return a column by model, (M,), after checking that all rows of a model agree."""
        names = self.model_names if len(self.model_names) else np.array([self.path])
        return self._per(column, self.models, names, "model")

    def _per(
        self, column: str, owners: NDArray[np.int64], names: NDArray[Any], what: str
    ) -> NDArray[Any]:
        values = self._plain(column)
        first = np.empty(len(names), np.int64)
        first[owners[::-1]] = np.arange(len(owners))[::-1]  # the last assignment stays
        result = values[first]
        same = values == result[owners]
        if values.dtype.kind == "f":
            same |= np.isnan(values) & np.isnan(result[owners])
        if not same.all():
            row = int(np.argmin(same))
            raise InputError(
                f"{self.path}: {what} {names[owners[row]].item()!r} has {column} "
                f"{values[row].item()!r} in row {row}, but {result[owners[row]].item()!r} in row "
                f"{first[owners[row]]}; correct one of them"
            )
        return result

    def widths(
        self, columns: Sequence[str], known: int | None
    ) -> tuple[int, NDArray[np.int64] | None]:
        """Return C, and the number of options of each sample where lists are ragged.

        Lists all have ``known`` values if the file says so, which is checked when they are read.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if len(columns) > 1:
            return len(columns), None
        kind = self.schema.field(columns[0]).type
        if pa.types.is_fixed_size_list(kind):
            return int(kind.list_size), None
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise InputError(f"{self.path}: {columns[0]} is {kind}; it should be a list per row")
        if known is not None:
            if known > self.leaves[columns[0]]:  # before room for them is made
                raise InputError(
                    f"{self.path}: disco.n_classes is {known}, but {columns[0]} holds only "
                    f"{self.leaves[columns[0]]} values"
                )
            return known, None
        lengths = np.concatenate(
            [
                _as_array(pc.fill_null(pc.list_value_length(part[columns[0]]), 0))
                for part in self.groups(range(len(self.group_starts) - 1), columns)
            ]
        ).astype(np.int64)
        present = lengths > 0
        widest = int(lengths.max())
        if (lengths[present] == widest).all():
            return widest, None
        options = np.full(self.n, -1, np.int64)
        options[self.samples[present]] = lengths[present]
        differ = present & (options[self.samples] != lengths)
        if differ.any():
            row = int(np.argmax(differ))
            raise InputError(
                f"{self.path}: row {row} has {lengths[row]} values in {columns[0]}, but the same "
                f"sample has {options[self.samples[row]]} elsewhere; correct one of them"
            )
        return widest, np.where(options < 0, widest, options)

    def groups(self, numbers: Sequence[int] | range, columns: Sequence[str]) -> Iterator[Any]:
        """Read some row groups, one at a time."""
        with (
            _readable(self.path),
            _parquet_file(self.path, page_checksum_verification=True) as file,
        ):
            for number in numbers:
                group = file.read_row_group(number, columns=list(columns), use_threads=False)
                rows = self.group_starts[number + 1] - self.group_starts[number]
                if len(group) != rows:
                    raise ValueError(f"row group {number} has {len(group)} rows of {rows}")
                yield group

    def head(self, count: int, columns: Sequence[str]) -> Any:
        """Read the first rows, without decoding the rest of their row group."""
        import pyarrow as pa

        with _readable(self.path), _parquet_file(self.path) as file:
            batches = file.iter_batches(count, columns=list(columns), use_threads=False)
            return pa.Table.from_batches([next(batches)])

    def _codes(self, column: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return a column as numbers of its distinct values, and these in order of appearance."""
        import pyarrow as pa

        with _readable(self.path):
            values = self._read(column)
            if values.null_count:
                row = int(np.argmax(_as_array(values.is_null())))
                raise InputError(f"{self.path}: {column} is empty in row {row}; fill it in")
            if not pa.types.is_dictionary(values.type):
                values = values.dictionary_encode()
            values = values.unify_dictionaries().combine_chunks()
            codes = _as_array(values.indices).astype(np.int64)
            texts = np.array(values.dictionary.to_pylist())
        if texts.dtype.kind not in "iuU":
            raise InputError(
                f"{self.path}: {column} is {values.type.value_type}; it should be text or integers"
            )
        return codes, texts

    def _plain(self, column: str) -> NDArray[Any]:
        """Return a column as an array: nothing is NaN among numbers and "" among texts."""
        import pyarrow as pa

        with _readable(self.path):
            values = self._read(column)
            kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
            if pa.types.is_floating(kind) or pa.types.is_integer(kind):
                return _as_array(values)
            if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
                values = values.cast(pa.date32()).cast(pa.string())
            elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise InputError(f"{self.path}: {column} is {kind}; it should be numbers or text")
            values = values.fill_null("").dictionary_encode().unify_dictionaries().combine_chunks()
            texts = np.array(values.dictionary.to_pylist(), str)
            result: NDArray[Any] = texts[_as_array(values.indices)]
            return result

    def _read(self, column: str) -> Any:
        with _parquet_file(
            self.path, read_dictionary=[column], page_checksum_verification=True
        ) as file:
            values = file.read(columns=[column], use_threads=False)[column]
        values.validate(full=True)  # a damaged dictionary may point anywhere
        if len(values) != self.group_starts[-1]:
            raise ValueError(f"{column} has {len(values)} rows of {self.group_starts[-1]}")
        return values


class RowReader:
    """Fetches rows of one model of a Parquet file.

    ``shape`` is (M, N) or (M, N, C); ``missing`` stands where there is no row or no value.
    """

    def __init__(
        self, table: ParquetTable, columns: Sequence[str], shape: tuple[int, ...], missing: float
    ) -> None:
        self.table = table
        self.columns = list(columns)
        self.shape = shape
        self.missing = missing
        self.dtype = self._dtype()
        self._small = prod(shape) * self.dtype.itemsize <= SMALL_BYTES

    def __call__(self, model: int, rows: Rows) -> NDArray[Any]:
        """Return rows of one model, (n,) or (n, C)."""
        if self.table.rows is not None and self._small:
            whole: NDArray[Any] = keep(self, 0, self._all)[model]
            return whole[rows]
        wanted = self._numbers(model, rows)
        starts = self.table.group_starts
        found = np.searchsorted(starts, wanted, side="right") - 1
        groups = np.unique(found[wanted >= 0])
        if len(groups) == 1 and (wanted >= 0).all():
            part: NDArray[Any] = keep(self, int(groups[0]), partial(self._group, int(groups[0])))
            at = wanted - starts[groups[0]]
            consecutive = at[-1] - at[0] == len(at) - 1 and (np.diff(at) == 1).all()
            return part[at[0] : at[-1] + 1] if consecutive else part[at]
        result = self._empty((len(wanted), *self.shape[2:]))
        for group in groups.tolist():
            inside = (found == group) & (wanted >= 0)
            values = keep(self, group, partial(self._group, group))
            result[inside] = values[wanted[inside] - starts[group]]
        return result

    def first_rows(self, count: int) -> NDArray[Any]:
        """Return the first rows of the first model."""
        if self.table.rows is not None:
            return self(0, slice(0, count))
        return self._block(self.table.head(min(count, self.shape[1]), self.columns), 0)

    def _numbers(self, model: int, rows: Rows) -> NDArray[np.int64]:
        """Return which rows of the file these rows of a model are, -1 where there is none."""
        if self.table.rows is not None:
            mine: NDArray[np.int64] = self.table.rows[model]
            return mine[rows]
        n = self.shape[1]
        numbers = np.arange(*rows.indices(n)) if isinstance(rows, slice) else rows
        return numbers + model * n

    def _group(self, number: int) -> NDArray[Any]:
        """Return the values of all rows of a row group."""
        start = int(self.table.group_starts[number])
        return self._block(next(self.table.groups([number], self.columns)), start)

    def _dtype(self) -> np.dtype[Any]:
        import pyarrow as pa

        kinds = [self.table.schema.field(column).type for column in self.columns]
        if len(self.shape) == 3 and len(self.columns) == 1:
            kinds = [kinds[0].value_type]
        for column, kind in zip(self.columns, kinds, strict=True):
            number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
            if not number and not pa.types.is_boolean(kind):
                raise InputError(f"{self.table.path}: {column} holds {kind}; it should be numbers")
        found = np.result_type(*[_as_array(pa.array([], kind)).dtype for kind in kinds])
        # Whatever is not there has to be told from what is.
        if np.isnan(self.missing) and found.kind in "iub":
            return np.dtype(np.float32 if found.itemsize <= 2 else np.float64)
        return np.dtype(np.int64) if found.kind in "ub" else found

    def _all(self) -> NDArray[Any]:
        result = self._empty(self.shape)
        start = 0
        for group in self.table.groups(range(len(self.table.group_starts) - 1), self.columns):
            rows = slice(start, start + len(group))
            result[self.table.models[rows], self.table.samples[rows]] = self._block(group, start)
            start += len(group)
        return result

    def _empty(self, shape: tuple[int, ...]) -> NDArray[Any]:
        return np.full(shape, self.missing, self.dtype)

    def _block(self, group: Any, start: int) -> NDArray[Any]:
        """Return the rows of a piece of the table as an array; ``start`` is its first row."""
        if len(self.shape) == 2:
            return self._scalars(group[self.columns[0]])
        if len(self.columns) > 1:
            return np.stack([self._scalars(group[column]) for column in self.columns], axis=1)
        return self._lists(group[self.columns[0]].combine_chunks(), start)

    def _scalars(self, column: Any) -> NDArray[Any]:
        import pyarrow as pa

        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        if column.null_count and self.dtype.kind == "i":
            column = column.fill_null(int(self.missing))
        return _as_array(column).astype(self.dtype, copy=False)

    def _lists(self, column: Any, start: int) -> NDArray[Any]:
        """Return lists as rows: 0 beyond a list's end, NaN throughout where there is no list."""
        import pyarrow.compute as pc

        flat = self._scalars(column.flatten())
        lengths = _as_array(pc.fill_null(pc.list_value_length(column), 0))
        width = self.shape[2]
        if (lengths == width).all():
            return flat.reshape(len(lengths), width)
        if (lengths > width).any():
            row = int(np.argmax(lengths > width))
            raise InputError(
                f"{self.table.path}: row {start + row} has {lengths[row]} values in "
                f"{self.columns[0]}, but there are {width} classes"
            )
        result = np.zeros((len(lengths), width), self.dtype)
        result[np.arange(width) < lengths[:, None]] = flat
        result[lengths == 0] = self.missing
        return result
