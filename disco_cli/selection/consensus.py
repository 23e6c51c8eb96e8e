"""Stand-ins for responses where nobody knows the right answer: agreement with the consensus."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def consensus_classes(mean_probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the class that the models favour on average, (N,); the first of several.

    Parameters
    ----------
    mean_probabilities : NDArray of float64 of shape (N, C)
        Mean over models; NaN (padding, or nobody answered) is never the favourite.
    """
    known = np.where(np.isnan(mean_probabilities), -1.0, mean_probabilities)
    # Rounded, so that the order of summation cannot decide between equal classes.
    return np.asarray(np.round(known, 12).argmax(axis=1), dtype=np.int64)


def consensus_responses(
    probabilities: NDArray[np.floating], classes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the probability that one model gives to the consensus, (n,); NaN = missing.

    In place of correctness it tells ``strata`` which samples behave alike and where models differ.

    Parameters
    ----------
    probabilities : NDArray of float of shape (n, C)
        One model's probabilities on n samples; a row of NaN is missing.
    classes : NDArray of int64 of shape (n,)
        The consensus on those samples.
    """
    return np.asarray(probabilities[np.arange(len(classes)), classes], dtype=np.float64)
