"""Disagreement of models on a sample: PDS, JSD, and confidence, which is not disagreement.

Pure functions of arrays. Letters: M models, n samples of a block, C classes. A model that lacks a
sample has an all-NaN row there and is left out of that sample's figures. Classes beyond a sample's
own options hold probability 0, which adds nothing to any of the three.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

_TINY = {np.dtype(kind): np.finfo(kind).tiny for kind in (np.float32, np.float64)}


def predictive_diversity(P: Floats) -> NDArray[np.float64]:
    """Return PDS = Σ_c max_m p[m, c] of each sample (DISCO, arXiv 2510.07959).

    Parameters
    ----------
    P : NDArray of float of shape (M, n, C)
        Probabilities; all-NaN rows are missing.

    Returns
    -------
    NDArray of float64 of shape (n,)
        1 when all models agree, up to min(C, M); NaN where no model answered. There is no 1/C in
        front: with ragged choices it would change the ranking. On hard labels it is the number
        of distinct answers.
    """
    highest = np.fmax.reduce(P, axis=0)
    return row_sums(highest)


def jensen_shannon(P: Floats) -> NDArray[np.float64]:
    """Return JSD = H(mean_m p_m) − mean_m H(p_m) of each sample, in nats.

    It is bounded by PDS on both sides: 2/M²·(PDS − 1)² ≤ JSD ≤ ln(M)·(PDS − 1).

    Parameters
    ----------
    P : NDArray of float of shape (M, n, C)
        Probabilities; all-NaN rows are missing.

    Returns
    -------
    NDArray of float64 of shape (n,)
        0 when all models agree, up to ln(min(C, M)); NaN where no model answered.
    """
    missing = _missing(P)
    count = (~missing).sum(axis=0).astype(np.float64)
    filled = np.where(missing[:, :, np.newaxis], 0.0, P).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=0) / count[:, np.newaxis]
        own = np.stack([entropy(rows) for rows in filled]).sum(axis=0) / count
    result: NDArray[np.float64] = np.maximum(entropy(mean) - own, 0.0)
    return result


def confidence(P: Floats) -> NDArray[np.float64]:
    """Return mean_m max_c p[m, c] of each sample.

    Some texts print this formula under the name PDS, but five identical and confident models get
    its maximum: it says how sure the models are, not how much they disagree.

    Parameters
    ----------
    P : NDArray of float of shape (M, n, C)
        Probabilities; all-NaN rows are missing.

    Returns
    -------
    NDArray of float64 of shape (n,)
        Between 1/C and 1; NaN where no model answered.
    """
    missing = _missing(P)
    top = np.where(missing, 0.0, P.max(axis=2)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: NDArray[np.float64] = top.sum(axis=0) / (~missing).sum(axis=0)
    return result


def entropy(p: Floats) -> Floats:
    """Return H(p) = −Σ_c p ln p of each row, in nats, in the precision of ``p``.

    Parameters
    ----------
    p : NDArray of float32 or float64 of shape (n, C)
        Probabilities, 0·ln 0 counting as 0.

    Returns
    -------
    NDArray of the type of ``p`` of shape (n,)
        NaN where the row holds a NaN or a negative number.
    """
    result = np.empty(len(p), p.dtype)
    with np.errstate(invalid="ignore"):
        negated_entropy(p, result)
    return np.negative(result, out=result)


def negated_entropy(p: Floats, out: Floats) -> None:
    """Write −H(p) of each row to ``out`` (n,); as :func:`entropy`, which silences warnings too."""
    # The smallest normal number turns 0·ln 0 into a plain 0 and alters no probability above 1e-30;
    # a negative one stays negative, and its logarithm shows it as NaN.
    logs = np.add(p, _TINY[p.dtype])
    np.log(logs, out=logs)
    row_dots(p, logs, out)


def row_sums(x: Floats) -> NDArray[np.float64]:
    """Return the sum of each row (n, C) -> (n,) in float64, whatever rows stand beside it."""
    if len(x) == 1:  # numpy adds a lone row in another order than a row among others
        return row_sums(np.concatenate([x, x]))[:1]
    sums: NDArray[np.float64] = np.einsum("ij->i", x.astype(np.float64, copy=False))
    return sums


def row_dots(x: Floats, y: Floats, out: Floats | None = None) -> Floats:
    """Return Σ_c x·y of each row (n, C) -> (n,), in ``out`` if given, whatever rows stand beside."""
    if out is None:
        out = np.empty(len(x), x.dtype)
    if len(x) == 1:
        out[...] = row_dots(np.concatenate([x, x]), np.concatenate([y, y]))[:1]
    else:
        np.einsum("ij,ij->i", x, y, out=out)
    return out


def _missing(P: Floats) -> NDArray[np.bool_]:
    """Return which models lack which samples, (M, n)."""
    return np.asarray(np.isnan(P).all(axis=2))
