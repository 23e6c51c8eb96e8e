"""How many threads the linear-algebra library may use does not change a byte of an artifact."""

import numpy as np
import pytest
from support import run_disco

from disco_cli.threads import single_threaded

M, N = 150, 1000


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Sizes at which the library divides the work so that sums differ in the last digit."""
    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(size=(M, 1)), rng.normal(size=(1, N))
    right = rng.random((M, N)) < 1 / (1 + np.exp(difficulty - ability))
    path = tmp_path_factory.mktemp("threads") / "models.npz"
    names = np.array([f"m{m:03d}" for m in range(M)])
    np.savez(path, responses=right.astype(np.float32), model_names=names)
    return path


def artifacts(folder, models, threads):
    env = {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    at = ["--quiet", "--dir", folder]
    for command in (["select", models, "--k", "30", "--method", "strata"], ["build-db", models]):
        ran = run_disco(*command, *at, env=env)
        assert ran.returncode == 0, ran.stderr
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_artifacts_are_the_same_bytes_with_one_thread_and_two(tmp_path, models):
    one, two = (artifacts(tmp_path / str(threads), models, threads) for threads in (1, 2))
    assert {"selection.json", "db/recipe.npz", "db/rf.pkl"} <= set(one)
    assert [name for name in one if one[name] != two[name]] == []


def test_the_limit_holds_for_named_packages_and_ends_with_the_block():
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    with single_threaded("scipy.linalg"):
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before
