"""Writers that cannot write, and what reading an NPZ file must not import."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from disco_cli.errors import OutputError
from disco_cli.files import fetch
from disco_cli.files.matrix import Kind, Samples
from disco_cli.files.npz import write_npz
from disco_cli.files.open import open_predictions
from disco_cli.files.parquet import write_parquet

WRITE_TOO_MUCH = """
import resource, sys
import numpy as np
from disco_cli.errors import OutputError
from disco_cli.files.matrix import Kind, Samples
from disco_cli.files.npz import write_npz
from disco_cli.files.parquet import write_parquet
values = np.random.default_rng(0).random((30_000, 10))
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
write = write_parquet if sys.argv[2] == "parquet" else write_npz
more = {"compressed": True} if sys.argv[2] == "compressed" else {}
try:
    write(sys.argv[1], values, Kind.LOGITS, Samples(30_000), **more)
except OutputError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("how", ["stored", "compressed", "parquet"])
def test_a_file_that_grows_too_large_is_one_clear_line(tmp_path: Path, how: str) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", WRITE_TOO_MUCH, target, how],
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.stdout == (
        f"{target}: cannot be written: file too large; a limit on file sizes is set "
        "(see ulimit -f)\n"
    )
    assert (run.returncode, run.stderr) == (3, "")
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("write", [write_npz, write_parquet])
def test_a_full_disk_is_one_clear_line(write: Any) -> None:
    with pytest.raises(OutputError, match="/dev/full: cannot be written: no space left on device"):
        write("/dev/full", np.eye(3), Kind.PROBABILITIES, Samples(3))


def test_reading_an_npz_file_imports_nothing_heavy(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_npz(path, np.eye(3), Kind.PROBABILITIES, Samples(3), compressed=True)
    code = (
        "import sys\n"
        "from disco_cli.files.open import open_predictions\n"
        "from disco_cli.files.align import align, read_probabilities\n"
        f"read_probabilities(align([open_predictions({str(path)!r})]), 0)\n"
        "heavy = {'pyarrow', 'scipy', 'sklearn', 'rich', 'pandas', 'tempfile'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("small", [True, False])
def test_threads_may_read_different_models_of_one_compressed_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    if not small:
        monkeypatch.setattr(fetch, "SMALL_BYTES", 0)
    stack = np.random.default_rng(0).dirichlet(np.ones(4), (16, 200))
    write_npz(tmp_path / "a.npz", stack, Kind.PROBABILITIES, Samples(200), compressed=True)
    file = open_predictions(tmp_path / "a.npz")
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(16), 4)).tolist()
    with ThreadPoolExecutor(4) as pool:
        for model, values in zip(
            order, pool.map(lambda m: file.read(m, slice(None)), order), strict=True
        ):
            np.testing.assert_array_equal(values, stack[model])
