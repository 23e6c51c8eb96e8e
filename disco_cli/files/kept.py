"""What a thread keeps of the file that it read last.

Compressed values cannot be read row by row. They are decoded one model at a time and kept until
something else is asked for, so that blocks of one model cost one decoding, and a thousand open
files no more memory than one. Each thread keeps its own: threads at work on different models would
else throw out each other's.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SMALL_BYTES = 1 << 24
"""Stacks up to this size are decoded whole rather than model by model."""

_kept = threading.local()


def keep(owner: object, part: int, decode: Callable[[], T], *, place: str = "values") -> T:
    """Return what ``decode`` returns, without calling it if this was the last thing asked for.

    Parameters
    ----------
    owner : object
        Who asks; compared by identity.
    part : int
        Which part of it, such as the model.
    decode : callable
        Makes what is kept: an array, or a reader that stands somewhere in a file.
    place : str
        Where to keep it; things in different places do not throw out each other.
    """
    things: dict[str, tuple[object, int, T]] = _kept.__dict__
    found = things.get(place)
    if found is not None and found[0] is owner and found[1] == part:
        return found[2]
    del found
    things.pop(place, None)  # never two of them at once
    things[place] = (owner, part, decode())
    return things[place][2]
