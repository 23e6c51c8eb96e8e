"""Every log of inspect_ai at hand imports to exactly what the tool itself reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logs import DERIVED, INSPECT, expected_inspect

from disco_cli.errors import InputError, UsageError
from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.imported import ImportedTable, as_prediction_file
from disco_cli.harness.inspect_ai import read_inspect
from disco_cli.harness.inspect_log import is_inspect_log, read_log

EXPECTED = expected_inspect()


def one(path: Path, **kwargs: Any) -> ImportedTable:
    (table,) = read_inspect([path], ImportOptions(**kwargs)).tables
    return table


def log_of(part: str, version: str = "v0.3.285") -> Path:
    return next((INSPECT / version).glob(f"*{part}*"))


@pytest.mark.parametrize(("path", "told"), EXPECTED, ids=lambda x: getattr(x, "name", ""))
def test_header_is_as_expected(path: Path, told: dict[str, Any]) -> None:
    log = read_log(path)
    assert is_inspect_log(path)
    assert (log.model, log.task, log.status) == (told["model"], told["task"], told["status"])
    assert (log.version, log.epochs) == (told["inspect_ai"], told["epochs"])
    assert (log.total, len(log.samples)) == (told["total_samples"], told["n_samples_file"])
    if told["status"] == "success":
        assert sum(not s.failed for s in log.samples) == told["completed_samples"]


CASES = [(path, key, metrics) for path, told in EXPECTED for key, metrics in told["scores"].items()]


@pytest.mark.parametrize(("path", "key", "metrics"), CASES, ids=lambda x: getattr(x, "name", x))
def test_reported_values_are_met(path: Path, key: str, metrics: dict[str, float]) -> None:
    scorer = key.partition("|")[0]
    table = one(path, metrics=(scorer,))
    value = metrics.get("accuracy", metrics.get("mean"))
    assert value is not None
    if np.isnan(value):
        assert any("is NaN, since a sample's score is NaN" in note for note in table.notes)
        assert table.score is None
    else:
        assert table.mean == pytest.approx(value, abs=1e-9)
        assert table.score in (None, value)
        assert (table.score is None) == (not table.complete)


def test_a_log_that_did_not_succeed_is_refused_or_imported_in_part() -> None:
    path = log_of("2Ua6o6R62")
    with pytest.raises(InputError, match="status 'error', not 'success'"):
        read_inspect([path])
    table = one(path, partial=True)
    assert (table.n, int(np.isnan(table.responses).sum())) == (24, 1)
    assert (table.complete, table.score) == (False, None)


def test_failed_samples_are_missing_and_told() -> None:
    table = one(log_of("YZP2NV"))
    assert any("1 of 24 samples broke off with an error" in note for note in table.notes)
    assert np.isnan(table.responses).tolist() == [i == "add_mc/add-003" for i in table.ids]
    assert table.predicted_labels is not None
    assert table.predicted_labels[3] == -2  # missing, not "no answer"


def test_correct_is_not_the_letter_c() -> None:
    raw = json.loads(log_of("_GV8NM6").read_text("utf-8"))["samples"]
    table = one(log_of("_GV8NM6"))
    assert table.labels is not None
    assert table.predicted_labels is not None
    assert table.responses is not None
    for row, sample in enumerate(raw):
        score = sample["scores"]["choice"]
        assert table.responses[row] == (score["value"] == "C")
        texts = sorted(sample["choices"])
        assert texts[table.labels[row]] == sample["choices"][ord(sample["target"]) - 65]
        if score["answer"]:
            given = sample["choices"][ord(score["answer"]) - 65]
            assert texts[table.predicted_labels[row]] == given
        else:
            assert table.predicted_labels[row] == -1


def test_shuffled_choices_have_the_same_content_and_label() -> None:
    plain = read_log(log_of("WXXwgqrEU8")).samples
    shuffled = read_log(log_of("add-mc-shuffled")).samples
    assert [s.digest for s in plain] == [s.digest for s in shuffled]
    assert [s.label for s in plain] == [s.label for s in shuffled]


def test_epochs_are_averaged() -> None:
    table = one(log_of("eAtJNN", "v0.3.100"))
    assert table.n == 24
    assert set(table.responses.tolist()) == {0.0, 0.5}
    assert any("mean over 2 epochs" in note for note in table.notes)


def test_ids_are_those_of_the_log_whatever_the_file_names() -> None:
    table = one(log_of("Rz3FJfE4"))
    assert table.ids.tolist() == [
        "two_ids/q/1", "two_ids/q 2", "two_ids/café", "two_ids/4", "two_ids/05", "two_ids/six",
    ]  # fmt: skip


def test_several_scorers_need_a_choice() -> None:
    with pytest.raises(UsageError, match="has several metrics: choose with --metric from"):
        read_inspect([log_of("LUMZWZ")])
    with pytest.raises(UsageError, match="has no metric accuracy"):
        read_inspect([log_of("LUMZWZ")], ImportOptions(metrics=("accuracy",)))


def test_a_limited_run_is_no_score_of_the_data_set() -> None:
    table = one(log_of("i7bbDgRK"))
    assert (table.n, table.score, table.complete) == (10, None, False)


def test_a_folder_leaves_out_what_did_not_succeed(tmp_path: Path) -> None:
    for part in ("WXXwgqrEU8", "2Ua6o6R62"):
        shutil.copy(log_of(part), tmp_path)
    imported = read_inspect([tmp_path])
    assert [table.model for table in imported.tables] == ["mockllm/m-a"]
    assert any("left out" in note and "status 'error'" in note for note in imported.notes)


def test_one_run_of_a_model_is_kept_the_fuller_or_newer(tmp_path: Path) -> None:
    shutil.copy(log_of("i7bbDgRK"), tmp_path)  # 10 of 24 samples, of m-d
    full = json.loads(log_of("YZP2NV").read_text("utf-8"))
    full["eval"]["model"] = "mockllm/m-d"
    full["eval"]["created"] = "2026-01-01T00:00:00+00:00"
    (tmp_path / "full.json").write_text(json.dumps(full))
    imported = read_inspect([tmp_path])
    assert [table.n for table in imported.tables] == [24]
    assert any("is a newer or fuller run" in note for note in imported.notes)


def test_different_contents_under_one_id_are_refused(tmp_path: Path) -> None:
    shutil.copy(log_of("WXXwgqrEU8"), tmp_path)
    other = json.loads(log_of("YZP2NV").read_text("utf-8"))
    other["samples"][5]["input"] = "What is two plus two?"
    (tmp_path / "other.json").write_text(json.dumps(other))
    with pytest.raises(InputError, match="'add_mc/add-005' has another content than in"):
        read_inspect([tmp_path])


def test_a_cut_archive_is_refused() -> None:
    with pytest.raises(InputError, match="not a whole zip archive"):
        read_inspect([DERIVED / "inspect_truncated.eval"])


def test_a_prediction_file_of_it() -> None:
    file = as_prediction_file(one(log_of("_GV8NM6")))
    assert (file.kind.value, file.samples.n, file.models[0].name) == ("labels", 15, "mockllm/m-c")
    assert file.read_responses is not None
    assert file.n_classes == int(file.samples.n_options.max())


@pytest.mark.parametrize(
    ("value", "number"),
    [("C", 1), ("I", 0), ("P", 0.5), ("N", 0), (True, 1), (0.25, 0.25), ("yes", 1), ("0.5", 0.5)],
)
def test_values_count_as_in_the_tool(tmp_path: Path, value: Any, number: float) -> None:
    log = json.loads(log_of("_GV8NM6").read_text("utf-8"))
    log["samples"] = log["samples"][:1]
    log["eval"]["dataset"]["sample_ids"] = [log["samples"][0]["id"]]
    log["samples"][0]["scores"]["choice"]["value"] = value
    log["results"] = {"total_samples": 1, "scores": []}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    assert one(path).responses.tolist() == [number]
