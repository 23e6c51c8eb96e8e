"""Every command opens logs as it opens prediction files."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from logs import INSPECT, LM_EVAL

from disco_cli.errors import InputError, UsageError
from disco_cli.files.align import align, read_probabilities, read_values, responses
from disco_cli.files.matrix import Kind
from disco_cli.files.open import open_predictions
from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.imported import write_table
from disco_cli.harness.lm_eval import read_lm_eval
from disco_cli.harness.open import Tool, open_inputs, tool_of

FULL = LM_EVAL / "v0.4.13_main" / "models__tiny-b"
ACC = ImportOptions(metrics=("acc",))


def samples(task: str, folder: Path = FULL) -> Path:
    return next(folder.rglob(f"samples_{task}_*"))


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("samples_x_2026-01-01T00-00-00.jsonl", Tool.LM_EVAL),
        ("results_2026-01-01T00-00-00.json", Tool.LM_EVAL),
        ("samples_x.jsonl.gz", Tool.LM_EVAL),
        ("log.eval", Tool.INSPECT),
        ("details_arc|25_2026-01-01T00-00-00.parquet", Tool.LIGHTEVAL),
        ("per_instance_stats.json", Tool.HELM),
        ("scores.tsv", Tool.CSV),
        ("preds.npz", None),
        ("preds.parquet", None),
        ("anything", None),
    ],
)
def test_a_log_is_told_by_its_name(name: str, tool: Tool | None) -> None:
    assert tool_of(Path(name)) is tool


def test_json_is_told_by_its_content_and_folders_by_their_files() -> None:
    assert tool_of(next(INSPECT.rglob("*.json"))) in (Tool.INSPECT, Tool.LM_EVAL)
    assert tool_of(next(INSPECT.rglob("*sums*.json"), next(INSPECT.rglob("*add*.json")))) is (
        Tool.INSPECT
    )
    assert tool_of(FULL) is Tool.LM_EVAL
    assert tool_of(INSPECT / "v0.3.285") is Tool.INSPECT


def test_a_log_opens_as_the_file_that_it_is_imported_to(tmp_path: Path) -> None:
    for task in ("loc_mc4", "loc_ragged"):
        (table,) = read_lm_eval([samples(task)], ACC).tables
        write_table(table, tmp_path / table.file_name)
        stored = align([open_predictions(tmp_path / table.file_name)])
        direct = align(open_inputs([samples(task)], options=ACC))
        assert stored.samples.ids is not None
        assert direct.samples.ids is not None
        assert stored.samples.ids.tolist() == direct.samples.ids.tolist()
        assert stored.names == direct.names
        assert stored.models[0].info == direct.models[0].info
        np.testing.assert_array_equal(responses(stored), responses(direct))
        np.testing.assert_array_equal(read_probabilities(stored, 0), read_probabilities(direct, 0))


def test_probabilities_are_the_softmax_of_the_likelihoods() -> None:
    (table,) = read_lm_eval([samples("loc_ragged")], ACC).tables
    found = read_probabilities(align(open_inputs([samples("loc_ragged")], options=ACC)), 0)
    assert table.loglikelihoods is not None
    powers = np.exp(table.loglikelihoods)
    np.testing.assert_allclose(found, powers / powers.sum(axis=1, keepdims=True), atol=1e-12)


def test_the_tasks_of_a_run_become_one_file() -> None:
    paths = [samples(f"loc_mmlu_{one}") for one in ("things", "sums", "colours")]
    (file,) = open_inputs(paths)
    assert (file.samples.n, file.models[0].name) == (75, "models/tiny-b")
    (file,) = open_inputs([paths[0], samples("loc_mc4")], options=ACC)
    assert file.samples.groups is not None
    assert np.unique(file.samples.groups).tolist() == ["loc_mc4", "loc_mmlu_things"]


def test_logs_and_prediction_files_keep_their_order(tmp_path: Path) -> None:
    (table,) = read_lm_eval([samples("loc_mc4")], ACC).tables
    copy = tmp_path / "copy.npz"
    write_table(table, copy)
    log = next(INSPECT.rglob("*WXXwg*.eval"))
    options = ImportOptions(metrics=("acc", "choice"))
    files = open_inputs([log, copy, samples("loc_mc4")], options=options)
    assert [file.models[0].name for file in files] == [
        "mockllm/m-a",
        "models/tiny-b",
        "models/tiny-b",
    ]
    assert [file.kind for file in files] == [Kind.LABELS, Kind.LOGITS, Kind.LOGITS]


def test_kind_may_ask_for_the_metric_alone() -> None:
    (file,) = open_inputs([samples("loc_mc4")], Kind.RESPONSES, ACC)
    assert file.kind is Kind.RESPONSES
    with pytest.raises(UsageError, match="a log of lm-eval holds logits or responses, not labels"):
        open_inputs([samples("loc_mc4")], Kind.LABELS, ACC)


def test_a_choice_is_asked_for() -> None:
    with pytest.raises(UsageError, match="choose with --metric from acc, acc_norm"):
        open_inputs([samples("loc_mc4")])


def test_a_subset_of_ragged_choices_fits_the_whole(tmp_path: Path) -> None:
    """The subset's own largest number of options, 6, is less than the benchmark's 7."""
    subset = LM_EVAL / "v0.4.13_samples_sorted"
    whole = open_inputs([samples("loc_ragged")], options=ACC)[0]
    part = open_inputs(
        [samples("loc_ragged", subset)],
        options=ImportOptions(metrics=("acc",), model="part"),
    )[0]
    assert (whole.n_classes, part.n_classes) == (7, 6)
    for files in ([whole, part], [part, whole]):
        benchmark = align(files)
        assert benchmark.n_classes == 7
        m = benchmark.names.index("part")
        found = read_probabilities(benchmark, m)
        known = ~np.isnan(found[:, 0])
        assert known.sum() == 2
        np.testing.assert_allclose(
            found[known], read_probabilities(benchmark, 1 - m)[known], atol=1e-4
        )
        assert read_values(benchmark, m).shape == (40, 7)


def test_a_folder_without_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        open_inputs([tmp_path])


def test_damaged_and_missing_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        open_inputs([tmp_path / "samples_x.jsonl"])
    path = tmp_path / "samples_x.jsonl"
    shutil.copy(samples("loc_mc4"), path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="holds no rows but one that is cut off"):
        open_inputs([path])
