"""Signatures: hand-computed, and the same bits wherever a model's outputs came from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from disco_cli.estimation.pca import fit_pca
from disco_cli.estimation.signature import (
    add_label_columns,
    fill_missing,
    flatten,
    mean_outputs,
    n_components,
    project,
)

NAN = np.nan


def random_outputs(seed, *, M=12, K=9, C=4, dtype=np.float64, missing=0.0):
    rng = np.random.default_rng(seed)
    outputs = rng.dirichlet(np.ones(C), size=(M, K)).astype(dtype)
    outputs[rng.random((M, K)) < missing] = NAN
    return outputs


def test_number_of_components():
    assert [n_components(M) for M in (1, 2, 5, 257, 258, 1000)] == [1, 1, 4, 256, 256, 256]


def test_flatten_keeps_a_sample_together():
    outputs = np.arange(12.0).reshape(2, 2, 3)
    assert flatten(outputs).tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]


def test_mean_leaves_out_what_is_missing():
    outputs = np.array(
        [
            [[0.25, 0.75], [NAN, NAN], [NAN, NAN]],
            [[0.75, 0.25], [0.5, 0.5], [NAN, NAN]],
            [[NAN, NAN], [1.0, 0.0], [NAN, NAN]],
        ]
    )
    assert mean_outputs(outputs).tolist() == [[0.5, 0.5], [0.75, 0.25], [0.0, 0.0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_missing_samples_take_the_mean_and_others_stay(dtype):
    outputs = np.array([[[0.25, 0.75], [NAN, NAN]]], dtype=dtype)
    before = outputs.copy()
    filled = fill_missing(outputs, np.array([[9.0, 9.0], [0.3, 0.7]]))
    assert filled.dtype == dtype
    assert filled.tolist() == np.array([[[0.25, 0.75], [0.3, 0.7]]], dtype=dtype).tolist()
    np.testing.assert_array_equal(outputs, before)


def test_label_columns_by_hand():
    probabilities = np.array([[[0.2, 0.8], [0.6, 0.4], [NAN, NAN], [0.5, 0.5]]], dtype=np.float32)
    outputs = add_label_columns(
        probabilities, np.array([1, 1, 0, -1]), np.array([[1.0, 0.0, NAN, NAN]])
    )
    assert outputs.dtype == np.float32
    expected = [
        [0.2, 0.8, 1.0, 0.8],
        [0.6, 0.4, 0.0, 0.4],
        [NAN, NAN, NAN, NAN],
        [0.5, 0.5, NAN, NAN],
    ]
    np.testing.assert_array_equal(outputs[0], np.array(expected, dtype=np.float32))


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 4)),
        elements=st.one_of(st.floats(0, 1), st.just(NAN)),
    )
)
def test_mean_agrees_with_numpy_and_filling_leaves_nothing_missing(outputs):
    fill = mean_outputs(outputs)
    has_any = ~np.isnan(outputs).all(axis=0)
    expected = np.array([np.nanmean(column) for column in outputs[:, has_any].T])
    np.testing.assert_allclose(fill[has_any], expected, rtol=1e-12)
    assert (fill[~has_any] == 0).all()
    filled = fill_missing(outputs, fill)
    is_there = ~np.isnan(outputs)
    assert not np.isnan(filled).any()
    assert np.array_equal(filled[is_there], outputs[is_there])


def test_projection_agrees_with_the_matrix_product():
    for D, K in ((3, 9), (40, 50)):
        signatures = flatten(random_outputs(0, M=30, K=K, C=D))
        pca = fit_pca(signatures, n_components(30))
        np.testing.assert_allclose(
            project(pca, signatures), pca.transform(signatures), rtol=0, atol=1e-13
        )


def test_projection_agrees_with_scikit_learn():
    from sklearn.decomposition import PCA

    signatures = flatten(random_outputs(0, M=30, K=20, C=5))
    pca = fit_pca(signatures, n_components(30))
    theirs = PCA(29, svd_solver="full").fit(signatures).transform(signatures)
    ours = project(pca, signatures)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_a_model_do_not_depend_on_company(dtype, monkeypatch):
    signatures = flatten(random_outputs(1, M=40, K=100, C=10, dtype=dtype))
    pca = fit_pca(signatures, n_components(40))
    together = project(pca, signatures)
    for row in range(40):
        assert np.array_equal(project(pca, signatures[row : row + 1])[0], together[row])
    odd = np.empty(signatures.nbytes + 8, np.uint8)[4:-4].view(signatures.dtype)
    odd = odd.reshape(signatures.shape)  # elsewhere in memory
    odd[:] = signatures
    assert np.array_equal(project(pca, odd), together)
    assert np.array_equal(project(pca, np.asfortranarray(signatures)), together)
    monkeypatch.setattr("disco_cli.estimation.signature._BLOCK_ELEMENTS", 1)
    assert np.array_equal(project(pca, signatures), together)


@pytest.mark.parametrize("has_labels", [False, True])
def test_full_file_selected_file_and_shuffled_file_give_the_same_bits(has_labels):
    """Whatever file the K rows are taken from, in the selection's order they are the same."""
    rng = np.random.default_rng(0)
    N, K = 200, 30
    benchmark = random_outputs(2, M=25, K=N, missing=0.05)
    labels = rng.integers(-1, 4, size=N)
    positions = np.sort(rng.choice(N, K, replace=False))

    def outputs_of(rows, at):
        """Take samples ``at`` of outputs whose rows are the samples ``rows``."""
        places = {int(sample): place for place, sample in enumerate(rows)}
        order = [places[int(sample)] for sample in at]
        chosen = benchmark[:, rows][:, order]
        if not has_labels:
            return chosen
        right = (chosen.argmax(axis=2) == labels[at]).astype(float)
        right[np.isnan(chosen[..., 0]) | (labels[at] < 0)] = NAN
        return add_label_columns(chosen, labels[at], right)

    references = outputs_of(np.arange(N), positions)[:-1]
    fill = mean_outputs(references)
    signatures = flatten(fill_missing(references, fill))
    pca = fit_pca(signatures, n_components(24))
    scores = [
        project(pca, flatten(fill_missing(outputs_of(rows, positions)[-1:], fill)))
        for rows in (np.arange(N), rng.permutation(N), positions, rng.permutation(positions))
    ]
    for other in scores[1:]:
        assert np.array_equal(other, scores[0])


def test_a_model_that_says_nothing_lies_at_the_centre():
    outputs = random_outputs(3)
    fill = mean_outputs(outputs)
    pca = fit_pca(flatten(outputs), n_components(12))
    silent = np.full((1, 9, 4), NAN)
    np.testing.assert_allclose(
        project(pca, flatten(fill_missing(silent, fill))), 0, rtol=0, atol=1e-12
    )


def test_what_no_reference_answered_cannot_matter():
    outputs = random_outputs(4)
    outputs[:, 3] = NAN
    fill = mean_outputs(outputs)
    pca = fit_pca(flatten(fill_missing(outputs, fill)), n_components(12))
    target = random_outputs(5, M=2)
    target[1] = target[0]
    target[1, 3] = [0.0, 0.0, 0.0, 1.0]
    one, other = project(pca, flatten(target))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_padding_of_ragged_choices_has_no_weight():
    outputs = random_outputs(6, C=3)
    padded = np.concatenate([outputs, np.zeros((12, 9, 2))], axis=2)
    ours, theirs = (project(fit_pca(flatten(o), 11), flatten(o)) for o in (outputs, padded))
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=0, atol=1e-12)
