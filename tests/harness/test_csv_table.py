"""Score tables are read in each layout, and every fault is named with its row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from disco_cli.errors import DiscoError, InputError, UsageError
from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.csv_table import read_csv
from disco_cli.harness.imported import ImportedTable, as_prediction_file


def tables(tmp_path: Path, text: str, **kwargs: Any) -> dict[str, ImportedTable]:
    path = tmp_path / "scores.csv"
    path.write_text(text, encoding="utf-8")
    return {t.model: t for t in read_csv([path], ImportOptions(**kwargs)).tables}


LONG = "model,sample_id,correct\na,q1,1\nb,q1,0\na,q2,0.5\nb,q2,\n"
BY_MODEL = "sample_id;a;b\nq1;1;0\nq2;0.5;NA\n"
BY_SAMPLE = "model\tq1\tq2\na\ttrue\t0.5\nb\tFalse\tnan\n"


@pytest.mark.parametrize("text", [LONG, BY_MODEL, BY_SAMPLE])
def test_three_layouts_hold_the_same(tmp_path: Path, text: str) -> None:
    found = tables(tmp_path, text)
    assert sorted(found) == ["a", "b"]
    assert found["a"].ids.tolist() == ["q1", "q2"]
    assert found["a"].responses is not None
    assert found["a"].responses.tolist() == [1, 0.5]
    assert found["b"].responses is not None
    np.testing.assert_array_equal(found["b"].responses, [0, np.nan])
    assert (found["a"].complete, found["b"].complete) == (True, False)
    assert found["b"].notes == (f"{tmp_path / 'scores.csv'}: 'b' lacks 1 of 2 scores",)


def test_everything_that_a_long_table_may_hold(tmp_path: Path) -> None:
    text = (
        "\ufeffmodel,task,id,acc,f1,predicted_label,label,weight,date\n"
        "a,x,1,1,0.9,2,2,3,2026-01-01\na,x,2,0,0.1,,1,1,2026-01-01\n"
    )
    table = tables(tmp_path, text, metrics=("acc",))["a"]
    assert table.metric == "acc"
    assert table.predicted_labels is not None
    assert table.predicted_labels.tolist() == [2, -2]
    assert table.labels is not None
    assert table.labels.tolist() == [2, 1]
    assert table.groups is not None
    assert table.groups.tolist() == ["x", "x"]
    assert table.mean == 0.75
    assert table.date == "2026-01-01"
    assert as_prediction_file(table).n_classes == 3


def test_numbers_that_begin_anew_in_every_group(tmp_path: Path) -> None:
    found = tables(tmp_path, "model,task,id,acc\na,x,1,1\na,y,1,0\n")
    assert found["a"].ids.tolist() == ["x/1", "y/1"]


def test_a_model_that_lacks_samples_is_told(tmp_path: Path) -> None:
    found = tables(tmp_path, "model,id,acc\na,1,1\na,2,1\nb,1,0\n")
    assert found["b"].notes == (f"{tmp_path / 'scores.csv'}: 'b' lacks 1 of the 2 samples",)
    assert not found["b"].complete


def test_a_file_without_a_last_line_break_is_told(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("model,id,acc\na,1,0.5")
    assert "no line break at its end" in read_csv([path]).notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,id,acc\na,1,yes please\n", "row 2, column 'acc': 'yes please' is no number"),
        ("model,id,acc\na,1,1\na,1,0\n", "rows 2 and 3: sample '1' of model 'a' stands twice"),
        ("model,id,acc\na,1\n", "row 2 has 2 cells, the header 3"),
        ("x,y\n1,2\n", "has neither a column sample_id nor model"),
        ("model,id\na,1\n", "no column of scores"),
        ("model,id,acc,acc\na,1,1,1\n", "two columns are named 'acc'"),
        ("model,id,acc\n", "holds a header but no rows"),
        ("", "has neither a column sample_id nor model"),
        ("model,q1\na,1\na,0\n", "row 3: model 'a' stands twice"),
        ("model,id,acc,weight\na,1,1,-1\n", "weight '-1' should be a number, at least 0"),
        ("model,id,acc,label\na,1,1,0.5\n", "'0.5' is no whole number"),
        ("sample_id\nq1\n", "holds no scores"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tables(tmp_path, text)


def test_several_columns_of_scores_need_a_choice(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has several metrics: choose with --metric from acc, f1"):
        tables(tmp_path, "model,id,acc,f1\na,1,1,1\n")


def test_damaged_tables_never_end_in_another_error(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    content = (LONG * 3).replace("q1", "p1", 2).encode()
    for at in range(len(content)):
        for changed in (content[:at], content[:at] + bytes([content[at] ^ 0x90]) + content[at:]):
            path.write_bytes(changed)
            try:
                read_csv([path])
            except DiscoError:
                continue


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_csv([tmp_path / "none.csv"])
