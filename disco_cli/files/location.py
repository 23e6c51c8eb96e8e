"""Where files are: paths of this machine, and URLs that fsspec understands.

A path without ``://`` and a ``file://`` URL are opened by the operating system, and fsspec is not
even imported for them. Anything else (``s3://``, ``gs://``, ``https://`` …) goes through fsspec and
the driver that it names, which the extras ``urls`` and ``s3`` install.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit
from zlib import crc32

from disco_cli.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

_HAS_PREAD = hasattr(os, "pread")
_HAS_PREADV = hasattr(os, "preadv")

Stamp = tuple[int, int]
"""Size of a file and a number that changes when it is written anew."""


def local_path(location: str | os.PathLike[str]) -> str | None:
    """Return the path of a file of this machine, ``None`` for any other URL."""
    text = os.fspath(location)
    if "://" not in text:
        return text
    parts = urlsplit(text)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return unquote(parts.path)
    return None


def expand(locations: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the locations with patterns (``*``, ``?``, ``[…]``) in URLs replaced by what they match.

    Patterns of local paths are left to the shell.

    Raises
    ------
    InputError
        If nothing matches a pattern.
    """
    expanded = []
    for location in [os.fspath(given) for given in locations]:
        if local_path(location) is not None or not any(mark in location for mark in "*?["):
            expanded.append(location)
            continue
        with _explained(location):
            filesystem, inner = remote(location)
            found = [filesystem.unstrip_protocol(name) for name in sorted(filesystem.glob(inner))]
        if not found:
            raise InputError(f"{location}: no file matches")
        expanded.extend(found)
    return expanded


@contextmanager
def opened(location: str, stamp: Stamp | None = None) -> Iterator[BinaryIO]:
    """Open a file for reading; a failure, or a change since ``stamp``, is an InputError."""
    path = local_path(location)
    with _explained(location):
        if path is not None:
            with Path(path).open("rb") as file:
                _check(location, stamp, lambda: _stamp(os.fstat(file.fileno())))
                yield file
            return
        filesystem, inner = remote(location)
        _check(location, stamp, lambda: stamp_of(location))
        with filesystem.open(inner, "rb") as file:
            yield cast("BinaryIO", file)


def read_range(location: str, start: int, size: int, stamp: Stamp | None = None) -> bytes:
    """Return ``size`` bytes from byte ``start`` on; see :func:`read_ranges`."""
    return next(read_ranges(location, [(start, size)], stamp))


def read_ranges(
    location: str, ranges: Sequence[tuple[int, int]], stamp: Stamp | None = None
) -> Iterator[bytes]:
    """Yield the bytes of each range (start, size); many threads may read one file at once.

    The file is opened anew each time, which costs a few microseconds locally, so that a thousand
    files need no thousand open handles and nothing has to be closed.

    Raises
    ------
    InputError
        If the file cannot be read, has changed since ``stamp``, or ends too early.
    """
    path = local_path(location)
    with _explained(location):
        if path is None:
            filesystem, inner = remote(location)
            for start, size in ranges:
                data = cast("bytes", filesystem.cat_file(inner, start=start, end=start + size))
                yield _complete(location, data, start, size)
            return
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            _check(location, stamp, lambda: _stamp(os.fstat(handle)))
            for start, size in ranges:
                data = _read_at(handle, size, start)
                yield data if len(data) == size else _complete(location, data, start, size)
        finally:
            os.close(handle)


class LocalFile:
    """A file of this machine, kept open to read ranges of it into arrays of the caller.

    Raises
    ------
    InputError
        If the file cannot be opened, or has changed since ``stamp``.
    """

    def __init__(self, location: str, stamp: Stamp) -> None:
        path = local_path(location)
        if path is None:
            raise ValueError(f"{location} is not local")
        self.location = location
        with _explained(location):
            self.handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            _check(location, stamp, lambda: _stamp(os.fstat(self.handle)))
        except BaseException:
            self.close()
            raise

    def read_into(self, out: NDArray[Any], start: int) -> None:
        """Fill ``out``, which is contiguous, with the bytes from ``start`` on.

        Raises
        ------
        InputError
            If the file cannot be read, or ends too early.
        """
        try:
            done = _read_into(self.handle, out, start)
            if done != out.nbytes:
                self._read_rest(out.data.cast("B"), start, done)
        except OSError as error:
            raise InputError(f"{self.location}: cannot be read: {reason_of(error)}") from error

    def _read_rest(self, out: memoryview, start: int, done: int) -> None:
        """Go on where the system stopped: one call reads no more than 2 GiB."""
        while more := _read_into(self.handle, out[done:], start + done):
            done += more
        if done != len(out):
            raise _ended(self.location, start + done, len(out) - done)

    def close(self) -> None:
        """Close the file."""
        os.close(self.handle)


