"""The forest's walk against scikit-learn's, its file against damage, its bytes against chance."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.errors import ArtifactError, InputError
from disco_cli.estimation.forest import fit_forest, predict_forest, read_forest, save_forest

GOLD = sorted((Path(__file__).parent / "gold").glob("*.pkl"))


def make_data(seed, n_models=12, n_features=4):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_models, n_features))
    return Z, Z[:, 0] + rng.normal(scale=0.1, size=n_models)


def make_regressor(seed=0, n_estimators=3, **size):
    # Three trees leave some reference without an out-of-bag prediction, which is fine here.
    return fit_forest(*make_data(seed, **size), seed, n_estimators).regressor


def pickle_changed(regressor, change, protocol=4):
    """Pickle a forest after ``change(nodes, values)`` of its first tree."""
    first = regressor.estimators_[0].tree_

    class Pickler(pickle.Pickler):
        def reducer_override(self, obj):
            if obj is not first:
                return NotImplemented
            cls, arguments, state = obj.__reduce__()
            nodes, values = state["nodes"].copy(), state["values"].copy()
            nodes, values = change(nodes, values) or (nodes, values)
            return cls, arguments, {**state, "nodes": nodes, "values": values}

    content = io.BytesIO()
    Pickler(content, protocol).dump(regressor)
    return content.getvalue()


# --- agreement with scikit-learn -----------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_models=st.integers(2, 40),
    n_features=st.integers(1, 6),
    options=st.fixed_dictionaries(
        {
            "n_estimators": st.integers(1, 8),
            "max_depth": st.none() | st.integers(1, 5),
            "min_samples_leaf": st.integers(1, 4),
            "bootstrap": st.booleans(),
            "criterion": st.sampled_from(["squared_error", "absolute_error"]),
        }
    ),
    scale=st.sampled_from([1e-30, 1e-3, 1.0, 1e6, 1e30]),
    is_coarse=st.booleans(),
    protocol=st.sampled_from([3, 4, 5]),
)
def test_predictions_are_those_of_scikit_learn(
    *, seed, n_models, n_features, options, scale, is_coarse, protocol
):
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_models, n_features))
    Z = (np.round(Z) if is_coarse else Z) * scale
    regressor = RandomForestRegressor(random_state=seed, **options).fit(Z, rng.random(n_models))
    thresholds = np.concatenate([tree.tree_.threshold for tree in regressor.estimators_])
    X = np.concatenate(
        [Z, rng.normal(size=(20, n_features)) * scale, rng.choice(thresholds, (20, n_features))]
    )
    for data in (save_forest(regressor), pickle.dumps(regressor, protocol)):
        forest = read_forest(data)
        assert forest.n_trees == options["n_estimators"]
        assert forest.depth == max(tree.get_depth() for tree in regressor.estimators_)
        np.testing.assert_allclose(
            predict_forest(forest, X), regressor.predict(X), rtol=1e-14, atol=0
        )


def test_hand_computed_stump():
    from sklearn.ensemble import RandomForestRegressor

    Z, y = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0.25, 0.25, 0.75, 0.75])
    forest = read_forest(
        save_forest(RandomForestRegressor(1, bootstrap=False, random_state=0).fit(Z, y))
    )
    assert forest.children.tolist() == [1, 2, 1, 1, 2, 2]
    assert forest.features.tolist() == [0, 0, 0]
    assert forest.thresholds[0] == 2.5
    at_threshold, just_above = np.float32(2.5), np.nextafter(np.float32(2.5), np.float32(3))
    assert predict_forest(forest, [[at_threshold], [just_above]]).tolist() == [0.25, 0.75]
    # Less than half a step of float32 above: scikit-learn takes it for 2.5, and so must the walk.
    assert predict_forest(forest, [[2.5 + 1e-9]]).tolist() == [0.25]


def test_a_row_does_not_depend_on_the_others():
    forest = read_forest(save_forest(make_regressor(n_estimators=50, n_models=40)))
    X = np.random.default_rng(1).normal(size=(2500, 4))
    together = predict_forest(forest, X)
    for width in (1, 2, 1023, 1024, 1025):
        alone = np.concatenate(
            [predict_forest(forest, X[i : i + width]) for i in range(0, 2500, width)]
        )
        assert np.array_equal(alone, together)
    assert predict_forest(forest, X[:0]).shape == (0,)


def test_rows_that_do_not_fit_are_refused():
    forest = read_forest(save_forest(make_regressor()))
    for rows in (np.zeros((1, 3)), np.zeros(4), np.zeros((1, 5)), np.zeros((1, 4, 1))):
        with pytest.raises(ArtifactError, match="fitted on 4 features"):
            predict_forest(forest, rows)
    for bad in (np.nan, np.inf, -np.inf, 1e300):
        rows = np.zeros((3, 4))
        rows[1, 2] = bad
        with pytest.raises(InputError, match="row 1 has a feature"):
            predict_forest(forest, rows)


# --- fitting and saving --------------------------------------------------------------------------


def test_out_of_bag_predictions_come_from_trees_that_did_not_see_the_model():
    Z, y = make_data(3, n_models=20)
    fitted = fit_forest(Z, y, 7, n_estimators=60)
    if not hasattr(fitted.regressor, "estimators_samples_"):
        pytest.skip("this scikit-learn does not tell bootstrap samples")
    by_hand = [
        np.mean(
            [
                tree.predict(Z[i : i + 1])[0]
                for tree, drawn in zip(
                    fitted.regressor.estimators_, fitted.regressor.estimators_samples_, strict=True
                )
                if i not in drawn
            ]
        )
        for i in range(20)
    ]
    np.testing.assert_allclose(fitted.out_of_bag, by_hand, rtol=1e-12)


def test_models_that_every_tree_saw_have_no_out_of_bag_prediction():
    fitted = fit_forest(*make_data(0, n_models=20), 0, n_estimators=1)
    tree = fitted.regressor.estimators_[0]
    is_seen = np.isnan(fitted.out_of_bag)
    assert 8 <= is_seen.sum() <= 18  # 20 draws with replacement
    assert is_seen.sum() == tree.tree_.n_node_samples[0]
    unseen = make_data(0, n_models=20)[0][~is_seen]
    assert np.array_equal(fitted.out_of_bag[~is_seen], tree.predict(unseen))


def test_other_warnings_pass_through(monkeypatch):
    from sklearn.ensemble import RandomForestRegressor

    fit = RandomForestRegressor.fit

    def warn_and_fit(self, *arguments):
        warnings.warn("something else", UserWarning, stacklevel=2)
        return fit(self, *arguments)

    monkeypatch.setattr(RandomForestRegressor, "fit", warn_and_fit)
    with pytest.warns(UserWarning, match="something else"):
        make_regressor(n_estimators=50)


def test_threads_leave_no_trace():
    Z, y = make_data(5, n_models=30)
    one, two = fit_forest(Z, y, 1, 20), fit_forest(Z, y, 1, 20, n_jobs=2)
    assert save_forest(one.regressor) == save_forest(two.regressor)
    assert np.array_equal(one.out_of_bag, two.out_of_bag)
    assert save_forest(fit_forest(Z, y, 2, 20).regressor) != save_forest(one.regressor)


def test_bytes_are_the_same_in_every_process():
    script = (
        "import sys, numpy as np; rng = np.random.default_rng(0); Z = rng.normal(size=(30, 5))\n"
        "junk = [rng.random(int(sys.argv[1]) * 1000) for _ in range(50)]; del junk\n"
        "from disco_cli.estimation.forest import fit_forest, save_forest\n"
        "sys.stdout.buffer.write(save_forest(fit_forest(Z, Z[:, 0], 0, 30).regressor))"
    )
    hashes = {
        hashlib.sha256(
            subprocess.run(
                [sys.executable, "-c", script, seed],
                check=True,
                capture_output=True,
                env={**os.environ, "PYTHONHASHSEED": seed},
            ).stdout
        ).hexdigest()
        for seed in ("1", "2")
    }
    assert len(hashes) == 1


def test_leftovers_of_memory_are_not_written():
    regressor = make_regressor()
    clean = save_forest(regressor)

    def dirty(nodes, values):
        raw = nodes.view(np.uint8).reshape(len(nodes), -1)
        if nodes.dtype.itemsize > 57:
            raw[:, 57:] = 0xAB
        nodes["missing_go_to_left"][nodes["left_child"] == -1] = 1

    assert b"\xab" * 7 not in clean
    soiled = pickle.loads(pickle_changed(regressor, dirty))
    assert save_forest(soiled) == save_forest(pickle.loads(clean))


def test_file_is_an_ordinary_pickle_of_scikit_learn():
    regressor = make_regressor()
    again = pickle.loads(save_forest(regressor))
    X = np.random.default_rng(0).normal(size=(9, 4))
    assert type(again) is type(regressor)
    assert np.array_equal(again.predict(X), regressor.predict(X))


def test_reading_and_predicting_import_no_scikit_learn(tmp_path):
    path = tmp_path / "rf.pkl"
    path.write_bytes(save_forest(make_regressor()))
    script = (
        "import sys; from pathlib import Path\n"
        "from disco_cli.estimation.forest import read_forest, predict_forest\n"
        f"print(predict_forest(read_forest(Path({str(path)!r}).read_bytes()), [[0, 0, 0, 0]])[0])\n"
        "print([m for m in ('sklearn', 'scipy', 'joblib', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[1] == "[]"


# --- old files and damaged ones ------------------------------------------------------------------


@pytest.mark.parametrize("path", GOLD, ids=[path.stem for path in GOLD])
def test_files_of_other_versions_are_read(path):
    truth = json.loads(path.with_suffix(".json").read_text())
    forest = read_forest(path.read_bytes(), path.name)
    np.testing.assert_allclose(
        predict_forest(forest, truth["X"]), truth["predictions"], rtol=1e-14, atol=0
    )


def test_there_are_files_of_other_versions():
    versions = {path.stem.split("-")[1] for path in GOLD}
    assert {"1.3.2", "1.9.1"} <= versions


def set_field(name, row, value):
    def change(nodes, values):
        nodes[name][row] = value

    return change


def swap_to_cycle(nodes, values):
    inner = np.flatnonzero(nodes["left_child"] != -1)[1]
    nodes["left_child"][inner] = 0


def share_a_child(nodes, values):
    nodes["right_child"][0] = nodes["left_child"][0]


def make_leaf_of_root(nodes, values):
    nodes["left_child"][0] = nodes["right_child"][0] = -1
    nodes["feature"][0] = -2


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (set_field("left_child", 0, 0), "out of range or not behind it"),
        (set_field("left_child", 0, 10**6), "out of range or not behind it"),
        (set_field("right_child", 0, -5), "out of range or not behind it"),
        (set_field("right_child", 0, 2**62), "out of range or not behind it"),
        (set_field("right_child", 0, -(2**63)), "out of range or not behind it"),
        (set_field("left_child", 0, -1), "a leaf with a child or a feature"),
        (swap_to_cycle, "out of range or not behind it"),
        (share_a_child, "not the child of exactly one other"),
        (make_leaf_of_root, "not the child of exactly one other"),
        (set_field("feature", 0, 4), "feature out of range"),
        (set_field("feature", 0, -2), "feature out of range"),
        (set_field("feature", 0, 2**40), "feature out of range"),
        (set_field("feature", -1, 0), "a leaf with a child or a feature"),
        (set_field("threshold", 0, np.nan), "not a finite number"),
        (set_field("threshold", 0, np.inf), "not a finite number"),
        (lambda nodes, values: (nodes, values * np.nan), "not a finite number"),
        (lambda nodes, values: (nodes, values[:-1]), "without one value in each node"),
        (lambda nodes, values: (nodes, values[:, 0]), "without one value in each node"),
        (lambda nodes, values: (nodes, values.astype(np.int64)), "without one value"),
        (lambda nodes, values: (nodes, np.repeat(values, 2, axis=2)), "without one value"),
        (lambda nodes, values: (nodes[:0], values[:0]), "a tree without nodes"),
        (lambda nodes, values: (nodes.reshape(1, -1), values), "a tree without nodes"),
        (lambda nodes, values: (nodes["feature"].copy(), values), "a tree without nodes"),
        (lambda *_: ([1], np.zeros((1, 1, 1))), "lacks an array"),
        (lambda *_: (None, None), "lacks an array"),
    ],
)
@pytest.mark.parametrize("protocol", [4, 5])
def test_nodes_that_are_no_tree_are_refused(change, complaint, protocol):
    data = pickle_changed(make_regressor(), change, protocol)
    with pytest.raises(ArtifactError, match=f"db/rf.pkl: .*{complaint}"):
        read_forest(data, "db/rf.pkl")


@pytest.mark.parametrize(
    ("field", "dtype", "complaint"),
    [
        ("categories", "<u8", "field 'categories', which is not known here"),
        ("threshold", "<f4", "another type"),
        ("left_child", "<u8", "another type"),
    ],
)
def test_nodes_of_unknown_layout_are_refused(field, dtype, complaint):
    def change(nodes, values):
        layout = {name: nodes.dtype[name].str for name in nodes.dtype.names} | {field: dtype}
        other = np.zeros(len(nodes), list(layout.items()))
        for name in nodes.dtype.names:
            other[name] = np.abs(nodes[name])
        return other, values

    with pytest.raises(ArtifactError, match=complaint):
        read_forest(pickle_changed(make_regressor(), change))


def test_forests_that_are_not_ours_are_refused():
    from sklearn.tree import DecisionTreeRegressor

    Z, y = make_data(0)
    regressor = make_regressor()
    tree = regressor.estimators_[0]
    several = fit_forest(Z, np.stack([y, y], axis=1), 0).regressor
    cases = {
        "not a RandomForestRegressor": [DecisionTreeRegressor().fit(Z, y), {"a": 1}, 3, None],
        "several targets": [several],
    }
    for complaint, objects in cases.items():
        for other in objects:
            with pytest.raises(ArtifactError, match=complaint):
                read_forest(pickle.dumps(other, 4))
    changes = {
        "without trees": {"estimators_": []},
        "no regression tree": {"estimators_": [tree, tree.tree_]},
        "its number of features": {"n_features_in_": True},
        "another number of features": {"n_features_in_": 5},
        "more nodes than the file has bytes for": {"estimators_": [tree] * 1000},
    }
    for complaint, change in changes.items():
        other = make_regressor()
        other.__dict__.update(change)
        with pytest.raises(ArtifactError, match=complaint):
            read_forest(pickle.dumps(other, 4))
    unfitted = type(regressor)()
    with pytest.raises(ArtifactError, match="without trees"):
        read_forest(pickle.dumps(unfitted, 4))


def test_very_deep_tree_is_refused_in_time():
    def chain(nodes, values):
        n = 30_001
        deep = np.zeros(n, nodes.dtype)
        inner = np.arange(n // 2) * 2
        deep["left_child"] = deep["right_child"] = -1
        deep["feature"] = deep["threshold"] = -2
        deep["left_child"][inner], deep["right_child"][inner] = inner + 1, inner + 2
        deep["feature"][inner] = 0
        return deep, np.zeros((n, 1, 1))

    with pytest.raises(ArtifactError, match="deeper than 10,000"):
        read_forest(pickle_changed(make_regressor(), chain))


def accept_or_refuse(data):
    """Read damaged bytes; whatever is read can be used."""
    try:
        forest = read_forest(data)
    except ArtifactError:
        return False
    assert np.isfinite(predict_forest(forest, np.zeros((2, forest.n_features)))).all()
    return True


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_flipping_any_one_bit_is_harmless(protocol):
    data = pickle.dumps(make_regressor(n_models=6, n_features=2), protocol)
    rng = np.random.default_rng(protocol)
    n_accepted = 0
    for position, bit in enumerate(rng.integers(8, size=len(data))):
        damaged = bytearray(data)
        damaged[position] ^= 1 << int(bit)
        n_accepted += accept_or_refuse(bytes(damaged))
    assert 0 < n_accepted < len(data)


@pytest.mark.parametrize("seed", range(3))
def test_random_damage_is_harmless(seed):
    rng = np.random.default_rng(seed)
    data = pickle.dumps(make_regressor(n_models=6, n_features=2), int(rng.integers(3, 6)))
    for _ in range(700):
        damaged = bytearray(data)
        for _ in range(int(rng.integers(1, 6))):
            start, length = int(rng.integers(len(damaged))), int(rng.integers(1, 12))
            kind = rng.integers(4)
            if kind == 0:
                damaged[start : start + length] = rng.bytes(length)
            elif kind == 1:
                del damaged[start : start + length]
            elif kind == 2:
                damaged[start:start] = damaged[int(rng.integers(len(damaged))) :][:length]
            else:
                damaged[start] = int(rng.choice(list(b"(.0)]}tabehjqrsucRN\x81\x85\x86\x87\x93")))
        accept_or_refuse(bytes(damaged))


def test_truncation_anywhere_is_refused():
    data = save_forest(make_regressor(n_models=6, n_features=2))
    for length in range(0, len(data), 7):
        assert not accept_or_refuse(data[:length])
