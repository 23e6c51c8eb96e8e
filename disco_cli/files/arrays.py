"""Arrays inside ``.npy`` and ``.npz`` files: where they lie and how rows of them are fetched.

``numpy.load`` reads a member of an ``.npz`` whole. Here an uncompressed member is mapped in place,
so that only the rows asked for are touched, and a compressed stack is inflated model by model.
Headers are read by numpy; objects are refused before a byte of theirs is looked at.
"""

from __future__ import annotations

import io
import struct
import threading
import warnings
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from disco_cli.errors import InputError
from disco_cli.files.kept import SMALL_BYTES, keep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from disco_cli.files.matrix import Rows

NUMPY_MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK\x03\x04"
EMPTY_ZIP_MAGIC = b"PK\x05\x06"
UNNAMED = "arr_0"
"""What numpy calls an array that was saved without a name."""

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, lengths of name and extra field
_FED_BYTES = 1 << 14  # small, since what was not yet inflated is kept with every state
_SKIPPED_BYTES = 1 << 18


@dataclass(frozen=True)
class StoredArray:
    """Where one array lies in a file.

    ``offset`` is where the (possibly deflated) bytes of the member begin, ``skip`` the length of
    the npy header among them, ``stamp`` size and time of the file when it was opened.
    """

    path: str
    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    offset: int
    skip: int
    deflated: bool
    crc: int | None
    stamp: tuple[int, int]

    def load(self) -> NDArray[Any]:
        """Return the whole array in memory, in native byte order, its checksum verified."""
        if self.deflated:
            data: bytes | bytearray = _Inflater(self).part(0, self.nbytes)
        else:
            with opened(self.path, self.stamp) as file:
                file.seek(self.offset)
                content = file.read(self.skip + self.nbytes)
            if self.crc is not None:
                _check_crc(self, zlib.crc32(content))
            data = content[self.skip :]
        if not self.nbytes:  # frombuffer takes no empty buffer
            return np.zeros(self.shape, self.dtype)
        return _native(np.frombuffer(data, self.dtype).reshape(self.shape, order=self.order))

    def mapped(self) -> NDArray[Any]:
        """Return the array mapped in place, read-only; not for deflated members."""
        with opened(self.path, self.stamp) as file:
            if not self.nbytes:
                return np.zeros(self.shape, self.dtype)
            start = self.offset + self.skip
            array = np.memmap(file, self.dtype, "r", start, self.shape, self.order)
        return array.view(np.ndarray)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Length of the data in bytes, inflated."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def order(self) -> Any:
        """Order of the axes in the file, as numpy writes it."""
        return "F" if self.fortran else "C"


@contextmanager
def opened(path: str, stamp: tuple[int, int] | None = None) -> Iterator[BinaryIO]:
    """Open a file for reading; a failure, or a change since ``stamp``, is an InputError."""
    try:
        with Path(path).open("rb") as file:
            if stamp is not None and _stamp(path) != stamp:
                raise InputError(f"{path}: changed while it was being read; run the command again")
            yield file
    except IsADirectoryError as error:
        raise InputError(f"{path}: is a folder; name the prediction files in it") from error
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {(error.strerror or str(error)).lower()}"
        ) from error


def find_arrays(path: str) -> dict[str, StoredArray]:
    """Return the arrays of an ``.npz`` or ``.npy`` file by name, their data unread.

    Raises
    ------
    InputError
        If the file is missing, truncated, neither format, or holds objects.
    """
    with opened(path) as file:
        magic = file.read(6)
        file.seek(0)
        if magic == NUMPY_MAGIC:
            return {UNNAMED: _plain_array(path, file)}
        if magic[:4] not in (ZIP_MAGIC, EMPTY_ZIP_MAGIC):
            raise InputError(f"{path}: not an NPZ file (it does not begin as a zip archive does)")
        try:
            with zipfile.ZipFile(file) as archive:
                names = [info.filename for info in archive.infolist()]
                if len(set(names)) < len(names):
                    raise InputError(f"{path}: holds two arrays of one name; save it again")
                return {
                    info.filename.removesuffix(".npy"): _member(path, file, archive, info)
                    for info in archive.infolist()
                }
        except (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error) as error:
            raise InputError(
                f"{path}: truncated or damaged NPZ file ({error}); write or copy it again"
            ) from error


