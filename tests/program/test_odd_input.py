"""Input that is odd but possible: right where it can be, one clear error where it cannot."""

import hashlib
import io
import json
import shutil

import numpy as np
import pytest
from support import make_predictions, write_models

from disco_cli import build_db, predict, score, select
from disco_cli.errors import ArtifactError, InputError, UsageError
from disco_cli.report.score import summary

PROBABILITIES, LABELS = make_predictions()
CORRECT = (PROBABILITIES.argmax(axis=2) == LABELS).astype(float)
IDS = np.array([f"s{i:04d}" for i in range(60)])


def save(folder, rows, **common):
    """Write an NPZ per model; ``rows`` maps keys to arrays with a row per model."""
    folder.mkdir()
    paths = []
    for m in range(len(PROBABILITIES)):
        path = folder / f"m{m:02d}.npz"
        np.savez(path, **{key: array[m] for key, array in rows.items()}, **common)
        paths.append(path)
    return paths


def learn(paths, k=20):
    selection = select(paths, k=k).selection
    return build_db(paths, selection=selection).database


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """Predictions with the responses that a harness logged beside them, and no labels."""
    folder = tmp_path_factory.mktemp("logged") / "preds"
    paths = save(folder, {"predictions": PROBABILITIES, "responses": CORRECT}, sample_ids=IDS)
    return paths, learn(paths)


