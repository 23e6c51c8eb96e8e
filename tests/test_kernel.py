"""The compiled loops do what numpy does, bit by bit, and leave to numpy what is not certain."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disco_cli import kernel
from disco_cli.disagreement.engine import SampleScores, score_benchmark
from disco_cli.disagreement.measures import negated_entropy
from disco_cli.disagreement.observe import add_from_files
from disco_cli.disagreement.state import State
from disco_cli.errors import InputError
from disco_cli.files import values
from disco_cli.files.align import align
from disco_cli.files.matrix import Kind, Samples
from disco_cli.files.npz import write_npz
from disco_cli.files.open import open_predictions
from disco_cli.files.rows import row_sum
from disco_cli.files.stack import Stack

compiled: Any = kernel.kernel_for()
built = pytest.mark.skipif(compiled is None, reason="the compiled loops were not built here")
UNITS = 2.0**40
NAN = float("nan")


def probabilities(seed: int, n: int, n_classes: int) -> np.ndarray:
    """Return rows with zeros, numbers too small to be normal, and one certain answer."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, rng.uniform(0.01, 2)), n).astype(np.float32)
    p[rng.random(p.shape) < 0.1] = 0
    p[rng.random(p.shape) < 0.05] = 1e-41
    p[0] = 0
    p[0, rng.integers(n_classes)] = 1
    return p


def by_numpy(p: np.ndarray) -> np.ndarray:
    """Return -H(p) and the highest probability of each row, (2, n)."""
    result = np.empty((2, len(p)), p.dtype)
    with np.errstate(invalid="ignore"):
        negated_entropy(p, result[0])
    result[1] = p.max(axis=1)
    return result


def test_the_loops_are_built_and_agree_where_they_can_be() -> None:
    can = sys.platform == "linux" and platform.machine() == "x86_64" and shutil.which("gcc")
    if not can:
        pytest.skip("no GCC on Linux and x86-64")
    assert compiled is not None


@built
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 130))
def test_figures_are_those_of_numpy(seed: int, n: int, n_classes: int) -> None:
    p = probabilities(seed, n, n_classes)
    found = np.empty((2, n), np.float32)
    compiled.figures(p, n_classes, found)
    np.testing.assert_array_equal(found, by_numpy(p))


@built
@pytest.mark.parametrize("n_classes", [4096, 5000, 9001])
def test_figures_of_rows_longer_than_a_chunk(n_classes: int) -> None:
    p = probabilities(1, 3, n_classes)
    found = np.empty((2, 3), np.float32)
    compiled.figures(p, n_classes, found)
    np.testing.assert_array_equal(found, by_numpy(p))


@built
def test_figures_of_a_missing_row_are_nan_and_of_its_neighbours_not() -> None:
    p = probabilities(2, 9, 20)
    p[4] = NAN
    found = np.empty((2, 9), np.float32)
    compiled.figures(p, 20, found)
    np.testing.assert_array_equal(found, by_numpy(p))
    assert np.isnan(found[0]).tolist() == [row == 4 for row in range(9)]


@built
@pytest.mark.slow
def test_logarithms_of_all_numbers_between_zero_and_one_are_numpys() -> None:
    for start in range(0, 0x3F800001, 1 << 22):
        x = np.arange(start, min(start + (1 << 22), 0x3F800001), dtype=np.uint32).view(np.float32)
        found = np.empty((2, len(x)), np.float32)
        compiled.figures(x, 1, found)
        np.testing.assert_array_equal(found[0], x * np.log(x + np.finfo(np.float32).tiny))


@built
@pytest.mark.parametrize("n_classes", [1, 3, 15, 16, 17, 200])
@pytest.mark.parametrize("fault", [-1e-6, -0.0, NAN, np.inf, -np.inf, 0.02, 1.5])
def test_a_row_with_a_fault_is_not_certain(n_classes: int, fault: float) -> None:
    rng = np.random.default_rng(n_classes)
    p = rng.dirichlet(np.ones(n_classes), 5).astype(np.float32)
    assert compiled.are_probabilities(p, n_classes, values.certain_tolerance(n_classes))
    place = (rng.integers(5), rng.integers(n_classes))
    p[place] = p[place] + fault if fault > 0 else fault
    assert not compiled.are_probabilities(p, n_classes, values.certain_tolerance(n_classes))


