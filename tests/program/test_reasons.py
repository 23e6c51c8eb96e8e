"""What a database lacks is told by the one condition that fails."""

import numpy as np
import pytest
from support import make_predictions, write_models
from test_bad_input import assert_refused

UNITS = "the truth of the database (score of elo.csv) is in units of its own"
GROUPS = np.array(["easy", "hard"])[np.arange(60) % 2]


@pytest.fixture
def models(tmp_path):
    return write_models(tmp_path / "preds", *make_predictions(), groups=GROUPS)


def build(disco, models, select=(), build=()):
    """Select and build; returns what build-db said."""
    assert disco("select", "--k", "20", *models, *select).returncode == 0
    done = disco("build-db", *models, *build)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_truth_in_units_of_its_own(disco, models, tmp_path):
    rows = [f"{path.stem},{1000 + 30 * number}" for number, path in enumerate(models)]
    (tmp_path / "elo.csv").write_text("\n".join(["model,score", *rows]) + "\n")
    said = build(disco, models, build=["--truth", "elo.csv"])
    assert "score of elo.csv is not the mean of what the models got" in said
    assert "no auto, no offset-ridge and no --groups" in said
    for options in (["--groups"], ["--predictor", "auto"], ["--predictor", "offset-ridge"]):
        done = disco("predict", models[0], *options)
        assert_refused(done, 2, f"error: {' '.join(options)}: {UNITS}")
    assert disco("predict", models[0], "--predictor", "anchored-ridge").returncode == 0


def test_the_published_recipe(disco, models):
    said = build(disco, models, select=["--recipe", "disco"])
    assert "units of its own" not in said
    for options in (["--groups"], ["--predictor", "auto"], ["--predictor", "ridge"]):
        done = disco("predict", models[0], *options)
        assert_refused(done, 2, "built with the recipe disco", "build-db --recipe auto")


def test_a_selection_that_is_not_drawn(disco, models):
    build(disco, models, select=["--method", "pds"])
    done = disco("predict", models[0], "--predictor", "offset-ridge")
    assert_refused(done, 2, "samples that were drawn at random", "method pds")


def test_no_groups_in_the_files(disco, small):
    build(disco, small)
    assert_refused(disco("predict", small[0], "--groups"), 2, "built from name no `groups`")
    assert disco("predict", small[0], "--predictor", "offset-ridge").returncode == 0


def test_neither_labels_nor_responses(disco, tmp_path):
    probabilities, _ = make_predictions()
    ids = np.array([f"s{i:04d}" for i in range(60)])
    paths = [tmp_path / f"m{number}.npz" for number in range(len(probabilities))]
    for path, values in zip(paths, probabilities, strict=True):
        np.savez(path, predictions=values, sample_ids=ids)
    rows = [f"{path.stem},{number / 20}" for number, path in enumerate(paths)]
    (tmp_path / "elo.csv").write_text("\n".join(["model,score", *rows]) + "\n")
    build(disco, paths, build=["--truth", "elo.csv"])
    for options in (["--groups"], ["--predictor", "auto"], ["--predictor", "offset-ridge"]):
        done = disco("predict", paths[0], *options)
        assert_refused(done, 2, "have neither labels nor responses")
