"""Item health through ``disco score``: columns, summary, JSON, every kind of file."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from support import make_predictions, run_disco, write_models


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Predictions with a wrong label, a copy, and samples that nobody and everybody solves."""
    P, labels = make_predictions(n_models=24, n=60)
    labels = labels.copy()
    easiest = int(np.argmin([np.ptp(P[:, i, labels[i]]) for i in range(60)]))
    P[:, 30], labels[30] = P[:, 10], labels[10]
    P[:, 40] = np.eye(4, dtype=np.float32)[labels[40]]
    P[:, 41] = np.eye(4, dtype=np.float32)[(labels[41] + 1) % 4]
    graded = np.array([np.std(P[:, i].argmax(axis=1) == labels[i]) for i in range(60)])
    wrong = int(np.argmax(np.where(np.isin(np.arange(60), [10, 30, easiest]), 0, graded)))
    answers, counts = np.unique(
        np.where(P[:, wrong].argmax(axis=1) == labels[wrong], -1, P[:, wrong].argmax(axis=1)),
        return_counts=True,
    )
    labels[wrong] = answers[1:][np.argmax(counts[1:])]
    folder = tmp_path_factory.mktemp("odd")
    return write_models(folder, P, labels), f"s{wrong:04d}"


def test_columns_and_summary(odd, tmp_path):
    paths, wrong = odd
    done = run_disco("score", *paths, "-d", tmp_path)
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    rows = {row["sample_id"]: row for row in table}
    assert rows["s0040"]["health"] == "solved"
    assert rows["s0041"]["health"] == "unsolved"
    assert rows["s0040"]["item_rest"] is None
    assert rows["s0030"]["duplicate_of"] == "s0010"
    assert rows["s0010"]["duplicate_of"] is None
    assert "duplicate" in rows["s0030"]["health"]
    assert rows[wrong]["item_rest"] < 0
    assert "negative" in rows[wrong]["health"]
    assert "solved by nobody 1, by everybody" in done.stderr
    assert f"check their labels, first {wrong}" in done.stderr


def test_json(odd, tmp_path):
    paths, wrong = odd
    done = run_disco("score", *paths, "-d", tmp_path, "--json", "--quiet")
    health = json.loads(done.stdout)["health"]
    assert health["n_unsolved"] == 1
    assert health["n_duplicate"] == 1
    assert health["most_suspicious"][0] == wrong


@pytest.mark.parametrize("kind", ["predicted_labels", "responses", "logits"])
def test_other_kinds_of_files_have_the_same_health(odd, tmp_path, kind):
    paths, _ = odd
    others = []
    for path in paths:
        with np.load(path) as file:
            data = dict(file)
        P = data.pop("predictions")
        right = (P.argmax(axis=1) == data["labels"]).astype(float)
        values = {
            "predicted_labels": P.argmax(axis=1),
            "responses": right,
            "logits": np.log(np.maximum(P, 1e-9)) + 3,
        }
        others.append(tmp_path / path.name)
        np.savez(others[-1], **data, **{kind: values[kind]})
    tables = []
    for number, files in enumerate((paths, others)):
        target = tmp_path / f"{number}.parquet"
        assert run_disco("score", *files, "-o", target).returncode == 0
        tables.append(pq.read_table(target).to_pylist())
    for one, other in zip(*tables, strict=True):
        assert (one["item_rest"] is None) == (other["item_rest"] is None)
        if one["item_rest"] is not None:
            assert one["item_rest"] == pytest.approx(other["item_rest"], abs=1e-5)


def test_without_truth_there_is_no_health(tmp_path):
    P, _ = make_predictions(n_models=6, n=20)
    paths = []
    for m, values in enumerate(P):
        paths.append(tmp_path / f"{m}.npz")
        np.savez(paths[-1], predictions=values)
    done = run_disco("score", *paths, "-d", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["health"] is None
    assert "health" not in pq.read_schema(tmp_path / "scores.parquet").names


def test_content_hashes_mark_copies(tmp_path):
    P, labels = make_predictions(n_models=6, n=20)
    hashes = np.array([f"h{i}" for i in range(20)])
    hashes[15] = "h3"
    paths = write_models(tmp_path / "in", P, labels, sample_hashes=hashes)
    run_disco("score", *paths, "-d", tmp_path)
    table = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    assert [row["sample_id"] for row in table if row["duplicate_of"]] == ["s0015"]


def test_select_takes_scores_with_health(odd, tmp_path):
    paths, _ = odd
    run_disco("score", *paths, "-d", tmp_path)
    scores = tmp_path / "scores.parquet"
    done = run_disco("select", "--k", "5", "-d", tmp_path, "--scores", scores)
    assert done.returncode == 0, done.stderr
    assert len(json.loads((tmp_path / "selection.json").read_text())["sample_ids"]) == 5
