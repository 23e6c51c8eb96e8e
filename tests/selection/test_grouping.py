"""Equal columns and equal questions: agreement with a slow method that compares everything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.selection import grouping
from disco_cli.selection.duplicates import sample_units
from disco_cli.selection.grouping import first_equal, first_equal_text


def first_equal_slowly(columns):
    """Return the first equal column of each, by looking at all before it."""
    return [
        next(j for j in range(i + 1) if np.array_equal(columns[j], column, equal_nan=True))
        for i, column in enumerate(columns)
    ]


def units_slowly(Y, k, hashes, weights):
    """Join samples one after another."""
    n = Y.shape[1]
    units = list(range(n))
    first = first_equal_slowly(Y.T)
    for head in set(first):
        rows = [i for i in range(n) if first[i] == head]
        if weights[rows].sum() <= 0.5 / k:
            for i in rows:
                units[i] = head
    for i in range(n if hashes is not None else 0):
        for j in range(i):
            if hashes[i] and hashes[i] == hashes[j] and units[i] != units[j]:
                joined = {units[i], units[j]}
                units = [min(joined) if unit in joined else unit for unit in units]
    names = sorted(set(units))
    return list(range(n)) if len(names) < k else [names.index(unit) for unit in units]


def test_nan_equals_nan_and_minus_zero_zero():
    Y = np.array([[0.0, -0.0, np.nan, 1.0, np.nan], [1.0, 1.0, 2.0, 0.0, 2.0]])
    assert first_equal(Y).tolist() == [0, 0, 2, 3, 2]


@pytest.mark.parametrize("layout", ["C", "F"])
def test_many_blocks_of_columns(layout):
    rng = np.random.default_rng(0)
    kinds = rng.integers(2, size=(7, 3000)).astype(float)
    codes = rng.integers(3000, size=40_000)
    Y = np.array(kinds[:, codes], order=layout)
    _, first, inverse = np.unique(Y, axis=1, return_index=True, return_inverse=True)
    assert first_equal(Y).tolist() == first[inverse.reshape(-1)].tolist()


def test_columns_of_one_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(grouping, "_hashed", lambda bits: np.zeros(bits.shape[1], np.uint64))
    Y = np.random.default_rng(1).integers(3, size=(2, 50)).astype(float)
    assert first_equal(Y).tolist() == first_equal_slowly(Y.T)


@settings(deadline=None)
@given(st.lists(st.text(alphabet="ab\u00e9\U0001f600", max_size=3), min_size=1, max_size=30))
def test_texts(texts):
    expected = [texts.index(text) for text in texts]
    assert first_equal_text(np.array(texts)).tolist() == expected


@settings(max_examples=200, deadline=None)  # the first call imports scipy
@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 6))
def test_units_agree_with_joining_one_by_one(seed, n, k):
    rng = np.random.default_rng(seed)
    Y = rng.integers(2, size=(rng.integers(1, 5), n)).astype(float)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    hashes = np.array(["", "x", "y", "z", "v", "w"])[rng.integers(6, size=n)]
    weights = rng.random(n) ** 3
    weights /= weights.sum()
    k = min(k, n)
    for given_hashes in (None, hashes):
        found = sample_units(Y, k, given_hashes, weights)
        assert found.tolist() == units_slowly(Y, k, given_hashes, weights)


def test_copies_that_weigh_just_half_a_draw_are_one_question():
    # 5 of 1,000 samples of weight 1/1000 against a limit of 0.5/100.
    Y = np.arange(1000.0)[np.newaxis].copy()
    Y[0, 10:15] = 10.0
    weights = np.full(1000, 1 / 1000)
    expected = weights[10:15].sum() <= 0.5 / 100
    assert (len(np.unique(sample_units(Y, 100, weights=weights))) == 996) is bool(expected)
