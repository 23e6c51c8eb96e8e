"""Several models read into one array: the same values as one by one, and the same errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from disco_cli.errors import InputError
from disco_cli.files import location
from disco_cli.files.align import align, read_probabilities
from disco_cli.files.matrix import Benchmark, Kind, Samples
from disco_cli.files.npz import write_npz
from disco_cli.files.open import open_predictions
from disco_cli.files.stack import STACKED, Stack, alike, stackable

N, C = 40, 6
IDS = np.array([f"q{i:02d}" for i in range(N)])


def rows_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(C, 0.5), N)


def benchmark_of(folder: Path, *parts: slice | np.ndarray, dtype: type = np.float32) -> Benchmark:
    """Return a benchmark of one file for each part of the samples."""
    paths = []
    for m, part in enumerate(parts):
        paths.append(folder / f"m{m}.npz")
        samples = Samples(len(IDS[part]), ids=IDS[part])
        write_npz(paths[-1], rows_of(m)[part].astype(dtype), Kind.PROBABILITIES, samples)
    return align([open_predictions(str(path)) for path in paths])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_stacked_values_are_those_of_each_model(tmp_path: Path, dtype: type) -> None:
    odd = np.arange(1, N, 2)
    benchmark = benchmark_of(tmp_path, slice(0, N), slice(0, 30), slice(5, N), odd, dtype=dtype)
    with Stack(benchmark, range(4), N) as stack:
        for rows in (slice(0, N), slice(3, 5), slice(10, 31)):
            p = stack.probabilities(stack.read(rows), rows).reshape(4, -1, C)
            for m in range(4):
                np.testing.assert_array_equal(p[m], read_probabilities(benchmark, m, rows))


def test_only_models_of_one_form_are_stacked(tmp_path: Path) -> None:
    paths = []
    for m in range(STACKED + 3):
        paths.append(tmp_path / f"m{m}.npz")
        values = rows_of(m).astype(np.float16 if m == STACKED + 1 else np.float32)
        write_npz(paths[-1], values, Kind.PROBABILITIES, Samples(N), compressed=m == 0)
    benchmark = align([open_predictions(str(path)) for path in paths])
    assert [stackable(model) for model in benchmark.models] == [False] + [True] * (STACKED + 2)
    runs = alike(benchmark, range(STACKED + 3))
    assert [len(run) for run in runs] == [STACKED, 1, 1, 1]
    assert [m for run in runs for m in run] == list(range(STACKED + 3))


def test_a_bad_row_is_named_with_its_file_and_sample(tmp_path: Path) -> None:
    benchmark = benchmark_of(tmp_path, slice(0, N), slice(8, N))
    values = rows_of(1)[8:].astype(np.float32)
    values[12] = 0.5
    write_npz(tmp_path / "m1.npz", values, Kind.PROBABILITIES, Samples(N - 8, ids=IDS[8:]))
    paths = [str(tmp_path / f"m{m}.npz") for m in range(2)]
    benchmark = align([open_predictions(path, Kind.PROBABILITIES) for path in paths])
    rows = slice(15, 25)
    with (
        Stack(benchmark, range(2), N) as stack,
        pytest.raises(InputError, match=r"m1\.npz: row 12 \(sample 'q20'\): .* sum to 3"),
    ):
        stack.probabilities(stack.read(rows), rows)


def test_a_file_that_changed_or_ended_is_told(tmp_path: Path) -> None:
    benchmark = benchmark_of(tmp_path, slice(0, N), slice(0, N))
    with Stack(benchmark, range(2), N) as stack:
        (tmp_path / "m1.npz").write_bytes((tmp_path / "m1.npz").read_bytes()[:500])
        with pytest.raises(
            InputError, match=r"m1\.npz: ends at byte 500, where .* more are needed"
        ):
            stack.read(slice(0, N))
    with (
        pytest.raises(InputError, match=r"m1\.npz: changed while it was being read"),
        Stack(benchmark, range(2), N),
    ):
        pass


def test_systems_without_preadv_read_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = benchmark_of(tmp_path, slice(0, N), slice(0, N))
    with Stack(benchmark, range(2), N) as stack:
        expected = stack.read(slice(2, 9)).copy()
        monkeypatch.setattr(location, "_HAS_PREADV", False)
        np.testing.assert_array_equal(stack.read(slice(2, 9)), expected)
