"""What every workflow does first: open and align prediction files, guard the outputs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import OutputError, UsageError
from disco_cli.files.align import align, read_correctness, read_probabilities
from disco_cli.files.location import expand
from disco_cli.files.matrix import Benchmark, Kind, PredictionFile, Rows
from disco_cli.harness.open import open_inputs

if TYPE_CHECKING:
    from disco_cli.harness.choices import ImportOptions

_LONGEST_FOOTER_BYTES = 1 << 24


@dataclass(frozen=True)
class ReadOptions:
    """How prediction files are understood.

    Attributes
    ----------
    kind : Kind or None
        What the values are; ``None`` decides per file and says so.
    counts_no_answer : bool
        Whether a predicted label of -1 means "gave no answer", which is wrong, and not missing.
    logs : ImportOptions, optional
        What to take of logs of other evaluation tools.
    """

    kind: Kind | None = None
    counts_no_answer: bool = False
    logs: ImportOptions | None = None


def refuse_reading(read: ReadOptions | None, reason: str) -> None:
    """Refuse options of reading prediction files where none is read.

    Raises
    ------
    UsageError
        One was given; it is named behind the reason.
    """
    read = read or ReadOptions()
    given = {
        "--kind": read.kind is not None,
        "--no-answer": read.counts_no_answer,
        "--metric": read.logs is not None and bool(read.logs.metrics),
        "--filter": read.logs is not None and bool(read.logs.filters),
    }
    for option, is_given in given.items():
        if is_given:
            raise UsageError(f"{reason}; leave out {option}")


def open_files(paths: Sequence[str | Path], options: ReadOptions) -> list[PredictionFile]:
    """Open prediction files, and logs of other evaluation tools.

    Raises
    ------
    UsageError
        No path is given.
    InputError
        A file is bad.
    """
    if not paths:
        raise UsageError("no prediction files given: the pattern matched nothing?")
    return open_inputs(expand(paths), options.kind, options.logs)


def open_benchmark(paths: Sequence[str | Path], options: ReadOptions) -> Benchmark:
    """Open prediction files and align them on one benchmark.

    Raises
    ------
    UsageError
        No path is given.
    InputError
        A file is bad, or the files do not fit together.
    """
    return align(open_files(paths, options), counts_no_answer=options.counts_no_answer)


def read_outputs(benchmark: Benchmark, m: int, rows: Rows) -> NDArray[np.floating[Any]]:
    """Return what a model's signature is made of, (n, C): probabilities, or the responses (n, 1).

    Responses are taken as they are, so that scores in any units, such as BLEU, can be learnt from.
    A missing sample is an all-NaN row.
    """
    if benchmark.n_classes is None:
        return read_correctness(benchmark, m, rows)[:, np.newaxis]
    return read_probabilities(benchmark, m, rows)


def values_name(kinds: set[Kind]) -> str:
    """Return what a database built from these kinds asks of a target's values."""
    if kinds == {Kind.RESPONSES}:
        return "responses"
    if kinds == {Kind.LABELS}:
        return "labels"
    return "probabilities"


def check_foreign(path: Path, *, force: bool) -> None:
    """Refuse to replace a file that disco did not write, before any work is done.

    Raises
    ------
    OutputError
        Something else lies at ``path`` and ``force`` is not given.
    """
    if force or not path.exists():
        return
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; give a file name with -o")
    if path.is_file() and not _is_ours(path):  # a device or a pipe is nobody's
        raise OutputError(f"{path}: exists and was not written by disco; --force replaces it")


def _is_ours(path: Path) -> bool:
    """Whether an existing file is an artifact of disco, of whatever format."""
    try:
        with path.open("rb") as file:
            if file.read(4) == b"PAR1":
                return b"disco.format" in _footer(file)
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and str(data.get("artifact", "")).startswith("disco ")


def _footer(file: BinaryIO) -> bytes:
    """Return the metadata of a Parquet file as they stand there.

    They hold our key in plain bytes; importing pyarrow to find it would delay the start by half.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 8, 0))
    length = int.from_bytes(file.read(4), "little")
    file.seek(max(size - 8 - length, 0))
    return file.read(min(length, _LONGEST_FOOTER_BYTES))
