"""Values of a Parquet file: fetching those of one model for some rows.

Row groups of other writers may be as large as a file, so they are decoded in batches, and whoever
reads on from where the last reading ended continues with the same decoder.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import InputError
from disco_cli.files.kept import SMALL_BYTES, keep
from disco_cli.files.matrix import as_slice
from disco_cli.files.parquet_rows import BATCH_VALUES, as_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from disco_cli.files.matrix import Rows
    from disco_cli.files.parquet_rows import ParquetTable

WHOLE_BYTES = 1 << 27
"""Row groups of several models are decoded whole and kept up to this size, since models are asked
for by name and may stand in another order."""


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

    @property
    def held_bytes(self) -> int:
        """Most bytes of a row group that is kept whole."""
        sizes = np.diff(self.table.group_starts).tolist()
        return max([self._bytes(rows) for rows in sizes if self._whole(rows)], default=0)

    def __call__(self, model: int, rows: Rows) -> NDArray[Any]:
        """Return rows of one model, (n,) or (n, C); maybe a view of what is kept."""
        # Values and responses of one file are read in turn: neither may throw out the other.
        place = "values" if len(self.shape) == 3 else "scalars"
        if self.table.rows is not None and self._small:
            whole: NDArray[Any] = keep(self, -1, self._all, place=place)[model]
            return whole[rows]
        return keep(self, 0, partial(_Stream, self), place=place).read(self._numbers(model, rows))

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

    def blocks(self, group: int, wanted: int) -> Iterator[NDArray[Any]]:
        """Decode a row group: all of it where it is kept whole, else some rows after the other.

        If about as many rows are ``wanted`` as are decoded at once anyway, it is exactly as many:
        blocks of that length then need not be pieced together.
        """
        start, stop = self.table.group_starts[group : group + 2].tolist()
        if not self._whole(stop - start):
            usual = BATCH_VALUES // max(prod(self.shape[2:]), 1)
            size = wanted if usual <= 2 * wanted <= 3 * usual and len(self.columns) == 1 else None
            for batch in self.table.batches(group, self.columns, size):
                yield self._block(batch, start)
                start += len(batch)
            return
        result = self.rows(stop - start, missing=False)
        done = 0
        for batch in self.table.batches(group, self.columns):
            result[done : done + len(batch)] = self._block(batch, start + done)
            done += len(batch)
        yield result

    def _whole(self, rows: int) -> bool:
        """Return whether a row group of so many rows is kept whole."""
        several_models = rows > self.shape[1]
        return len(self.shape) == 2 or (several_models and self._bytes(rows) <= WHOLE_BYTES)

    def _bytes(self, rows: int) -> int:
        return rows * prod(self.shape[2:]) * self.dtype.itemsize

    def _dtype(self) -> np.dtype[Any]:
        import pyarrow as pa

        kinds = [self.table.schema.field(column).type for column in self.columns]
        if len(self.shape) == 3 and len(self.columns) == 1:
            kinds = [kinds[0].value_type]
        for column, kind in zip(self.columns, kinds, strict=True):
            number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
            if not number and not pa.types.is_boolean(kind):
                raise InputError(f"{self.table.path}: {column} holds {kind}; it should be numbers")
        found = np.result_type(*[as_array(pa.array([], kind)).dtype for kind in kinds])
        # Whatever is not there has to be told from what is.
        if np.isnan(self.missing) and found.kind in "iub":
            return np.dtype(np.float32 if found.itemsize <= 2 else np.float64)
        return np.dtype(np.int64) if found.kind in "ub" else found

    def _all(self) -> NDArray[Any]:
        result = np.full(self.shape, self.missing, self.dtype)
        start = 0
        for group in range(len(self.table.group_starts) - 1):
            for batch in self.table.batches(group, self.columns):
                rows = slice(start, start + len(batch))
                at = self.table.models[rows], self.table.samples[rows]
                result[at] = self._block(batch, start)
                start += len(batch)
        return result

    def rows(self, count: int, *, missing: bool) -> NDArray[Any]:
        """Return room for some rows, all of them ``missing`` or yet to be filled."""
        shape = (count, *self.shape[2:])
        return np.full(shape, self.missing, self.dtype) if missing else np.empty(shape, self.dtype)

    def _block(self, batch: Any, start: int) -> NDArray[Any]:
        """Return the rows of a piece of the table as an array; ``start`` is its first row."""
        if len(self.shape) == 2:
            return self._scalars(batch[self.columns[0]])
        if len(self.columns) > 1:
            return np.stack([self._scalars(batch[column]) for column in self.columns], axis=1)
        column = batch[self.columns[0]]
        return self._lists(
            column.combine_chunks() if hasattr(column, "combine_chunks") else column, start
        )

    def _scalars(self, column: Any) -> NDArray[Any]:
        import pyarrow as pa

        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        if column.null_count and self.dtype.kind == "i":
            column = column.fill_null(int(self.missing))
        return as_array(column).astype(self.dtype, copy=False)

    def _lists(self, column: Any, start: int) -> NDArray[Any]:
        """Return lists as rows: 0 beyond a list's end, NaN throughout where there is no list."""
        import pyarrow.compute as pc

        flat = self._scalars(column.flatten())
        lengths = as_array(pc.fill_null(pc.list_value_length(column), 0))
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


class _Stream:
    """Reads on through the rows of a file; belongs to one thread.

    It holds the rows of the file from ``_start`` to ``_stop``, which belong to row group
    ``_group``, and what it returned last: right answers are found by reading rows once more.
    """

    def __init__(self, reader: RowReader) -> None:
        self._reader = reader
        self._group = -1
        self._start = self._stop = 0
        self._block: NDArray[Any] | None = None
        self._following: Iterator[NDArray[Any]] = iter(())
        self._last: tuple[NDArray[np.int64], NDArray[Any]] | None = None

    def read(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the values of these rows of the file, missing ones for those below 0."""
        if self._last is not None and np.array_equal(self._last[0], rows):
            return self._last[1]
        self._last = None
        result = self._read(rows)
        if result.nbytes <= SMALL_BYTES:
            self._last = rows, result
        return result

    def _read(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        done = absent = int(np.searchsorted(ascending, 0))
        result = None
        while done < len(rows):
            block = self._move(int(ascending[done]), len(rows))
            end = int(np.searchsorted(ascending, self._stop))
            to, of = as_slice(order[done:end]), as_slice(ascending[done:end] - self._start)
            if end - done == len(rows) and isinstance(to, slice):
                return block[of]
            if result is None:
                result = self._reader.rows(len(rows), missing=absent > 0)
            result[to] = block[of]
            done = end
            del block  # two of them need not be held
        return self._reader.rows(len(rows), missing=True) if result is None else result

    def _move(self, row: int, wanted: int) -> NDArray[Any]:
        """Go on to the block that has this row, one of those that are wanted, and return it."""
        if self._block is not None and self._start <= row < self._stop:
            return self._block
        starts = self._reader.table.group_starts
        group = int(np.searchsorted(starts, row, side="right")) - 1
        if group != self._group or row < self._stop:
            self._following = self._reader.blocks(group, wanted)
            self._stop = int(starts[group])
        self._group = -1  # nowhere, should decoding fail
        while row >= self._stop:
            self._block = None
            block = next(self._following)
            self._start, self._stop = self._stop, self._stop + len(block)
            self._block = block
        if self._stop == starts[group + 1]:
            next(self._following, None)  # checks that there is no more, and closes the file
        self._group = group
        return block
