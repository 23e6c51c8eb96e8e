"""How much is read and held at once: cutting the sample axis by memory and by cache.

A *panel* is the range of samples whose state is held at once; a *block* is the part of a panel that
is worked on at once. Neither changes a result.
"""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass, replace

from disco_cli.errors import UsageError
from disco_cli.files.kept import SMALL_BYTES

BLOCK_ELEMENTS = 1 << 18
"""Values (models × rows × classes) of a block, 1 MiB in single precision. Half as many would stay in
a core's L2 more often, but threads would wait for each other twice as often, which costs more."""

MIB = 1 << 20

_VALUES_PER_THREAD = 1 << 23  # 10 to 25 ms; of fewer, threads wait for each other rather than work
_WORKING_BYTES = 40  # of each value of a block: as read, as float, its logarithm, …
_IN_PLACE_BYTES = 128  # of each value of a panel: its state, and of STACKED models the above
_PANELS_PER_THREAD = 8
_DECODING_BYTES = 48 * MIB  # SMALL_BYTES kept decoded, what they are decoded from, leftovers
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

    def for_values(self, count: int) -> EngineOptions:
        """Return the options with a number of threads that is worth while for so many values."""
        if self.threads is not None:
            return self
        return replace(self, threads=min(self.n_threads, 1 + count // _VALUES_PER_THREAD))


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


def panel_rows_in_place(n: int, n_classes: int, options: EngineOptions) -> int:
    """Return how many of n samples a panel may have where rows can be fetched from anywhere.

    A panel is then worked on by one thread from the first model to the last. Its state should not
    take the cache from the blocks, and there should be enough panels for threads to end together.
    """
    room = options.memory_bytes // (options.n_threads * _IN_PLACE_BYTES)
    rows = min(options.block_elements, room) // max(n_classes, 1)
    return max(2, min(rows, -(-n // (_PANELS_PER_THREAD * options.n_threads))))


def panel_rows(
    n_classes: int,
    item_bytes: int,
    options: EngineOptions,
    *,
    scattered: bool,
    held_bytes: int = 0,
) -> int:
    """Return how many samples a panel may have where files are read from start to end.

    Parameters
    ----------
    n_classes : int
        C.
    item_bytes : int
        Bytes of a maximum or a group's sum, 4 or 8.
    options : EngineOptions
        Bounds on memory and threads.
    scattered : bool
        Some file holds its rows in another order, so that its values for the whole panel are held
        by each thread.
    held_bytes : int
        Most that a thread keeps of any file, as :class:`disco_cli.files.matrix.PredictionFile`
        tells it.
    """
    n_threads = decoding_threads(options, held_bytes)
    per_value = 8 + 2 * item_bytes + n_threads * 2 * item_bytes * scattered
    left = max(options.memory_bytes - n_threads * _thread_bytes(options, held_bytes), MIB)
    return max(2, left // (per_value * n_classes + _ROW_BYTES))


def decoding_threads(options: EngineOptions, held_bytes: int = 0) -> int:
    """Return how many threads may decode files at once, so that half of the memory is for states.

    More threads would leave smaller panels, and files in another order are read for each of them.
    """
    thread_bytes = _thread_bytes(options, held_bytes)
    return max(1, min(options.n_threads, options.memory_bytes // (2 * thread_bytes)))


def _thread_bytes(options: EngineOptions, held_bytes: int) -> int:
    more = max(held_bytes - SMALL_BYTES, 0)
    return options.block_elements * _WORKING_BYTES + _DECODING_BYTES + more


def cut(length: int, step: int) -> list[slice]:
    """Cut a range into equal slices of at most ``step``, none of them a single row.

    numpy adds up a lone row in another order than a row among others (STYLE, rule 9), so a lone
    row is only ever the whole range.
    """
    pieces = -(-length // max(step, 1))
    pieces = max(1, min(pieces, length // 2))
    bounds = [length * piece // pieces for piece in range(pieces + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]
