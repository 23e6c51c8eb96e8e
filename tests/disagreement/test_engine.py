"""The engine on files: agreement with the definitions, and the same bits in every way to run it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from disco_cli.disagreement.engine import EngineOptions, SampleScores, score_benchmark
from disco_cli.disagreement.measures import confidence, jensen_shannon, predictive_diversity
from disco_cli.errors import InputError, UsageError
from disco_cli.files import fetch
from disco_cli.files.align import align
from disco_cli.files.matrix import Kind, ModelInfo, Samples
from disco_cli.files.npz import write_npz
from disco_cli.files.open import open_predictions
from disco_cli.files.parquet import write_parquet

NAN = float("nan")
M, N, C = 37, 61, 5


def stack(seed: int = 0, missing: float = 0.0, M: int = M, N: int = N, C: int = C) -> np.ndarray:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(C, 0.5), size=(M, N))
    P[rng.random((M, N)) < missing] = np.nan
    return P


def write(folder: Path, values: np.ndarray, kind: Kind = Kind.PROBABILITIES, **columns) -> list:
    """Write one file per model; ``order`` permutes the rows of each by its own seed."""
    folder.mkdir(exist_ok=True)
    responses = columns.pop("responses", [None] * len(values))
    compressed = columns.pop("compressed", False)
    paths = []
    for m, rows in enumerate(values):
        path = folder / f"model-{m:03d}.npz"
        samples = Samples(n=len(rows), **columns)
        write_npz(path, rows, kind, samples, responses=responses[m], compressed=compressed)
        paths.append(path)
    return paths


def score(paths: list, options: EngineOptions | None = None, **align_options) -> SampleScores:
    return score_benchmark(
        align([open_predictions(path) for path in paths], **align_options), options=options
    )


def bits(scores: SampleScores) -> list[bytes | None]:
    columns = (getattr(scores, field.name) for field in fields(SampleScores))
    return [None if column is None else column.tobytes() for column in columns]


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 1e-6), (np.float16, 1e-6)]
)
def test_agrees_with_the_definitions(
    tmp_path: Path, dtype: type, tolerance: float, missing: float
) -> None:
    P = stack(1, missing).astype(dtype)
    scores = score(write(tmp_path, P))
    exact = P.astype(np.float64)
    np.testing.assert_allclose(scores.pds, predictive_diversity(exact), atol=tolerance)
    np.testing.assert_allclose(scores.jsd, jensen_shannon(exact), atol=tolerance)
    np.testing.assert_allclose(scores.confidence, confidence(exact), atol=tolerance)
    assert scores.n_models.tolist() == (~np.isnan(P[:, :, 0])).sum(axis=0).tolist()
    assert scores.error_rate is None


def test_error_rate_from_labels(tmp_path: Path) -> None:
    P = stack(2, 0.2)
    labels = np.random.default_rng(3).integers(-1, C, N)
    right = (P.argmax(axis=2) == labels).astype(float)
    right[np.isnan(P[:, :, 0])] = NAN
    right[:, labels < 0] = NAN
    scores = score(write(tmp_path, P, labels=labels))
    assert scores.error_rate is not None
    with np.errstate(invalid="ignore"):
        expected = 1 - np.nansum(right, axis=0) / (~np.isnan(right)).sum(axis=0)
    np.testing.assert_allclose(scores.error_rate, expected, rtol=1e-12)


def test_logits_and_log_probabilities_say_what_probabilities_say(tmp_path: Path) -> None:
    P = stack(4)
    labels = np.random.default_rng(5).integers(0, C, N)
    plain = score(write(tmp_path / "p", P, labels=labels))
    logs = score(write(tmp_path / "l", np.log(P), Kind.LOG_PROBABILITIES, labels=labels))
    logits = score(write(tmp_path / "x", np.log(P) * 1 + 7, Kind.LOGITS, labels=labels))
    for other in (logs, logits):
        np.testing.assert_allclose(other.jsd, plain.jsd, atol=1e-11)
        np.testing.assert_allclose(other.pds, plain.pds, atol=1e-11)
        np.testing.assert_allclose(other.error_rate, plain.error_rate, atol=1e-11)


def test_on_labels_pds_is_the_number_of_distinct_answers(tmp_path: Path) -> None:
    predicted = np.random.default_rng(6).integers(-1, C, (M, N))
    scores = score(write(tmp_path, predicted, Kind.LABELS, labels=np.zeros(N, np.int64)))
    distinct = [len(set(column[column >= 0])) for column in predicted.T]
    assert scores.pds.tolist() == distinct
    assert scores.n_models.tolist() == (predicted >= 0).sum(axis=0).tolist()
    rate = (predicted > 0).sum(axis=0) / (predicted >= 0).sum(axis=0)
    np.testing.assert_allclose(scores.error_rate, rate, rtol=1e-12)
    P = np.eye(C)[predicted]
    P[predicted < 0] = NAN
    np.testing.assert_allclose(scores.jsd, jensen_shannon(P), atol=1e-11)


def test_no_answer_can_be_an_answer_of_its_own_and_wrong(tmp_path: Path) -> None:
    predicted = np.array([[0, -1, -2], [1, -1, 1], [1, 0, 1]])
    paths = write(tmp_path, predicted, Kind.LABELS, labels=np.array([1, 0, 1]))
    scores = score(paths, counts_no_answer=True)
    assert scores.pds.tolist() == [2.0, 2.0, 1.0]
    assert scores.n_models.tolist() == [3, 3, 2]
    np.testing.assert_allclose(scores.error_rate, [1 / 3, 2 / 3, 0.0], atol=1e-12)


def test_responses_are_two_outcomes(tmp_path: Path) -> None:
    y = np.array([[0.0, 0.25, NAN], [1.0, 0.75, 0.5]])
    scores = score(write(tmp_path, y, Kind.RESPONSES))
    assert scores.pds.tolist() == [2.0, 1.5, 1.0]
    np.testing.assert_allclose(scores.error_rate, [0.5, 0.5, 0.5])
    assert scores.n_models.tolist() == [2, 2, 1]


def test_responses_outside_0_and_1_are_refused(tmp_path: Path) -> None:
    paths = write(tmp_path, np.array([[0.5, 3.5], [0.5, 0.5]]), Kind.RESPONSES)
    with pytest.raises(InputError, match=r"model-000\.npz.*row 1.*3\.5.*outside \[0, 1\]"):
        score(paths)


def test_responses_beside_values_are_the_truth(tmp_path: Path) -> None:
    P, y = stack(7, M=3), np.random.default_rng(8).random((3, N))
    scores = score(write(tmp_path, P, responses=y, labels=np.zeros(N, np.int64)))
    np.testing.assert_allclose(scores.error_rate, 1 - y.mean(axis=0), rtol=1e-11)
    np.testing.assert_allclose(scores.jsd, jensen_shannon(P), atol=1e-11)


def test_ragged_options_ignore_what_stands_beyond(tmp_path: Path) -> None:
    options = np.random.default_rng(9).integers(2, C + 1, N)
    valid = np.arange(C) < options[:, None]
    P = stack(10) * valid
    P /= P.sum(axis=2, keepdims=True)
    clean = score(write(tmp_path / "clean", P, n_options=options))
    noisy = score(write(tmp_path / "noisy", np.where(valid, P, NAN), n_options=options))
    assert bits(clean) == bits(noisy)
    np.testing.assert_allclose(clean.jsd, jensen_shannon(P), atol=1e-11)


@pytest.mark.parametrize("kind", [Kind.PROBABILITIES, Kind.LOGITS])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_the_width_of_blocks_changes_no_bit(tmp_path: Path, dtype: type, kind: Kind) -> None:
    P = stack(11, 0.1)
    values = P if kind is Kind.PROBABILITIES else 3 * np.log(P + 1e-4)
    paths = write(tmp_path, values.astype(dtype), kind, labels=np.zeros(N, np.int64))
    whole = bits(score(paths, EngineOptions(block_elements=10**9)))
    for width in (1, 3, 7, 30):
        assert bits(score(paths, EngineOptions(block_elements=width * C))) == whole


def test_the_order_of_files_and_rows_changes_no_bit(tmp_path: Path) -> None:
    P = stack(12).astype(np.float32)
    ids = np.array([f"q{i}" for i in range(N)])
    paths = write(tmp_path / "a", P, ids=ids)
    whole = bits(score(paths))
    assert bits(score(paths[::-1])) == whole
    order = np.random.default_rng(13).permutation(N)
    shuffled = write(tmp_path / "b", P[:, order], ids=ids[order])
    assert bits(score(shuffled)) == whole
    # Some files shuffled, some not.
    assert bits(score(paths[:5] + shuffled[5:])) == whole


@pytest.mark.parametrize("how", ["npz", "compressed", "parquet", "mixed"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_neither_memory_nor_threads_nor_format_change_a_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, shuffled: bool
) -> None:
    monkeypatch.setattr(fetch, "SMALL_BYTES", 0)  # inflate in blocks
    P, ids = stack(13, 0.1).astype(np.float32), np.array([f"q{i}" for i in range(N)])
    labels = np.random.default_rng(14).integers(0, C, N)
    expected = bits(score(write(tmp_path / "plain", P, ids=ids, labels=labels)))
    order = np.random.default_rng(15).permutation(N) if shuffled else np.arange(N)
    samples = Samples(N, ids=ids[order], labels=labels[order])
    paths = []
    for m, rows in enumerate(P[:, order]):
        form = ("npz", "compressed", "parquet")[m % 3] if how == "mixed" else how
        paths.append(tmp_path / f"model-{m:03d}.{form}")
        if form == "parquet":
            model = (ModelInfo(f"model-{m:03d}"),)
            write_parquet(paths[-1], rows[None], Kind.PROBABILITIES, samples, model)
        else:
            compressed = form == "compressed"
            write_npz(paths[-1], rows, Kind.PROBABILITIES, samples, compressed=compressed)
    benchmark = align([open_predictions(path) for path in paths])
    for threads in (1, 2, 5):
        for memory in (1, 2**20):  # of which 1 is raised to what two samples need
            options = EngineOptions(threads=threads, block_elements=7 * C)
            object.__setattr__(options, "memory_bytes", memory)
            assert bits(score_benchmark(benchmark, options=options)) == expected


@pytest.mark.parametrize("with_responses", [False, True])
def test_kinds_and_types_mix_and_change_no_bit(tmp_path: Path, with_responses: bool) -> None:
    P, rng = stack(18, 0.1), np.random.default_rng(19)
    labels, responses = rng.integers(0, C, N), rng.random((M, N))
    found = []
    for compressed in (False, True):
        folder, paths = tmp_path / str(compressed), []
        folder.mkdir()
        for m, rows in enumerate(P):
            kind = (Kind.PROBABILITIES, Kind.LOGITS, Kind.LOG_PROBABILITIES)[m // 3 % 3]
            values = rows if kind is Kind.PROBABILITIES else np.log(rows + 1e-6)
            if kind is Kind.LOG_PROBABILITIES:
                values -= np.log(np.exp(values).sum(axis=1, keepdims=True))
            dtype = (np.float16, np.float32, np.float32, np.float32, np.float64)[m // 5 % 5]
            paths.append(folder / f"model-{m:03d}.npz")
            write_npz(
                paths[-1], values.astype(dtype), kind, Samples(N, labels=labels),
                responses=responses[m] if with_responses and m % 7 < 3 else None,
                compressed=compressed,
            )  # fmt: skip
        options = [EngineOptions(threads=threads, block_elements=9 * C) for threads in (1, 3)]
        found += [bits(score(paths, one)) for one in options]
    assert found == found[:1] * 4


def test_files_with_different_samples(tmp_path: Path) -> None:
    P = stack(16)
    ids = np.array([f"q{i}" for i in range(N)])
    halves = [slice(0, 40), slice(20, N)]
    paths = []
    for m, rows in enumerate(P):
        half = halves[m % 2]
        paths.append(tmp_path / f"model-{m:03d}.npz")
        samples = Samples(len(ids[half]), ids=ids[half])
        write_npz(paths[-1], rows[half], Kind.PROBABILITIES, samples)
        P[m][np.setdiff1d(np.arange(N), np.arange(N)[half])] = NAN
    scores = score(paths, EngineOptions(block_elements=7 * C))
    np.testing.assert_allclose(scores.jsd, jensen_shannon(P), atol=1e-11)
    assert scores.n_models.tolist() == (~np.isnan(P[:, :, 0])).sum(axis=0).tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_bad_row_is_named_whichever_thread_meets_it(tmp_path: Path, threads: int) -> None:
    P = stack(17, N=400)
    P[20, 33] = 0.7 / C
    paths = write(tmp_path, P)
    with pytest.raises(InputError, match=r"model-020\.npz: row 33: probabilities sum to 0\.7"):
        score(paths, EngineOptions(threads=threads, block_elements=7 * C))


def test_one_sample_and_one_model(tmp_path: Path) -> None:
    scores = score(write(tmp_path, np.array([[[0.5, 0.5]]])))
    assert scores.pds.tolist() == [1.0]
    assert scores.jsd[0] == pytest.approx(0, abs=1e-11)


def test_progress_counts_models(tmp_path: Path) -> None:
    class Counter:
        total = done = 0

        def start(self, total: int, what: str) -> None:
            self.total += total

        def advance(self, steps: int = 1) -> None:
            self.done += steps

    counter = Counter()
    benchmark = align([open_predictions(path) for path in write(tmp_path, stack())])
    score_benchmark(benchmark, progress=counter)
    assert counter.done == counter.total > 0


@pytest.mark.parametrize("options", [{"memory_bytes": 1000}, {"threads": 0}])
def test_options_are_checked(options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="give 1"):
        EngineOptions(**options)
