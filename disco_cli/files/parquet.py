"""Prediction files as Parquet: one row per model and sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disco_cli.errors import InputError

if TYPE_CHECKING:
    from disco_cli.files.matrix import Kind, PredictionFile


def open_parquet(path: str, kind: Kind | None = None) -> PredictionFile:
    """Open a Parquet prediction file."""
    raise InputError(f"{path}: Parquet cannot be read yet ({kind})")
