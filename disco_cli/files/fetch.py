"""Fetching values of ``.npy`` and ``.npz`` files: a whole array, or some rows of one model.

``numpy.load`` reads a member of an ``.npz`` whole. Here only those parts of the file are read that
hold rows that were asked for. They are read rather than mapped: the pages of a map count as memory
of this process, those of one file after those of the other.
"""

from __future__ import annotations

import zlib
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.files.inflate import Inflater, check_crc
from disco_cli.files.kept import SMALL_BYTES, keep
from disco_cli.files.location import LocalFile, local_path, opened, read_range, read_ranges
from disco_cli.files.matrix import as_slice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from disco_cli.files.arrays import StoredArray
    from disco_cli.files.matrix import Rows

_GAP_BYTES = 1 << 15
"""Unwanted bytes that are read along: as long as another call of the system would take."""

_RUN_BYTES = 1 << 22
"""What is read at once to pick rows from."""


def load_array(stored: StoredArray) -> NDArray[Any]:
    """Return a whole array in memory, in native byte order, its checksum verified."""
    if stored.deflated:
        data: Any = Inflater(stored).read(0, stored.nbytes)
    else:
        size = stored.skip + stored.nbytes
        content = memoryview(read_range(stored.path, stored.offset, size, stored.stamp))
        check_crc(stored, zlib.crc32(content))
        data = content[stored.skip :]
    if not stored.nbytes:  # frombuffer takes no empty buffer
        return np.zeros(stored.shape, stored.dtype)
    return _native(np.frombuffer(data, stored.dtype).reshape(stored.shape, order=stored.order))


