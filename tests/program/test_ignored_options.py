"""An option that would change nothing is refused and never silently dropped."""

import json

import numpy as np
import pytest
from support import make_predictions, write_models
from test_bad_input import assert_refused


@pytest.fixture
def run(disco, small_artifacts):
    """The program, in a folder beside artifacts."""

    def call(*arguments):
        return disco(*arguments, "--dir", small_artifacts)

    return call


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "pds", "--share", "0.3"], ["--share works with --method hybrid, not pds"]),
        (["--share", "0.5"], ["--share", "not auto"]),
        (["--recipe", "disco", "--share", "0.5"], ["--share", "not pds"]),
        (["--recipe", "disco", "--method", "jsd"], ["--recipe disco", "--method jsd", "build-db"]),
        (["--recipe", "auto", "--method", "pds"], ["--recipe auto", "--method pds"]),
        (["--metric", "acc"], ["--metric acc", "none of the files is one"]),
        (["--filter", "none"], ["--filter none", "none of the files"]),
    ],
)
def test_select(disco, small, options, words):
    assert_refused(disco("select", "--k", "9", *small, *options), 2, *words)


@pytest.mark.parametrize(
    "options", [["--recipe", "disco", "--method", "pds"], ["--recipe", "auto"]]
)
def test_a_recipe_beside_its_own_method_is_none_too_many(disco, small, options):
    assert disco("select", "--k", "9", *small, *options).returncode == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--kind", "logits"],
        ["--no-answer", "wrong"],
        ["--metric", "acc"],
        ["--filter", "none"],
        ["--recipe", "auto"],
    ],
)
def test_scores_are_not_read_again(disco, small_artifacts, options):
    scores = small_artifacts / "scores.parquet"
    done = disco("select", "--k", "9", "--scores", scores, *options)
    assert_refused(done, 2, "--scores", options[0].strip("-") if options[1] != "auto" else "auto")


def test_a_draw_from_scores_represents_the_average(disco, tmp_path):
    groups = np.array(["rare", *["frequent"] * 59])
    paths = write_models(tmp_path / "preds", *make_predictions(), groups=groups)
    assert disco("score", *paths).returncode == 0
    for method in ("random", "stratified-random"):
        drawn = []
        for source in (["--scores", "disco-run/scores.parquet"], paths):
            options = ["--k", "60", "--method", method, "--average", "macro", "-o", "-", "-q"]
            drawn.append(json.loads(disco("select", *source, *options).stdout)["weight"])
        np.testing.assert_allclose(drawn[0], drawn[1])
        assert drawn[0][0] == pytest.approx(0.5)


@pytest.mark.parametrize("command", ["score", "build-db", "predict", "plan", "backtest", "info"])
@pytest.mark.parametrize("option", ["--metric", "--filter"])
def test_choices_among_logs_need_logs(disco, small, small_artifacts, command, option):
    places = [] if command in ("plan", "info") else ["--dir", small_artifacts]
    files = small[:1] if command == "info" else small
    done = disco(command, *files, *places, option, "acc")
    assert_refused(done, 2, f"{option} acc", "none of the files")


def test_a_wide_table_has_one_score(disco, tmp_path):
    (tmp_path / "wide.csv").write_text("sample_id,a,b\nq1,1,0\nq2,0,1\n")
    done = disco("import", "csv", "wide.csv", "--metric", "acc")
    assert_refused(done, 2, "wide table has no metric acc", "response")
    assert disco("import", "csv", "wide.csv", "--metric", "response").returncode == 0
    done = disco("info", "wide.csv", "--filter", "none")
    assert_refused(done, 2, "--filter none")


def test_a_long_table_may_be_looked_at(disco, tmp_path):
    (tmp_path / "long.csv").write_text("model,sample_id,f1,em\na,q1,0.5,1\n")
    assert_refused(disco("info", "long.csv"), 2, "--metric", "f1, em")
    assert "n_models\t1\n" in disco("info", "long.csv", "--metric", "em").stdout


@pytest.mark.parametrize("name", ["scores.parquet", "selection.json", "db", ""])
def test_info_reads_no_values_of_artifacts(disco, small_artifacts, name):
    done = disco("info", small_artifacts / name, "--kind", "logits")
    assert_refused(done, 2, "is no prediction file", "--kind")


def test_backtest(disco, small):
    done = disco("backtest", *small, "--split", "leave-one-out", "--test-share", "0.25")
    assert_refused(done, 2, "--test-share", "leave-one-out")
    newest = ["--split", "newest", "--cutoff", "2024", "--test-share", "0.25"]
    assert_refused(disco("backtest", *small, *newest), 2, "--test-share", "--cutoff")


def test_more_neighbours_than_models(run, small, tmp_path):
    done = run("build-db", *small, "--neighbours", "13", "-o", tmp_path / "db")
    assert_refused(done, 2, "--neighbours 13", "12 reference models")


def test_groups_are_estimated_by_auto(disco, tmp_path):
    groups = np.array(["easy", "hard"])[np.arange(60) % 2]
    paths = write_models(tmp_path / "preds", *make_predictions(), groups=groups)
    assert disco("select", "--k", "20", *paths).returncode == 0
    assert disco("build-db", *paths).returncode == 0
    done = disco("predict", paths[0], "--groups", "--predictor", "rf")
    assert_refused(done, 2, "--groups", "auto, not by rf")
    assert disco("predict", paths[0], "--groups", "--predictor", "auto").returncode == 0
