"""The program from prediction files to estimates, as a person runs it."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from support import ROOT, SAMPLE_DATA, make_predictions, run_disco, write_models


@pytest.fixture
def built(disco, small_artifacts, tmp_path):
    """The program, after select and build-db on the small benchmark."""
    shutil.copytree(small_artifacts, tmp_path / "disco-run")
    return disco


def test_score_writes_its_artifact_and_prints_the_path(disco, small, tmp_path):
    done = disco("score", *small)
    assert (done.returncode, done.stdout) == (0, "disco-run/scores.parquet\n")
    assert "12 models, 60 samples" in done.stderr
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "disco-run/scores.parquet")
    assert table.column_names[:5] == ["sample_id", "pds", "jsd", "confidence", "n_models"]
    assert table.num_rows == 60


def test_score_to_stdout_is_tab_separated(disco, small, tmp_path):
    done = disco("score", *small, "-o", "-", "--quiet")
    lines = done.stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["sample_id", "pds", "jsd"]
    assert len(lines) == 61
    assert done.stderr == ""
    assert not (tmp_path / "disco-run").exists()


def test_select_reuses_scores(disco, small):
    disco("score", *small)
    by_scores = disco(
        "select", "--k", "7", "--method", "pds", "--scores", "disco-run/scores.parquet", "-o", "-"
    )
    by_files = disco("select", "--k", "7", "--method", "pds", *small, "-o", "-")
    assert by_scores.stdout == by_files.stdout != ""


@pytest.mark.parametrize("method", ["pds", "jsd", "random"])
def test_select_says_how_far_the_subset_is_from_the_whole(disco, small, method):
    done = disco("select", "--k", "20", "--method", method, "--json", *small)
    result = json.loads(done.stdout)
    assert result["k"] == len(result["sample_ids"]) == 20
    assert result["biased"] is (method != "random")
    assert ("biased by design" in done.stderr) is (method != "random")
    probabilities, labels = make_predictions()
    right = probabilities.argmax(axis=2) == labels
    assert result["full_score"] == pytest.approx(right.mean())
    assert result["subset_score"] == pytest.approx(right[:, result["positions"]].mean())


def test_stratify_takes_equal_shares(disco, tmp_path):
    groups = np.array(["a"] * 40 + ["b"] * 20)
    paths = write_models(tmp_path / "p", *make_predictions(), groups=groups)
    for options in (["--stratify", "--recipe", "disco"], ["--method", "stratified-random"]):
        done = disco("select", "--k", "11", *options, "--json", *paths)
        positions = json.loads(done.stdout)["positions"]
        assert sum(p < 40 for p in positions) == 6


def test_the_whole_pipeline(built, small, tmp_path):
    probabilities, labels = make_predictions(n_models=3)
    new = write_models(tmp_path / "new", probabilities, labels, prefix="new")
    done = built("predict", *new, "--json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["model"] for row in rows] == ["new-00", "new-01", "new-02"]
    assert {"model", "estimate", "low", "high", "level", "status", "predictor", "n_used"} <= set(
        rows[0]
    )
    assert {"n_missing", "subset_mean", "nearest", "distance", "warnings"} <= set(rows[0])
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in rows)


def test_predict_prints_tab_separated_values_in_a_pipe(built, small):
    done = built("predict", small[0])
    header, row = done.stdout.splitlines()
    assert header.split("\t")[:4] == ["model", "estimate", "low", "high"]
    assert row.split("\t")[0] == "model-00"


def test_shuffled_files_give_the_same_selection_and_estimates(built, small, tmp_path):
    selection = (tmp_path / "disco-run/selection.json").read_bytes()
    before = built("predict", *small, "--json").stdout
    rng = np.random.default_rng(1)
    for path in small:
        with np.load(path) as file:
            order = rng.permutation(60)
            arrays = {name: file[name][order] for name in file.files}
        np.savez(path, **arrays)
    built("select", "--k", "20", *reversed(small))
    assert (tmp_path / "disco-run/selection.json").read_bytes() == selection
    built("build-db", *small[5:], *small[:5])
    assert built("predict", *small, "--json").stdout == before


@pytest.mark.parametrize("predictor", ["auto", "rf", "knn", "blend"])
def test_the_selected_samples_alone_give_the_same_estimate_to_the_last_bit(
    sample_database, tmp_path, predictor
):
    path = sorted((SAMPLE_DATA / "new").glob("*.npz"))[0]
    chosen = json.loads((sample_database / "selection.json").read_text())["sample_ids"]
    with np.load(path) as file:
        rows = np.flatnonzero(np.isin(file["sample_ids"], chosen))
        rows = np.random.default_rng(0).permutation(rows)
        arrays = {name: file[name][rows] for name in file.files}
    (tmp_path / "subset").mkdir()
    np.savez_compressed(tmp_path / "subset" / path.name, **arrays)
    at = ["--dir", sample_database, "--json", "--predictor", predictor]
    full = run_disco("predict", path, *at)
    subset = run_disco("predict", tmp_path / "subset" / path.name, *at)
    assert full.returncode == 0, full.stderr
    assert full.stdout == subset.stdout != ""


def test_an_estimate_does_not_depend_on_the_other_models_of_the_call(sample_database):
    paths = sorted((SAMPLE_DATA / "new").glob("*.npz"))
    together = run_disco("predict", *paths, "--dir", sample_database, "--json").stdout
    alone = "".join(
        run_disco("predict", path, "--dir", sample_database, "--json").stdout for path in paths[:3]
    )
    assert together.startswith(alone)


def test_predict_on_npz_imports_neither_sklearn_nor_scipy_nor_pyarrow(sample_database):
    path = sorted((SAMPLE_DATA / "new").glob("*.npz"))[0]
    code = (
        "import sys\nfrom disco_cli.cli import app\n"
        f"app(['predict', {str(path)!r}, '--dir', {str(sample_database)!r}], standalone_mode=False)"
        "\nprint(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'sklearn', 'scipy', 'pyarrow', 'joblib', 'pandas'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_has_seen_enough_ends_the_program_quietly(sample_database, tmp_path):
    originals = sorted((SAMPLE_DATA / "new").glob("*.npz"))
    copies = [tmp_path / f"{i}-{path.name}" for i in range(40) for path in originals]
    for copy, original in zip(copies, originals * 40, strict=True):
        shutil.copyfile(original, copy)
    paths = " ".join(f"'{path}'" for path in copies)
    command = (
        f"'{sys.executable}' -m disco_cli predict {paths} --dir '{sample_database}' --json "
        "--quiet | head -1; echo ${PIPESTATUS[0]}"
    )
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=True, cwd=ROOT
    )
    line, code = done.stdout.splitlines()
    assert json.loads(line)["model"]
    assert (code, done.stderr) == ("0", "")


def test_same_inputs_same_bytes(built, small, tmp_path):
    def content():
        return {
            path.name: path.read_bytes()
            for path in (tmp_path / "disco-run").rglob("*")
            if path.is_file()
        }

    first = content()
    built("select", "--k", "20", *small)
    built("build-db", *small)
    assert content() == first


def test_gates(built, small):
    strong = built("predict", small[-1], "--fail-under", "0.1")
    assert strong.returncode == 0
    weak = built("predict", small[0], "--fail-under", "0.99")
    assert weak.returncode == 5
    assert "estimate" in weak.stderr
    assert weak.stdout.startswith("model\t")  # the estimates are still printed
    both = built("predict", small[0], small[-1], "--fail-under", "0.999")
    assert both.returncode == 5
    failures = [line for line in both.stderr.splitlines() if line.startswith("error: model-")]
    assert len(failures) == 2
    wide = built("predict", small[0], "--max-width", "0.0001")
    assert wide.returncode == 5


def test_truth_from_a_file_in_its_own_units(disco, small, tmp_path):
    truth = tmp_path / "truth.csv"
    truth.write_text(
        "model,score\n" + "".join(f"model-{i:02d},{100 + 10 * i}\n" for i in range(12))
    )
    disco("select", "--k", "20", *small)
    done = disco("build-db", *small, "--truth", truth, "--json")
    assert "estimates are score of truth.csv\n" in done.stderr
    result = json.loads(done.stdout)
    assert result["average"] is None
    assert result["metric"] == "score of truth.csv"
    by_name = {error["name"]: error for error in result["errors"]}
    assert by_name["random"]["mae"] is None
    assert "unavailable" in by_name["random"]["note"]
    row = json.loads(disco("predict", small[6], "--json").stdout)
    assert 110 < row["estimate"] < 210


def test_an_accuracy_and_its_interval_stay_inside_its_range(disco, tmp_path):
    probabilities, labels = make_predictions(12)
    write_models(tmp_path / "p", probabilities, labels)
    right = np.eye(4, dtype=np.float32)[labels]
    (best,) = write_models(tmp_path / "q", right[np.newaxis], labels, prefix="best")
    for recipe in ("disco", "auto"):
        at = ["--dir", tmp_path / recipe]
        files = sorted((tmp_path / "p").glob("*.npz"))
        for command in (["select", "--k", "20", "--recipe", recipe], ["build-db"]):
            assert disco(*command, *files, *at).returncode == 0
        for predictor in ("rf", "knn", *(["auto", "blend"] if recipe == "auto" else [])):
            done = disco("predict", best, *at, "--predictor", predictor, "--json")
            row = json.loads(done.stdout)
            assert 0 <= row["low"] <= row["estimate"] <= row["high"] <= 1


def test_python_functions_return_what_the_program_prints(small):
    from disco_cli import build_db, predict, score, select

    assert score(small).content.samples.n == 60
    chosen = select(small, k=20)
    built = build_db(small, selection=chosen.selection)
    result = predict(small[:2], database=built.database)
    assert [p.model for p in result.predictions] == ["model-00", "model-01"]


def test_responses_in_other_units(disco, tmp_path):
    """Scores such as BLEU, 0 to 100, learn and estimate as right-or-wrong does."""
    rng = np.random.default_rng(5)
    quality = np.linspace(10, 60, 20)[:, None]
    scores = np.clip(quality + rng.normal(0, 12, (1, 80)) + rng.normal(0, 4, (20, 80)), 0, 100)
    ids = np.array([f"s{i:03d}" for i in range(80)])
    names = np.array([f"m{i:02d}" for i in range(20)])
    np.savez(tmp_path / "refs.npz", responses=scores[1:], sample_ids=ids, model_names=names[1:])
    np.savez(tmp_path / "new.npz", responses=scores[:1], sample_ids=ids, model_names=names[:1])
    assert disco("select", "--k", "20", "refs.npz").returncode == 0
    built = disco("build-db", "refs.npz")
    assert built.returncode == 0, built.stderr
    row = json.loads(disco("predict", "new.npz", "--json").stdout)
    assert row["estimate"] == pytest.approx(scores[0].mean(), abs=5)
    assert row["low"] < row["estimate"] < row["high"]
    for predictor in ("rf", "knn", "ridge"):
        other = json.loads(disco("predict", "new.npz", "--predictor", predictor, "--json").stdout)
        assert 0 <= other["estimate"] <= 100
