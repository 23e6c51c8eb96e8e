"""The weights of the estimates: what they do, and how they are learnt."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disco_cli.estimation.averaging import (
    DEFAULT_SHARES,
    Parts,
    Shares,
    choose_shares,
    combine_parts,
)
from disco_cli.estimation.factor_estimator import Assessment

ASSESSMENT = Assessment(0.5, 0.5, 0.5, 0.1, 1.0, (), 10, 10)


def parts(model, design, ridge=None, beyond=0.0):
    return Parts(model, design, ridge, 0.1, beyond, -1.0, ASSESSMENT)


def choose(found, truths=None):
    truths = [0.0] * len(found) if truths is None else truths
    return choose_shares(found, truths, range(len(found)))


def test_average_by_hand():
    inside = parts(0.1, 0.2, 0.4)
    assert combine_parts(inside, Shares(0.5, 0.25)) == pytest.approx(0.225)
    # Beyond the range: design at least 1/2, ridge at most half of the rest.
    beyond = parts(0.1, 0.2, 0.4, beyond=1.0)
    assert combine_parts(beyond, Shares(0.1, 0.9)) == pytest.approx(0.225)
    assert combine_parts(beyond, Shares(0.8, 0.0)) == pytest.approx(0.18)
    half = parts(0.1, 0.2, 0.4, beyond=0.5)  # design 0.3, ridge 0.575
    assert combine_parts(half, Shares(0.1, 0.9)) == pytest.approx(0.1 + 0.3 * 0.1 + 0.575 * 0.3)


def test_without_a_ridge_the_others_keep_their_proportion():
    assert combine_parts(parts(0.1, 0.4), Shares(0.2, 0.4)) == pytest.approx(0.2)
    assert combine_parts(parts(0.1, 0.4), Shares(0.0, 1.0)) == pytest.approx(0.25)


def test_two_estimates_by_hand():
    # One design error of half the size and opposite sign: least squares gives 2/3; ten models of
    # one half are added to the ten that there are.
    found = [parts(0.1, -0.05)] * 10
    assert choose(found) == pytest.approx(Shares((10 * 2 / 3 + 10 / 2) / 20, 0.0))
    # Models beyond the range say nothing of the weight inside.
    assert choose([*found, parts(0.9, 0.0, beyond=1.0)])[0] == pytest.approx(choose(found)[0])


def test_three_estimates_by_hand():
    # Errors of model, design and ridge: 0, ±a, ±b, independent of each other.
    found = [parts(0.0, d, r) for d in (0.1, -0.1) for r in (0.2, -0.2)]
    # Least squares wants 0 and 0. Curvature 0.04 and 0.16; the prior adds 10/4 of their mean 0.1 to
    # each and pulls with a third of that.
    assert choose(found) == pytest.approx(Shares(0.25 / 3 / 0.29, 0.25 / 3 / 0.41))


def test_without_evidence():
    assert choose([]) == DEFAULT_SHARES
    assert choose([parts(0.1, 0.1, 0.1)]) == pytest.approx(DEFAULT_SHARES)
    assert choose([parts(0.1, 0.1)]) == Shares(0.5, 0.0)


def test_repeats_do_not_count_as_more_models():
    found = [parts(0.1, -0.05, 0.02)] * 10
    often = choose_shares(found * 5, [0.0] * 50, list(range(10)) * 5)
    assert often == pytest.approx(choose(found))


numbers = st.floats(-1, 1).map(lambda x: round(x, 3))
trials = st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=8)


@given(trials)
def test_shares_are_weights_and_none_on_a_grid_is_better(found):
    candidates = [parts(m, d, r) for m, d, r, _ in found]
    truths = [t for *_, t in found]
    shares = choose(candidates, truths)
    assert min(shares) >= 0
    assert sum(shares) <= 1 + 1e-12
    gaps = np.array([[p.design - p.model, p.ridge - p.model] for p in candidates])
    scale = (gaps**2).sum() / max(np.count_nonzero(gaps.any(axis=0)), 1)

    def loss(x):
        estimates = [combine_parts(p, Shares(*x)) for p in candidates]
        penalty = 10 / len(candidates) * scale * np.square(np.subtract(x, DEFAULT_SHARES)).sum()
        return np.square(np.subtract(estimates, truths)).sum() + penalty

    steps = np.linspace(0, 1, 11)
    grid = [(x, y) for x in steps for y in steps if x + y <= 1 + 1e-12]
    assert loss(shares) <= min(map(loss, grid)) + 1e-9
