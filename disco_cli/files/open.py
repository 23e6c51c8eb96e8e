"""Opening a prediction file of any format."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from disco_cli.errors import InputError
from disco_cli.files.arrays import EMPTY_ZIP_MAGIC, NUMPY_MAGIC, ZIP_MAGIC
from disco_cli.files.location import opened

if TYPE_CHECKING:
    from disco_cli.files.matrix import Kind, PredictionFile

PARQUET_MAGIC = b"PAR1"


def open_predictions(path: str | os.PathLike[str], kind: Kind | None = None) -> PredictionFile:
    """Open a prediction file; its format is told by its first bytes, not by its name.

    Parameters
    ----------
    path : path
        An NPZ, NPY or Parquet file.
    kind : Kind, optional
        What the values are; ``None`` decides from their names, row sums and ranges.

    Returns
    -------
    PredictionFile
        Checked, except for the values: these are checked when they are read.

    Raises
    ------
    InputError
        If the file cannot be used: one line that names it, what was found and what would help.
    """
    name = os.fspath(path)
    with opened(name) as file:
        magic = file.read(6)
    if magic.startswith(PARQUET_MAGIC):
        from disco_cli.files.parquet import open_parquet

        return open_parquet(name, kind)
    if magic == NUMPY_MAGIC or magic[:4] in (ZIP_MAGIC, EMPTY_ZIP_MAGIC):
        from disco_cli.files.npz import open_npz

        return open_npz(name, kind)
    found = "is empty" if not magic else "is neither NPZ nor Parquet"
    raise InputError(f"{name}: {found}; docs/formats.md shows how to write a prediction file")
