"""Arrays inside ``.npy`` and ``.npz`` files: where they lie and what they are.

Only headers are read here, by numpy; objects are refused before a byte of theirs is looked at.
:mod:`disco_cli.files.fetch` gets the values.
"""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from disco_cli.errors import InputError
from disco_cli.files.location import opened, stamp_of

if TYPE_CHECKING:
    from disco_cli.files.location import Stamp

NUMPY_MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK\x03\x04"
EMPTY_ZIP_MAGIC = b"PK\x05\x06"
UNNAMED = "arr_0"
"""What numpy calls an array that was saved without a name."""

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, lengths of name and extra field


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
    stamp: Stamp

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
        path,
        UNNAMED,
        shape,
        dtype,
        fortran,
        0,
        skip,
        deflated=False,
        crc=None,
        stamp=stamp_of(path),
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
        stamp=stamp_of(path),
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
