"""Rows of a Parquet file: which model and sample each belongs to, and reading them in batches."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import InputError
from disco_cli.files.location import local_path, opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

BATCH_VALUES = 1 << 18
"""Values that are decoded at once: 1 MiB in single precision."""

_BATCH_ROWS = 1 << 10
"""Fewest rows that are decoded at once of several columns, as each of them takes a call."""

_BUFFER_BYTES = 1 << 16
"""What is read of a column at once. Without a buffer all of the column in a row group is."""

_REMOTE_BUFFER_BYTES = 1 << 20  # each read may be a request


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


def as_array(column: Any) -> NDArray[Any]:
    """Return an arrow column of numbers as one array; chunked ones need pandas in older pyarrow."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    result: NDArray[Any] = whole.to_numpy(zero_copy_only=False)
    return result


@contextmanager
def _parquet_file(path: str, **options: Any) -> Iterator[Any]:
    """Open a Parquet file of this machine or behind a URL."""
    import pyarrow.parquet as pq

    local = local_path(path)
    options["pre_buffer"] = False  # of all columns, whole, whatever the size of the buffer
    options["buffer_size"] = _REMOTE_BUFFER_BYTES if local is None else _BUFFER_BYTES
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
                as_array(pc.fill_null(pc.list_value_length(batch[columns[0]]), 0))
                for group in range(len(self.group_starts) - 1)
                for batch in self.batches(group, columns)
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

    def batches(self, group: int, columns: Sequence[str], size: int | None = None) -> Iterator[Any]:
        """Read a row group some rows at a time, by default about ``BATCH_VALUES`` values.

        Other writers put a whole file into one row group, so all of one is never decoded at once.
        """
        rows = int(self.group_starts[group + 1] - self.group_starts[group])
        if size is None:
            values = sum(self.leaves[column] for column in columns)
            size = BATCH_VALUES * int(self.group_starts[-1]) // max(values, 1)
            size = max(size, _BATCH_ROWS if len(columns) > 1 else 1)
        with (
            _readable(self.path),
            _parquet_file(self.path, page_checksum_verification=True) as file,
        ):
            found = 0
            for batch in file.iter_batches(
                size, row_groups=[group], columns=list(columns), use_threads=False
            ):
                found += len(batch)
                if found > rows:
                    break
                yield batch
            if found != rows:
                raise ValueError(f"row group {group} has {found} rows of {rows}")

    def head(self, count: int, columns: Sequence[str]) -> Any:
        """Read the first rows, without decoding the rest of their row group."""
        import pyarrow as pa

        batches: list[Any] = []
        for group in range(len(self.group_starts) - 1):
            for batch in self.batches(group, columns, count):
                batches.append(batch)
                if sum(map(len, batches)) >= count:
                    return pa.Table.from_batches(batches).slice(0, count)
        return pa.Table.from_batches(batches)

    def _codes(self, column: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return a column as numbers of its distinct values, and these in order of appearance."""
        import pyarrow as pa

        with _readable(self.path):
            values = self._read(column)
            if values.null_count:
                row = int(np.argmax(as_array(values.is_null())))
                raise InputError(f"{self.path}: {column} is empty in row {row}; fill it in")
            if not pa.types.is_dictionary(values.type):
                values = values.dictionary_encode()
            values = values.unify_dictionaries().combine_chunks()
            codes = as_array(values.indices).astype(np.int64)
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
                return as_array(values)
            if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
                values = values.cast(pa.date32()).cast(pa.string())
            elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise InputError(f"{self.path}: {column} is {kind}; it should be numbers or text")
            values = values.fill_null("").dictionary_encode().unify_dictionaries().combine_chunks()
            texts = np.array(values.dictionary.to_pylist(), str)
            result: NDArray[Any] = texts[as_array(values.indices)]
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
