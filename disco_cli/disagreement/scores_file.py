"""The scores artifact, ``scores.parquet``: one row per sample, in the benchmark's order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from disco_cli.disagreement.engine import SampleScores
from disco_cli.errors import ArtifactError, InputError
from disco_cli.files.fingerprint import fingerprint
from disco_cli.files.matrix import Samples

FORMAT = 1
"""Format number of ``scores.parquet``; a change that an older reader would misread raises it.

1: first format.
"""


@dataclass(frozen=True)
class ScoresFile:
    """What ``scores.parquet`` holds.

    Attributes
    ----------
    samples : Samples
        Ids and groups of the N samples.
    scores : SampleScores
        Disagreement of each sample.
    extra : dict of str to NDArray of shape (N,)
        Further columns, such as the health of each sample.
    """

    samples: Samples
    scores: SampleScores
    extra: dict[str, NDArray[Any]]


def scores_table(content: ScoresFile) -> Any:
    """Return the pyarrow table of the artifact; column order and metadata are fixed."""
    import pyarrow as pa

    samples, scores = content.samples, content.scores
    ids = np.arange(samples.n) if samples.ids is None else samples.ids
    columns: dict[str, NDArray[Any]] = {
        "sample_id": ids,
        "pds": scores.pds,
        "jsd": scores.jsd,
        "confidence": scores.confidence,
        "n_models": scores.n_models,
    }
    if samples.groups is not None:
        columns["group"] = samples.groups
    if scores.error_rate is not None:
        columns["error_rate"] = scores.error_rate
    columns |= content.extra
    arrays = {
        name: pa.array(column, from_pandas=column.dtype.kind == "f")  # NaN becomes null
        for name, column in columns.items()
    }
    metadata = {
        "disco.format": str(FORMAT),
        "disco.benchmark": fingerprint(samples),
        "disco.by_position": "false" if samples.ids is not None else "true",
    }
    return pa.table(arrays).replace_schema_metadata(metadata)


def write_scores(file: BinaryIO, content: ScoresFile) -> None:
    """Write the artifact to an open binary file; equal content gives equal bytes."""
    import pyarrow.parquet as pq

    pq.write_table(scores_table(content), file, compression="zstd")


def read_scores(path: Path) -> ScoresFile:
    """Read ``scores.parquet``.

    Raises
    ------
    InputError
        The file does not exist or is not Parquet.
    ArtifactError
        It is not a scores file of a known format.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            # No threads, also none that read ahead: one that lets go of the file while the
            # interpreter ends would abort the process.
            table = pq.read_table(file, use_threads=False, pre_buffer=False)
    except FileNotFoundError:
        message = f"{path}: no scores there; run `disco score PREDS…` first"
        raise InputError(message) from None
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from error
    metadata = table.schema.metadata or {}
    if metadata.get(b"disco.format") != str(FORMAT).encode():
        message = f"{path}: not a scores file of this disco; run `disco score PREDS…` again"
        raise ArtifactError(message)
    columns = {name: _column(table, name) for name in table.column_names}
    by_position = metadata.get(b"disco.by_position") == b"true"
    ids, groups = columns.pop("sample_id"), columns.pop("group", None)
    try:
        scores = SampleScores(
            pds=columns.pop("pds"),
            jsd=columns.pop("jsd"),
            confidence=columns.pop("confidence"),
            n_models=columns.pop("n_models").astype(np.int64),
            error_rate=columns.pop("error_rate", None),
        )
    except KeyError as error:
        raise ArtifactError(f"{path}: has no column {error}; run `disco score` again") from error
    samples = Samples(
        n=len(ids),
        ids=None if by_position else ids.astype(np.str_),
        groups=None if groups is None else groups.astype(np.str_),
    )
    return ScoresFile(samples, scores, columns)


def _column(table: Any, name: str) -> NDArray[Any]:
    column: NDArray[Any] = table.column(name).to_numpy()
    return column
