"""Letting threads add to blocks of a state in the ascending order of models.

Each thread reads, inflates and computes for a model of its own; what it found is added when all
models before have added theirs. Threads that take models in ascending order wait for nobody who
has not begun, and after the first block hardly at all, as each follows the one before.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Condition
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class StoppedError(Exception):
    """The turn will never come: another thread has failed."""


class Turns:
    """Whose turn it is on each block.

    Parameters
    ----------
    n_blocks : int
        Number of blocks.
    first : int
        The model that comes first on all of them.
    """

    def __init__(self, n_blocks: int, first: int) -> None:
        self._next = [first] * n_blocks
        self._changed = Condition()
        self._stopped = False

    @contextmanager
    def turn(self, block: int, model: int) -> Iterator[None]:
        """Wait until it is the turn of a model; at the end it is that of the next.

        Raises
        ------
        StoppedError
            If :meth:`stop` was called.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._next[block] == model)
            if self._stopped:
                raise StoppedError
        yield
        with self._changed:
            self._next[block] = model + 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Let nobody wait any longer."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
