"""The one array that a thread keeps decoded.

Compressed values cannot be read row by row. They are decoded one model at a time and kept until
something else is asked for, so that blocks of one model cost one decoding, and a thousand open
files no more memory than one. Each thread keeps its own: threads at work on different models would
else throw out each other's.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

SMALL_BYTES = 1 << 24
"""Stacks up to this size are decoded whole rather than model by model."""

_kept = threading.local()


def keep(owner: object, part: int, decode: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Return what ``decode`` returns, without calling it if this was the last thing asked for.

    Parameters
    ----------
    owner : object
        Who asks; compared by identity.
    part : int
        Which part of it, such as the model.
    decode : callable
        Makes the array.
    """
    if getattr(_kept, "owner", None) is not owner or _kept.part != part:
        _kept.owner = _kept.array = None  # never two arrays at once
        _kept.array = decode()
        _kept.owner, _kept.part = owner, part
    array: NDArray[Any] = _kept.array
    return array
