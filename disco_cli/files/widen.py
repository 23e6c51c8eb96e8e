"""Files of ragged choices that have fewer classes than the benchmark.

How many classes the values of ragged choices have depends on which samples a file holds: a file of
the selected samples alone may lack the sample with the most options. ``n_options`` tells what
each row means, so such a file is padded, where a file without it would be ambiguous.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.files.matrix import Kind, PredictionFile, Reader, Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray


def is_ragged(file: PredictionFile) -> bool:
    """Whether each sample of a file has its own number of options, which the file tells."""
    samples = file.samples
    return file.kind.has_classes and samples.n_options is not None and samples.class_names is None


def widened(file: PredictionFile, n_classes: int | None) -> PredictionFile:
    """Return a file of ragged choices with as many classes as the benchmark, any other as it is.

    Parameters
    ----------
    file : PredictionFile
        Any file.
    n_classes : int or None
        C of the benchmark.
    """
    if n_classes is None or file.n_classes is None or file.n_classes >= n_classes:
        return file
    if not is_ragged(file):
        return file
    fill = 0.0 if file.kind is Kind.PROBABILITIES else -np.inf
    return replace(file, n_classes=n_classes, read=partial(_read_wider, file.read, n_classes, fill))


def _read_wider(read: Reader, n_classes: int, fill: float, model: int, rows: Rows) -> NDArray[Any]:
    block = read(model, rows)
    if block.dtype.kind != "f":
        block = block.astype(np.float64)
    missing = n_classes - block.shape[1]
    return np.pad(block, ((0, 0), (0, missing)), constant_values=fill)
