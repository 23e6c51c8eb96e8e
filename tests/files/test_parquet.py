"""Parquet files as people save them, and how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from disco_cli.errors import InputError
from disco_cli.files import parquet_rows, parquet_values
from disco_cli.files.align import align, read_correctness, read_probabilities
from disco_cli.files.matrix import Kind, ModelInfo, Samples
from disco_cli.files.npz import write_npz
from disco_cli.files.open import open_predictions
from disco_cli.files.parquet import write_parquet
from disco_cli.files.parquet_rows import ParquetTable

HALF = [0.5, 0.5]
HALVES = pa.FixedSizeListArray.from_arrays(pa.array(np.full(4, 0.5, np.float16)), 2)


def saved(folder: Path, columns: dict[str, Any], metadata: Any = None, **how: Any) -> Path:
    table = pa.table(columns).replace_schema_metadata(metadata)
    pq.write_table(table, folder / "model.parquet", **how)
    return folder / "model.parquet"


@pytest.mark.parametrize("decoded", ["whole", "by group", "in batches"])
@pytest.mark.parametrize("order", ["by model", "by sample", "shuffled"])
@pytest.mark.parametrize("rows", [7, 1000])
def test_rows_in_any_order_and_groups_of_any_size_read_as_the_npz(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoded: str, order: str, rows: int
) -> None:
    if decoded != "whole":
        monkeypatch.setattr(parquet_values, "SMALL_BYTES", 0)
    if decoded == "in batches":
        monkeypatch.setattr(parquet_values, "WHOLE_BYTES", 0)
        monkeypatch.setattr(parquet_rows, "BATCH_VALUES", 13)
    rng = np.random.default_rng(0)
    m, n, c = 3, 20, 4
    values = rng.dirichlet(np.ones(c), (m, n)).astype(np.float32)
    samples = Samples(
        n, ids=np.array([f"q{i}" for i in range(n)]), labels=rng.integers(0, c, n),
        groups=rng.choice(["x", "y"], n), weights=rng.random(n) + 1,
    )  # fmt: skip
    models = [ModelInfo("b", "2026-01", 0.5), ModelInfo("a"), ModelInfo("c", score=71.0)]
    write_npz(tmp_path / "a.npz", values, Kind.PROBABILITIES, samples, models)
    write_parquet(tmp_path / "a.parquet", values, Kind.PROBABILITIES, samples, models)
    table = pq.read_table(tmp_path / "a.parquet")
    at = np.arange(m * n)
    if order == "by sample":
        at = at.reshape(m, n).T.ravel()
    elif order == "shuffled":
        at = rng.permutation(at)
    pq.write_table(table.take(at), tmp_path / "a.parquet", row_group_size=rows)

    file = open_predictions(tmp_path / "a.parquet")
    assert sorted(model.name for model in file.models) == ["a", "b", "c"]
    left, right = align([open_predictions(tmp_path / "a.npz")]), align([file])
    assert [model.info for model in left.models] == [model.info for model in right.models]
    for name in ("ids", "labels", "groups", "weights"):
        np.testing.assert_array_equal(getattr(left.samples, name), getattr(right.samples, name))
    for k in (1, 0, 2):
        for read in (read_probabilities, read_correctness):
            np.testing.assert_array_equal(read(left, k), read(right, k))
            np.testing.assert_array_equal(
                read(left, k, np.array([5, 3])), read(right, k, np.array([5, 3]))
            )


@pytest.mark.parametrize("told", [True, False])
def test_a_row_group_as_large_as_the_file_is_never_held(tmp_path: Path, told: bool) -> None:
    n, c = 8000, 1000  # 32 MB, in pages of 1 MiB
    values = np.random.default_rng(0).random((n, c), np.float32)
    values /= values.sum(axis=1, keepdims=True)
    lists = pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32) * c, values.ravel())
    metadata = {"disco.n_classes": str(c)} if told else None
    path = saved(tmp_path, {"probs": lists}, metadata, row_group_size=n)
    file, at_rest, most = open_predictions(path), pa.total_allocated_bytes(), 0
    for start in range(0, n, 300):
        block = file.read(0, slice(start, start + 300))
        np.testing.assert_array_equal(block, values[start : start + 300])
        most = max(most, pa.total_allocated_bytes() - at_rest)
    assert most < 12 << 20
    assert file.held_bytes == 0


def test_reading_on_decodes_each_row_group_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = []
    batches = ParquetTable.batches

    def count(self: ParquetTable, group: int, columns: list[str], size: Any = None) -> Any:
        decoded.append((group, columns[0]))
        return batches(self, group, columns, size)

    monkeypatch.setattr(parquet_rows, "BATCH_VALUES", 10)
    m, n, c = 4, 30, 3
    values = np.random.default_rng(0).dirichlet(np.ones(c), (m, n))
    one = tmp_path / "one.parquet"
    write_parquet(one, values[:1], Kind.PROBABILITIES, Samples(n), responses=values[:1, :, 0])
    pq.write_table(pq.read_table(one), one, row_group_size=15)
    several = tmp_path / "several.parquet"
    models = [ModelInfo(name) for name in "bdac"]
    write_parquet(several, values, Kind.PROBABILITIES, Samples(n), models)
    pq.write_table(pq.read_table(several), several, row_group_size=1000)
    file, benchmark = open_predictions(one), align([open_predictions(several)])
    assert file.read_responses is not None
    monkeypatch.setattr(ParquetTable, "batches", count)
    for start in range(0, n, 7):
        rows = slice(start, start + 7)
        for _ in range(2):  # as probabilities, then as right answers
            np.testing.assert_array_equal(file.read(0, rows), values[0, rows])
            np.testing.assert_array_equal(file.read_responses(0, rows), values[0, rows, 0])
    assert sorted(decoded) == [(g, name) for g in (0, 1) for name in ("probs", "response")]

    decoded.clear()
    for k, place in enumerate((2, 0, 3, 1)):  # by name
        np.testing.assert_array_equal(read_probabilities(benchmark, k), values[place])
    assert decoded == [(0, "probs")]
    assert benchmark.models[0].file.held_bytes == values.nbytes


def test_ragged_lists_tell_the_options(tmp_path: Path) -> None:
    lists = [HALF, [0.2, 0.3, 0.5], None, [0.1, 0.9], [0.2, 0.3, 0.5], [0.25, 0.25, 0.5]]
    path = saved(
        tmp_path,
        {
            "model": list("aaabbb"),
            "sample_id": [1, 2, 3] * 2,
            "probs": lists,
            "label": [1, 2, 0] * 2,
        },
    )
    file = open_predictions(path)
    assert file.n_classes == 3
    assert file.samples.n_options is not None
    assert file.samples.n_options.tolist() == [2, 3, 3]
    benchmark = align([file])
    np.testing.assert_array_equal(
        read_probabilities(benchmark, 0), [[0.5, 0.5, 0], [0.2, 0.3, 0.5], [np.nan] * 3]
    )
    np.testing.assert_array_equal(read_correctness(benchmark, 0), [0, 1, np.nan])
    np.testing.assert_array_equal(read_correctness(benchmark, 1), [1, 1, 0])


def test_a_sample_that_one_model_lacks_is_missing(tmp_path: Path) -> None:
    path = saved(
        tmp_path, {"model": list("aab"), "sample_id": ["x", "y", "y"], "response": [1, 0, 1]}
    )
    file = open_predictions(path)
    np.testing.assert_array_equal(file.read(1, slice(None)), [np.nan, 1])
    labels = {"model": list("aab"), "sample_id": ["x", "y", "y"], "predicted_label": [1, None, 0]}
    file = open_predictions(saved(tmp_path, labels))
    assert file.read(0, slice(None)).tolist() == [1, -2]
    assert file.read(1, slice(None)).tolist() == [-2, 0]


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"p_0": [0.5, 0.1], "p_1": [0.5, 0.9]}, Kind.PROBABILITIES),
        ({"logits": [[5.0, 1.0], [3.0, 0.0]]}, Kind.LOGITS),
        ({"logprobs": [np.log(HALF), np.log(HALF)]}, Kind.LOG_PROBABILITIES),
        ({"preds": [[5.0, 1.0], [3.0, 0.0]]}, Kind.LOGITS),
        ({"probs": HALVES}, Kind.PROBABILITIES),
        ({"predicted_label": [1, 0]}, Kind.LABELS),
        ({"response": [True, False]}, Kind.RESPONSES),
    ],
)
def test_every_kind_of_column_is_understood(
    tmp_path: Path, columns: dict[str, Any], kind: Kind
) -> None:
    file = open_predictions(saved(tmp_path, columns))
    assert file.kind is kind
    assert file.models == (ModelInfo("model"),)
    assert file.samples.ids is None
    assert read_probabilities(align([file]), 0).shape == (2, 2)


def test_kind_and_class_names_may_stand_in_the_metadata(tmp_path: Path) -> None:
    columns = {"probs": [[5.0, 1.0], [3.0, 0.0]]}
    metadata = {"disco.kind": "logits", "disco.class_names": '["é", "b"]'}
    file = open_predictions(saved(tmp_path, columns, metadata))
    assert file.kind is Kind.LOGITS
    assert file.samples.class_names == ("é", "b")


def test_columns_that_are_not_used_and_other_names_are_noted(tmp_path: Path) -> None:
    file = open_predictions(saved(tmp_path, {"probs": [HALF], "targets": [1], "prompt": ["Why?"]}))
    assert file.notes == ("targets taken for label", "columns not used: prompt")


def test_dates_may_be_dates(tmp_path: Path) -> None:
    dates = pa.array([20000], pa.int32()).cast(pa.date32())
    file = open_predictions(saved(tmp_path, {"probs": [HALF], "date": dates}))
    assert file.models[0].date == "2024-10-04"


TWO = {"model": list("aabb"), "sample_id": ["x", "y"] * 2, "probs": [HALF] * 4}
BAD: list[tuple[dict[str, Any], Any, str]] = [
    ({"label": [1]}, None, "holds no values; one of probs, logits, logprobs, predictions"),
    ({"probs": [HALF], "logits": [HALF]}, None, "holds both probs and logits; keep one"),
    ({"probs": [HALF], "label": [1], "targets": [1]}, None, "holds both label and targets"),
    ({"p_0": [0.5], "p_2": [0.5]}, None, "has 2 columns from p_0 to p_2; they should be p_0 to p_1"),
    ({"probs": pa.array([], pa.list_(pa.float32()))}, None, "is empty; it has no rows"),
    ({"probs": [0.5]}, None, "probs is double; it should be a list per row"),
    ({"probs": [["a", "b"]]}, None, "probs holds string; it should be numbers"),
    ({"probs": [[0.3, 0.4]]}, None, "row 0: values sum to 0.7 instead of 1"),
    ({**TWO, "sample_id": list("xyyy")}, None, "sample id 'y' of model 'b' stands twice, in rows 2 a"),
    ({**TWO, "sample_id": ["x", None, "x", "y"]}, None, "sample_id is empty in row 1; fill it in"),
    ({**TWO, "sample_id": [0.5] * 4}, None, "sample_id is double; it should be text or integers"),
    ({**TWO, "label": [0, 1, 0, 0]}, None, "sample 'y' has label 0 in row 3, but 1 in row 1"),
    ({**TWO, "score": [1.0, 2.0, 0, 0]}, None, "model 'a' has score 2.0 in row 1, but 1.0 in row 0"),
    ({**TWO, "probs": [HALF, HALF, [0.2, 0.3, 0.5], HALF]}, None, "row 2 has 3 values in probs|row 0"),
    ({"model": list("aab"), "probs": [HALF] * 3}, None, "'b' has 1 rows, but 'a' has 2; without samp"),
    ({"probs": [HALF]}, {"disco.kind": "odds"}, "disco.kind is 'odds'; it should be one of prob"),
    ({"probs": [HALF]}, {"disco.class_names": "["}, "disco.class_names is not JSON"),
    ({"probs": [HALF]}, {"disco.class_names": "3"}, "disco.class_names is not a JSON list"),
    ({"probs": [[0.2, 0.3, 0.5]]}, {"disco.n_classes": "2"}, "row 0 has 3 values in probs, but there"),
    ({"probs": [HALF]}, {"disco.n_classes": "two"}, "disco.n_classes is 'two'; it should be a whole"),
    ({"probs": [HALF]}, {"disco.n_classes": "9" * 15}, "but probs holds only 2 values"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "metadata", "found"), BAD)
def test_bad_content_is_one_line_that_names_file_and_column(
    tmp_path: Path, columns: dict[str, Any], metadata: Any, found: str
) -> None:
    path = saved(tmp_path, columns, metadata)
    with pytest.raises(InputError, match=found) as caught:
        read_probabilities(align([open_predictions(path)]), 0)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_forced_kind_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="probs cannot be labels"):
        open_predictions(saved(tmp_path, {"probs": [HALF]}), Kind.LABELS)


def test_a_truncated_file_is_an_input_error(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "a.parquet"
    values = rng.dirichlet(np.ones(3), (2, 30))
    samples = Samples(30, ids=np.array([f"q{i}" for i in range(30)]))
    write_parquet(path, values, Kind.PROBABILITIES, samples, [ModelInfo("a"), ModelInfo("b")])
    whole = path.read_bytes()

    def outcome(data: bytes) -> str:
        path.write_bytes(data)
        try:
            read_probabilities(align([open_predictions(path)]), 1)
        except InputError as error:
            return str(error)
        return f"{path}: read"

    for length in rng.integers(0, len(whole), 80):
        line = outcome(whole[:length])
        assert line.startswith(f"{path}: ")
        assert not line.endswith(": read")
        assert "\n" not in line
