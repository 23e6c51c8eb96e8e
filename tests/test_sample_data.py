"""The committed sample data are what their README says and what their script makes."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "sample_data"
REFERENCES = sorted(FOLDER.glob("*.npz"))
HELD_OUT = sorted((FOLDER / "new").glob("*.npz"))


@pytest.fixture(scope="module")
def make():
    spec = importlib.util.spec_from_file_location("sample_data_make", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def read(path, key):
    with np.load(path, allow_pickle=False) as file:
        return file[key]


def test_there_are_a_hundred_references_and_a_held_out_dozen_under_3_megabytes():
    assert (len(REFERENCES), len(HELD_OUT)) == (100, 12)
    assert sum(path.stat().st_size for path in REFERENCES + HELD_OUT) < 3_000_000
    assert not {path.name for path in REFERENCES} & {path.name for path in HELD_OUT}


def test_files_are_those_of_the_script(make):
    recipes = make.recipes()
    assert sorted(r.path for r in recipes if not r.held_out) == REFERENCES
    assert sorted(r.path for r in recipes if r.held_out) == HELD_OUT


def test_every_file_holds_probabilities_of_the_same_labelled_samples(make):
    for path in REFERENCES + HELD_OUT:
        with np.load(path, allow_pickle=False) as file:
            assert set(file.files) == {"predictions", "labels", "sample_ids"}
        predictions = read(path, "predictions")
        assert np.array_equal(read(path, "labels"), make.load().labels)
        assert np.array_equal(read(path, "sample_ids"), make.load().ids)
        assert predictions.shape == (1198, 10)
        assert predictions.dtype == np.float16
        assert predictions.min() >= 0
        np.testing.assert_allclose(predictions.sum(axis=1, dtype=np.float64), 1, atol=2e-3)


def test_models_are_of_many_strengths(make):
    references = [make.accuracy(read(path, "predictions")) for path in REFERENCES]
    held_out = [make.accuracy(read(path, "predictions")) for path in HELD_OUT]
    assert [round(q, 2) for q in np.quantile(references, [0, 0.25, 0.75, 1])] == [
        0.11, 0.6, 0.85, 0.98,
    ]  # fmt: skip
    assert [round(min(held_out), 2), round(max(held_out), 2)] == [0.42, 0.98]


@pytest.mark.parametrize("name", ["naive-bayes-1", "knn-3", "tree-7", "logistic-4", "forest-1"])
def test_script_reproduces_a_file(make, name, tmp_path, monkeypatch):
    import sklearn

    if sklearn.__version__ != make.MADE_WITH:
        pytest.skip(f"the files were made with scikit-learn {make.MADE_WITH}")
    (recipe,) = [r for r in make.recipes() if r.name == name]
    committed = recipe.path.read_bytes()
    predictions = make.train_and_predict(recipe)
    assert make.largest_difference(recipe, predictions) == 0
    monkeypatch.setattr(make, "FOLDER", tmp_path)
    assert make.largest_difference(recipe, predictions) == np.inf
    make.write(recipe, predictions)
    if sys.version_info[:2] == (3, 11):  # another zlib may pack the same arrays in other bytes
        assert recipe.path.read_bytes() == committed


def test_training_samples_are_balanced(make):
    labels = make.load().train_labels
    order = make.balanced(labels, np.random.default_rng(0))
    assert sorted(order) == list(range(len(labels)))
    assert np.bincount(labels[order[:60]]).tolist() == [6] * 10


@pytest.mark.slow
def test_check_of_the_script_passes(make, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["make.py", "--check"])
    assert make.main() == 0
    assert "largest difference of a probability: 0," in capsys.readouterr().out
