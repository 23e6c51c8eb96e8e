"""How much is read and held at once: cutting the sample axis by memory and by cache.

A *panel* is the range of samples whose state is held at once; a *block* is the part of a panel that
is worked on at once. Neither changes a result.
"""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass

from disco_cli.errors import UsageError

BLOCK_ELEMENTS = 1 << 18
"""Values (rows × classes) of a block. Its four arrays of 512 KiB then stay in a core's L2; smaller
ones spend more on calling numpy than they win."""

MIB = 1 << 20

_WORKING_BYTES = 40  # of each value of a block: as read, as float, its logarithm, …
_DECODING_BYTES = 48 * MIB  # a row group of 16 MiB as stored, as decoded, and as an array
_ROW_BYTES = 100  # sums and figures of one sample


@dataclass(frozen=True)
class EngineOptions:
    """How to score; nothing here changes a result.

    Attributes
    ----------
    memory_bytes : int
        Bound on the arrays held at once, beyond the program and its libraries.
    threads : int or None
        Threads that read, inflate and compute; ``None`` for one per available core.
    distributed : bool
        Score on Dask workers; see :mod:`disco_cli.disagreement.cluster`.
    scheduler : str or None
        Address of the Dask scheduler to join; ``None`` starts workers on this machine.
    block_elements : int
        Values worked on at once by one thread.
    """

    memory_bytes: int = 1024 * MIB
    threads: int | None = None
    distributed: bool = False
    scheduler: str | None = None
    block_elements: int = BLOCK_ELEMENTS

    def __post_init__(self) -> None:
        if self.memory_bytes < MIB:
            raise UsageError(f"--memory {self.memory_bytes} bytes is too little: give 1MiB or more")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"--threads {self.threads}: give 1 or more")

    @property
    def n_threads(self) -> int:
        """Number of threads."""
        return self.threads or available_cores()


def parse_size(text: str, option: str) -> int:
    """Return a size such as ``256MiB``, ``1.5 GB`` or ``1000000`` in bytes.

    Raises
    ------
    UsageError
        It is no size.
    """
    match = re.fullmatch(r"([0-9]+\.?[0-9]*)\s*([kmgt]?)(i?)b?", text.strip().lower())
    if match is None:
        raise UsageError(f"{option} {text}: not a size; write it like 256MiB or 4GB")
    number, prefix, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix or " "))


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def panel_rows(
    n_classes: int, item_bytes: int, options: EngineOptions, *, in_place: bool, scattered: bool
) -> int:
    """Return how many samples a panel may have so that its arrays stay within the memory.

    Parameters
    ----------
    n_classes : int
        C.
    item_bytes : int
        Bytes of a maximum or a group's sum, 4 or 8.
    options : EngineOptions
        Bounds on memory and threads.
    in_place : bool
        Rows can be fetched from anywhere in every file. A panel is then a single block, worked on
        by one thread from the first model to the last, and its state never leaves the cache.
    scattered : bool
        Some file has to be read from its start and holds its rows in another order, so that its
        values for the whole panel are held by each thread.
    """
    if in_place:
        return max(2, options.block_elements // max(n_classes, 1))
    n_threads = decoding_threads(options)
    per_thread = 3 * item_bytes if scattered else item_bytes
    per_value = 8 + item_bytes + n_threads * per_thread
    left = max(options.memory_bytes - n_threads * _thread_bytes(options), MIB)
    return max(2, left // (per_value * n_classes + _ROW_BYTES))


def decoding_threads(options: EngineOptions) -> int:
    """Return how many threads may decode files at once, so that half of the memory is for states.

    More threads would leave smaller panels, and files in another order are read for each of them.
    """
    return max(1, min(options.n_threads, options.memory_bytes // (2 * _thread_bytes(options))))


def _thread_bytes(options: EngineOptions) -> int:
    return options.block_elements * _WORKING_BYTES + _DECODING_BYTES


def cut(length: int, step: int) -> list[slice]:
    """Cut a range into equal slices of at most ``step``, none of them a single row.

    numpy adds up a lone row in another order than a row among others (STYLE, rule 9), so a lone
    row is only ever the whole range.
    """
    pieces = -(-length // max(step, 1))
    pieces = max(1, min(pieces, length // 2))
    bounds = [length * piece // pieces for piece in range(pieces + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]
