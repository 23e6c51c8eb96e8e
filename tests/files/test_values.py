"""Blocks of values: hand-computed figures, laws, and every row that has to be refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from disco_cli.errors import InputError
from disco_cli.files.matrix import Kind
from disco_cli.files.rows import FEW, row_max, row_sum
from disco_cli.files.values import (
    TOLERANCE,
    BadRowError,
    correctness,
    one_hot,
    softmax,
    to_labels,
    to_probabilities,
)

NAN = np.nan


def test_softmax_by_hand() -> None:
    found = softmax(np.log([[1.0, 3.0], [2.0, 2.0]]))
    np.testing.assert_allclose(found, [[0.25, 0.75], [0.5, 0.5]], rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_large_logits_do_not_overflow(dtype: Any) -> None:
    logits = np.array([[60000, 60000, -60000]], dtype)
    np.testing.assert_array_equal(to_probabilities(logits, Kind.LOGITS), [[0.5, 0.5, 0]])


@pytest.mark.parametrize(
    ("dtype", "worked"),
    [
        ("f2", "f4"), ("f4", "f4"), ("f8", "f8"), (">f4", "f4"), (">f2", "f4"), ("i1", "f4"),
        ("i8", "f8"), ("?", "f4"),
    ],
)  # fmt: skip
def test_work_is_done_in_the_precision_of_the_block(dtype: str, worked: str) -> None:
    found = to_probabilities(np.array([[1, 0], [0, 1]], dtype), Kind.PROBABILITIES)
    assert found.dtype == np.dtype(worked)
    np.testing.assert_array_equal(found, [[1, 0], [0, 1]])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=40),
               elements=st.floats(-30, 30)),
    st.floats(-100, 100),
)  # fmt: skip
def test_softmax_sums_to_one_ignores_shifts_and_undoes_the_logarithm(
    logits: Any, shift: float
) -> None:
    found = to_probabilities(logits, Kind.LOGITS)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(to_probabilities(logits + shift, Kind.LOGITS), found, atol=1e-12)
    again = to_probabilities(np.log(found), Kind.LOG_PROBABILITIES)
    np.testing.assert_allclose(again, found, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 10, FEW, FEW + 1, 1000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", [Kind.LOGITS, Kind.LOG_PROBABILITIES, Kind.PROBABILITIES])
def test_blocks_of_any_size_and_layout_give_the_same_bits(
    classes: int, dtype: Any, kind: Kind
) -> None:
    rng = np.random.default_rng(classes)
    probabilities = softmax(rng.normal(size=(37, classes)))
    values = (probabilities if kind is Kind.PROBABILITIES else np.log(probabilities)).astype(dtype)
    values[5] = NAN
    whole = to_probabilities(values, kind)
    for width in (1, 2, 7):
        parts = [to_probabilities(values[i : i + width], kind) for i in range(0, 37, width)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(to_probabilities(np.asfortranarray(values), kind), whole)
    assert np.isnan(whole[5]).all()


@pytest.mark.parametrize("classes", [1, 2, FEW, FEW + 1])
def test_row_reductions_agree_with_numpy(classes: int) -> None:
    block = np.random.default_rng(0).normal(size=(50, classes))
    block[3, -1] = NAN
    np.testing.assert_array_equal(row_max(block), block.max(axis=1))
    np.testing.assert_allclose(row_sum(block), block.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_thousand_rounded_classes_are_within_tolerance(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for scale in (0.0, 1.0, 8.0):
        values = softmax(scale * rng.normal(size=(200, 1000))).astype(dtype)
        assert to_probabilities(values, Kind.PROBABILITIES).shape == (200, 1000)
        with np.errstate(divide="ignore"):
            logs = np.log(values.astype(np.float64)).astype(dtype)
        assert to_probabilities(logs, Kind.LOG_PROBABILITIES).shape == (200, 1000)


def test_values_at_the_edge_of_the_tolerance() -> None:
    inside = np.array([[0.5, 0.5 + 0.99 * TOLERANCE]])
    outside = np.array([[0.5, 0.5 + 1.01 * TOLERANCE]])
    np.testing.assert_array_equal(to_probabilities(inside, Kind.PROBABILITIES), inside)
    with pytest.raises(BadRowError):
        to_probabilities(outside, Kind.PROBABILITIES)


def test_slightly_negative_probabilities_become_zero() -> None:
    found = to_probabilities(np.array([[-1e-9, 1.0], [NAN, NAN]]), Kind.PROBABILITIES)
    np.testing.assert_array_equal(found, [[0, 1], [NAN, NAN]])


@pytest.mark.parametrize("padding", [NAN, -np.inf, 0.0, 7.0])
@pytest.mark.parametrize(
    ("kind", "row"),
    [
        (Kind.PROBABILITIES, [0.25, 0.75]),
        (Kind.LOGITS, np.log([0.5, 1.5])),
        (Kind.LOG_PROBABILITIES, np.log([0.25, 0.75])),
    ],
)
def test_padding_has_no_probability_whatever_it_holds(kind: Kind, row: Any, padding: float) -> None:
    block = np.array([[*row, padding, padding], [NAN, NAN, NAN, padding], [*np.repeat(NAN, 4)]])
    options = np.array([2, 3, 4])
    found = to_probabilities(block, kind, options)
    np.testing.assert_allclose(found[0], [0.25, 0.75, 0, 0], rtol=1e-15)
    assert np.isnan(found[1:]).all()
    right = correctness(block, kind, np.array([1, 0, 0]), options)
    np.testing.assert_array_equal(right, [1, NAN, NAN])


def test_a_missing_row_is_missing_and_never_uniform() -> None:
    for kind in (Kind.PROBABILITIES, Kind.LOGITS, Kind.LOG_PROBABILITIES):
        assert np.isnan(to_probabilities(np.full((2, 3), NAN), kind)).all()


@pytest.mark.parametrize(
    ("kind", "row", "found"),
    [
        (Kind.PROBABILITIES, [0.3, 0.4], "probabilities sum to 0.7 instead of 1"),
        (Kind.PROBABILITIES, [NAN, 1.0], "1 of 2 options are NaN"),
        (Kind.PROBABILITIES, [-0.5, 1.5], "probabilities reach -0.5; if they are logits"),
        (Kind.PROBABILITIES, [np.inf, 0.0], "probabilities sum to inf"),
        (Kind.PROBABILITIES, [-np.inf, 1.0], "probabilities reach -inf"),
        (Kind.LOG_PROBABILITIES, [-1.0, -1.0], "sum to 0.7358 instead of 1"),
        (Kind.LOG_PROBABILITIES, [900.0, 0.0], "sum to inf instead of 1"),
        (Kind.LOG_PROBABILITIES, [NAN, 0.0], "1 of 2 options are NaN"),
        (Kind.LOGITS, [NAN, 1.0], "1 of 2 options are NaN"),
        (Kind.LOGITS, [np.inf, 1.0], "an infinite logit"),
        (Kind.LOGITS, [-np.inf, -np.inf], "no finite logit"),
    ],
)
def test_a_bad_row_is_named(kind: Kind, row: list[float], found: str) -> None:
    good = {Kind.PROBABILITIES: [0.5, 0.5], Kind.LOGITS: [3.0, 0.0]}
    fill = good.get(kind, [np.log(0.5), np.log(0.5)])
    block = np.array([fill, [NAN, NAN], row, fill], np.float32)
    with pytest.raises(BadRowError, match=found) as caught:
        to_probabilities(block, kind)
    assert caught.value.row == 2
    with pytest.raises(BadRowError, match=found):
        correctness(block, kind, np.zeros(4, np.int64))


def test_one_logit_may_be_minus_infinity() -> None:
    block = np.array([[0, -np.inf, 0]])
    np.testing.assert_array_equal(to_probabilities(block, Kind.LOGITS), [[0.5, 0, 0.5]])


def test_labels_become_one_hot_rows() -> None:
    found = to_probabilities(np.array([1, -1, -2, 0]), Kind.LABELS, n_classes=2)
    np.testing.assert_array_equal(found, [[0, 1], [NAN, NAN], [NAN, NAN], [1, 0]])
    np.testing.assert_array_equal(one_hot(np.array([0, -1]), 3), [[1, 0, 0], [NAN] * 3])


def test_no_answer_is_a_class_of_its_own_where_that_counts() -> None:
    labels = np.array([1, -1, -2, 0], np.int8)
    found = to_probabilities(labels, Kind.LABELS, n_classes=2, counts_no_answer=True)
    np.testing.assert_array_equal(found, [[0, 1, 0], [0, 0, 1], [NAN] * 3, [1, 0, 0]])
    right = correctness(labels, Kind.LABELS, np.array([1, 1, 1, -1]), counts_no_answer=True)
    np.testing.assert_array_equal(right, [1, 0, NAN, NAN])
    np.testing.assert_array_equal(
        correctness(labels, Kind.LABELS, np.array([1, 1, 1, 1])), [1, NAN, NAN, 0]
    )


def test_other_kinds_get_an_empty_class_beside_no_answer() -> None:
    block = np.array([[0.25, 0.75], [NAN, NAN]])
    found = to_probabilities(block, Kind.PROBABILITIES, counts_no_answer=True)
    np.testing.assert_array_equal(found, [[0.25, 0.75, 0], [NAN] * 3])


def test_float_labels_are_taken_if_whole() -> None:
    np.testing.assert_array_equal(to_labels(np.array([1.0, NAN, -1.0])), [1, -1, -1])
    with pytest.raises(BadRowError, match=r"predicted label 0\.5 is not a whole number"):
        to_labels(np.array([1.0, 0.5]))
    with pytest.raises(BadRowError, match="predicted label 4, but there are 4 classes"):
        to_labels(np.array([1, 4]), 4)


def test_an_answer_beyond_the_options_of_its_sample_is_wrong() -> None:
    labels = np.array([1, 1])
    right = correctness(np.array([3, 1]), Kind.LABELS, labels, np.array([2, 2]))
    np.testing.assert_array_equal(right, [0, 1])


def test_responses_are_two_probabilities_and_the_score_itself() -> None:
    block = np.array([0.25, NAN, 1.0])
    found = to_probabilities(block, Kind.RESPONSES)
    np.testing.assert_array_equal(found, [[0.25, 0.75], [NAN, NAN], [1, 0]])
    np.testing.assert_array_equal(correctness(block, Kind.RESPONSES), block)
    np.testing.assert_array_equal(correctness(10 * block, Kind.RESPONSES), 10 * block)
    with pytest.raises(BadRowError, match=r"response 2\.5 lies outside \[0, 1\]"):
        to_probabilities(10 * block, Kind.RESPONSES)
    with pytest.raises(BadRowError, match="response inf"):
        correctness(np.array([np.inf]), Kind.RESPONSES)


def test_the_first_of_equal_maxima_is_the_answer() -> None:
    block = np.array([[0.5, 0.5], [0.5, 0.5]])
    right = correctness(block, Kind.PROBABILITIES, np.array([0, 1]))
    np.testing.assert_array_equal(right, [1, 0])


def test_correctness_compares_logits_not_rounded_probabilities() -> None:
    block = np.array([[0.0, 1e-6, -50.0]], np.float32) + np.float32(1)
    assert correctness(block, Kind.LOGITS, np.array([1]))[0] == float(block[0, 1] > block[0, 0])


def test_what_cannot_be_computed_is_said() -> None:
    with pytest.raises(InputError, match="needs labels"):
        correctness(np.array([[0.5, 0.5]]), Kind.PROBABILITIES)
    with pytest.raises(InputError, match="known number of classes"):
        to_probabilities(np.array([1]), Kind.LABELS)


@pytest.mark.parametrize("kind", [Kind.PROBABILITIES, Kind.LOGITS, Kind.LOG_PROBABILITIES])
def test_an_empty_block_stays_empty(kind: Kind) -> None:
    assert to_probabilities(np.zeros((0, 3), np.float16), kind).shape == (0, 3)


def test_blocks_are_not_written_to() -> None:
    for kind in (Kind.PROBABILITIES, Kind.LOGITS, Kind.LOG_PROBABILITIES):
        block = np.array([[0.0, 1.0], [NAN, NAN]])
        if kind is Kind.LOG_PROBABILITIES:
            block = np.log([[0.5, 0.5], [NAN, NAN]])
        before = block.copy()
        block.flags.writeable = False
        to_probabilities(block, kind, np.array([2, 1]))
        correctness(block, kind, np.array([0, 0]), np.array([2, 1]))
        np.testing.assert_array_equal(block, before)
