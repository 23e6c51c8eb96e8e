"""Short names for lists of samples: equal lists, equal fingerprints."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from disco_cli.files.matrix import Samples


def hash_ids(ids: NDArray[np.str_]) -> str:
    """Return the sha256 (hex) of the ids in their order, each as UTF-8 behind its length.

    Parameters
    ----------
    ids : NDArray of str of shape (N,)
        Sample ids.
    """
    digest = hashlib.sha256()
    for sample_id in ids.tolist():
        encoded = sample_id.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.hexdigest()


def fingerprint(samples: Samples) -> str:
    """Return what identifies a benchmark: the hash of its ids, or its size where it has none."""
    if samples.ids is None:
        return f"positions-{samples.n}"
    return hash_ids(samples.ids)
