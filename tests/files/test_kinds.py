"""What the values of a file are taken for, and when they are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from disco_cli.errors import InputError
from disco_cli.files.align import align, read_probabilities
from disco_cli.files.kinds import detect_kind
from disco_cli.files.matrix import Kind
from disco_cli.files.open import open_predictions
from disco_cli.files.values import BadRowError, softmax


def logits(n: int = 200, c: int = 4, seed: int = 0, scale: float = 3) -> NDArray[np.float64]:
    return scale * np.random.default_rng(seed).normal(size=(n, c))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 4, 1000])
def test_the_three_kinds_are_told_apart(dtype: Any, classes: int) -> None:
    values = logits(c=classes)
    probabilities = softmax(values)
    assert detect_kind(values.astype(dtype)) is Kind.LOGITS
    assert detect_kind(probabilities.astype(dtype)) is Kind.PROBABILITIES
    assert detect_kind(np.log(probabilities).astype(dtype)) is Kind.LOG_PROBABILITIES


def test_probabilities_softmaxed_twice_are_still_probabilities() -> None:
    assert detect_kind(softmax(softmax(logits()))) is Kind.PROBABILITIES


def test_unnormalised_log_likelihoods_are_logits() -> None:
    assert detect_kind(-np.abs(logits()) - 5) is Kind.LOGITS


def test_one_hot_integers_are_probabilities() -> None:
    assert detect_kind(np.eye(3, dtype=np.int64)) is Kind.PROBABILITIES


def test_two_small_logits_that_sum_to_one_by_accident_do_not_make_a_mixed_file() -> None:
    values = logits(c=2)
    values[17] = [0.25, 0.75]
    assert detect_kind(values) is Kind.LOGITS


def test_rows_that_sum_to_seven_tenths_are_doubtful() -> None:
    with pytest.raises(BadRowError, match=r"lie in \[0, 1\] but sum to 0\.7 instead of 1"):
        detect_kind(0.7 * softmax(logits()))


def test_one_bad_row_among_probabilities_is_named() -> None:
    values = softmax(logits())
    values[3] = np.nan
    values[7] *= 0.7
    with pytest.raises(BadRowError, match=r"here values sum to 0\.7 instead of 1") as caught:
        detect_kind(values)
    assert caught.value.row == 7


def test_mixed_rows_are_refused() -> None:
    half = np.concatenate([softmax(logits(100)), logits(100, seed=1)])
    with pytest.raises(BadRowError, match="100 of 200 rows looked at are probabilities") as caught:
        detect_kind(half)
    assert caught.value.row == 100


@pytest.mark.parametrize(
    ("named", "values", "found"),
    [
        (Kind.LOGITS, softmax(logits()), "named logits, but values lie in .* as probabilities do"),
        (Kind.PROBABILITIES, logits(), "values sum to"),
        (Kind.LOG_PROBABILITIES, logits(), r"exp\(values\) sum to"),
    ],
)
def test_a_name_that_contradicts_the_values_is_not_believed(
    named: Kind, values: Any, found: str
) -> None:
    with pytest.raises(BadRowError, match=found):
        detect_kind(values, None, named)


def test_padding_is_not_looked_at_and_missing_rows_say_nothing() -> None:
    values = np.full((3, 4), np.nan)
    values[0, :2] = [0.5, 0.5]
    values[1, :3] = [0.2, 0.3, 0.5]
    values[0, 2:] = 9
    assert detect_kind(values, np.array([2, 3, 4])) is Kind.PROBABILITIES
    assert detect_kind(np.full((3, 4), np.nan)) is Kind.PROBABILITIES
    with pytest.raises(BadRowError, match="2 of 4 options are NaN"):
        detect_kind(np.array([[0.5, 0.5, np.nan, np.nan]]))


def test_the_decision_is_noted_and_a_forced_kind_is_not_doubted(tmp_path: Path) -> None:
    values = logits(50)
    np.savez(tmp_path / "a.npz", predictions=values)
    file = open_predictions(tmp_path / "a.npz")
    assert file.kind is Kind.LOGITS
    assert file.notes == ("predictions taken for logits",)
    np.testing.assert_array_equal(read_probabilities(align([file]), 0), softmax(values))

    np.savez(tmp_path / "b.npz", predictions=softmax(values))
    forced = open_predictions(tmp_path / "b.npz", Kind.LOGITS)
    assert forced.notes == ()
    np.testing.assert_array_equal(read_probabilities(align([forced]), 0), softmax(softmax(values)))


def test_a_bad_row_is_named_with_file_row_and_sample(tmp_path: Path) -> None:
    values = softmax(logits(300))
    values[299] *= 0.7
    path = tmp_path / "a.npz"
    np.savez(path, predictions=values, sample_ids=[f"q{i}" for i in range(300)])
    with pytest.raises(InputError, match=r"a\.npz: row 299 \(sample 'q299'\): .* sum to 0\.7"):
        open_predictions(path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_bad_row_between_the_rows_looked_at_is_found_when_it_is_read(
    tmp_path: Path, save: Any
) -> None:
    values = softmax(logits(1000)).astype(np.float32)
    values[501] *= 0.7
    path = tmp_path / "a.npz"
    save(path, predictions=values, sample_ids=[f"q{999 - i}" for i in range(1000)])
    benchmark = align([open_predictions(path)])
    assert read_probabilities(benchmark, 0, slice(0, 400)).shape == (400, 4)
    with pytest.raises(InputError, match=r"a\.npz: row 501 \(sample 'q498'\): .* sum to 0\.7"):
        read_probabilities(benchmark, 0, slice(400, 600))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_stack_of_mixed_models_is_refused(tmp_path: Path, save: Any) -> None:
    values = np.stack([logits(100, seed=m) for m in range(30)])
    values[20] = softmax(values[20])
    path = tmp_path / "a.npz"
    save(path, predictions=values, model_names=[f"m{m:02d}" for m in range(30)])

    def read_all() -> None:
        benchmark = align([open_predictions(path)])
        for m in range(30):
            read_probabilities(benchmark, m)

    with pytest.raises(InputError, match=r"model 'm20' holds probabilities, but .* logits"):
        read_all()
