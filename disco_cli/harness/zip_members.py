"""Members of a zip archive, Zstandard included.

inspect_ai writes its ``.eval`` archives with zip method 93 since 2026; Python's ``zipfile`` knows it
from 3.14 on only. The central directory is read by ``zipfile``, the compressed bytes by pyarrow.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from disco_cli.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ZSTANDARD = 93
_LOCAL_HEADER_BYTES = 30
_PIECE = 1 << 20
_SIGNATURE = b"PK\x03\x04"


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive for reading.

    Raises
    ------
    InputError
        If the file is missing or not a whole zip archive.
    """
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
        raise InputError(
            f"{path}: not a whole zip archive ({error}): cut off or damaged; copy it again"
        ) from None
    with archive:
        yield archive


def read_member(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    """Return the bytes of one member, checked against its length and checksum.

    Raises
    ------
    InputError
        If the member is missing, damaged, encrypted, or packed in a way unknown here.
    """
    try:
        info = archive.getinfo(name)
        if info.compress_type != ZSTANDARD:
            return archive.read(info)
        content = _unpack_zstandard(_packed(archive, info), info.file_size)
    except KeyError:
        raise InputError(f"{path}: has no {name}: not finished, cut off or damaged") from None
    except (
        zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, struct.error,
    ) as error:  # fmt: skip
        raise InputError(f"{path}: {name} is damaged: {error}") from None
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise InputError(f"{path}: {name} does not match its checksum: damaged; copy it again")
    return content


def _packed(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the compressed bytes of a member as they stand in the file."""
    file: IO[bytes] | None = archive.fp
    if file is None:
        raise ValueError("the archive is closed")
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER_BYTES)
    if len(header) < _LOCAL_HEADER_BYTES or not header.startswith(_SIGNATURE):
        raise ValueError("no member begins where the directory says")
    name_bytes, extra_bytes = struct.unpack("<HH", header[26:30])
    file.seek(name_bytes + extra_bytes, io.SEEK_CUR)
    return file.read(info.compress_size)


def _unpack_zstandard(packed: bytes, size: int) -> bytes:
    import pyarrow as pa

    # Piece by piece, so that a size that the directory makes up is never allocated in advance.
    content = bytearray()
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        while len(content) <= size and (piece := stream.read(_PIECE)):
            content += piece
    return bytes(content)
