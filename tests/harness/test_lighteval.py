"""Details of lighteval in both of its shapes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from disco_cli.errors import DiscoError, InputError, UsageError
from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.imported import ImportedTable
from disco_cli.harness.lighteval import read_lighteval

DATE = "2026-03-04T05-06-07.123456"
CHOICES = [["a", "b"], ["a", "b", "c"], ["x", "nan"]]
LIKELIHOODS = [[-1.0, -0.5], [-3.0, math.nan, -1.0], [-0.1, -math.inf]]
GOLD = [1, 0, 0]
ACC = [1.0, 0.0, 1.0]


def old_rows() -> list[dict[str, Any]]:
    return [
        {
            "example": f"question {i}",
            "full_prompt": "…",
            "predictions": str(LIKELIHOODS[i]),
            "choices": str(CHOICES[i]),
            "gold_index": str([GOLD[i]]),
            "metrics": f"{{'acc': np.float64({ACC[i]}), 'acc_norm': {ACC[i]}}}",
        }
        for i in range(3)
    ]


def new_rows(*, with_ids: bool = False) -> list[dict[str, Any]]:
    return [
        {
            "doc": {
                "query": f"question {i}",
                "choices": CHOICES[i],
                "gold_index": [GOLD[i]],
                "id": f"doc{i}" if with_ids else None,
            },
            "model_response": {"text": [], "logprobs": LIKELIHOODS[i]},
            "metric": {"acc": ACC[i], "acc_norm": ACC[i], "em": None},
        }
        for i in range(3)
    ]


def write(root: Path, rows: list[dict[str, Any]], reported: float | None = None) -> Path:
    folder = root / "details" / "org" / "model" / DATE
    folder.mkdir(parents=True)
    path = folder / f"details_leaderboard|arc:challenge|25_{DATE}.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    if reported is not None:
        results = root / "results" / "org" / "model"
        results.mkdir(parents=True)
        told = {"results": {"leaderboard|arc:challenge|25": {"acc": reported}}}
        (results / f"results_{DATE}.json").write_text(json.dumps(told))
    return path


def one(path: Path, **kwargs: Any) -> ImportedTable:
    (table,) = read_lighteval([path], ImportOptions(**kwargs)).tables
    return table


@pytest.mark.parametrize("rows", [old_rows(), new_rows()], ids=["text", "structures"])
def test_both_shapes_hold_the_same(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    table = one(write(tmp_path, rows, reported=2 / 3), metrics=("acc",))
    assert (table.model, table.date) == ("org/model", "2026-03-04T05:06:07")
    assert table.task == "leaderboard|arc:challenge|25"
    assert table.ids.tolist() == [f"leaderboard|arc:challenge|25/{i}" for i in range(3)]
    assert table.labels is not None
    assert table.labels.tolist() == GOLD
    assert table.n_options is not None
    assert table.n_options.tolist() == [2, 3, 2]
    assert table.responses is not None
    assert table.responses.tolist() == ACC
    assert table.loglikelihoods is not None
    np.testing.assert_array_equal(table.loglikelihoods[1], LIKELIHOODS[1])
    assert np.isneginf(table.loglikelihoods[0, 2])  # padding
    assert table.score == pytest.approx(2 / 3)


def test_ids_of_documents_are_used_where_they_are(tmp_path: Path) -> None:
    table = one(write(tmp_path, new_rows(with_ids=True)), metrics=("acc",))
    assert [i.rpartition("/")[2] for i in table.ids] == ["doc0", "doc1", "doc2"]


def test_a_mean_that_is_not_the_reported_value_is_told(tmp_path: Path) -> None:
    table = one(write(tmp_path, old_rows(), reported=0.5), metrics=("acc",))
    assert table.score is None
    assert any("reports 0.5: aggregated otherwise" in note for note in table.notes)


def test_texts_are_read_as_literals_and_never_evaluated(tmp_path: Path) -> None:
    rows = old_rows()
    rows[0]["metrics"] = "{'acc': __import__('os').getpid()}"
    with pytest.raises(DiscoError):
        one(write(tmp_path, rows[:1]), metrics=("acc",))


def test_several_metrics_need_a_choice(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose with --metric from acc, acc_norm"):
        one(write(tmp_path, old_rows()))


def test_rows_without_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "details_x_2026-03-04T05-06-07.parquet"
    pq.write_table(pa.table({"example": ["a"], "predictions": ["b"]}), path)
    with pytest.raises(InputError, match="its rows have no metric that is a number"):
        read_lighteval([path])
    pq.write_table(pa.table({"something": [1]}), path)
    with pytest.raises(InputError, match="row 0: not what lighteval writes: no 'example'"):
        read_lighteval([path])


def test_damage_never_ends_in_another_error(tmp_path: Path) -> None:
    path = write(tmp_path, old_rows())
    content = path.read_bytes()
    for at in range(0, len(content), 23):
        for changed in (
            content[:at],
            content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :],
        ):
            path.write_bytes(changed)
            try:
                table = one(path, metrics=("acc",))
            except DiscoError:
                continue
            assert table.n == 3


def test_no_details(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no details of lighteval here"):
        read_lighteval([tmp_path])
