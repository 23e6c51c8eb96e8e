"""States merge exactly, in any order and grouping, and finish to the figures of the definitions."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.disagreement.measures import confidence, jensen_shannon, predictive_diversity
from disco_cli.disagreement.observe import (
    add,
    add_correctness,
    add_group_sums,
    add_labels,
    observe,
)
from disco_cli.disagreement.state import State, finish, merge

NAN = float("nan")
ALL = slice(None)


def state_of(P: np.ndarray, correct: np.ndarray | None = None) -> State:
    """Return the state of a whole stack (M, n, C) taken as one group."""
    state = State.empty(P.shape[1], P.shape[2], P.dtype)
    sums = np.zeros(P.shape[1:], P.dtype)
    for p in P:
        add(state, ALL, sums, observe(p, 1))
    if correct is not None:
        add_correctness(state, ALL, correct)
    add_group_sums(state, ALL, sums)
    return state


def stack(M: int, n: int, C: int, seed: int, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(C, 0.3), size=(M, n))
    P[rng.random((M, n)) < missing] = np.nan
    return P


def same(first: State, second: State) -> bool:
    return all(
        getattr(first, field.name).tobytes() == getattr(second, field.name).tobytes()
        for field in fields(State)
    )


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_a_finished_state_agrees_with_the_definitions(missing: float) -> None:
    P = stack(11, 40, 7, 1, missing)
    figures = finish(state_of(P))
    np.testing.assert_allclose(figures.pds, predictive_diversity(P), rtol=1e-12)
    np.testing.assert_allclose(figures.jsd, jensen_shannon(P), atol=1e-11)
    np.testing.assert_allclose(figures.confidence, confidence(P), atol=1e-12)
    assert figures.n_models.tolist() == (~np.isnan(P[:, :, 0])).sum(axis=0).tolist()


def test_single_precision_is_good_to_seven_digits() -> None:
    P = stack(16, 50, 100, 2)
    figures = finish(state_of(P.astype(np.float32)))
    np.testing.assert_allclose(figures.pds, predictive_diversity(P), rtol=3e-7)
    np.testing.assert_allclose(figures.jsd, jensen_shannon(P), atol=3e-6)


def test_identical_models_disagree_nowhere() -> None:
    P = np.repeat(stack(1, 30, 9, 3), 13, axis=0)
    figures = finish(state_of(P))
    np.testing.assert_allclose(figures.pds, 1.0, rtol=1e-12)
    np.testing.assert_allclose(figures.jsd, 0.0, atol=1e-11)
    assert (figures.jsd >= 0).all()


def test_a_sample_that_no_model_has() -> None:
    P = np.array([[[NAN, NAN], [1.0, 0.0]]])
    figures = finish(state_of(P, np.array([[NAN, NAN]])))
    assert figures.n_models.tolist() == [0, 1]
    np.testing.assert_array_equal(figures.pds, [NAN, 1.0])
    np.testing.assert_array_equal(figures.jsd, [NAN, 0.0])
    np.testing.assert_array_equal(figures.confidence, [NAN, 1.0])
    np.testing.assert_array_equal(figures.error_rate, [NAN, NAN])


def test_error_rate_counts_the_judged_only() -> None:
    P = stack(4, 3, 2, 4)
    correct = np.array([[1, 0, 0.5], [0, NAN, 0.25], [1, 0, NAN], [NAN, NAN, 1]])
    np.testing.assert_allclose(
        finish(state_of(P, correct)).error_rate, [1 / 3, 1.0, 1 - 1.75 / 3], rtol=1e-12
    )


def test_a_response_outside_0_and_1_is_no_error_rate() -> None:
    P = stack(2, 2, 2, 5)
    correct = np.array([[1.0, 57.5], [0.0, 1.0]])
    np.testing.assert_array_equal(finish(state_of(P, correct)).error_rate, [0.5, NAN])


def test_labels_are_probability_on_one_class() -> None:
    labels = np.array([[0, 2, -1], [1, 2, -1], [1, 2, 0]])
    state = State.empty(3, 4, np.dtype(np.float32))
    sums = np.zeros((3, 4), np.float32)
    for row in labels:
        add_labels(state, ALL, sums, row)
    add_group_sums(state, ALL, sums)
    P = np.eye(4, dtype=np.float32)[labels]
    P[labels < 0] = NAN
    assert same(state, state_of(P))
    assert finish(state).pds.tolist() == [2.0, 1.0, 1.0]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 9), st.integers(1, 5))
def test_merging_is_exact_commutative_and_associative(seed: int, M: int, n: int, C: int) -> None:
    parts = [
        state_of(stack(M, n, C, seed + part, 0.2), np.random.default_rng(seed).random((M, n)))
        for part in range(3)
    ]
    a, b, c = parts
    assert same(merge(a, b), merge(b, a))
    assert same(merge(merge(a, b), c), merge(a, merge(b, c)))
    assert same(merge(a, State.empty(n, C, a.maximum.dtype)), a)


def test_merged_halves_agree_with_the_whole() -> None:
    P = stack(20, 30, 6, 7, 0.1)
    halves = finish(merge(state_of(P[:7]), state_of(P[7:])))
    whole = finish(state_of(P))
    assert halves.pds.tobytes() == whole.pds.tobytes()
    np.testing.assert_allclose(halves.jsd, whole.jsd, atol=1e-11)
