"""``disco plan``: lines, JSON, target error and refusals."""

import json
import re

import numpy as np
import pytest
from support import make_predictions, run_disco, write_models


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    probabilities, labels = make_predictions(n_models=16, n=80)
    return write_models(tmp_path_factory.mktemp("plan"), probabilities, labels)


def plan(*arguments):
    return run_disco("plan", *arguments)


def test_lines_for_a_pipe(paths):
    code, out, err = outcome(plan(*paths, "--k", "40,10", "--models", "8,16"))
    assert code == 0, err
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[0][:5] == ["k", "models", "learned_from", "error", "error_strongest"]
    assert [line[:3] for line in lines[1:]] == [
        ["10", "8", "8"],
        ["40", "8", "8"],
        ["10", "16", "14"],
        ["40", "16", "14"],
    ]
    assert lines[1][5] == ""  # eight models are too few for an interval
    assert "16 models, 80 samples" in err
    assert not any(line.startswith("error") for line in err.splitlines())
    named = {"error", "error_strongest", "width", "difference"}
    assert named <= set(lines[0]) & set(re.findall(r"\w+", err))
    assert "no interval where models are too few" in err


def outcome(done):
    return done.returncode, done.stdout, done.stderr


def test_json_with_a_target_and_the_same_bytes_again(paths):
    arguments = [*paths, "--k", "10,40", "--target-error", "0.05", "--json", "--seed", "3"]
    code, out, err = outcome(plan(*arguments))
    assert code == 0, err
    found = json.loads(out)
    assert {row["k"] for row in found["rows"]} == {10, 40}
    assert {row["models"] for row in found["rows"]} == {4, 8, 16}
    assert found["smallest_k"]["bound"] == "exact"
    assert 10 < found["smallest_k"]["k"] <= 40
    assert f"an error of 0.05 takes about {found['smallest_k']['k']} samples" in err
    assert outcome(plan(*reversed(paths), *arguments[16:], "--quiet")) == (0, out, "")


def test_a_target_out_of_range_is_not_extrapolated(paths):
    _, _, err = outcome(plan(*paths, "--k", "10,40", "--target-error", "0.0001"))
    assert "an error of 0.0001 takes more than 40 samples" in err
    _, _, err = outcome(plan(*paths, "--k", "10,40", "--target-error", "0.5"))
    assert "an error of 0.5 takes at most 10 samples" in err


def test_without_truth_it_says_what_errors_mean(tmp_path):
    probabilities, _ = make_predictions(n_models=8, n=40)
    paths = []
    for number, values in enumerate(probabilities):
        paths.append(tmp_path / f"{number}.npz")
        np.savez(paths[-1], predictions=values)
    code, _, err = outcome(plan(*paths))
    assert code == 0, err
    assert "agreement with the consensus stands in" in err


def test_copies_of_a_model_are_no_models(paths, tmp_path):
    copy = tmp_path / "copy.npz"
    copy.write_bytes(paths[0].read_bytes())
    code, out, err = outcome(plan(*paths, copy, "--k", "10", "--models", "16", "--json"))
    assert code == 0, err
    assert json.loads(out)["n_models"] == 16
    assert "models not counted, being copies of others or empty: 1" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--k", "1"], "--k 1: the benchmark has 80 samples; choose 2 to 80"),
        (["--k", "ten"], "--k ten: give whole numbers separated by commas"),
        (["--models", "17"], "--models 17: there are 16 different reference models"),
        (["--level", "1"], "--level 1: choose a level above 0 and below 1"),
        (["--target-error", "0"], "--target-error 0: choose an error above 0"),
    ],
)
def test_usage_errors(paths, options, words):
    code, out, err = outcome(plan(*paths, *options))
    assert (code, out) == (2, "")
    assert words in err


def test_too_few_models(paths):
    code, _, err = outcome(plan(*paths[:3]))
    assert code == 3
    assert "3 different reference models" in err
