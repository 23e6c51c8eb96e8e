"""Tables and lists for people and other tools, which nothing in them marks as disco's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disco_cli.errors import OutputError
from disco_cli.files.atomic import atomic_write

if TYPE_CHECKING:
    from pathlib import Path


def write_output(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file, unless one of other content lies there.

    Parameters
    ----------
    path : Path
        The target; a device or a pipe is always written to.
    content : bytes
        The whole file.
    force : bool
        Replace a file of other content.

    Raises
    ------
    OutputError
        A file of other content lies there and ``force`` is not given, or it cannot be written.
    """
    if not force and path.is_file() and not _has_content(path, content):
        raise OutputError(f"{path}: exists with other content; --force replaces it")
    with atomic_write(path) as file:
        file.write(content)


def _has_content(path: Path, content: bytes) -> bool:
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False