@built
@given(st.integers(0, 10**6), st.floats(0.98, 1.02))
def test_what_is_certain_is_accepted_by_numpy_too(seed: int, scale: float) -> None:
    p = probabilities(seed, 4, 30)
    p *= np.float32(scale) / p.sum(axis=1, keepdims=True)
    if compiled.are_probabilities(p, 30, values.certain_tolerance(30)):
        assert np.abs(p.astype(np.float64).sum(axis=1) - 1).max() <= values.TOLERANCE


@built
@pytest.mark.parametrize("n_classes", [16, 1000, 21_841, 100_000, 1_000_000])
def test_long_rows_are_certain_only_where_no_rounding_can_matter(n_classes: int) -> None:
    tolerance = values.certain_tolerance(n_classes)
    for scale in np.linspace(1.0, 1.012, 25):  # the roundings of equal numbers have one sign
        p = np.full((2, n_classes), scale / n_classes, np.float32)
        if compiled.are_probabilities(p, n_classes, tolerance):
            one_by_one = np.cumsum(p[0])[-1]
            assert max(one_by_one, p[0].sum(), row_sum(p)[0]) <= 1 + values.TOLERANCE
            assert n_classes < 84_000
        else:
            assert scale > 1.006 or n_classes > 21_841


def test_the_tolerance_leaves_room_for_both_roundings() -> None:
    assert values.certain_tolerance(2) == pytest.approx(0.0099)
    assert values.certain_tolerance(20_000) == pytest.approx(0.01 - 20_000 / 8_388_608)
    assert values.certain_tolerance(83_886) > 0 > values.certain_tolerance(83_887)


@built
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 60), st.booleans())
def test_adding_is_done_model_after_model(seed: int, n_models: int, n: int, first: bool) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random((n_models, n, 7), dtype=np.float32)
    sums, maximum = rng.random((2, n, 7), dtype=np.float32)
    expected = np.zeros_like(sums) if first else sums.copy()
    for one in p:
        expected += one
    highest = np.maximum(maximum, p.max(axis=0))
    compiled.add(p, n_models, sums, maximum, first)
    np.testing.assert_array_equal(sums, expected)
    np.testing.assert_array_equal(maximum, highest)


@built
def test_units_are_rounded_towards_zero_and_the_sums_start_anew() -> None:
    sums = np.array([[0.0, 1.0, 1 / 3], [15.9, 2**-41, 3 * 2**-41]], np.float32)
    total = np.full((2, 3), 5, np.int64)
    expected = total + (sums * np.float32(UNITS)).astype(np.int64)
    compiled.add_units(sums, total)
    assert total.tolist() == expected.tolist()
    assert total[1, 1:].tolist() == [5, 6]
    assert not sums.any()


@built
def test_every_half_is_widened_as_numpy_does() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    singles = np.empty(1 << 16, np.float32)
    compiled.widen(halves, singles)
    expected = halves.astype(np.float32)
    np.testing.assert_array_equal(singles, expected)
    np.testing.assert_array_equal(np.signbit(singles), np.signbit(expected))
    singles[:] = -2
    for start in range(0, 1 << 16, 7):  # so few that none goes by eights
        compiled.widen(halves[start : start + 7], singles[start : start + 7])
    np.testing.assert_array_equal(singles, expected)
    np.testing.assert_array_equal(np.signbit(singles), np.signbit(expected))


@built
def test_arrays_of_other_types_and_shapes_are_refused() -> None:
    p, out = np.ones((4, 3), np.float32), np.empty((2, 4), np.float32)
    total = np.zeros((4, 3), np.int64)
    with pytest.raises(ValueError, match="another type or shape"):
        compiled.figures(p.astype(np.float64), 3, out)
    with pytest.raises(ValueError, match="another type or shape"):
        compiled.figures(p, 3, out[:, :3].copy())
    with pytest.raises(ValueError, match="another type or shape"):
        compiled.add_units(p[:3], total)
    with pytest.raises(ValueError, match="not C-contiguous"):
        compiled.add_units(p[:, :2], total)
    kept = p.copy()
    kept.setflags(write=False)
    with pytest.raises((ValueError, BufferError), match=r"read-only|not writable"):
        compiled.add(p, 1, kept, p, True)


