"""Cutting the work: sizes as people write them, slices without lone rows, panels within memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disco_cli.disagreement.plan import (
    MIB,
    EngineOptions,
    available_cores,
    cut,
    decoding_threads,
    panel_rows,
    panel_rows_in_place,
    parse_size,
)
from disco_cli.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("256MiB", 256 * MIB),
        ("1GiB", 1024 * MIB),
        ("1.5 GB", 1_500_000_000),
        ("2g", 2_000_000_000),
        ("64KiB", 65536),
        ("123456", 123456),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text, "--memory") == size


@pytest.mark.parametrize("text", ["", "lots", "-1GB", "1PB", "1 2", "MiB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--memory .*: not a size; write it like 256MiB"):
        parse_size(text, "--memory")


@given(st.integers(1, 5000), st.integers(0, 700))
def test_slices_cover_everything_and_none_is_a_lone_row(length: int, step: int) -> None:
    pieces = cut(length, step)
    assert [row for piece in pieces for row in range(piece.start, piece.stop)] == list(
        range(length)
    )
    sizes = {piece.stop - piece.start for piece in pieces}
    assert max(sizes) <= max(step, 3)
    assert sizes == {1} if length == 1 else min(sizes) >= 2


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_a_panel_and_its_threads_stay_within_the_memory(threads: int, scattered: bool) -> None:
    C, options = 1000, EngineOptions(memory_bytes=1024 * MIB, threads=threads)
    rows = panel_rows(C, 4, options, scattered=scattered)
    threads = decoding_threads(options)
    state, sums, held = 12, 4, 8 * threads * scattered
    assert rows * C * (state + sums + held) <= options.memory_bytes
    assert rows > 1000


def test_threads_that_decode_leave_half_of_the_memory_to_states() -> None:
    assert decoding_threads(EngineOptions(memory_bytes=1024 * MIB, threads=2)) == 2
    assert 4 < decoding_threads(EngineOptions(memory_bytes=1024 * MIB, threads=64)) < 16
    assert decoding_threads(EngineOptions(memory_bytes=MIB, threads=64)) == 1


@pytest.mark.parametrize("held", [100 * MIB, 300 * MIB])
def test_what_threads_keep_of_a_file_is_taken_off_the_memory(held: int) -> None:
    C, options = 1000, EngineOptions(memory_bytes=1024 * MIB, threads=4)
    threads = decoding_threads(options, held)
    rows = panel_rows(C, 4, options, scattered=False, held_bytes=held)
    assert 1 <= threads < 4
    assert threads * held + rows * C * 16 <= options.memory_bytes


def test_a_panel_of_files_that_are_read_in_place_is_a_block_at_most() -> None:
    options = EngineOptions(threads=2, block_elements=64_000)
    assert panel_rows_in_place(10**6, 200, options) == 320
    assert panel_rows_in_place(10**6, 10**6, options) == 2
    assert panel_rows_in_place(1600, 200, options) == 100  # eight panels for each thread
    many = EngineOptions(threads=64, memory_bytes=64 * MIB)
    assert panel_rows_in_place(10**6, 64, many) == 128


def test_little_work_is_for_one_thread_unless_more_are_asked_for() -> None:
    assert EngineOptions().for_values(10**6).n_threads == 1
    assert EngineOptions().for_values(10**12) == EngineOptions(threads=available_cores())
    assert EngineOptions(threads=3).for_values(10).n_threads == 3
