"""Greedy and anchor selection on cases that can be worked out by hand."""

import numpy as np
import pytest

from disco_cli.selection.anchor import select_anchor
from disco_cli.selection.factors import fit_factors
from disco_cli.selection.greedy import (
    noise_variance,
    select_greedy,
    select_hybrid,
    select_informative,
)
from disco_cli.selection.strata import select_strata


def test_greedy_takes_the_sample_that_is_the_score_and_then_no_copy_of_it():
    rng = np.random.default_rng(0)
    scores = rng.random(20)
    Y = rng.random((20, 8))
    Y[:, 3] = scores
    Y[:, 6] = scores
    draw = select_greedy(Y, scores, 3)
    by_rank = draw.positions[np.argsort(draw.ranks)]
    assert by_rank[0] == 3
    assert 6 not in by_rank[:2]


def test_first_gain_by_hand():
    Y = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    scores = np.array([0.1, 0.9, 0.8, 0.2])
    draw = select_greedy(Y, scores, 1)
    # Centred: x0 = (-.5, .5, .5, -.5), xᵀr = 0.7, ‖x‖² = 1 for both columns, λ = 0.1.
    assert draw.positions.tolist() == [0]
    assert draw.scores[0] == pytest.approx(0.49 / 1.1)


def test_greedy_can_take_everything():
    rng = np.random.default_rng(1)
    draw = select_greedy(rng.random((4, 9)), rng.random(4), 9)
    assert draw.positions.tolist() == list(range(9))


def test_informative_samples_leave_the_least_doubt():
    rng = np.random.default_rng(2)
    Y = (rng.random((30, 1)) + rng.normal(size=(30, 50)) * 0.3 > 0.5).astype(float)
    factors = fit_factors(Y, 4)
    weights = np.full(50, 0.02)

    def doubt(chosen):
        loadings = factors.loadings[chosen]
        noise = noise_variance(factors)[chosen]
        precision = (loadings.T / noise) @ loadings + np.eye(4) / 4.0
        goal = weights @ factors.loadings
        return goal @ np.linalg.solve(precision, goal)

    first = select_informative(factors, weights, 1)
    assert first[0] == np.argmin([doubt(np.array([i])) for i in range(50)])
    chosen = select_informative(factors, weights, 10)
    assert len(set(chosen.tolist())) == 10
    others = [rng.choice(50, 10, replace=False) for _ in range(50)]
    assert doubt(chosen) < min(doubt(other) for other in others)


def test_hybrid_of_nothing_certain_is_strata():
    factors = fit_factors(np.random.default_rng(3).random((8, 30)))
    weights = np.full(30, 1 / 30)
    one = select_hybrid(factors, weights, 6, 0.0, np.random.default_rng(1))
    other = select_strata(factors, weights, 6, np.random.default_rng(1))
    assert one.positions.tolist() == other.positions.tolist()


def test_hybrid_takes_no_copy_of_a_certain_sample():
    Y = np.random.default_rng(4).random((10, 20))
    Y[:, 10:] = Y[:, :10]
    units = np.tile(np.arange(10), 2)
    draw = select_hybrid(
        fit_factors(Y), np.full(20, 0.05), 8, 0.5, np.random.default_rng(0), units=units
    )
    assert len(set(units[draw.positions])) == 8
    assert draw.weights.sum() == pytest.approx(1.0)


def test_anchors_of_clear_clusters():
    rng = np.random.default_rng(5)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    labels = np.repeat([0, 1, 2], [5, 3, 2])
    Y = (centres[labels] + 0.01 * rng.normal(size=(10, 2))).T
    draw = select_anchor(Y, np.full(10, 0.1), 3, np.random.default_rng(0))
    assert sorted(labels[draw.positions].tolist()) == [0, 1, 2]
    weight = dict(zip(labels[draw.positions].tolist(), draw.weights.tolist(), strict=True))
    assert weight == pytest.approx({0: 0.5, 1: 0.3, 2: 0.2})
    assert labels[draw.positions[draw.ranks == 1]].tolist() == [0]


def test_anchors_merge_copies():
    Y = np.repeat(np.eye(3), [4, 3, 3], axis=1)
    draw = select_anchor(Y, np.full(10, 0.1), 3, np.random.default_rng(0))
    assert draw.positions.tolist() == [0, 4, 7]
    assert draw.weights.tolist() == pytest.approx([0.4, 0.3, 0.3])


def test_more_anchors_than_distinct_samples():
    Y = np.repeat(np.eye(2), [4, 3], axis=1)
    draw = select_anchor(Y, np.full(7, 1 / 7), 4, np.random.default_rng(0))
    assert len(np.unique(draw.positions)) == 4
    assert draw.weights.sum() == pytest.approx(1.0)
    assert Y[0, draw.positions] @ draw.weights == pytest.approx(4 / 7)


def test_anchors_do_not_depend_on_global_state():
    Y = np.random.default_rng(6).random((5, 60))
    one = select_anchor(Y, np.full(60, 1 / 60), 7, np.random.default_rng(3))
    other = select_anchor(Y, np.full(60, 1 / 60), 7, np.random.default_rng(3))
    assert one.positions.tolist() == other.positions.tolist()