@built
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, ">f4", "S4", [("a", "f4")], "M8[s]"])
def test_values_of_the_same_size_but_another_type_are_refused(dtype: Any) -> None:
    p, out = np.zeros((4, 3), dtype), np.zeros((2, 4), np.float32)
    with pytest.raises(ValueError, match=r"another type|cannot include"):
        compiled.figures(p, 3, out)
    with pytest.raises(ValueError, match="another type"):
        compiled.add_units(np.zeros(3, np.float32), np.zeros(3, np.uint64))
    with pytest.raises(ValueError, match="another type"):
        compiled.widen(np.zeros(3, np.uint16), np.zeros(3, np.float32))


def shifted(array: np.ndarray) -> np.ndarray:
    """Return the same array one byte beside where numbers belong."""
    memory = bytearray(array.nbytes + 1)
    result = np.frombuffer(memory, array.dtype, offset=1).reshape(array.shape)
    result[...] = array
    return result


@built
def test_misaligned_memory_is_left_to_numpy() -> None:
    p, out = probabilities(5, 9, 33), np.empty((2, 9), np.float32)
    halves = np.full((9, 33), 1 / 64, np.float16)
    for call in (
        lambda: compiled.figures(shifted(p), 33, out),
        lambda: compiled.are_probabilities(shifted(p), 33, 0.01),
        lambda: compiled.add(p, 1, p.copy(), shifted(p), True),
        lambda: compiled.add_units(p.copy(), shifted(np.zeros(p.shape, np.int64))),
        lambda: compiled.widen(shifted(halves), p.copy()),
    ):
        with pytest.raises(ValueError, match="another type"):
            call()
    assert kernel.kernel_for(p) is compiled
    assert kernel.kernel_for(p, shifted(p)) is None
    np.testing.assert_array_equal(values.working(shifted(halves)), np.float32(1 / 64))
    uniform = np.full((9, 32), 1 / 32, np.float32)
    np.testing.assert_array_equal(
        values.to_probabilities(shifted(uniform), Kind.PROBABILITIES), uniform
    )


@built
@pytest.mark.parametrize("parts", [0, -1, -(2**62), 5, 13, 2**62])
def test_what_cannot_be_cut_into_rows_is_refused(parts: int) -> None:
    p, none = np.ones(12, np.float32), np.zeros(0, np.float32)
    with pytest.raises(ValueError, match="another type or shape"):
        compiled.figures(p, parts, none)
    with pytest.raises(ValueError, match="another type or shape"):
        compiled.are_probabilities(p, parts, 0.01)
    with pytest.raises(ValueError, match="another type or shape"):
        compiled.add(p, parts, none, none, True)


def test_rows_without_classes_are_left_to_numpy() -> None:
    with pytest.raises(values.BadRowError, match="sum to 0 instead of 1"):
        values.to_probabilities(np.zeros((2, 0), np.float32), Kind.PROBABILITIES)


@built
@pytest.mark.parametrize(
    ("models", "item", "n", "n_classes"),
    [
        (2, 8, 0, 3),
        (0, 4, 0, 3),
        (0, 4, 5, 3),
        (2, 4, -1, 3),
        (2, 4, 0, 0),
        (2, 4, 0, -1),
        (2, 4, 0, 2**62),
        (2, 4, 2**62, 4),  # n C, and the bytes of n integers, are 0 if cut to 64 bits
        (2, 4, 2**62, 2),  # n C is negative
        (4, 4, 2**61, 1),  # M n is
    ],
)
def test_files_of_impossible_sizes_are_refused(
    models: int, item: int, n: int, n_classes: int
) -> None:
    room = 15 if n == 5 else 0
    ints, floats = np.zeros(models, np.int64), np.zeros(room, np.float32)
    per_row = np.zeros(n if n == 5 else 0, np.int64)
    with pytest.raises(ValueError, match=r"another (type or )?shape"):
        compiled.add_files(
            ints, ints, item, n, n_classes, 1.0, floats, floats, True, per_row, per_row, per_row
        )


