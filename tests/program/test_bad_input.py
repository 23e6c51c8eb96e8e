"""Bad input: one line on stderr, the right exit code, and no artifact touched."""

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from support import ROOT, make_predictions, write_models


def rewrite(path, **changes):
    """Change arrays of an NPZ; ``None`` removes one."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def assert_refused(done, code, *words):
    """One line on stderr that holds every word, nothing on stdout, no traceback."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert str(word) in lines[0]


@pytest.fixture
def run_dir(small_artifacts, tmp_path):
    """A folder of artifacts that nothing bad may touch; checked after the test."""
    folder = tmp_path / "disco-run"
    shutil.copytree(small_artifacts, folder)
    before = snapshot(folder)
    yield folder
    assert snapshot(folder) == before


def snapshot(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_missing_file(disco, run_dir):
    assert_refused(disco("score", "nowhere.npz"), 3, "nowhere.npz")


def test_empty_glob(disco, run_dir):
    assert_refused(disco("select", "nothing/*.npz"), 3, "nothing/*.npz")


def test_no_files_at_all(disco, run_dir):
    done = disco("select")
    assert_refused(done, 2, "no prediction files")


@pytest.mark.parametrize("keep", [10, 1000, -30])
def test_truncated_npz(disco, small, run_dir, keep):
    small[3].write_bytes(small[3].read_bytes()[:keep])
    assert_refused(disco("score", *small), 3, small[3].name)


def test_not_a_zip(disco, small, run_dir):
    small[3].write_text("hello, this is no archive")
    assert_refused(disco("select", *small), 3, small[3].name)


def test_unknown_keys(disco, small, run_dir):
    rewrite(small[3], wieghts=np.ones(60))
    assert_refused(disco("score", *small), 3, small[3].name, "wieghts")


def test_object_arrays_are_never_unpickled(disco, small, run_dir, tmp_path):
    class Evil:
        def __reduce__(self):
            return open, (str(tmp_path / "created"), "w")

    with np.load(small[3]) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["predictions"] = np.array([Evil()], dtype=object)
    np.savez(small[3], **arrays)
    assert_refused(disco("score", *small), 3, small[3].name, "predictions")
    assert not (tmp_path / "created").exists()


def test_row_that_is_partly_nan(disco, small, run_dir):
    probabilities, _ = make_predictions()
    values = probabilities[3].copy()
    values[17, 2] = np.nan
    rewrite(small[3], predictions=values)
    assert_refused(disco("score", *small), 3, small[3].name, "17", "s0017")


def test_row_that_is_all_nan_is_missing(disco, small, run_dir):
    probabilities, _ = make_predictions()
    values = probabilities[3].copy()
    values[17] = np.nan
    rewrite(small[3], predictions=values)
    done = disco("score", *small, "-o", "-")
    counts = {line.split("\t")[0]: line.split("\t")[4] for line in done.stdout.splitlines()[1:]}
    assert (counts["s0017"], counts["s0018"]) == ("11", "12")


def test_rows_that_sum_to_seven_tenths(disco, small, run_dir):
    probabilities, _ = make_predictions()
    values = probabilities[3].copy()
    values[17] *= 0.7
    rewrite(small[3], predictions=values)
    assert_refused(disco("score", *small), 3, small[3].name, "17", "0.7")


def test_mixed_kinds(disco, small, run_dir):
    _, labels = make_predictions()
    rewrite(small[3], predictions=None, responses=np.ones(60), labels=labels)
    assert_refused(disco("score", *small), 3, small[3].name)


def test_different_numbers_of_classes(disco, small, run_dir):
    wide, _ = make_predictions(n_classes=5)
    rewrite(small[3], predictions=wide[3])
    assert_refused(disco("score", *small), 3, small[3].name, "4", "5")


def test_duplicate_ids(disco, small, run_dir):
    ids = np.array([f"s{i:04d}" for i in range(60)])
    ids[9] = "s0004"
    rewrite(small[3], sample_ids=ids)
    assert_refused(disco("score", *small), 3, small[3].name, "s0004")


def test_labels_that_disagree_between_files(disco, small, run_dir):
    _, labels = make_predictions()
    other = labels.copy()
    other[5] = (other[5] + 1) % 4
    rewrite(small[3], labels=other)
    assert_refused(disco("score", *small), 3, small[3].name, "s0005")


def test_k_larger_than_n(disco, small, run_dir):
    assert_refused(disco("select", "--k", "61", *small), 2, "61", "60")


def test_k_of_zero(disco, small, run_dir):
    done = disco("select", "--k", "0", *small)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for '--k'" in done.stderr


def test_fewer_than_five_reference_models(disco, small, run_dir):
    assert_refused(disco("build-db", *small[:4]), 3, "4 reference models", "5")


def test_a_model_name_twice(disco, small, run_dir, tmp_path):
    (tmp_path / "again").mkdir()
    shutil.copy(small[3], tmp_path / "again")
    done = disco("score", *small, tmp_path / "again" / small[3].name)
    assert_refused(done, 3, "model-03", "again")


def test_a_new_model_given_twice(disco, small, run_dir, tmp_path):
    predict = ["predict", "--dir", run_dir, small[0]]
    assert_refused(disco(*predict, small[0]), 3, small[0], "given twice; name it once")
    link = tmp_path / "link.npz"
    link.symlink_to(small[0])
    assert_refused(disco(*predict, link), 3, f"{link}: is given twice, as {small[0]}")


def test_a_database_built_from_another_selection(disco, small, run_dir):
    disco("select", "--k", "10", *small, "-o", "other/selection.json")
    shutil.copytree(run_dir / "db", run_dir.parent / "other" / "db")
    done = disco("predict", small[0], "--dir", "other")
    assert_refused(done, 4, "selection.json", "k = 10", "k = 20")


def test_a_selection_of_another_benchmark(disco, run_dir, tmp_path):
    paths = write_models(tmp_path / "longer", *make_predictions(n=70))
    assert_refused(disco("build-db", *paths), 4, "70", "60")


def test_a_new_model_that_lacks_most_of_the_samples(disco, small, run_dir):
    chosen = json.loads((run_dir / "selection.json").read_text())["position"][:4]
    with np.load(small[0]) as file:
        np.savez(small[0], **{name: file[name][chosen] for name in file.files})
    assert_refused(disco("predict", small[0]), 3, "4 of the 20", "10")


def test_a_model_that_is_refused_does_not_cost_the_others_their_estimates(disco, small, run_dir):
    chosen = json.loads((run_dir / "selection.json").read_text())["position"][:4]
    with np.load(small[0]) as file:
        np.savez(small[0], **{name: file[name][chosen] for name in file.files})
    done = disco("predict", *small[:3], "--json")
    assert done.returncode == 3
    assert [json.loads(line)["model"] for line in done.stdout.splitlines()] == [
        "model-01",
        "model-02",
    ]
    assert "error: model 'model-00': has 4 of the 20" in done.stderr


def test_a_new_model_that_lacks_a_few_is_estimated_and_counted(disco, small, run_dir):
    chosen = json.loads((run_dir / "selection.json").read_text())["position"][:16]
    with np.load(small[0]) as file:
        np.savez(small[0], **{name: file[name][chosen] for name in file.files})
    row = json.loads(disco("predict", small[0], "--json").stdout)
    assert (row["n_used"], row["n_missing"]) == (16, 4)
    assert any("4 of 20" in warning for warning in row["warnings"])


def test_a_new_model_of_other_classes(disco, small, run_dir):
    wide, _ = make_predictions(n_classes=5)
    rewrite(small[0], predictions=wide[0])
    assert_refused(disco("predict", small[0]), 4, small[0].name, "5 classes")


def test_a_new_model_of_other_labels(disco, small, run_dir):
    _, labels = make_predictions()
    rewrite(small[0], labels=(labels + 1) % 4)
    assert_refused(disco("predict", small[0]), 4, small[0].name, "label")


def test_a_new_model_of_another_kind(disco, small, run_dir):
    rewrite(small[0], predictions=None, predicted_labels=np.zeros(60, dtype=int))
    assert_refused(disco("predict", small[0]), 4, small[0].name, "labels", "probabilities")


def test_no_database(disco, small):
    assert_refused(disco("predict", *small), 3, "build-db")


def test_no_selection(disco, small):
    assert_refused(disco("build-db", *small), 3, "disco select")


class Creates:
    """A pickle that creates a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("rehash", [False, True], ids=["changed", "changed with its hash"])
def test_a_forest_that_would_run_code(disco, small, run_dir, tmp_path, rehash):
    created = tmp_path / "created"
    database = tmp_path / "evil"
    shutil.copytree(run_dir / "db", database)
    content = pickle.dumps(Creates(str(created)))
    (database / "rf.pkl").write_bytes(content)
    if rehash:
        import hashlib

        manifest = json.loads((database / "manifest.json").read_text())
        manifest["parts"]["rf.pkl"] = hashlib.sha256(content).hexdigest()
        (database / "manifest.json").write_text(json.dumps(manifest))
    done = disco("predict", small[0], "--db", database, "--predictor", "rf")
    assert_refused(done, 4, "rf.pkl")
    assert not created.exists()


def test_a_changed_forest_is_noticed_by_predictors_that_do_not_read_it(
    disco, small, run_dir, tmp_path
):
    database = tmp_path / "changed"
    shutil.copytree(run_dir / "db", database)
    (database / "rf.pkl").write_bytes(pickle.dumps(Creates(str(tmp_path / "created"))))
    assert_refused(disco("predict", small[0], "--db", database), 4, "rf.pkl")
    assert not (tmp_path / "created").exists()


def test_an_object_array_in_the_database(disco, small, run_dir, tmp_path):
    created = tmp_path / "created"
    database = tmp_path / "evil"
    shutil.copytree(run_dir / "db", database)
    buffer = io.BytesIO()
    np.savez(buffer, mean=np.array([Creates(str(created))], dtype=object))
    (database / "pca.npz").write_bytes(buffer.getvalue())
    import hashlib

    manifest = json.loads((database / "manifest.json").read_text())
    manifest["parts"]["pca.npz"] = hashlib.sha256(buffer.getvalue()).hexdigest()
    (database / "manifest.json").write_text(json.dumps(manifest))
    assert_refused(disco("predict", small[0], "--db", database), 4, "pca.npz")
    assert not created.exists()


@pytest.mark.parametrize("part", ["manifest.json", "references.npz", "pca.npz", "rf.pkl"])
@pytest.mark.parametrize("damage", ["gone", "cut", "empty"])
def test_damaged_parts_of_a_database(disco, small, run_dir, tmp_path, part, damage):
    database = tmp_path / "damaged"
    shutil.copytree(run_dir / "db", database)
    path = database / part
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: 100 if damage == "cut" else 0])
    code = 3 if (part, damage) == ("manifest.json", "gone") else 4
    assert_refused(disco("predict", small[0], "--db", database), code, "build")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_read_only_folder(disco, small, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o500)
    assert_refused(disco("score", *small, "--dir", folder), 3, "scores.parquet")
    folder.chmod(0o700)


def test_an_output_folder_that_cannot_be_made(disco, small, tmp_path):
    (tmp_path / "file").write_text("a file, not a folder")
    for command in ("score", "select"):
        options = ["--k", "20"] if command == "select" else []
        done = disco(command, *options, *small, "--dir", "file/run")
        assert_refused(done, 3, "file/run")
    disco("select", *small, "--k", "20")
    done = disco("build-db", *small, "-o", "file/db")
    assert_refused(done, 3, "file/db")


@pytest.mark.parametrize("command", ["score", "select", "build-db"])
def test_full_disk(small, run_dir, command):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    code = (
        f"{limit}\nimport signal, sys\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from disco_cli.cli import main\nsys.argv = ['disco', *sys.argv[1:]]\nmain()"
    )
    options = ["--k", "20"] if command == "select" else []
    done = subprocess.run(
        [sys.executable, "-c", code, command, *options, *map(str, small), "--dir", str(run_dir)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert_refused(done, 3, "cannot be written")


@pytest.mark.parametrize("command", ["score", "select"])
def test_a_foreign_file_in_the_way(disco, small, tmp_path, command):
    foreign = tmp_path / "mine.txt"
    foreign.write_text("my notes")
    options = ["--k", "20"] if command == "select" else []
    assert_refused(disco(command, *options, *small, "-o", foreign), 3, "mine.txt", "--force")
    assert foreign.read_text() == "my notes"
    assert disco(command, *options, *small, "-o", foreign, "--force").returncode == 0
    assert foreign.read_text(errors="replace") != "my notes"


def test_a_foreign_folder_in_the_way_of_a_database(disco, small, tmp_path):
    disco("select", "--k", "20", *small)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("my notes")
    assert_refused(disco("build-db", *small, "-o", "mine"), 3, "mine", "--force")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "my notes"


@pytest.mark.parametrize(
    "options",
    [
        ["predict", "x.npz", "--level", "1"],
        ["predict", "x.npz", "--level", "nan"],
        ["predict", "x.npz", "--predictor", "crystal-ball"],
        ["select", "x.npz", "--method", "best"],
        ["select", "x.npz", "--k", "many"],
        ["build-db", "x.npz", "--average", "median"],
        ["select", "x.npz", "--stratify", "--method", "strata"],
        ["select", "x.npz", "--method", "hybrid", "--share", "1.5"],
        ["fly"],
        ["score", "--wings"],
    ],
)
def test_usage_errors(disco, options):
    done = disco(*options)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model,points\nmodel-00,1\n", ["score", "points"]),
        ("model,score\nmodel-00,1\n", ["model-01"]),
        ("model,score\nmodel-00,1\nmodel-00,2\n", ["row 2", "model-00"]),
        ("model,score\nmodel-00,good\n", ["row 1", "good"]),
        ("model,score\nmodel-00,inf\n", ["row 1", "inf"]),
        ("", ["model"]),
    ],
)
def test_bad_truth(disco, small, run_dir, tmp_path, text, words):
    truth = tmp_path / "truth.csv"
    truth.write_text(text)
    assert_refused(disco("build-db", *small, "--truth", truth), 3, "truth.csv", *words)


def test_a_zip_bomb_of_a_member_is_refused_by_its_shape(disco, small, run_dir):
    buffer = io.BytesIO()
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 1000), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    buffer.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with zipfile.ZipFile(small[3], "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("predictions.npy", buffer.getvalue())
    assert_refused(disco("score", *small), 3, small[3].name)
