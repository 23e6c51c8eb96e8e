"""The forms that arrays of a database are held against."""

import numpy as np
import pytest

from disco_cli.errors import ArtifactError
from disco_cli.estimation.layout import PCA, REFERENCES, Form, check_arrays

GOOD = {
    "mean": np.zeros(6),
    "components": np.zeros((2, 6)),
    "variance": np.ones(2),
    "total_variance": np.array(3.0),
}


def test_good_arrays_pass_and_tell_lengths():
    lengths = {"D": 6}
    check_arrays("pca.npz", GOOD, PCA, lengths)
    assert lengths == {"D": 6, "q": 2}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mean": None}, ["pca.npz", "mean", "missing"]),
        ({"mean": np.zeros(5)}, ["mean", "(5,)", "(6)"]),
        ({"components": np.zeros((3, 5))}, ["components", "(3, 5)"]),
        ({"components": np.zeros(6)}, ["components", "(6,)"]),
        ({"variance": np.array(["a", "b"])}, ["variance", "<U1"]),
        ({"variance": np.array([1.0, np.nan])}, ["variance", "NaN"]),
        ({"variance": np.array([1.0, 1e300])}, ["variance", "1e+300"]),
        ({"variance": np.array([1.0, np.inf], np.float32)}, ["variance", "inf"]),
        ({"total_variance": np.ones(1)}, ["total_variance", "(1,)"]),
    ],
)
def test_bad_arrays_are_named(changes, words):
    arrays = {name: array for name, array in (GOOD | changes).items() if array is not None}
    with pytest.raises(ArtifactError) as caught:
        check_arrays("pca.npz", arrays, PCA, {"D": 6})
    assert all(word in str(caught.value) for word in words)


def test_indices_stay_below_the_length_they_index():
    form = {"labels": Form(("K",), "i", -1, below="C")}
    check_arrays("x", {"labels": np.array([-1, 2])}, form, {"C": 3})
    with pytest.raises(ArtifactError, match="3"):
        check_arrays("x", {"labels": np.array([0, 3])}, form, {"C": 3})


def test_optional_arrays_may_be_absent():
    assert REFERENCES["labels"].is_optional
    assert not REFERENCES["scores"].is_optional
