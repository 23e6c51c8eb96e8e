"""PDS, JSD and confidence: hand-computed values and the laws of METHODS."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from disco_cli.disagreement.measures import (
    confidence,
    entropy,
    jensen_shannon,
    predictive_diversity,
    row_dots,
    row_sums,
)

NAN = float("nan")


@st.composite
def stacks(draw: st.DrawFn) -> np.ndarray:
    """Draw probabilities (M, n, C), some of them exact zeros."""
    shape = (draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 6)))
    masses = draw(
        hnp.arrays(np.float64, shape, elements=st.one_of(st.just(0.0), st.floats(1e-6, 1.0)))
    )
    masses[masses.sum(axis=2) == 0] = 1
    return masses / masses.sum(axis=2, keepdims=True)


def test_two_models_that_disagree_completely() -> None:
    P = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert predictive_diversity(P) == [2.0]
    assert jensen_shannon(P) == pytest.approx([np.log(2)])
    assert confidence(P) == [1.0]


def test_hand_computed_values() -> None:
    P = np.array([[[0.5, 0.5, 0.0]], [[0.25, 0.25, 0.5]]])
    # maxima 0.5, 0.5, 0.5; mean 3/8, 3/8, 1/4; entropies ln 2 and 1.5 ln 2
    mixed = -(2 * 3 / 8 * np.log(3 / 8) + np.log(1 / 4) / 4)
    assert predictive_diversity(P) == pytest.approx([1.5])
    assert jensen_shannon(P) == pytest.approx([mixed - 1.25 * np.log(2)])
    assert confidence(P) == pytest.approx([0.5])


def test_hard_labels_count_distinct_answers() -> None:
    P = np.eye(5)[[[0, 3], [1, 3], [1, 3], [4, 3]]]
    assert predictive_diversity(P).tolist() == [3.0, 1.0]
    np.testing.assert_allclose(jensen_shannon(P), [1.5 * np.log(2), 0.0])


def test_confident_agreement_has_full_confidence_and_no_disagreement() -> None:
    P = np.tile(np.eye(4)[2], (5, 1, 1))
    assert (predictive_diversity(P), jensen_shannon(P), confidence(P)) == ([1.0], [0.0], [1.0])


def test_missing_rows_are_not_counted() -> None:
    P = np.array([[[1.0, 0.0], [NAN, NAN]], [[NAN, NAN], [NAN, NAN]], [[0.0, 1.0], [NAN, NAN]]])
    np.testing.assert_array_equal(predictive_diversity(P), [2.0, NAN])
    np.testing.assert_allclose(jensen_shannon(P), [np.log(2), NAN])
    np.testing.assert_array_equal(confidence(P), [1.0, NAN])


def test_padding_of_ragged_choices_adds_nothing() -> None:
    P = np.random.default_rng(0).dirichlet([1, 1, 1], size=(4, 6))
    padded = np.pad(P, ((0, 0), (0, 0), (0, 5)))
    for measure in (predictive_diversity, jensen_shannon, confidence):
        np.testing.assert_allclose(measure(padded), measure(P), rtol=1e-13)


def test_a_negative_probability_or_nan_shows_in_the_entropy() -> None:
    with np.errstate(invalid="raise"):
        assert np.isnan(entropy(np.array([[1.1, -0.1], [NAN, NAN], [1, 0]]))).tolist() == [
            True,
            True,
            False,
        ]


@settings(deadline=None)
@given(stacks())
def test_pds_lies_between_one_and_the_smaller_of_models_and_classes(P: np.ndarray) -> None:
    pds = predictive_diversity(P)
    assert (pds >= 1 - 1e-12).all()
    assert (pds <= min(P.shape[0], P.shape[2]) + 1e-12).all()


@settings(deadline=None, max_examples=300)
@given(stacks())
def test_pds_bounds_jsd_on_both_sides(P: np.ndarray) -> None:
    excess, jsd = predictive_diversity(P) - 1, jensen_shannon(P)
    M = len(P)
    assert (jsd >= 2 / M**2 * excess**2 - 1e-10).all()
    assert (jsd <= np.log(M) * excess + 1e-10).all()


@settings(deadline=None)
@given(stacks(), st.randoms(use_true_random=False))
def test_order_of_models_and_classes_does_not_matter(P: np.ndarray, random) -> None:
    models, classes = list(range(P.shape[0])), list(range(P.shape[2]))
    random.shuffle(models)
    random.shuffle(classes)
    shuffled = P[models][:, :, classes]
    for measure in (predictive_diversity, jensen_shannon, confidence):
        np.testing.assert_allclose(measure(shuffled), measure(P), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [1, 2, 3, 4, 7, 8, 17, 100, 1000])
def test_row_sums_do_not_depend_on_the_neighbours(C: int, dtype: type) -> None:
    rng = np.random.default_rng(C)
    x, y = rng.random((40, C)).astype(dtype), rng.random((40, C)).astype(dtype)
    for width in (1, 2, 3, 5, 39, 40):
        cuts = range(0, 40, width)
        assert np.concatenate([row_sums(x[i : i + width]) for i in cuts]).tobytes() == (
            row_sums(x).tobytes()
        )
        dots = [row_dots(x[i : i + width], y[i : i + width]) for i in cuts]
        assert np.concatenate(dots).tobytes() == row_dots(x, y).tobytes()
        entropies = [entropy(x[i : i + width]) for i in cuts]
        assert np.concatenate(entropies).tobytes() == entropy(x).tobytes()
