"""Arrays as the bytes of an NPZ file: the same bytes for the same arrays, and no pickles."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import ArtifactError


def write_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of an uncompressed NPZ; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(arrays):
            array = np.asarray(arrays[name], order="C")
            # A fixed date: numpy.savez would store the time of writing.
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o600 << 16
            info.file_size = array.nbytes  # about; tells whether sizes need 64 bits
            with archive.open(info, "w") as member:  # no copy of the whole array
                np.lib.format.write_array(member, array, allow_pickle=False)
    return buffer.getvalue()


def read_arrays(content: bytes, name: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of an NPZ that ``write_arrays`` made; objects are never unpickled.

    Raises
    ------
    ArtifactError
        The bytes are not such an NPZ.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {
                info.filename.removesuffix(".npy"): _read_member(archive.read(info))
                for info in archive.infolist()
            }
    # A damaged archive can raise anything: zlib.error, NotImplementedError, tokenize.TokenError …
    except Exception as error:
        reason = str(error) or type(error).__name__
        message = f"{name}: part of the database cannot be read ({reason}); build it again"
        raise ArtifactError(message) from error


def _read_member(content: bytes) -> NDArray[Any]:
    """Return an array in the machine's byte order; one that claims more than it has is refused."""
    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
