"""The signature of a model: its outputs on the K selected samples, as one row of numbers.

Outputs are (M, K, F): F numbers of each sample, the C class probabilities and, where labels are
known, two more. What a model lacks is NaN. The order of work is

    outputs = add_label_columns(probabilities, labels, correctness)     # only if labels are used
    fill = mean_outputs(outputs)                                        # of the references, kept
    signatures = flatten(fill_missing(outputs, fill))
    pca = fit_pca(signatures, n_components(len(signatures)))
    scores = pca.transform(signatures)

and a target goes the same way with the references' ``fill`` and ``pca``, except that
:func:`project` gives its scores: a function of its outputs in the selection's order alone. So where
the K samples lay in its file, and which models were in the same call, cannot change a bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.pca import Pca

MAX_COMPONENTS = 256
"""Principal components at most, as published (arXiv 2510.07959)."""

_BLOCK_ELEMENTS = 1 << 17
"""Products that are held at a time: 1 MiB, so that they stay in the cache."""

Floats = NDArray[np.floating[Any]]


def n_components(n_models: int) -> int:
    """Return how many principal components M reference models are given: min(256, M − 1)."""
    return max(1, min(MAX_COMPONENTS, n_models - 1))


def add_label_columns(
    probabilities: Floats, labels: NDArray[np.int64], correctness: NDArray[np.float64]
) -> Floats:
    """Add to each sample whether it was right and the probability of the right class.

    Parameters
    ----------
    probabilities : NDArray of float of shape (M, K, C)
        A missing sample is all NaN.
    labels : NDArray of int64 of shape (K,)
        Right class, negative where unknown.
    correctness : NDArray of float64 of shape (M, K)
        1 right, 0 wrong or a score between; NaN = missing.

    Returns
    -------
    NDArray of float of shape (M, K, C + 2)
        Of the precision of ``probabilities``. The probability of the right class is NaN where the
        label is unknown, as where the sample is missing.
    """
    M, K, C = probabilities.shape
    outputs = np.empty((M, K, C + 2), dtype=probabilities.dtype)
    outputs[..., :C] = probabilities
    outputs[..., C] = correctness
    outputs[..., C + 1] = probabilities[:, np.arange(K), np.maximum(labels, 0)]
    outputs[:, labels < 0, C + 1] = np.nan
    return outputs


def mean_outputs(outputs: Floats) -> NDArray[np.float64]:
    """Return the mean of each output over the models that have it.

    Parameters
    ----------
    outputs : NDArray of float of shape (M, K, F)
        Of the reference models.

    Returns
    -------
    NDArray of float64 of shape (K, F)
        0 where no reference has an output. No principal component looks at it then, so what a
        target says there cannot matter.
    """
    total = np.zeros(outputs.shape[1:])
    count = np.zeros(outputs.shape[1:])
    for model in outputs:
        is_present = ~np.isnan(model)
        total += np.where(is_present, model, 0.0)
        count += is_present
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0)


def fill_missing(outputs: Floats, fill: Floats) -> Floats:
    """Put the references' mean where a model lacks an output.

    A sample so filled is where it would be if it told nothing of the model, at the centre of the
    principal components; the other samples say all there is to say.

    Parameters
    ----------
    outputs : NDArray of float of shape (M, K, F)
        NaN = missing.
    fill : NDArray of float of shape (K, F)
        From :func:`mean_outputs` of the references.

    Returns
    -------
    NDArray of float of shape (M, K, F)
        No NaN; of the precision of ``outputs``, and the same object when nothing is missing.
    """
    is_missing = np.isnan(outputs)
    if not is_missing.any():
        return outputs
    return np.where(is_missing, fill.astype(outputs.dtype), outputs)


def flatten(outputs: Floats) -> Floats:
    """Return the signatures (M, K · F): sample after sample, ragged choices keep their padding."""
    return outputs.reshape(len(outputs), -1)


def project(pca: Pca, signatures: Floats) -> NDArray[np.float64]:
    """Return the principal scores of signatures, each by itself.

    ``Pca.transform`` is faster, but a matrix product adds in an order that depends on the number of
    rows and on the processor; for one row the two differ by about 1e-15. Here a row has the same
    scores, to the last bit, in whatever company.

    Parameters
    ----------
    pca : Pca
        q components of D features.
    signatures : NDArray of float of shape (M, D)
        No NaN.

    Returns
    -------
    NDArray of float64 of shape (M, q)
    """
    q, D = pca.components.shape
    step = max(1, _BLOCK_ELEMENTS // max(D, 1))
    scores = np.empty((len(signatures), q))
    for row, signature in enumerate(signatures):
        centred = signature - pca.mean
        for start in range(0, q, step):
            block = slice(start, start + step)
            scores[row, block] = (pca.components[block] * centred).sum(axis=1)
    return scores
