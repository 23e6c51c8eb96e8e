"""Whole file or no file.

A file is written beside its target under a temporary name, flushed to the disk, and then renamed
over the target in one step. Whatever interrupts the writing, the old file stays and no litter.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from disco_cli.errors import OutputError
from disco_cli.files.location import is_failure_of_storage, local_path, reason_of, upload

if TYPE_CHECKING:
    from collections.abc import Iterator

_HELP = {
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that you may write to",
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some space or choose another folder",
    errno.EFBIG: "a limit on file sizes is set (see ulimit -f)",
    errno.ENOTDIR: "a file stands where a folder is needed",
    errno.EEXIST: "a file stands where a folder is needed",
}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that takes the place of ``path`` when the block ends well.

    Parameters
    ----------
    path : path
        The target. Its folder is made if need be, a symbolic link is followed, the permissions of
        an existing file are kept. Into a device or a pipe the finished bytes are copied; behind a
        URL the finished file is uploaded in one go.

    Yields
    ------
    file object
        Seekable, open for reading and writing.

    Raises
    ------
    OutputError
        If the folder or file cannot be written. The target is then as it was.
    """
    local = local_path(path)
    if local is None:
        with _uploaded(os.fspath(path)) as file:
            yield file
        return
    target = Path(os.path.realpath(local))
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "a folder has that name")
        if target.exists() and not target.is_file():
            buffer = io.BytesIO()  # a device cannot be sought in, nor replaced
            yield buffer
            with target.open("wb") as device:
                device.write(buffer.getbuffer())
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".disco-{os.getpid()}-{os.urandom(6).hex()}.part")
        with _removed_on_failure(temporary):
            with temporary.open("x+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        advice = _HELP.get(error.errno or 0)
        raise OutputError(
            f"{os.fspath(path)}: cannot be written: {reason}" + (f"; {advice}" if advice else "")
        ) from error


@contextmanager
def _uploaded(url: str) -> Iterator[BinaryIO]:
    """Open a temporary file that is put in the place of a URL's when the block ends well."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="disco-") as folder:
        source = Path(folder) / "content"
        with source.open("x+b") as file:
            yield file
        try:
            upload(source, url)
        except Exception as error:
            if not is_failure_of_storage(error):
                raise
            raise OutputError(f"{url}: cannot be written: {reason_of(error)}") from error


@contextmanager
def _removed_on_failure(temporary: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:  # Ctrl-C too leaves no litter
        with suppress(OSError):
            temporary.unlink()
        raise


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where folders can be flushed."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
