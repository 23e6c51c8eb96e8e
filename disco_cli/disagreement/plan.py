"""How much is read and held at once: cutting the sample axis by memory and by cache.

A *panel* is the range of samples whose state is held at once; a *block* is the part of a panel that
is worked on at once. Neither changes a result.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass

from disco_cli.errors import UsageError

BLOCK_ELEMENTS = 1 << 16
"""Values (rows × classes) of a block. Its few arrays of 256 to 512 KiB then stay in a core's L2."""

MIB = 1 << 20


@dataclass(frozen=True)
class EngineOptions:
    """How to score; nothing here changes a result.

    Attributes
    ----------
    memory_bytes : int
        Bound on the arrays held at once, beyond the program and its libraries.
    threads : int or None
        Threads that read, inflate and compute; ``None`` for one per available core.
    block_elements : int
        Values worked on at once by one thread.
    """

    memory_bytes: int = 1024 * MIB
    threads: int | None = None
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


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cut(length: int, step: int) -> list[slice]:
    """Cut a range into equal slices of at most ``step``, none of them a single row.

    numpy adds up a lone row in another order than a row among others (STYLE, rule 9), so a lone
    row is only ever the whole range.
    """
    pieces = -(-length // max(step, 1))
    pieces = max(1, min(pieces, length // 2))
    bounds = [length * piece // pieces for piece in range(pieces + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]
