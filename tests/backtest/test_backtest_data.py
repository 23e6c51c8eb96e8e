"""Loading prediction files for a backtest."""

from __future__ import annotations

import numpy as np
import pytest

from disco_cli.backtest import data as data_module
from disco_cli.backtest.data import FileSource
from disco_cli.errors import InputError, UsageError
from disco_cli.estimation.truth import Average


def write(folder, name, **arrays):
    path = folder / f"{name}.npz"
    np.savez(path, **arrays)
    return str(path)


@pytest.fixture
def predictions(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=20)
    return tuple(
        write(
            tmp_path,
            f"m{m}",
            predictions=rng.dirichlet(np.ones(3), size=20),
            labels=labels,
            groups=np.array(["a", "b"] * 10),
        )
        for m in range(5)
    )


def test_predictions_are_loaded_with_truth_and_probabilities(predictions):
    data = FileSource(predictions)()
    assert data.names == ("m0", "m1", "m2", "m3", "m4")
    stored = np.load(predictions[2])
    right = stored["predictions"].argmax(axis=1) == stored["labels"]
    np.testing.assert_array_equal(data.responses[2], right)
    assert data.truth[2] == pytest.approx(right.mean())
    np.testing.assert_allclose(
        data.probabilities(2, np.array([3, 7])), stored["predictions"][[3, 7]], rtol=1e-6
    )
    assert data.n_classes == 3
    assert data.groups.tolist() == [0, 1] * 10


def test_probabilities_that_do_not_fit_in_memory_are_read_on_demand(predictions, monkeypatch):
    kept = FileSource(predictions)()
    monkeypatch.setattr(data_module, "MATERIALISE_BYTES", 0)
    lazy = FileSource(predictions)()
    np.testing.assert_allclose(
        lazy.probabilities(1, slice(2, 5)), kept.probabilities(1, slice(2, 5)), rtol=1e-6
    )


def test_responses_have_no_probabilities(tmp_path):
    y = np.random.default_rng(0).random((4, 10))
    data = FileSource((write(tmp_path, "all", responses=y, model_names=np.array(list("abcd"))),))()
    assert data.probabilities is None
    np.testing.assert_allclose(data.truth, y.mean(axis=1))


def test_models_without_a_known_full_score_are_left_out_and_told(tmp_path):
    y = np.random.default_rng(0).random((4, 100))
    y[1, :6] = np.nan
    y[2, :5] = np.nan
    data = FileSource((write(tmp_path, "all", responses=y, model_names=np.array(list("abcd"))),))()
    assert data.names == ("a", "c", "d")
    assert "1 of 4 models left out of the backtest" in data.notes[-1]
    assert data.truth[1] == pytest.approx(np.nanmean(y[2]))


def test_macro_average_weighs_groups_equally(tmp_path):
    y = np.array([[1.0, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]])
    path = write(tmp_path, "all", responses=y, groups=np.array(["a", "a", "a", "b"]))
    assert FileSource((path,), average=Average.MACRO)().truth.tolist() == pytest.approx(
        [0.5, 0.5, 1 / 6]
    )


def test_files_without_labels_are_refused(tmp_path):
    path = write(tmp_path, "m", predictions=np.full((4, 2), 0.5))
    with pytest.raises(InputError, match="neither labels nor responses"):
        FileSource((path,))()
    with pytest.raises(UsageError, match="no prediction files given"):
        FileSource(())()


def test_fingerprint_sees_every_value(predictions, tmp_path):
    data = FileSource(predictions)()
    assert data.fingerprint == FileSource(predictions[::-1])().fingerprint
    arrays = dict(np.load(predictions[0]))
    arrays["predictions"][0] = arrays["predictions"][0][::-1]
    write(tmp_path, "m0", **arrays)
    assert data.fingerprint != FileSource(predictions)().fingerprint