def test_labels_beside_responses_alone_change_nothing(tmp_path):
    with_labels = save(tmp_path / "a", {"responses": CORRECT}, sample_ids=IDS, labels=LABELS)
    without = save(tmp_path / "b", {"responses": CORRECT}, sample_ids=IDS)
    found = [
        predict(paths[:2], database=learn(paths)).predictions for paths in (with_labels, without)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("predictor", [None, "ridge"])
@pytest.mark.parametrize("scored", [0, 9])
def test_answers_that_nobody_scored(logged, tmp_path, predictor, scored):
    _, database = logged
    responses = np.full(60, np.nan)
    chosen = database.selection.draw.positions[:scored]
    responses[chosen] = CORRECT[3][chosen]
    extra = {} if scored == 0 else {"responses": responses}
    np.savez(tmp_path / "new.npz", predictions=PROBABILITIES[3], sample_ids=IDS, **extra)
    with pytest.raises(InputError, match="respon"):
        predict([tmp_path / "new.npz"], database=database, predictor=predictor)
    (row,) = predict([tmp_path / "new.npz"], database=database, predictor="rf").predictions
    assert row.estimate == pytest.approx(CORRECT[3].mean(), abs=0.1)


def test_answers_that_are_partly_scored_are_counted(logged, tmp_path):
    _, database = logged
    responses = CORRECT[3].copy()
    responses[database.selection.draw.positions[:4]] = np.nan
    np.savez(
        tmp_path / "new.npz", predictions=PROBABILITIES[3], responses=responses, sample_ids=IDS
    )
    (row,) = predict([tmp_path / "new.npz"], database=database).predictions
    assert "4 of 20 samples answered, not scored" in row.warnings


def test_every_estimate_lies_inside_its_interval(tmp_path):
    paths = write_models(tmp_path / "preds", PROBABILITIES, LABELS)
    database = learn(paths)
    np.savez(tmp_path / "best.npz", predictions=np.eye(4)[LABELS], sample_ids=IDS, labels=LABELS)
    for predictor in ("auto", "rf", "knn", "ridge", "anchored-ridge"):
        (row,) = predict(
            [tmp_path / "best.npz"], database=database, predictor=predictor
        ).predictions
        assert row.low <= row.estimate <= row.high <= 1, predictor


@pytest.mark.parametrize(
    ("rows", "common", "words"),
    [
        ({"predictions": PROBABILITIES}, {"labels": LABELS + np.inf}, ["labels[0]", "inf"]),
        ({"predictions": PROBABILITIES}, {"labels": LABELS + 1e300}, ["labels[0]"]),
        ({"predictions": PROBABILITIES}, {"labels": LABELS + np.uint64(2**63)}, ["labels[0]"]),
        ({"predictions": PROBABILITIES}, {"weights": np.full(60, 1e308)}, ["weights[0]"]),
        ({"predictions": PROBABILITIES}, {"sample_ids": np.array([f"\ud800{i}" for i in range(60)])},
         ["sample_ids[0]", "surrogate"]),
        ({"predicted_labels": CORRECT + np.inf}, {}, ["row 0", "inf"]),
        ({"predicted_labels": CORRECT + 1e300}, {}, ["row 0", "1e+300"]),
        ({"predicted_labels": CORRECT.astype(int) + 10**9}, {}, ["row 0", "1e+09"]),
        ({"predicted_labels": CORRECT.astype(np.uint64) + np.uint64(2**63)}, {}, ["row 0"]),
        ({"responses": CORRECT * 1e200}, {}, ["1e+200", "scale"]),
        ({"logits": PROBABILITIES.astype(float) * 2e308}, {"labels": LABELS}, ["infinite"]),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_worked_with(tmp_path, rows, common, words):
    with np.errstate(over="ignore"):
        paths = save(tmp_path / "preds", rows, **common)
    with pytest.raises(InputError) as caught:
        select(paths, k=10)
    assert all(word in str(caught.value) for word in words)


def test_negative_infinity_is_a_missing_label(tmp_path):
    answers = PROBABILITIES.argmax(axis=2).astype(float)
    paths = save(tmp_path / "preds", {"predicted_labels": answers}, labels=LABELS)
    answers[:, 0] = -np.inf
    again = save(tmp_path / "again", {"predicted_labels": answers}, labels=LABELS)
    assert select(again, k=10).selection.k == select(paths, k=10).selection.k


def test_scores_that_overflow(tmp_path):
    paths = write_models(tmp_path / "preds", PROBABILITIES, LABELS)
    truth = tmp_path / "truth.csv"
    truth.write_text("model,score\n" + "".join(f"{path.stem},1e300\n" for path in paths))
    with pytest.raises(InputError, match="row 1"):
        build_db(paths, selection=select(paths, k=10).selection, truth=truth)


@pytest.fixture
def saved(small_artifacts, tmp_path):
    """Return a function that changes a part of a database, or its manifest, and its hashes too."""
    paths = write_models(tmp_path / "preds", PROBABILITIES[:1], LABELS)

    def change(part, function):
        copy = tmp_path / "changed"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(small_artifacts / "db", copy)
        manifest = json.loads((copy / "manifest.json").read_text())
        if part == "manifest.json":
            function(manifest)
        else:
            with np.load(copy / part) as file:
                arrays = {name: file[name] for name in file.files}
            buffer = io.BytesIO()
            np.savez(buffer, **(function(arrays) or arrays))
            (copy / part).write_bytes(buffer.getvalue())
            manifest["parts"][part] = hashlib.sha256(buffer.getvalue()).hexdigest()
        (copy / "manifest.json").write_text(json.dumps(manifest))
        return lambda: predict(paths, database=copy)

    return change


def test_parts_that_do_not_fit_each_other(saved):
    for part, name in (
        ("references.npz", "fill"),
        ("references.npz", "scores"),
        ("references.npz", "labels"),
        ("pca.npz", "mean"),
        ("recipe.npz", "loadings"),
        ("recipe.npz", "groups"),
    ):
        run = saved(part, lambda arrays, name=name: arrays.update({name: arrays[name][:-1]}))
        with pytest.raises(ArtifactError, match=f"{part}: {name}"):
            run()
        run = saved(part, lambda arrays, name=name: arrays.pop(name) is None)
        with pytest.raises((ArtifactError, InputError)):
            run()


def test_values_of_the_wrong_type_in_a_manifest(saved):
    for key in ("benchmark", "n_samples", "n_classes", "n_models", "values", "parameters"):
        for value in ([], {}, -1, 10**30, 1.5, "x"):
            run = saved("manifest.json", lambda data, k=key, v=value: data.update({k: v}))
            with pytest.raises(ArtifactError):
                run()
    for value in ({}, ["x"], [{}], [{"mae": "x"}]):
        run = saved("manifest.json", lambda data, v=value: data.update({"errors": v}))
        with pytest.raises(ArtifactError):
            run()
    for key in ("predictor", "n_neighbours", "is_label_aware", "counts_no_answer"):
        for value in (None, [], -1, "x"):
            run = saved(
                "manifest.json", lambda data, k=key, v=value: data["parameters"].update({k: v})
            )
            with pytest.raises((ArtifactError, UsageError)):
                run()


def test_missing_answers_are_counted(tmp_path):
    P = PROBABILITIES.copy()
    P[0] = np.nan
    P[1, :3] = np.nan
    result = score(save(tmp_path / "a", {"predictions": P}, sample_ids=IDS))
    missing = len(IDS) + 3
    assert result.as_dict()["n_missing"] == missing
    share = missing / (len(P) * len(IDS))
    line = f"{missing} answers of models to samples are missing ({share:.2%})"
    assert line in summary(result)
    whole = score(save(tmp_path / "b", {"predictions": PROBABILITIES}, sample_ids=IDS))
    assert not any("missing" in line for line in summary(whole))
