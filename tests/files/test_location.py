"""Files behind URLs: read in parts, written whole, and failures told in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from disco_cli.errors import InputError
from disco_cli.files import location
from disco_cli.files.align import align, read_probabilities
from disco_cli.files.atomic import atomic_write
from disco_cli.files.matrix import Kind, ModelInfo, Samples
from disco_cli.files.npz import write_npz
from disco_cli.files.open import open_predictions
from disco_cli.files.parquet import write_parquet
from disco_cli.files.url_path import as_path, is_behind_url, write_folder

P = np.random.default_rng(0).dirichlet(np.ones(5), 200).astype(np.float32)


@pytest.fixture
def memory() -> str:
    fsspec = pytest.importorskip("fsspec", reason="the extra urls is not installed")
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    return "memory://bucket"


def test_paths_and_file_urls_are_local(tmp_path: Path) -> None:
    assert location.local_path("a/b.npz") == "a/b.npz"
    assert location.local_path("file:///a/b%20c.npz") == "/a/b c.npz"
    assert location.local_path("s3://bucket/a.npz") is None
    assert as_path("a/b") == Path("a/b")
    (tmp_path / "x").write_bytes(b"0123456789")
    assert location.read_range(f"file://{tmp_path}/x", 3, 4) == b"3456"


def test_local_files_need_no_fsspec(tmp_path: Path) -> None:
    write_npz(tmp_path / "a.npz", P, Kind.PROBABILITIES, Samples(len(P)))
    code = (
        "import sys; sys.modules['fsspec'] = None\n"
        "from disco_cli.files.open import open_predictions\n"
        f"open_predictions('file://{tmp_path}/a.npz').read(0, slice(3, 9))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_range_beyond_the_end_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    Path(path).write_bytes(b"0123456789")
    with pytest.raises(InputError, match="ends at byte 10, where 2 more are needed"):
        location.read_range(path, 8, 4)
    with pytest.raises(InputError, match="no such file"):
        location.read_range(path + "y", 0, 1)
    with pytest.raises(InputError, match="is a folder"):
        location.read_range(str(tmp_path), 0, 1)
    stamp = location.stamp_of(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(InputError, match="changed while it was being read"):
        location.read_range(path, 0, 1, stamp)


@pytest.mark.parametrize("form", ["npz", "compressed", "parquet"])
def test_prediction_files_behind_urls(memory: str, form: str) -> None:
    url = f"{memory}/run/model-a.{form}"
    if form == "parquet":
        write_parquet(url, P[None], Kind.PROBABILITIES, Samples(len(P)), (ModelInfo("model-a"),))
    else:
        compressed = form == "compressed"
        write_npz(url, P, Kind.PROBABILITIES, Samples(len(P)), compressed=compressed)
    file = open_predictions(url)
    assert file.models[0].name == "model-a"
    benchmark = align([file])
    np.testing.assert_array_equal(read_probabilities(benchmark, 0), P)
    rows = np.array([150, 3, 77])
    np.testing.assert_array_equal(read_probabilities(benchmark, 0, rows), P[rows])


def test_patterns_of_urls_are_expanded_in_order(memory: str) -> None:
    for name in ("b.npz", "a.npz", "c.txt"):
        with atomic_write(f"{memory}/{name}") as file:
            file.write(b"x")
    assert location.expand([f"{memory}/*.npz", "local*.npz"]) == [
        "memory:///bucket/a.npz",
        "memory:///bucket/b.npz",
        "local*.npz",
    ]
    with pytest.raises(InputError, match=r"memory://bucket/\*\.csv: no file matches"):
        location.expand([f"{memory}/*.csv"])


def test_nothing_is_uploaded_when_writing_fails(memory: str) -> None:
    url = f"{memory}/a"
    with atomic_write(url) as file:
        file.write(b"old")

    def fail() -> None:
        with atomic_write(url) as file:
            file.write(b"new")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert as_path(url).read_bytes() == b"old"


def test_a_url_behaves_like_a_path(memory: str) -> None:
    folder = as_path(memory) / "run"
    assert is_behind_url(folder)
    assert not folder.exists()
    write_folder(folder / "db", {"manifest.json": b"{}", "a.npz": b"abc"}, last="manifest.json")
    part = folder / "db" / "a.npz"
    assert (str(part), part.name, part.suffix) == (f"{memory}/run/db/a.npz", "a.npz", ".npz")
    assert folder.exists()
    assert (folder / "db").is_dir()
    assert part.is_file()
    assert part.stat().st_size == 3
    assert part.parent.with_name("x").name == "x"
    with part.open("rb") as file:
        assert file.read() == b"abc"
    assert (folder / "db" / "manifest.json").read_text() == "{}"
    with pytest.raises(FileNotFoundError):
        (folder / "nothing").read_bytes()


def test_what_cannot_be_reached_is_told_in_one_line(memory: str) -> None:
    with pytest.raises(InputError, match=r"memory://bucket/none\.npz: no such file"):
        open_predictions(f"{memory}/none.npz")
    with pytest.raises(InputError, match=r"nonsense://x/a\.npz: .*nonsense"):
        open_predictions("nonsense://x/a.npz")


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec", reason="the extra urls is not installed")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(InputError, match=r"pip install 'disco-cli\[s3\]'"):
        open_predictions("s3://bucket/a.npz")
