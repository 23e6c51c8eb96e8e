"""A hidden folder that is filled beside its target, and those that killed programs left there."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SUFFIX = ".disco-staging"


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Make an empty folder beside ``target``, to be filled and renamed; what is left is removed.

    A program that is killed cannot remove its own, so those are looked for first. While in use a
    folder is locked, and a lock ends with its program, however that ends: a folder of this name
    that can be locked belongs to nobody.

    Raises
    ------
    OSError
        The folder cannot be made.
    """
    _sweep(target)
    staging, handle = _make(target)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _make(target: Path) -> tuple[Path, int | None]:
    """Return a new folder and the handle that holds its lock."""
    while True:
        name = tempfile.mkdtemp(prefix=f".{target.name}-", suffix=_SUFFIX, dir=target.parent)
        staging = target.parent / name
        handle = _lock(staging, wait=True)
        if staging.exists():
            return staging, handle
        if handle is not None:  # another program swept the folder before it was locked
            os.close(handle)


def _sweep(target: Path) -> None:
    """Remove the folders of programs that are gone."""
    with suppress(OSError):
        for found in target.parent.iterdir():
            is_ours = found.name.startswith(f".{target.name}-") and found.name.endswith(_SUFFIX)
            if not is_ours or found.is_symlink() or not found.is_dir():
                continue
            handle = _lock(found, wait=False)
            if handle is not None:
                shutil.rmtree(found, ignore_errors=True)
                os.close(handle)


def _lock(folder: Path, *, wait: bool) -> int | None:
    """Return a handle that locks a folder; ``None`` if another does, or if nothing here can."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        return None
    return handle
