"""Fixtures of many tests: the program in an empty folder, and what it makes of small benchmarks."""

import pytest
from support import SAMPLE_DATA, make_predictions, run_disco, write_models


@pytest.fixture
def disco(tmp_path):
    """The program, run in an empty folder."""

    def run(*arguments, **options):
        return run_disco(*arguments, **{"cwd": tmp_path} | options)

    return run


@pytest.fixture
def small(tmp_path):
    """Paths of twelve reference models on 60 samples of 4 classes."""
    return write_models(tmp_path / "preds", *make_predictions())


@pytest.fixture(scope="session")
def small_artifacts(tmp_path_factory):
    """What score, select and build-db make of the ``small`` benchmark; copy it, do not touch it."""
    folder = tmp_path_factory.mktemp("small-run")
    paths = write_models(folder / "preds", *make_predictions())
    for command in (["score"], ["select", "--k", "20"], ["build-db"]):
        done = run_disco(*command, *paths, "--dir", folder / "disco-run")
        assert done.returncode == 0, done.stderr
    return folder / "disco-run"


@pytest.fixture(scope="session")
def sample_database(tmp_path_factory):
    """Folder with the selection and the database of the sample data, made by the program."""
    folder = tmp_path_factory.mktemp("sample-run")
    references = sorted(SAMPLE_DATA.glob("*.npz"))
    for command in (["select", "--k", "100"], ["build-db"]):
        done = run_disco(*command, *references, "--dir", folder)
        assert done.returncode == 0, done.stderr
    return folder