@built
@pytest.mark.parametrize("offset", [-1, -(2**63), 4, 2**62, 2**63 - 1])
@pytest.mark.parametrize("other", [None, -1, 2**20, 2**32, -(2**63)])
def test_what_cannot_be_read_is_not_added(tmp_path: Path, offset: int, other: int | None) -> None:
    """Bytes before the start or past the end, and handles of no file, one of them above an int's."""
    path = tmp_path / "values"
    path.write_bytes(np.full(300, 1 / 3, np.float32).tobytes())
    with path.open("rb") as file:
        number = file.fileno()
        handles = np.array([number, number if other is None else other + number * (other > 0)])
        offsets = np.array([0, offset if other is None else 0])
        sums, maximum = np.zeros((2, 100, 3), np.float32)
        entropy, confidence = np.zeros((2, 100), np.int64)
        done = compiled.add_files(
            handles, offsets, 4, 100, 3, 0.01, sums, maximum, True, entropy, confidence, None
        )
    assert done == 0
    for changed in (sums, maximum, entropy, confidence):
        assert not changed.any()


def test_a_kernel_that_adds_in_another_order_is_not_used() -> None:
    def figures(p: np.ndarray, _: int, out: np.ndarray) -> None:
        out[...] = by_numpy(p)

    def pairwise(p: np.ndarray, _: int, out: np.ndarray) -> None:
        out[0] = (p * np.log(p + np.finfo(np.float32).tiny)).sum(axis=1)
        out[1] = p.max(axis=1)

    assert kernel.gives_numpys_bits(SimpleNamespace(figures=figures))
    assert not kernel.gives_numpys_bits(SimpleNamespace(figures=pairwise))


def test_a_kernel_of_another_source_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "_kernel.c"
    assert not kernel.is_built_of(path, SimpleNamespace())  # built before there were checksums
    built_of_hello = SimpleNamespace(source=lambda: 0x3610A686)
    assert kernel.is_built_of(path, built_of_hello)  # nothing there that could be newer
    path.write_text("hello")
    assert kernel.is_built_of(path, built_of_hello)
    path.write_text("hello.")
    assert not kernel.is_built_of(path, built_of_hello)


N, C = 83, 21


def write(
    folder: Path, P: np.ndarray, labels: np.ndarray | None = None, kind: Kind = Kind.PROBABILITIES
) -> list[Path]:
    paths = [folder / f"m{m:02d}.npz" for m in range(len(P))]
    for path, rows in zip(paths, P, strict=True):
        write_npz(path, rows, kind, Samples(n=len(rows), labels=labels))
    return paths


def both_ways(paths: list[Path], patch: pytest.MonkeyPatch) -> list[SampleScores]:
    """Score with the compiled loops and without."""
    benchmark = align([open_predictions(str(path)) for path in paths])
    found = [score_benchmark(benchmark)]
    patch.setattr(kernel, "_LOADED", None)
    found.append(score_benchmark(benchmark))
    return found


def assert_same(first: SampleScores, second: SampleScores) -> None:
    for name in ("pds", "jsd", "confidence", "n_models", "error_rate"):
        one, other = getattr(first, name), getattr(second, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert one.tobytes() == other.tobytes(), name


@built
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
@pytest.mark.parametrize("missing", [0.0, 0.02])
@pytest.mark.parametrize("labelled", [False, True])
def test_scores_are_the_same_bytes_with_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: type, missing: float, labelled: bool
) -> None:
    rng = np.random.default_rng(3)
    P = np.stack([probabilities(m, N, C) for m in range(21)])
    P /= P.sum(axis=2, keepdims=True)
    P[:, 7, :2] = 0.5  # two best answers, of which the first counts
    P[:, 7, 2:] = 0
    P[rng.random(P.shape[:2]) < missing] = NAN
    labels = rng.integers(0, C, N) if labelled else None
    paths = write(tmp_path, P.astype(dtype), labels)
    assert_same(*both_ways(paths, monkeypatch))


