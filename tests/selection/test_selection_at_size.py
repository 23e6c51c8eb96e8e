"""What is done differently for a million samples: agreement with the plain form of each method."""

import numpy as np
import pytest

from disco_cli.selection import anchor, factors
from disco_cli.selection.anchor import select_anchor
from disco_cli.selection.factors import complete_responses, fit_factors
from disco_cli.selection.greedy import select_greedy


def answers(seed, M, N):
    """Return right and wrong answers that four abilities explain in part."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(M, 4)) @ rng.normal(size=(4, N)) + rng.normal(size=N)
    return (logits + rng.logistic(size=(M, N)) > 0).astype(float)


def greedy_plainly(Y, scores, k):
    """Take the directions out of all columns, one after another."""
    X = Y - Y.mean(axis=0)
    r = scores - scores.mean()
    shrinkage = 0.1 * np.median((X**2).sum(axis=0)) + 1e-12
    chosen, gains = [], []
    for _ in range(k):
        gain = (r @ X) ** 2 / ((X**2).sum(axis=0) + shrinkage)
        order = np.round(gain, 12)
        order[[bool((y == Y[:, chosen].T).all(axis=1).any()) for y in Y.T]] = -1
        order[chosen] = -2
        best = int(order.argmax())
        chosen.append(best)
        gains.append(gain[best])
        x = X[:, best].copy()
        scale = x @ x + shrinkage
        r = r - x * (x @ r) / scale
        X = X - np.outer(x, x @ X) / scale
    return chosen, gains


@pytest.mark.parametrize("seed", range(6))
def test_greedy_takes_what_plain_deflation_takes(seed):
    rng = np.random.default_rng(seed)
    M, N = int(rng.integers(2, 40)), 120
    Y = answers(seed, M, N) if seed % 2 else rng.normal(size=(M, N)) * 10 + 100
    Y[:, 100:] = Y[:, :20]
    scores = Y.mean(axis=1)
    draw = select_greedy(Y, scores, 110)
    chosen, gains = greedy_plainly(Y, scores, 110)
    order = np.argsort(draw.ranks)
    assert draw.positions[order].tolist() == chosen
    np.testing.assert_allclose(draw.scores[order], gains, rtol=1e-9, atol=1e-13)


def cost(Y, draw):
    """Return the mean squared distance of all samples to the nearest of those chosen."""
    points, chosen = Y.T, Y.T[draw.positions]
    squares = (points**2).sum(1)[:, None] - 2 * points @ chosen.T + (chosen**2).sum(1)
    return squares.min(axis=1).mean()


def test_anchors_found_on_a_part_serve_all_samples_as_well(monkeypatch):
    Y = answers(0, 24, 12_000)
    weights = np.full(12_000, 1 / 12_000)
    full = select_anchor(Y, weights, 20, np.random.default_rng(0))
    monkeypatch.setattr(anchor, "MOST_CLUSTERED", 5000)
    part = select_anchor(Y, weights, 20, np.random.default_rng(0))
    assert part.positions.tolist() != full.positions.tolist()
    assert cost(Y, part) < 1.02 * cost(Y, full)
    # The weights of the clusters count all samples, so the estimates are as good.
    errors = [np.abs(Y[:, d.positions] @ d.weights - Y @ weights).mean() for d in (full, part)]
    assert errors[1] < 1.3 * errors[0] + 0.005
    again = select_anchor(Y, weights, 20, np.random.default_rng(0))
    assert again.positions.tolist() == part.positions.tolist()
    assert again.weights.tolist() == part.weights.tolist()


def test_the_clusters_of_all_samples_by_hand(monkeypatch):
    monkeypatch.setattr(anchor, "MOST_CLUSTERED", 40)
    monkeypatch.setattr(anchor, "_LEAST_PER_CLUSTER", 1)
    monkeypatch.setattr(anchor, "_BLOCK", 64)  # many blocks
    rng = np.random.default_rng(3)
    centre = np.repeat([0.0, 10.0, 30.0], [100, 250, 50])
    Y = np.array([centre + rng.uniform(-1, 1, 400), centre])
    weights = np.full(400, 1 / 400)
    draw = select_anchor(Y, weights, 3, np.random.default_rng(0))
    assert draw.weights.tolist() == pytest.approx([0.25, 0.625, 0.125])
    for position, group in zip(draw.positions, (0.0, 10.0, 30.0), strict=True):
        inside = np.flatnonzero(centre == group)
        away = np.abs(Y[0, inside] - Y[0, inside].mean())
        assert position == inside[away.argmin()]


def test_systematic_draws_hold_the_mass_of_every_heavy_sample():
    mass = np.array([0.5, *[0.5 / 999] * 999])
    drawn, shares = anchor._systematic(np.arange(1000), mass, 100, np.random.default_rng(0))
    assert drawn[0] == 0
    assert shares[0] == pytest.approx(0.5, abs=0.01)
    assert shares.sum() == pytest.approx(1)
    assert len(drawn) == 100 - round(shares[0] * 100) + 1


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_factors_do_not_depend_on_the_width_of_blocks(monkeypatch, missing):
    Y = answers(1, 12, 500)
    Y[np.random.default_rng(0).random(Y.shape) < missing] = np.nan
    whole = complete_responses(Y)
    expected = fit_factors(whole)
    monkeypatch.setattr(factors, "_BLOCK", 33)
    filled = complete_responses(Y)
    found = fit_factors(filled)
    np.testing.assert_allclose(filled, whole, atol=1e-12)
    for name in ("means", "loadings", "spread", "noise"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-10)
