"""Artifacts behind URLs: the few things that disco does with a :class:`pathlib.Path`, done by fsspec.

``pathlib`` would take ``s3://bucket`` for a folder ``s3:``. :func:`as_path` returns a real path for
everything on this machine, and for other URLs an object that behaves like one as far as artifacts
need it: joining, reading, asking whether something is there. Failures are ``OSError`` as for files.
"""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from disco_cli.files.location import is_failure_of_storage, local_path, reason_of, remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def as_path(location: str | os.PathLike[str]) -> Path:
    """Return the path of a location; of a URL one that understands ``/``, ``open`` and the like."""
    text = os.fspath(location)
    local = local_path(text)
    return cast("Path", UrlPath(text)) if local is None else Path(local)


def is_behind_url(path: Path) -> bool:
    """Return whether :func:`as_path` made this of a URL."""
    return isinstance(cast("object", path), UrlPath)


class _Size(NamedTuple):
    st_size: int


class UrlPath(os.PathLike[str]):
    """A file or folder behind a URL."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        self._scheme = scheme
        self._path = PurePosixPath(rest)

    def __fspath__(self) -> str:
        return f"{self._scheme}://{self._path}"

    def __str__(self) -> str:
        return self.__fspath__()

    def __repr__(self) -> str:
        return f"UrlPath({self.__fspath__()!r})"

    def __truediv__(self, name: str) -> UrlPath:
        return UrlPath(f"{self}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self._path.name

    @property
    def suffix(self) -> str:
        """The end of the name from its last dot on."""
        return self._path.suffix

    @property
    def parent(self) -> UrlPath:
        """The folder that it is in."""
        return UrlPath(f"{self._scheme}://{self._path.parent}")

    def with_name(self, name: str) -> UrlPath:
        """Return its sibling of another name."""
        return self.parent / name

    def exists(self) -> bool:
        """Return whether there is a file or a folder that holds files."""
        filesystem, inner = remote(str(self))
        with _as_os_error():
            return bool(filesystem.exists(inner))

    def is_dir(self) -> bool:
        """Return whether it is a folder that holds files."""
        filesystem, inner = remote(str(self))
        with _as_os_error():
            return bool(filesystem.isdir(inner))

    def is_file(self) -> bool:
        """Return whether it is a file."""
        filesystem, inner = remote(str(self))
        with _as_os_error():
            return bool(filesystem.isfile(inner))

    def stat(self) -> _Size:
        """Return the size of the file."""
        filesystem, inner = remote(str(self))
        with _as_os_error():
            return _Size(int(filesystem.info(inner)["size"]))

    def read_bytes(self) -> bytes:
        """Return the whole content."""
        filesystem, inner = remote(str(self))
        with _as_os_error():
            return cast("bytes", filesystem.cat_file(inner))

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the whole content as text."""
        return self.read_bytes().decode(encoding)

    def open(self, mode: str = "r", **options: Any) -> Any:
        """Return an open file for reading, bytes if ``mode`` is ``rb``; artifacts are small."""
        content = io.BytesIO(self.read_bytes())
        return content if "b" in mode else io.TextIOWrapper(content, **options)


def write_folder(folder: Path, files: Mapping[str, bytes], last: str) -> None:
    """Write the files of a folder, ``last`` after all others: it tells whether they are complete."""
    filesystem, _ = remote(str(folder))
    with _as_os_error():
        for name in sorted(files, key=lambda name: (name == last, name)):
            _, inner = remote(str(folder / name))
            filesystem.pipe_file(inner, files[name])


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Turn what drivers raise into an ``OSError``, as the operating system would."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        if not is_failure_of_storage(error):
            raise
        raise OSError(reason_of(error)) from error