def _complete(location: str, data: bytes, start: int, size: int) -> bytes:
    """Return the data if they are as long as they should be."""
    if len(data) != size:
        raise _ended(location, start + len(data), size - len(data))
    return data


def _ended(location: str, at: int, missing: int) -> InputError:
    return InputError(
        f"{location}: ends at byte {at}, where {missing} more are needed; write or copy it again"
    )


def stamp_of(location: str) -> Stamp:
    """Return the stamp of a file."""
    path = local_path(location)
    with _explained(location):
        if path is not None:
            return _stamp(Path(path).stat())
        filesystem, inner = remote(location)
        found = filesystem.info(inner)
        changed = str(found.get("ETag") or found.get("mtime") or found.get("LastModified") or "")
        return int(found["size"]), crc32(changed.encode())


def upload(source: Path, url: str) -> None:
    """Put a finished local file in the place of a URL's; stores replace an object in one step."""
    filesystem, inner = remote(url)
    filesystem.put_file(str(source), inner)


def reason_of(error: Exception) -> str:
    """Return in a few words why something could not be read or written."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    lines: list[str] = str(text).splitlines()
    return lines[0][:1].lower() + lines[0][1:] if lines[0][1:2].islower() else lines[0]


def is_failure_of_storage(error: Exception) -> bool:
    """Return whether the operating system, a network or a driver failed, rather than our code."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _DRIVERS


_DRIVERS = frozenset(
    {"aiobotocore", "aiohttp", "azure", "botocore", "fsspec", "gcsfs", "google", "s3fs"}
)


def remote(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the path inside it."""
    scheme = url.partition("://")[0]
    extra = "s3" if scheme in {"s3", "s3a"} else "urls"
    try:
        from fsspec.core import url_to_fs

        filesystem, inner = url_to_fs(url)
    except ImportError as error:
        raise InputError(
            f"{url}: {scheme}:// needs more packages ({error}): pip install 'disco-cli[{extra}]'"
        ) from error
    except ValueError as error:
        raise InputError(f"{url}: {reason_of(error)}; see docs/scaling.md for URLs") from error
    return filesystem, inner


@contextmanager
def _explained(location: str) -> Iterator[None]:
    """Turn a failure of the file system, the network or the driver into one line."""
    try:
        yield
    except IsADirectoryError as error:
        raise InputError(f"{location}: is a folder; name the prediction files in it") from error
    except FileNotFoundError as error:
        raise InputError(f"{location}: no such file") from error
    except Exception as error:
        if not is_failure_of_storage(error):
            raise
        raise InputError(f"{location}: cannot be read: {reason_of(error)}") from error


def _check(location: str, stamp: Stamp | None, found: Callable[[], Stamp]) -> None:
    if stamp is not None and found() != stamp:
        raise InputError(f"{location}: changed while it was being read; run the command again")


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_size, status.st_mtime_ns


def _read_into(handle: int, out: Any, start: int) -> int:
    """Fill the begin of a buffer and return how many bytes that are."""
    if _HAS_PREADV:
        return os.preadv(handle, [out], start)
    view = memoryview(out).cast("B")
    data = _read_at(handle, len(view), start)
    view[: len(data)] = data
    return len(data)


def _read_at(handle: int, size: int, start: int) -> bytes:
    """Return up to ``size`` bytes; one call of the system reads no more than 2 GiB."""
    if not _HAS_PREAD:
        with os.fdopen(os.dup(handle), "rb") as file:
            file.seek(start)
            return file.read(size)
    data = os.pread(handle, size, start)
    if len(data) == size or not data:
        return data
    parts = [data]
    while len(data) and (missing := size - sum(map(len, parts))):
        data = os.pread(handle, missing, start + size - missing)
        parts.append(data)
    return b"".join(parts)
