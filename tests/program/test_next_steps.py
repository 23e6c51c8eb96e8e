"""The commands that are proposed run as they stand, in any folder and with odd names."""

import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
from support import ROOT, make_predictions, write_models
from test_bad_input import assert_refused

from disco_cli.report.hints import Given, patterns


def hints(done):
    """Return the proposed commands of a run."""
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("next: ")]
    return [line[line.index("disco ") + len("disco ") :] for line in lines]


@pytest.fixture
def paste(tmp_path):
    """Run a proposed command through a shell, as if it were pasted."""

    def run(command):
        return subprocess.run(
            ["bash", "-c", f"{sys.executable} -W error -m disco_cli {command}"],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_whole_way_by_pasting_in_another_folder(disco, small, tmp_path, paste):
    (tmp_path / "preds").rename(tmp_path / "my preds")
    names = [f"my preds/{path.name}" for path in small]
    (propose,) = hints(disco("score", *names, "--dir", "the run"))
    assert propose == "select --k 60 --dir 'the run' 'my preds/'*.npz"
    assert paste(propose).returncode == 0
    (build,) = hints(disco("select", "--k", "20", *names, "--dir", "the run"))
    assert build == "build-db --dir 'the run' 'my preds/'*.npz"
    export, predict = hints(paste(build))
    ids = paste(export)
    assert (ids.returncode, len(ids.stdout.split())) == (0, 20), ids.stderr
    done = paste(predict.replace("NEW_MODEL", shlex.quote(names[3])))
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2), done.stderr


def test_outputs_of_other_names_are_named_again(disco, small, paste):
    (build,) = hints(disco("select", "--k", "9", *small[:6], "-o", "its own.json"))
    assert build.startswith("build-db --selection 'its own.json' ")
    assert "*" not in build  # these are not all files of the folder
    assert paste("select --k 30 " + patterns(list(map(str, small)))).returncode == 0
    export, predict = hints(paste(build))  # the selection of the folder is another one
    assert len(paste(export).stdout.split()) == 9
    assert paste(predict.replace("NEW_MODEL", str(small[8]))).returncode == 0
    export, predict = hints(paste(f"{build} -o 'db two'"))
    assert "--db 'db two'" in predict
    assert paste(predict.replace("NEW_MODEL", str(small[8]))).returncode == 0


def test_options_of_reading_are_given_again(disco, tmp_path, paste):
    rng = np.random.default_rng(0)
    for number in range(6):
        rows = [f"q{i},{rng.random():.3f},{i % 2}" for i in range(30)]
        text = "\n".join(["model,sample_id,f1,em", *(f"m{number},{row}" for row in rows)])
        (tmp_path / f"m{number}.csv").write_text(text + "\n")
    names = [f"m{number}.csv" for number in range(6)]
    (build,) = hints(disco("select", "--k", "9", *names, "--metric", "f1", "--metric", "em"))
    assert build == "build-db --metric f1 --metric em *.csv"
    _, predict = hints(paste(build))
    assert paste(predict.replace("NEW_MODEL", "m4.csv")).returncode == 0


@pytest.mark.parametrize(("n", "words"), [(1, "this was 1 model"), (4, "this was 4 models")])
def test_too_few_models_are_told_before_build_db_fails(disco, small, n, words):
    done = disco("select", "--k", "9", *small[:n])
    assert f"next: more reference models: disco build-db needs 5, {words}\n" in done.stderr
    assert f"too few models ({n}) to compare shares" in done.stderr
    assert_refused(disco("build-db", *small[:n]), 3, "at least 5 are needed")
    assert "needs 5" not in disco("select", "--k", "9", *small[:5]).stderr


def test_without_labels_the_truth_is_asked_for(disco, tmp_path):
    probabilities, _ = make_predictions()
    for number, values in enumerate(probabilities):
        np.savez(tmp_path / f"m{number}.npz", predictions=values)
    done = disco("select", "--k", "9", *(f"m{number}.npz" for number in range(12)))
    assert "--truth SCORES.csv" in done.stderr


def test_patterns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = write_models(tmp_path / "a b", *make_predictions(n_models=3))
    names = [f"a b/{path.name}" for path in paths]
    assert patterns(names) == "'a b/'*.npz"
    assert patterns(names[:2]) == "'a b/model-00.npz' 'a b/model-01.npz'"
    for path in paths:
        shutil.copy(path, tmp_path)
    assert patterns([path.name for path in paths]) == "*.npz"
    assert patterns(["s3://b/*.npz"]) == "'s3://b/*.npz'"


def test_a_list_that_is_too_long_is_not_repeated(tmp_path):
    files = tuple(f"{tmp_path}/{i:0100d}.npz" for i in range(30))
    given = Given(tmp_path, ("--dir", "x y"), files)
    assert given.command("build-db", reads=True) == (
        "disco build-db --dir 'x y' PREDS… (the prediction files)"
    )
