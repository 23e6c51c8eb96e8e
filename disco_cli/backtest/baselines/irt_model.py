"""Multidimensional two-parameter item response theory by penalised maximum likelihood.

The model is P(y = 1) = σ(aᵀθ − b) with an ability θ (D,) of each model and a discrimination a (D,)
and a difficulty b of each sample. Penalties are the negative logarithms of normal priors: θ has the
standard normal one, which fixes the scale, a and b wider ones. Scores between 0 and 1 enter the
same likelihood as fractions of a right answer; other ranges are mapped to [0, 1] by the range that
the references span.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DIMENSIONS = (1, 2, 5, 10)
"""Numbers of dimensions tried."""

TOLERANCE = 0.0025
"""The smallest dimension whose validation error is within this of the best is taken."""

PRECISION_A = 0.01
"""Precision of the prior of discriminations.

A strong prior pulls every model towards the mean; on four real data sets the error fell without
exception from precision 4 down to this, and published code uses wide priors as well.
"""

PRECISION_B = 0.01
"""Precision of the prior of difficulties; a sample that nobody solves must be allowed to be hard."""

MAX_ITERATIONS = 150
BLOCK = 512
"""Samples at a time: the (M, BLOCK) temporaries of a few hundred models stay in the cache."""


@dataclass(frozen=True)
class IrtModel:
    """Item parameters and the abilities of the models they were fitted to.

    Attributes
    ----------
    abilities : NDArray of float64, shape (M, D)
        θ of each model.
    discriminations : NDArray of float64, shape (N, D)
        a of each sample.
    difficulties : NDArray of float64, shape (N,)
        b of each sample.
    low, high : float
        Range of responses that was mapped to [0, 1].
    """

    abilities: NDArray[np.float64]
    discriminations: NDArray[np.float64]
    difficulties: NDArray[np.float64]
    low: float = 0.0
    high: float = 1.0

    def predicted(self, ability: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected response (N,) of a model of this ability (D,) to every sample."""
        chance = _sigmoid(self.discriminations @ ability - self.difficulties)
        return self.low + (self.high - self.low) * chance

    def ability(self, y: NDArray[np.float64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the ability (D,) that best explains the responses to some samples.

        Parameters
        ----------
        y : NDArray of float64, shape (n,)
            Responses, NaN = missing.
        positions : NDArray of int64, shape (n,)
            Their samples.
        """
        known = ~np.isnan(y)
        at = positions[known]
        share = unit_range(y[known], self.low, self.high)
        return fit_ability(share, self.discriminations[at], self.difficulties[at])


def unit_range(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Map [low, high] to [0, 1] and cut off what is beyond; NaN stays."""
    return np.clip((values - low) / (high - low if high > low else 1.0), 0.0, 1.0)


def fit_ability(
    y: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the penalised maximum-likelihood ability by Newton's method.

    Parameters
    ----------
    y : NDArray of float64, shape (n,)
        Responses in [0, 1] without missing ones.
    a : NDArray of float64, shape (n, D)
        Discriminations.
    b : NDArray of float64, shape (n,)
        Difficulties.

    Returns
    -------
    NDArray of float64, shape (D,)
    """
    theta = np.zeros(a.shape[1])
    loss = _ability_loss(theta, y, a, b)
    for _ in range(50):
        chance = _sigmoid(a @ theta - b)
        slope = a.T @ (chance - y) + theta
        curvature = (a.T * (chance * (1 - chance))) @ a + np.eye(len(theta))
        step = np.linalg.solve(curvature, slope)
        # The objective is strictly convex, so halving always finds a smaller value.
        size = 1.0
        while (new := _ability_loss(theta - size * step, y, a, b)) > loss and size > 1e-6:
            size /= 2
        theta = theta - size * step
        loss = new
        if float(np.abs(step).max()) * size < 1e-9:
            break
    return theta


def fit_irt(
    responses: NDArray[np.float64], n_dimensions: int, *, max_iterations: int = MAX_ITERATIONS
) -> IrtModel:
    """Fit abilities and item parameters together by L-BFGS.

    Starts from the singular vectors of the double-centred responses, so there is no chance in it.

    Parameters
    ----------
    responses : NDArray of float64, shape (M, N)
        NaN = missing.
    n_dimensions : int
        D.
    max_iterations : int
        Limit of L-BFGS iterations.
    """
    from scipy.optimize import minimize

    low, high = response_range(responses)
    y = unit_range(responses, low, high)
    known = ~np.isnan(y)
    complete = bool(known.all())
    y32 = np.where(known, y, 0.0).astype(np.float32)
    mask = None if complete else known.astype(np.float32)
    n_models, n_samples = y.shape
    start = _start(y, known, n_dimensions)

    def objective(packed: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return loss_and_gradient(packed, y32, mask, n_dimensions)

    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "maxcor": 10, "ftol": 1e-9, "gtol": 1e-5},
    )
    theta, a, b = _unpack(found.x, n_models, n_samples, n_dimensions)
    return IrtModel(theta, a, b, low, high)


def loss_and_gradient(
    packed: NDArray[np.float64],
    y: NDArray[np.float32],
    mask: NDArray[np.float32] | None,
    n_dimensions: int,
) -> tuple[float, NDArray[np.float64]]:
    """Return the penalised negative log-likelihood and its gradient.

    The likelihood is computed in the precision of ``y``: single precision halves the time.

    Parameters
    ----------
    packed : NDArray of float64, shape (M·D + N·D + N,)
        Abilities, discriminations, difficulties.
    y : NDArray of float32, shape (M, N)
        Responses in [0, 1], 0 where missing.
    mask : NDArray of float32, shape (M, N), optional
        1 where known; without it everything is.
    n_dimensions : int
        D.
    """
    n_models, n_samples = y.shape
    theta, a, b = _unpack(packed, n_models, n_samples, n_dimensions)
    theta_y, a_y, b_y = theta.astype(y.dtype), a.astype(y.dtype), b.astype(y.dtype)
    g_theta = theta.copy()
    g_a, g_b = PRECISION_A * a, PRECISION_B * b
    loss = 0.5 * (
        float(np.sum(theta**2))
        + PRECISION_A * float(np.sum(a**2))
        + PRECISION_B * float(np.sum(b**2))
    )
    for first in range(0, n_samples, BLOCK):
        part = slice(first, first + BLOCK)
        z = theta_y @ a_y[part].T - b_y[part]
        decay = np.exp(-np.abs(z))
        chance = np.where(z > 0, 1, decay) / (1 + decay)
        surprise = np.maximum(z, 0) + np.log1p(decay) - y[:, part] * z
        residual = chance - y[:, part]
        if mask is not None:
            surprise *= mask[:, part]
            residual *= mask[:, part]
        loss += float(surprise.sum(dtype=np.float64))
        g_theta += residual @ a_y[part]
        g_a[part] += residual.T @ theta_y
        g_b[part] -= residual.sum(axis=0)
    return loss, np.concatenate([g_theta.ravel(), g_a.ravel(), g_b])


def choose_dimension(
    responses: NDArray[np.float64],
    weights: NDArray[np.float64],
    dimensions: Sequence[int] = DIMENSIONS,
) -> tuple[int, float]:
    """Choose D by holding out every fifth model (tinyBenchmarks).

    Item parameters are fitted to the other models; a held-out model's ability comes from its
    responses to every other sample, and its error is that of the mean predicted response to the
    rest.

    Parameters
    ----------
    responses : NDArray of float64, shape (M, N)
        NaN = missing.
    weights : NDArray of float64, shape (N,)
        Weights of the score.
    dimensions : sequence of int
        Candidates, ascending; those above a quarter of the models fitted are left out, except the
        first.

    Returns
    -------
    dimension : int
        The smallest candidate within :data:`TOLERANCE` of the lowest mean absolute error.
    error : float
        Its mean absolute error, in units of the score.
    """
    held = np.zeros(len(responses), dtype=bool)
    held[::5] = True
    candidates = [d for d in dimensions if d <= max(int((~held).sum()) // 4, dimensions[0])]
    low, high = response_range(responses)
    errors = [
        float(np.mean(_validation_errors(fit_irt(responses[~held], d), responses[held], weights)))
        / (high - low if high > low else 1.0)
        for d in candidates
    ]
    chosen = next(i for i, error in enumerate(errors) if error <= min(errors) + TOLERANCE)
    return candidates[chosen], errors[chosen] * (high - low)


def response_range(responses: NDArray[np.float64]) -> tuple[float, float]:
    """Return 0 and 1 if all responses lie between them, else their smallest and largest value."""
    low, high = float(np.nanmin(responses)), float(np.nanmax(responses))
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)


def _validation_errors(
    model: IrtModel, responses: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    seen = np.arange(0, len(weights), 2)
    unseen = np.arange(1, len(weights), 2)
    errors = []
    for y in responses:
        predicted = model.predicted(model.ability(y[seen], seen))[unseen]
        weight = np.where(np.isnan(y[unseen]), 0.0, weights[unseen])
        if weight.sum() > 0:
            difference = predicted - np.nan_to_num(y[unseen])
            errors.append(abs(float(weight @ difference)) / float(weight.sum()))
    return np.array(errors)


def _start(
    y: NDArray[np.float64], known: NDArray[np.bool_], n_dimensions: int
) -> NDArray[np.float64]:
    """Return packed starting values: logits of means, leading singular vectors of the rest."""
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, y, 0.0).sum(axis=0) / count
    residual = np.where(known, y - mean, 0.0)
    values, vectors = np.linalg.eigh(residual @ residual.T)
    order = np.argsort(-values, kind="stable")[:n_dimensions]
    theta = vectors[:, order] * np.sqrt(len(y))
    # The sign of an eigenvector is arbitrary: more right answers shall mean a higher ability.
    strength = residual.sum(axis=1) @ theta
    theta = np.where(strength < 0, -theta, theta)
    if theta.shape[1] < n_dimensions:
        theta = np.pad(theta, ((0, 0), (0, n_dimensions - theta.shape[1])))
    a = residual.T @ theta / len(y) * 4
    shrunk = (mean * count + 0.5) / (count + 1)
    b = -np.log(shrunk / (1 - shrunk))
    return np.concatenate([theta.ravel(), a.ravel(), b])


def _unpack(
    packed: NDArray[np.float64], n_models: int, n_samples: int, d: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    first, second = n_models * d, (n_models + n_samples) * d
    theta = packed[:first].reshape(n_models, d)
    return theta, packed[first:second].reshape(n_samples, d), packed[second:]


def _sigmoid(z: NDArray[np.float64]) -> NDArray[np.float64]:
    decay = np.exp(-np.abs(z))
    return np.asarray(np.where(z > 0, 1.0, decay) / (1 + decay))


def _ability_loss(
    theta: NDArray[np.float64],
    y: NDArray[np.float64],
    a: NDArray[np.float64],
    b: NDArray[np.float64],
) -> float:
    z = a @ theta - b
    surprise = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - y * z
    return float(surprise.sum()) + 0.5 * float(theta @ theta)
