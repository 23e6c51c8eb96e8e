"""What must not change an estimate: order of models, samples and files, and copies of a model."""

import json

import numpy as np
import pytest
from support import make_predictions, run_disco, write_models

K = 20


def run(folder, *arguments):
    done = run_disco(*arguments, "-d", folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def estimates(folder, references, targets, *options, build=()):
    """Select, build and predict; return the lines of the targets."""
    run(folder, "select", "--k", K, *references)
    run(folder, "build-db", *references, *build)
    lines = run(folder, "predict", *targets, "--json", *options).splitlines()
    return [json.loads(line) for line in lines]


def test_a_stack_in_any_order_is_the_same_as_single_files(tmp_path):
    P, labels = make_predictions(n_models=14, n=60)
    singles = write_models(tmp_path / "singles", P[:12], labels)
    targets = write_models(tmp_path / "new", P[12:], labels, prefix="new")
    rng = np.random.default_rng(0)
    models, rows = rng.permutation(12), rng.permutation(60)
    stack = tmp_path / "stack.npz"
    np.savez(
        stack,
        predictions=P[models][:, rows],
        labels=labels[rows],
        sample_ids=np.array([f"s{i:04d}" for i in rows]),
        model_names=np.array([f"model-{m:02d}" for m in models]),
    )
    one = estimates(tmp_path / "one", singles, targets)
    other = estimates(tmp_path / "other", [stack], targets)
    selections = [tmp_path / name / "selection.json" for name in ("one", "other")]
    assert selections[0].read_bytes() == selections[1].read_bytes()
    assert one == other


@pytest.mark.parametrize("predictor", ["auto", "rf", "knn", "ridge", "blend"])
def test_copies_of_reference_models_silence_no_warning(few_and_copied, predictor):
    """Eight models are too few for an interval of 90 %, and so are eight models three times."""
    few, copied = ([json.loads(line) for line in lines] for lines in few_and_copied(predictor))
    for one, other in zip(few, copied, strict=True):
        if one["low"] is None:
            assert other["low"] is None
        assert one["status"] == other["status"]
        assert one["warnings"] == other["warnings"]
    assert any(line["low"] is None for line in few)


def test_copies_are_not_enough_models(tmp_path):
    P, labels = make_predictions(n_models=4, n=60)
    paths = write_models(tmp_path / "once", P, labels)
    paths += write_models(tmp_path / "twice", P, labels, prefix="copy")
    run(tmp_path, "select", "--k", K, *paths)
    done = run_disco("build-db", *paths, "-d", tmp_path)
    assert done.returncode == 3
    assert "4 different reference models given, the others being copies" in done.stderr


@pytest.fixture(scope="module")
def few_and_copied(tmp_path_factory):
    root = tmp_path_factory.mktemp("copies")
    P, labels = make_predictions(n_models=12, n=60)
    once = write_models(root / "once", P[2:10], labels)
    thrice = [
        *once,
        *write_models(root / "twice", P[2:10], labels, prefix="copy"),
        *write_models(root / "thrice", P[2:10], labels, prefix="other-copy"),
    ]
    targets = write_models(root / "new", P[[0, 5, 11]] * 0.9 + 0.025, labels, prefix="new")
    folders = []
    for name, references in (("few", once), ("copied", thrice)):
        folders.append(root / name)
        run(folders[-1], "select", "--k", K, *references)
        run(folders[-1], "build-db", *references)

    def predict(predictor):
        return [
            run(folder, "predict", *targets, "--json", "--predictor", predictor).splitlines()
            for folder in folders
        ]

    return predict
