"""The command writes the same bytes however it is run: the artifacts, not only the numbers."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

M, N, C = 40, 90, 7
DISCO = [sys.executable, "-m", "disco_cli"]
UNCOMPILED = [
    sys.executable,
    "-c",
    "import sys; sys.modules['disco_cli._kernel'] = None; from disco_cli.cli import main; main()",
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The same predictions as plain files, as compressed ones, and with shuffled rows."""
    root, rng = tmp_path_factory.mktemp("preds"), np.random.default_rng(0)
    P = rng.dirichlet(np.full(C, 0.5), (M, N)).astype(np.float16)
    P[rng.random((M, N)) < 0.05] = np.nan
    labels, ids = rng.integers(0, C, N), np.array([f"q{i}" for i in range(N)])
    order = rng.permutation(N)
    found: dict[str, list[str]] = {"plain": [], "compressed": [], "shuffled": []}
    for name, paths in found.items():
        (root / name).mkdir()
        rows = order if name == "shuffled" else np.arange(N)
        save = np.savez_compressed if name == "compressed" else np.savez
        for m in range(M):
            path = root / name / f"m{m:02d}.npz"
            save(path, predictions=P[m, rows], labels=labels[rows], sample_ids=ids[rows])
            paths.append(str(path))
    return found


def artifacts(
    folder: Path, files: list[str], *options: str, disco: list[str] = DISCO
) -> tuple[bytes, bytes]:
    """Score and select; return the bytes of both artifacts."""
    at = ["--quiet", "-d", str(folder)]
    subprocess.run([*disco, "score", *at, *options, *files], check=True, capture_output=True)
    select = ["select", "--k", "20", *at, "--scores", str(folder / "scores.parquet")]
    subprocess.run([*disco, *select], check=True, capture_output=True)
    return (folder / "scores.parquet").read_bytes(), (folder / "selection.json").read_bytes()


def test_scores_and_selection_are_the_same_bytes(
    folders: dict[str, list[str]], tmp_path: Path
) -> None:
    expected = artifacts(tmp_path / "0", folders["plain"], "--threads", "1")
    mixed = [folders[("plain", "compressed", "shuffled")[m % 3]][m] for m in range(M)]
    ways: list[tuple[list[str], list[str]]] = [
        (folders["plain"], ["--threads", "3"]),
        (folders["plain"][::-1], ["--memory", "1MiB"]),
        (folders["compressed"], ["--threads", "2", "--memory", "1MiB"]),
        (folders["shuffled"], ["--threads", "4"]),
        (mixed, ["--memory", "2MiB"]),
    ]
    if find_spec("distributed"):
        ways.append((mixed[::-1], ["--engine", "dask", "--threads", "2", "--memory", "1MiB"]))
    for number, (files, options) in enumerate(ways, 1):
        assert artifacts(tmp_path / str(number), files, *options) == expected, options
    for files in (folders["plain"], mixed):
        assert artifacts(tmp_path / "numpy", files, disco=UNCOMPILED) == expected
