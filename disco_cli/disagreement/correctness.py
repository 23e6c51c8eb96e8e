"""How right every model is on every sample, kept while files are scored.

A byte for each model and sample where right and wrong follow from labels, a number where files hold
responses. That is little beside the (M, N, C) probabilities; where it is still too much for the
memory it goes to a temporary file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import OutputError
from disco_cli.files.align import has_correctness
from disco_cli.files.matrix import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from disco_cli.disagreement.measures import Floats
    from disco_cli.files.matrix import Benchmark

UNKNOWN = 2
"""Code of a response that is missing, beside 0 (wrong) and 1 (right)."""

MEMORY_SHARE = 8
"""Up to memory / 8 is kept in memory."""


class Correctness:
    """Correctness or response of some models on some samples.

    Parameters
    ----------
    values : NDArray of uint8 or float64 of shape (M, N)
        Codes 0, 1 and ``UNKNOWN``, or responses with NaN where missing; changed in place.
    first_model, first_sample : int
        What the first row and column stand for.
    """

    def __init__(self, values: NDArray[Any], first_model: int = 0, first_sample: int = 0) -> None:
        self.values = values
        self.first_model = first_model
        self.first_sample = first_sample

    def put(self, models: range, samples: slice, correct: Floats) -> None:
        """Keep the correctness (M, n), NaN where unknown, of some models on these samples."""
        row, column = models.start - self.first_model, samples.start - self.first_sample
        place = self.values[row : row + len(correct), column : column + correct.shape[1]]
        if self.values.dtype == np.uint8:
            place[...] = np.where(np.isnan(correct), UNKNOWN, correct)
        else:
            place[...] = correct

    def paste(self, other: Correctness) -> None:
        """Take over what another one keeps of some of these models and samples."""
        n_models, n = other.values.shape
        m, sample = other.first_model - self.first_model, other.first_sample - self.first_sample
        self.values[m : m + n_models, sample : sample + n] = other.values


def correctness_dtype(benchmark: Benchmark) -> np.dtype[Any] | None:
    """Return in what form correctness is kept; ``None`` where it is not known for all models."""
    if not has_correctness(benchmark):
        return None
    graded = any(
        model.file.kind is Kind.RESPONSES or model.file.read_responses is not None
        for model in benchmark.models
    )
    return np.dtype(np.float64 if graded else np.uint8)


def keep_correctness(benchmark: Benchmark, memory_bytes: int) -> Correctness | None:
    """Return room for the correctness of all models; ``None`` where it is not known.

    Parameters
    ----------
    benchmark : Benchmark
        Aligned files.
    memory_bytes : int
        Bound on the arrays held at once.

    Raises
    ------
    OutputError
        There is no room for a temporary file.
    """
    dtype = correctness_dtype(benchmark)
    if dtype is None:
        return None
    shape = (len(benchmark.models), benchmark.samples.n)
    size = shape[0] * shape[1] * dtype.itemsize
    if size <= memory_bytes // MEMORY_SHARE:
        return Correctness(np.empty(shape, dtype))
    import tempfile

    try:
        with tempfile.TemporaryFile() as file:  # the mapping keeps it alive
            if hasattr(os, "posix_fallocate"):
                # A mapped file that runs out of disk later would end the program without a word.
                os.posix_fallocate(file.fileno(), 0, size)
            return Correctness(np.memmap(file, dtype, "w+", shape=shape))
    except OSError as error:
        message = (
            f"{tempfile.gettempdir()}: no room for {size / 2**20:.0f} MiB of temporary data: "
            f"{error.strerror}; set TMPDIR to another folder, or give more --memory"
        )
        raise OutputError(message) from error