@built
@pytest.mark.parametrize("kind", [Kind.LOGITS, Kind.LOG_PROBABILITIES])
def test_scores_of_other_kinds_are_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    logits = np.random.default_rng(4).normal(0, 3, (19, N, C)).astype(np.float32)
    if kind is Kind.LOG_PROBABILITIES:
        logits -= np.log(np.exp(logits).sum(axis=2, keepdims=True))
    assert_same(*both_ways(write(tmp_path, logits, kind=kind), monkeypatch))


@built
@pytest.mark.parametrize("row", [0, 40, N - 1])
@pytest.mark.parametrize("fault", [-0.5, 1.5, NAN])
def test_a_faulty_row_is_told_in_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: int, fault: float
) -> None:
    P = np.stack([probabilities(m, N, C) for m in range(6)])
    P /= P.sum(axis=2, keepdims=True)
    paths = write(tmp_path, P)
    benchmark = align([open_predictions(str(path)) for path in paths])
    P[4, row, 3] = fault
    write(tmp_path, P)
    messages = []
    for loaded in (compiled, None):
        monkeypatch.setattr(kernel, "_LOADED", loaded)
        with pytest.raises(InputError) as caught:
            score_benchmark(
                align([open_predictions(str(p), benchmark.models[0].file.kind) for p in paths])
            )
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "m04.npz" in messages[0]
    assert str(row) in messages[0]


@built
def test_a_file_cut_short_while_it_is_read_is_told(tmp_path: Path) -> None:
    P = np.stack([probabilities(m, N, C) for m in range(3)])
    P /= P.sum(axis=2, keepdims=True)
    paths = write(tmp_path, P)
    benchmark = align([open_predictions(str(path)) for path in paths])
    state = State.empty(N, C, np.dtype(np.float32))
    sums, all_rows = np.empty((N, C), np.float32), slice(0, N)
    with Stack(benchmark, range(3), N) as stack:
        os.truncate(paths[1], paths[1].stat().st_size // 2)
        done, _ = add_from_files(state, all_rows, sums, stack, all_rows, first=True)
        assert done == 0
        assert not state.count.any()
        with pytest.raises(InputError, match=r"m01\.npz: ends at byte"):
            stack.read(all_rows)


@built
def test_rows_before_an_uncertain_part_are_added(tmp_path: Path) -> None:
    n, n_classes = 300, 1000
    P = np.full((2, n, n_classes), 1e-3, np.float32)
    P[1, 200] = NAN
    paths = write(tmp_path, P, np.zeros(n, np.int64))
    benchmark = align([open_predictions(str(path)) for path in paths])
    state = State.empty(n, n_classes, np.dtype(np.float32))
    sums, all_rows = np.empty((n, n_classes), np.float32), slice(0, n)
    with Stack(benchmark, range(2), n) as stack:
        done, answers = add_from_files(state, all_rows, sums, stack, all_rows, first=True)
    assert 100 < done <= 200
    assert state.count.tolist() == [2] * done + [0] * (n - done)
    assert answers is not None
    assert not answers[:, :done].any()
    np.testing.assert_allclose(sums[:done], 2e-3, rtol=1e-6)
    assert not state.maximum[done:].any()


@built
@pytest.mark.parametrize(("n_classes", "added"), [(83_000, 2), (84_000, 0)])
def test_rows_that_no_sum_can_prove_are_not_tried(
    tmp_path: Path, n_classes: int, added: int
) -> None:
    P = np.zeros((1, 2, n_classes), np.float32)
    P[:, :, 5] = 1
    benchmark = align([open_predictions(str(path)) for path in write(tmp_path, P)])
    state = State.empty(2, n_classes, np.dtype(np.float32))
    sums, both = np.empty((2, n_classes), np.float32), slice(0, 2)
    with Stack(benchmark, range(1), 2) as stack:
        done, _ = add_from_files(state, both, sums, stack, both, first=True)
    assert done == added
