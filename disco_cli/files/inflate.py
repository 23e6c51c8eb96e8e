"""Reading parts of deflated members of ``.npz`` files in order, without inflating them twice.

Deflated bytes can only be read forwards. Whoever reads on from where the last reading ended
continues with the same decompressor. In a stack of models its state is also kept where each model
begins that was passed, some 50 kB each, so that models may be read in any order.
"""

from __future__ import annotations

import threading
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO

from disco_cli.errors import InputError
from disco_cli.files.location import opened

if TYPE_CHECKING:
    from disco_cli.files.arrays import StoredArray

_FED_BYTES = 1 << 16  # what was fed and not yet inflated is copied at every call, and kept
_SKIPPED_BYTES = 1 << 20


@cache
def _fast_zlib() -> Any:
    """Return ISA-L's zlib where it is installed, else Python's own.

    It inflates twice as fast, but its state cannot be copied.
    """
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib


class Inflater:
    """Reads parts of one deflated array.

    Parameters
    ----------
    stored : StoredArray
        The array.
    stride : int, optional
        Length of one model in bytes; the decompressor's state is kept at multiples of it.
    """

    def __init__(self, stored: StoredArray, stride: int | None = None) -> None:
        self.stored = stored
        self.stride = stride
        self._marks: dict[int, _Stream] = {}
        self._cursor: _Stream | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process without what was read so far."""
        return Inflater, (self.stored, self.stride)

    def read(self, start: int, size: int) -> bytearray:
        """Return ``size`` bytes of the array from byte ``start`` on.

        Raises
        ------
        InputError
            If the bytes are damaged; their checksum is known once the last one is read.
        """
        stream = self._nearest(start)
        with opened(self.stored.path, self.stored.stamp) as file:
            file.seek(stream.position)
            for mark in self._passed(stream.at, start):
                stream.skip(file, mark - stream.at)
                self._remember(stream)
            stream.skip(file, start - stream.at)
            data = stream.read(file, size)
        if stream.at == self.stored.nbytes:
            check_crc(self.stored, stream.crc)
        else:
            self._leave(stream)
        return data

    def _nearest(self, start: int) -> _Stream:
        """Return a stream that stands at or before ``start``, for the caller alone."""
        with self._lock:
            cursor = self._cursor
            mark = max((at for at in self._marks if at <= start), default=-1)
            if cursor is not None and mark <= cursor.at <= start:
                self._cursor = None  # another thread must not read on from here too
                return cursor
            if mark >= 0:
                return self._marks[mark].copy()
            return _Stream(self.stored, zlib if self.stride else _fast_zlib())

    def _passed(self, begin: int, end: int) -> range:
        """Return where models begin between two positions."""
        if self.stride is None:
            return range(0)
        return range(max(-(-begin // self.stride), 1) * self.stride, end + 1, self.stride)

    def _remember(self, stream: _Stream) -> None:
        with self._lock:
            if stream.at not in self._marks:
                self._marks[stream.at] = stream.copy()

    def _leave(self, stream: _Stream) -> None:
        if self.stride is not None and stream.at % self.stride == 0:
            self._remember(stream)
        else:
            with self._lock:
                self._cursor = stream


class _Stream:
    """A place in a deflated member.

    ``at`` counts the bytes of the array and begins before it, at the npy header; ``position`` is
    where in the file the next bytes to inflate are.
    """

    def __init__(self, stored: StoredArray, library: Any) -> None:
        self.stored = stored
        self.library = library
        self.at = -stored.skip
        self.position = stored.offset
        self.crc = 0
        self.machine = library.decompressobj(-zlib.MAX_WBITS)

    def copy(self) -> _Stream:
        """Return another stream that stands at the same place."""
        twin = _Stream(self.stored, self.library)
        twin.at, twin.position, twin.crc = self.at, self.position, self.crc
        twin.machine = self.machine.copy()
        return twin

    def skip(self, file: BinaryIO, size: int) -> None:
        """Inflate and forget ``size`` bytes."""
        while size > 0:
            size -= len(self.read(file, min(size, _SKIPPED_BYTES)))

    def read(self, file: BinaryIO, size: int) -> bytearray:
        """Inflate ``size`` bytes."""
        result = bytearray(size)
        filled = 0
        while filled < size:
            fed = self.machine.unconsumed_tail
            if not fed:
                fed = file.read(_FED_BYTES)
                self.position += len(fed)
            try:
                piece = self.machine.decompress(fed, size - filled)
            except self.library.error as error:
                raise self._damaged(str(error)) from error
            if not piece and (self.machine.eof or not fed):
                raise self._damaged("the data end too early")
            result[filled : filled + len(piece)] = piece
            filled += len(piece)
        self.crc = self.library.crc32(result, self.crc)
        self.at += size
        return result

    def _damaged(self, reason: str) -> InputError:
        return InputError(
            f"{self.stored.path}: {self.stored.key} cannot be inflated ({reason}): a truncated or "
            "damaged file; write or copy it again"
        )


def check_crc(stored: StoredArray, found: int) -> None:
    """Compare the checksum of a whole member with what the archive says."""
    if stored.crc is not None and found != stored.crc:
        raise InputError(
            f"{stored.path}: {stored.key} does not match its checksum: a damaged file; write or "
            "copy it again"
        )