def _plain_array(path: str, file: BinaryIO) -> StoredArray:
    shape, fortran, dtype, skip = _header(path, UNNAMED, file)
    size = file.seek(0, io.SEEK_END)
    _check_length(path, UNNAMED, size - skip, shape, dtype)
    return StoredArray(
        path, UNNAMED, shape, dtype, fortran, 0, skip, deflated=False, crc=None, stamp=_stamp(path)
    )


def _member(
    path: str, file: BinaryIO, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> StoredArray:
    key = info.filename.removesuffix(".npy")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(
            f"{path}: {key} is compressed with zip method {info.compress_type}; save it with "
            "numpy.savez or numpy.savez_compressed"
        )
    if info.flag_bits & 1:
        raise InputError(f"{path}: {key} is encrypted; save it without a password")
    with archive.open(info) as stream:
        shape, fortran, dtype, skip = _header(path, key, stream)
    _check_length(path, key, info.file_size - skip, shape, dtype)
    file.seek(info.header_offset)
    signature, name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    offset = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length
    size = file.seek(0, io.SEEK_END)
    if signature != ZIP_MAGIC or offset + info.compress_size > size:
        raise InputError(f"{path}: truncated or damaged NPZ file at {key}; write or copy it again")
    return StoredArray(
        path,
        key,
        shape,
        dtype,
        fortran,
        offset,
        skip,
        deflated=info.compress_type == zipfile.ZIP_DEFLATED,
        crc=info.CRC,
        stamp=_stamp(path),
    )


def _header(path: str, key: str, stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, order, dtype and length of the npy header at the stream's position."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's remark on headers that Python 2 wrote
            version = npy.read_magic(stream)
            if version == (1, 0):
                shape, fortran, dtype = npy.read_array_header_1_0(stream)
            elif version == (2, 0):
                shape, fortran, dtype = npy.read_array_header_2_0(stream)
            else:
                raise ValueError(f"npy version {version[0]}.{version[1]}")
    except Exception as error:  # a broken header can raise anything, tokenize.TokenError too
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: {key} is not a readable numpy array ({reason})") from error
    if dtype.hasobject:
        raise InputError(
            f"{path}: {key} holds Python objects; pickled objects are never loaded. "
            "Save plain numbers or strings, for ids numpy.array(ids, dtype=str)"
        )
    if dtype.names is not None or dtype.subdtype is not None:
        raise InputError(f"{path}: {key} is a structured array; save each field on its own")
    return shape, fortran, dtype, stream.tell()


def _check_length(
    path: str, key: str, found: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    expected = prod(shape) * dtype.itemsize
    if found != expected:
        raise InputError(
            f"{path}: {key} should have {expected} bytes but has {found}: a truncated or damaged "
            "file; write or copy it again"
        )


def _check_crc(stored: StoredArray, found: int) -> None:
    if found != stored.crc:
        raise InputError(
            f"{stored.path}: {stored.key} does not match its checksum: a damaged file; write or "
            "copy it again"
        )


def _stamp(path: str) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_size, status.st_mtime_ns


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in this machine's byte order and aligned, as arithmetic wants it."""
    native: NDArray[Any] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return native if native.flags.aligned else native.copy()


class ModelReader:
    """Fetches rows of one model out of a stack (M, N, …), or of a single model's (N, …).

    A deflated array has to be inflated before its rows can be picked; see
    :func:`disco_cli.files.kept.keep` for how long it is kept.
    """

    def __init__(self, stored: StoredArray, *, stacked: bool) -> None:
        self.stored = stored
        self.stacked = stacked
        self._inflater = _Inflater(stored) if stored.deflated else None
        # In Fortran order models are interleaved, so there is no reading one without the others.
        self._whole = not stacked or stored.fortran or stored.nbytes <= SMALL_BYTES

    @property
    def random_access(self) -> bool:
        """Whether rows can be fetched without reading the others."""
        return self._inflater is None

    def __call__(self, model: int, rows: Rows) -> NDArray[Any]:
        """Return rows of one model, (n, …), native and aligned; maybe a read-only view."""
        if self._inflater is None:
            array = self.stored.mapped()
            return _native((array[model] if self.stacked else array)[_as_slice(rows)])
        if self._whole:
            whole = keep(self, 0, self.stored.load)
            values = whole[model] if self.stacked else whole
        else:
            values = keep(self, model, partial(self._inflate, self._inflater, model))
        return values[_as_slice(rows)]

    def _inflate(self, inflater: _Inflater, model: int) -> NDArray[Any]:
        shape = self.stored.shape[1:]
        data = inflater.part(model, prod(shape) * self.stored.dtype.itemsize)
        return _native(np.frombuffer(data, self.stored.dtype).reshape(shape))

    def first_rows(self, count: int) -> NDArray[Any]:
        """Return the first rows of the first model, at little cost even where deflated."""
        if self._inflater is None or self.stored.fortran:
            return self(0, slice(0, count))
        shape = self.stored.shape[1 if self.stacked else 0 :]
        shape = (min(count, shape[0]), *shape[1:])
        data = _Inflater(self.stored).part(0, prod(shape) * self.stored.dtype.itemsize)
        return _native(np.frombuffer(data, self.stored.dtype).reshape(shape))


def _as_slice(rows: Rows) -> Rows:
    """Return a run of consecutive rows as a slice, which takes a view instead of a copy."""
    if isinstance(rows, slice) or not len(rows) or rows[-1] - rows[0] != len(rows) - 1:
        return rows
    return slice(int(rows[0]), int(rows[-1]) + 1) if (np.diff(rows) == 1).all() else rows


class _Inflater:
    """Reads parts of a deflated member, remembering where each part began.

    Deflated bytes can only be read forwards. The state of the decompressor (some 50 kB) is kept at
    the start of each part that was passed, so parts asked for in order cost one pass over the
    member, and two at most in any other order.
    """

    def __init__(self, stored: StoredArray) -> None:
        self.stored = stored
        self._lock = threading.Lock()
        self._starts: dict[int, tuple[Any, int, int]] = {}

    def part(self, number: int, size: int) -> bytearray:
        """Return the ``size`` bytes of one part of the array, all parts being of that size."""
        with self._lock:
            nearest = max((at for at in self._starts if at <= number), default=0)
            state = self._starts.get(nearest)
        stream = _Deflated(self.stored, state)
        with opened(self.stored.path, self.stored.stamp) as file:
            if state is None:
                stream.skip(file, self.stored.skip)
            for passed in range(nearest, number):
                self._remember(passed, stream)
                stream.skip(file, size)
            self._remember(number, stream)
            data = stream.read(file, size)
        if (number + 1) * size == self.stored.nbytes:
            _check_crc(self.stored, stream.crc)
        else:
            self._remember(number + 1, stream)
        return data

    def _remember(self, number: int, stream: _Deflated) -> None:
        if number > 0:
            with self._lock:
                if number not in self._starts:
                    self._starts[number] = stream.state()


class _Deflated:
    """A position in a deflated member: the decompressor, the next byte to feed it, the checksum."""

    def __init__(self, stored: StoredArray, state: tuple[Any, int, int] | None) -> None:
        self.stored = stored
        if state is None:
            state = zlib.decompressobj(-zlib.MAX_WBITS), stored.offset, 0
        self.machine = state[0].copy()
        self.position = state[1]
        self.crc = state[2]

    def state(self) -> tuple[Any, int, int]:
        """Return what is needed to go on from here later."""
        return self.machine.copy(), self.position, self.crc

    def skip(self, file: BinaryIO, size: int) -> None:
        """Inflate and forget ``size`` bytes."""
        while size:
            size -= len(self.read(file, min(size, _SKIPPED_BYTES)))

    def read(self, file: BinaryIO, size: int) -> bytearray:
        """Inflate ``size`` bytes."""
        file.seek(self.position)
        result = bytearray(size)
        filled = 0
        while filled < size:
            fed = self.machine.unconsumed_tail
            if not fed:
                fed = file.read(_FED_BYTES)
                self.position += len(fed)
            try:
                piece = self.machine.decompress(fed, size - filled)
            except zlib.error as error:
                raise self._damaged(str(error)) from error
            if not piece and (self.machine.eof or not fed):
                raise self._damaged("the data end too early")
            result[filled : filled + len(piece)] = piece
            filled += len(piece)
        self.crc = zlib.crc32(result, self.crc)
        return result

    def _damaged(self, reason: str) -> InputError:
        return InputError(
            f"{self.stored.path}: {self.stored.key} cannot be inflated ({reason}): a truncated or "
            "damaged file; write or copy it again"
        )