class ModelReader:
    """Fetches rows of one model out of a stack (M, N, …), or of a single model's (N, …).

    A deflated array that is small enough is inflated once and kept; see
    :func:`disco_cli.files.kept.keep` for how long. A larger one is inflated as far as it is asked
    for, so rows are best asked for in their order.
    """

    def __init__(self, stored: StoredArray, *, stacked: bool) -> None:
        self.stored = stored
        self.stacked = stacked
        self._shape = stored.shape[1:] if stacked else stored.shape
        self._row_bytes = prod(self._shape[1:]) * stored.dtype.itemsize
        self._inflater = (
            Inflater(stored, self._shape[0] * self._row_bytes if stacked else None)
            if stored.deflated
            else None
        )
        # In Fortran order rows are interleaved: they are read together, or picked from a map.
        self._mapped = stored.fortran and not stored.deflated and stored.nbytes > SMALL_BYTES
        self._whole = not self._mapped and (
            stored.fortran or (stored.deflated and stored.nbytes <= SMALL_BYTES)
        )

    @property
    def random_access(self) -> bool:
        """Whether rows can be fetched without reading the others."""
        return not self.stored.deflated

    @property
    def in_place(self) -> bool:
        """Whether rows lie in a local file as arithmetic wants them; see :meth:`opened`."""
        stored = self.stored
        plain = not (stored.deflated or stored.fortran) and stored.dtype.isnative
        return plain and local_path(stored.path) is not None

    def opened(self, model: int) -> OpenedModel:
        """Open the file to read many ranges of rows of one model, where it is ``in_place``."""
        first = self.stored.offset + self.stored.skip + model * self._shape[0] * self._row_bytes
        return OpenedModel(self.stored, first, self._row_bytes)

    def __call__(self, model: int, rows: Rows) -> NDArray[Any]:
        """Return rows of one model, (n, …), native and aligned; maybe a read-only view."""
        rows = as_slice(rows)
        if self._whole or self._mapped:
            array = keep(self, 0, self._map if self._mapped else self._load)
            return _native((array[model] if self.stacked else array)[rows])
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self._shape[0])
            if step == 1:
                return self._run(model, start, max(start, stop))
            rows = np.arange(start, stop, step)
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        runs = self._runs(ascending)
        bounds = [(int(ascending[begin]), int(ascending[end - 1]) + 1) for begin, end in runs]
        result = np.empty((len(rows), *self._shape[1:]), self.stored.dtype.newbyteorder("="))
        lengths = [stop - start for start, stop in bounds]
        if sum(lengths) * self._row_bytes <= _RUN_BYTES:  # all at once, and picked at once
            block = self._decoded(b"".join(self._parts(model, bounds)))
            counts = [end - begin for begin, end in runs]
            starts = np.array([start for start, _ in bounds], np.int64)
            shifts = np.cumsum([0, *lengths[:-1]]) - starts if runs else starts
            result[order] = block[ascending + np.repeat(shifts, counts)]
            return result
        for (begin, end), (start, _), part in zip(
            runs, bounds, self._parts(model, bounds), strict=True
        ):
            result[order[begin:end]] = self._decoded(part)[ascending[begin:end] - start]
        return result

    def first_rows(self, count: int) -> NDArray[Any]:
        """Return the first rows of the first model, at little cost even where deflated."""
        if self._whole and not self.stored.fortran:
            start, stop = 0, min(count, self._shape[0])
            return self._decoded(bytes(Inflater(self.stored).read(start, stop * self._row_bytes)))
        return self(0, slice(0, count))

    def _load(self) -> NDArray[Any]:
        return load_array(self.stored)

    def _map(self) -> NDArray[Any]:
        stored, path = self.stored, local_path(self.stored.path)
        if path is None:
            return self._load()
        with opened(stored.path, stored.stamp) as file:
            start = stored.offset + stored.skip
            array = np.memmap(file, stored.dtype, "r", start, stored.shape, "F")
        return array.view(np.ndarray)

    def _runs(self, rows: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Cut ascending rows into runs that are read at once."""
        longest = max(_RUN_BYTES // max(self._row_bytes, 1), 1)
        gap = max(_GAP_BYTES // max(self._row_bytes, 1), 1)
        breaks = [0, *(np.flatnonzero(np.diff(rows) > gap) + 1).tolist(), len(rows)]
        runs = []
        for first, end in pairwise(breaks if len(rows) else []):
            begin = first
            while rows[end - 1] - rows[begin] >= longest:
                cut = int(np.searchsorted(rows, rows[begin] + longest))
                runs.append((begin, cut))
                begin = cut
            runs.append((begin, end))
        return runs

    def _run(self, model: int, start: int, stop: int) -> NDArray[Any]:
        """Return consecutive rows of one model."""
        return self._decoded(next(iter(self._parts(model, [(start, stop)]))))

    def _parts(self, model: int, bounds: Sequence[tuple[int, int]]) -> Iterator[bytes | bytearray]:
        """Return the bytes of rows from start to stop of one model, for each pair of these."""
        ranges = [
            ((model * self._shape[0] + start) * self._row_bytes, (stop - start) * self._row_bytes)
            for start, stop in bounds
        ]
        stored, inflater = self.stored, self._inflater
        if inflater is not None:
            return (inflater.read(*one) for one in ranges)
        origin = stored.offset + stored.skip
        shifted = [(origin + start, size) for start, size in ranges]
        return read_ranges(stored.path, shifted, stored.stamp)

    def _decoded(self, data: bytes | bytearray) -> NDArray[Any]:
        if not data:
            return np.empty((0, *self._shape[1:]), self.stored.dtype.newbyteorder("="))
        return _native(np.frombuffer(data, self.stored.dtype).reshape(-1, *self._shape[1:]))


class OpenedModel(LocalFile):
    """One model's rows in an open file, read into arrays of the caller."""

    def __init__(self, stored: StoredArray, first: int, row_bytes: int) -> None:
        super().__init__(stored.path, stored.stamp)
        self._first = first
        self._row_bytes = row_bytes

    def place(self, row: int) -> int:
        """Return at which byte of the file a row begins."""
        return self._first + row * self._row_bytes

    def read_rows(self, start: int, out: NDArray[Any]) -> None:
        """Fill ``out`` (n, …), contiguous and of the type stored, with rows from ``start`` on."""
        self.read_into(out, self.place(start))


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in this machine's byte order and aligned, as arithmetic wants it."""
    result: NDArray[Any] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return result if result.flags.aligned else result.copy()
