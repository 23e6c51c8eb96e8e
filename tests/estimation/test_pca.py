"""PCA through inner products: known cases, laws, and agreement with the full decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.estimation import pca as module
from disco_cli.estimation.pca import fit_pca


def test_points_on_a_line() -> None:
    pca = fit_pca(np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]), 5)
    assert pca.mean.tolist() == [3.0, 4.0]
    np.testing.assert_allclose(pca.components, [[0.6, 0.8]], rtol=1e-14)
    np.testing.assert_allclose(pca.variance, [25.0])
    assert pca.total_variance == pytest.approx(25.0)
    np.testing.assert_allclose(pca.transform(np.array([[6.0, 8.0]])), [[5.0]])


def test_equal_rows_have_no_components() -> None:
    pca = fit_pca(np.full((4, 7), 0.25), 3)
    assert pca.components.shape == (0, 7)
    assert pca.transform(np.zeros((2, 7))).shape == (2, 0)


@pytest.mark.parametrize(("M", "D"), [(12, 300), (12, 12), (300, 12), (2, 5)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_agrees_with_the_full_decomposition(M: int, D: int, dtype: type) -> None:
    X = np.random.default_rng(1).random((M, D)).astype(dtype)
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    U, s, _ = np.linalg.svd(centred, full_matrices=False)
    expected = (U * s)[:, : min(M - 1, D)]
    pca = fit_pca(X, 1000)
    scores = pca.transform(X)
    assert scores.shape == expected.shape
    np.testing.assert_allclose(np.abs(scores), np.abs(expected), atol=1e-7 * s[0])
    np.testing.assert_allclose(pca.variance, (s**2)[: len(pca.variance)] / (M - 1), rtol=1e-7)
    assert pca.total_variance == pytest.approx((s**2).sum() / (M - 1))


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 12), st.integers(1, 40), st.integers(1, 15), st.integers(0, 2**32 - 1))
def test_components_are_orthonormal_and_signed(M: int, D: int, q: int, seed: int) -> None:
    X = np.random.default_rng(seed).random((M, D))
    pca = fit_pca(X, q)
    assert len(pca.components) == min(q, M - 1, D)
    np.testing.assert_allclose(
        pca.components @ pca.components.T, np.eye(len(pca.components)), atol=1e-8
    )
    for row in pca.components:
        assert row[np.abs(row).argmax()] > 0


def test_blocks_change_nothing_but_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(2).random((9, 500))
    whole = fit_pca(X, 8)
    monkeypatch.setattr(module, "_BLOCK_ELEMENTS", 9 * 37)
    cut = fit_pca(X, 8)
    np.testing.assert_allclose(cut.components, whole.components, atol=1e-10)
    np.testing.assert_allclose(cut.transform(X), whole.transform(X), atol=1e-10)
    assert fit_pca(X, 8).components.tobytes() == cut.components.tobytes()


def test_the_signs_do_not_depend_on_the_order_of_models() -> None:
    X = np.random.default_rng(3).random((10, 200))
    order = np.random.default_rng(4).permutation(10)
    np.testing.assert_allclose(
        fit_pca(X[order], 5).transform(X), fit_pca(X, 5).transform(X), atol=1e-10
    )


def test_the_first_of_the_largest_entries_is_positive() -> None:
    rows = np.array([[-3.0, 3.0, 1.0], [3.0, -3.0, 1.0], [1.0, -2.0, 0.0], [0.0, 0.0, 0.0]])
    module._fix_signs(rows)
    expected = [[3.0, -3.0, -1.0], [3.0, -3.0, 1.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    assert rows.tolist() == expected
