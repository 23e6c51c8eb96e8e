"""The compiled inner loops of scoring, where they were built and give numpy's bits.

``_kernel.c`` does in one call what takes numpy several passes over a block, in half the time and
without the interpreter, so that threads do not wait for each other. It is built when the package is
installed on a machine that has a C compiler; without it numpy does the same.

Every function takes C-contiguous arrays:

- ``figures(p, n_classes, out)``: writes ``-H(p)`` and the highest probability of each row of float32
  ``p`` (n, C) to ``out`` (2, n).
- ``are_probabilities(x, n_classes, tolerance)``: whether no value of float32 ``x`` (n, C) is negative
  or NaN and all rows sum to 1 within the tolerance. Its sums are rounded otherwise than numpy's: ask
  with a smaller tolerance, and take a no for "perhaps".
- ``add(p, n_models, sums, maximum, first)``: adds float32 ``p`` (M, n, C), model after model, to
  ``sums`` (n, C), which ``first`` sets to zero before, and raises ``maximum`` (n, C) to it.
- ``add_files(handles, offsets, item_bytes, n, n_classes, tolerance, sums, maximum, first, entropy,
  confidence, answers)``: does ``figures`` and ``add`` for n rows of M open files of float32 or
  float16, which begin at int64 ``offsets`` (M,); adds the figures in units of 2^-40 to int64
  ``entropy`` and ``confidence`` (n,), and writes the first most probable classes to int64 ``answers``
  (M, n) unless that is ``None``. Stops before a part with rows that are not certainly probabilities,
  or that cannot be read, and returns how many rows were added.
- ``add_units(sums, total)``: adds float32 ``sums`` in units of 2^-40, rounded towards zero, to int64
  ``total``, and sets ``sums`` to zero.
- ``widen(halves, singles)``: writes float16 as float32.
- ``source()``: the checksum (CRC-32) of the source that it was built of.

All raise ``ValueError`` or ``BufferError`` for arrays of other types and shapes, or not aligned.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

_SOURCE = Path(__file__).with_name("_kernel.c")


def _load() -> ModuleType | None:
    try:
        from disco_cli import _kernel
    except ImportError:
        return None
    usable = is_built_of(_SOURCE, _kernel) and gives_numpys_bits(_kernel)
    return _kernel if usable else None


def is_built_of(path: Path, kernel: Any) -> bool:
    """Return whether a kernel was built of this source file, or there is no such file to tell.

    In an editable installation the source may have changed since, and with it what is called here.
    """
    if not hasattr(kernel, "source"):
        return False
    try:
        content = path.read_bytes()
    except OSError:
        return True
    return bool(kernel.source() == crc32(content))


def gives_numpys_bits(kernel: Any) -> bool:
    """Return whether sums of products are added up in the order of this numpy on this processor.

    Everything else the kernel does is exact, or done by numpy itself.
    """
    for n_classes in (3, 21, 94):  # whole vectors of four and sixteen values, and what is left
        x = np.sin(np.arange(6 * n_classes, dtype=np.float32)) ** 2  # no numpy.random: slow to load
        x = x.reshape(6, n_classes)
        found = np.empty((2, len(x)), np.float32)
        kernel.figures(x, n_classes, found)
        logs = np.log(x + np.finfo(np.float32).tiny)
        if not np.array_equal(found, [np.einsum("ij,ij->i", x, logs), x.max(axis=1)]):
            return False
    return True


_LOADED = _load()


def kernel_for(*arrays: NDArray[Any], dtype: type = np.float32) -> ModuleType | None:
    """Return the module of the functions above if it was built and can take these arrays."""
    for array in arrays:
        flags = array.flags
        if array.dtype != dtype or not flags.c_contiguous or not flags.aligned or not array.size:
            return None
    return _LOADED
