"""Item health: correlations and copies by hand, against numpy, and the same bits in every way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.disagreement import correctness, health
from disco_cli.disagreement.copies import find_units, is_specific
from disco_cli.disagreement.correctness import UNKNOWN, Correctness, keep_correctness
from disco_cli.disagreement.engine import SampleScores
from disco_cli.disagreement.health import examine
from disco_cli.errors import OutputError


def scores_of(Y):
    """Scores of responses in [0, 1], as the engine gives them."""
    known = ~np.isnan(Y)
    count = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = 1.0 - np.where(known, Y, 0.0).sum(axis=0) / count
        spread = np.where(known, (Y - (1 - rate)) ** 2, 0.0).sum(axis=0)
    return SampleScores(
        pds=1.0 + (spread > 0), jsd=spread, confidence=np.ones(len(count)), n_models=count,
        error_rate=rate,
    )  # fmt: skip


def kept_of(Y, dtype=np.uint8):
    if dtype is np.uint8:
        return Correctness(np.where(np.isnan(Y), UNKNOWN, Y).astype(np.uint8))
    return Correctness(Y.copy())


def check(Y, dtype=np.uint8, **options):
    return examine(kept_of(Y, dtype), scores_of(Y), **options)


def responses(M=30, N=40, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(-(rng.normal(size=(M, 1)) - rng.normal(size=N))))
    Y = (rng.random((M, N)) < chance).astype(float)
    Y[rng.random((M, N)) < missing] = np.nan
    return Y


def item_rest_by_loop(Y):
    found = np.full(Y.shape[1], np.nan)
    for i in range(Y.shape[1]):
        known = ~np.isnan(Y[:, i])
        rest = np.nanmean(np.delete(Y, i, axis=1)[known], axis=1)
        y = Y[known, i]
        if known.sum() >= 5 and np.ptp(y) > 0:
            found[i] = np.corrcoef(y, rest)[0, 1]
    return found


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_item_rest_correlation_agrees_with_a_loop(dtype, missing):
    Y = responses(missing=missing)
    np.testing.assert_allclose(check(Y, dtype).item_rest, item_rest_by_loop(Y), atol=1e-5)


def test_codes_and_responses_give_the_same_health():
    Y = responses(M=80, N=1100, missing=0.05)  # several blocks of models and samples
    one, other = check(Y), check(Y, np.float64)
    np.testing.assert_allclose(one.item_rest, other.item_rest, atol=1e-6)
    np.testing.assert_array_equal(one.flags, other.flags)
    np.testing.assert_array_equal(one.unit, other.unit)


def test_continuous_responses_in_any_unit():
    Y = np.random.default_rng(1).normal(size=(12, 20)) + np.arange(12)[:, np.newaxis] / 4
    expected = item_rest_by_loop(Y)
    for scale in (1.0, 1000.0):
        found = examine(kept_of(500.0 + Y * scale, np.float64), scores_of(Y)).item_rest
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_flags_by_hand():
    strength = np.arange(10)
    Y = (strength[:, np.newaxis] > np.array([2, 4, 6, 5, 3, 7])).astype(float)
    Y = np.column_stack([np.zeros(10), np.ones(10), 1.0 - Y[:, 1], Y])
    found = check(Y)
    texts = found.columns(None)["health"].tolist()
    assert texts[:4] == ["unsolved", "solved", "negative", ""]
    assert np.isnan(found.item_rest[:2]).all()
    assert found.item_rest[2] < -0.8
    # Ten models: a correlation of −1 lies three standard errors, √9, below 0.
    assert found.suspicion[2] == pytest.approx(-3 * found.item_rest[2])


def test_few_models_and_equal_scores_say_nothing_of_correlations():
    assert np.isnan(check(responses(M=4)).item_rest).all()
    Y = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]] * 4)
    assert np.isnan(check(Y).item_rest).all()


def test_a_single_sample_has_no_rest():
    assert np.isnan(check(np.array([[1.0], [0.0]] * 4)).item_rest).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_copies_are_found_and_easy_questions_are_none(dtype):
    Y = responses(M=60, N=200, seed=2)
    Y[:, 150] = Y[:, 20]
    Y[:, 40:60] = 1.0  # twenty easy questions, of which some are missed by one and the same model
    Y[7, 40:50] = 0.0
    found = check(Y, dtype)
    assert np.flatnonzero(found.has("duplicate")).tolist() == [150]
    assert found.unit[150] == 20
    names = np.array([f"q{i}" for i in range(200)])
    column = found.columns(names)["duplicate_of"]
    assert column[150] == "q20"
    assert column.mask.sum() == 199


def test_probabilities_tell_samples_apart_and_prove_copies():
    rng = np.random.default_rng(3)
    Y = responses(M=10, N=30, seed=3)
    scores = scores_of(Y)
    figures = {name: rng.random(30) for name in ("pds", "jsd", "confidence")}
    Y[:, 8] = Y[:, 4]
    for column in figures.values():
        column[8] = column[4]
    Y[:, 9] = Y[:, 5]  # right and wrong alike, but not the probabilities
    scores = SampleScores(n_models=scores.n_models, error_rate=scores.error_rate, **figures)
    found = examine(kept_of(Y), scores, has_probabilities=True)
    assert np.flatnonzero(found.has("duplicate")).tolist() == [8]


def test_units_join_both_kinds_of_evidence():
    answers = np.array([5, 0, 7, 0, 5, 7, 0], dtype=np.uint64)
    hashes = np.array(["", "a", "b", "a", "b", "", ""])
    # 0 and 4 by answers, 4 and 2 by content, 2 and 5 by answers; 1 and 3 by content.
    assert find_units(answers, hashes).tolist() == [0, 1, 0, 1, 0, 0, 6]
    assert find_units(answers).tolist() == [0, 1, 2, 3, 0, 2, 6]


def test_specific_by_hand():
    # Ten of twenty right: 184,756 ways, more than 400² but fewer than 500².
    half = np.repeat([0, 1], 10)[:, np.newaxis].astype(np.uint8)
    assert is_specific(np.tile(half, 400), np.array([0])).tolist() == [True]
    assert is_specific(np.tile(half, 500), np.array([0])).tolist() == [False]
    # What is missing tells nothing: two of four right is one of six.
    sparse = half.copy()
    sparse[2:-2] = UNKNOWN
    assert is_specific(np.tile(sparse, 2), np.array([0])).tolist() == [True]
    assert is_specific(np.tile(sparse, 3), np.array([0])).tolist() == [False]
    easy = np.repeat([0, 1], [1, 99])[:, np.newaxis].astype(np.uint8)
    assert is_specific(np.tile(easy, 3), np.array([0])).tolist() == [False]


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(2, 60), st.floats(0, 0.5), st.integers(0, 99))
def test_any_responses_can_be_examined(M, N, missing, seed):
    Y = responses(M, N, seed, missing)
    found = check(Y)
    known = found.item_rest[~np.isnan(found.item_rest)]
    assert np.all(np.abs(known) <= 1.0)
    assert np.all(found.unit <= np.arange(N))
    assert np.all(found.unit[found.unit] == found.unit)


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_threads_and_blocks_change_no_bit(monkeypatch, dtype):
    Y = responses(M=70, N=3000, missing=0.1)
    Y[:, 100] = Y[:, 2900]
    expected = check(Y, dtype)
    monkeypatch.setattr(health, "_ROWS", 500)
    monkeypatch.setattr(health, "_TILE", 100)
    monkeypatch.setattr(health, "_MODELS", 9)
    found = check(Y, dtype, n_threads=3)
    for name in ("item_rest", "unit", "flags", "suspicion"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


def test_what_is_too_much_for_the_memory_goes_to_a_file(tmp_path, benchmark_of, monkeypatch):
    benchmark = benchmark_of(6, 50)
    inside, outside = keep_correctness(benchmark, 1 << 20), keep_correctness(benchmark, 300)
    assert not isinstance(inside.values, np.memmap)
    assert isinstance(outside.values, np.memmap)
    for kept in (inside, outside):
        kept.put(range(2, 3), slice(10, 13), np.array([[1.0, np.nan, 0.0]]))
        assert kept.values[2, 10:13].tolist() == [1, UNKNOWN, 0]

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(correctness.os, "posix_fallocate", full, raising=False)
    with pytest.raises(OutputError, match="no room for 0 MiB of temporary data: No space left"):
        keep_correctness(benchmark, 300)


def test_parts_are_pasted_where_they_belong():
    whole = Correctness(np.zeros((5, 8), np.uint8))
    part = Correctness(np.ones((2, 3), np.uint8), first_model=2, first_sample=4)
    part.put(range(3, 4), slice(5, 7), np.array([[np.nan, 0.0]]))
    whole.paste(part)
    assert whole.values[2:4, 4:7].tolist() == [[1, 1, 1], [1, UNKNOWN, 0]]
    assert whole.values.sum() == 4 + UNKNOWN


@pytest.fixture
def benchmark_of(tmp_path):
    from support import make_predictions, write_models

    from disco_cli.files.align import align
    from disco_cli.files.open import open_predictions

    def make(M, N):
        probabilities, labels = make_predictions(n_models=M, n=N)
        return align([open_predictions(p) for p in write_models(tmp_path, probabilities, labels)])

    return make
