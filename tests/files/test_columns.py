"""Columns that many files repeat: kept and converted once."""

import gc

import numpy as np
import pytest

from disco_cli.errors import InputError
from disco_cli.files import columns
from disco_cli.files.columns import read_samples, shared


def test_equal_columns_of_two_files_are_one_array():
    def columns_of_a_file():
        return {
            "sample_ids": np.array([30, -4, 5], np.int16),
            "groups": np.array([b"a", b"b", b"a"]),
            "labels": np.array([1.0, np.nan, 0.0]),
            "n_options": np.array([2, 3, 4]),
        }

    one = read_samples("one.npz", columns_of_a_file(), 3, None)
    two = read_samples("two.npz", columns_of_a_file(), 3, None)
    assert one.ids.tolist() == ["30", "-4", "5"]
    assert one.ids.dtype == "U2"
    assert one.labels.tolist() == [1, -1, 0]
    for name in ("ids", "groups", "labels", "n_options"):
        assert getattr(one, name) is getattr(two, name)
        assert not getattr(one, name).flags.writeable


def test_columns_of_one_content_but_another_use_are_told_apart():
    numbers = np.array([1, 1, -5])
    samples = read_samples("a.npz", {"groups": numbers, "labels": numbers}, 3, None)
    assert samples.groups.tolist() == ["1", "1", "-5"]
    assert samples.labels.tolist() == [1, 1, -1]
    # The same column as ids is refused, although its text is known already.
    with pytest.raises(InputError, match=r"b\.npz: sample id '1' stands twice, in rows 0 and 1"):
        read_samples("b.npz", {"sample_ids": numbers}, 3, None)
    with pytest.raises(InputError, match=r"c\.npz: sample id '1' stands twice"):
        read_samples("c.npz", {"sample_ids": numbers}, 3, None)


def test_integers_of_the_largest_width_become_text():
    extremes = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0])
    ids = read_samples("a.npz", {"sample_ids": extremes}, 3, None).ids
    assert ids.tolist() == ["-9223372036854775808", "9223372036854775807", "0"]


def test_dates_for_ids_are_refused():
    with pytest.raises(InputError, match="should be integers or strings"):
        read_samples("a.npz", {"sample_ids": np.array(["2026-01-01"], "M8[D]")}, 1, None)


def test_nothing_is_kept_of_files_that_are_gone():
    gc.collect()  # what other tests left behind
    samples = read_samples("a.npz", {"sample_ids": np.arange(77_777)}, 77_777, None)
    known = len(columns._converted)
    del samples
    gc.collect()
    assert len(columns._converted) == known - 1


def test_shared_arrays_of_other_types_stay_apart():
    assert shared(np.zeros(3)) is shared(np.zeros(3))
    assert shared(np.zeros(3)) is not shared(np.zeros(3, np.int64))
    assert shared(np.zeros(4)) is not shared(np.zeros((2, 2)))
