"""Every run of lm-evaluation-harness at hand imports to exactly what the tool itself reported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from logs import DERIVED, LM_EVAL, expected_runs

from disco_cli.errors import InputError
from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.json_stream import StreamReport, read_records
from disco_cli.harness.lm_eval import read_lm_eval
from disco_cli.harness.lm_eval_files import find_runs
from disco_cli.harness.lm_eval_rows import read_sample_log

if TYPE_CHECKING:
    from pathlib import Path

    from disco_cli.harness.imported import ImportedTable

RUNS = expected_runs()
WRONG_IDS = ("v0.4.13_samples_unsorted", "v0.4.13_samples_duplicated")
FULL = LM_EVAL / "v0.4.13_main" / "models__tiny-b"


def options_for(folder: str, **kwargs: Any) -> ImportOptions:
    return ImportOptions(full_runs=(str(FULL),) if folder in WRONG_IDS else (), **kwargs)


class Case(NamedTuple):
    """One reported value of a task or group, and whether all its sample files are there."""

    folder: str
    results: str
    task: str
    metric: str
    filter: str
    value: float
    whole: bool


def reported_metrics() -> list[Case]:
    cases = []
    for folder, results, run in RUNS:
        for task, values in run["results"].items():
            members = run["group_subtasks"].get(task) or [task]
            there = [any(_is_of(m, f, results, folder) for f in run["files"]) for m in members]
            for key, value in values.items():
                metric, _, name = key.partition(",")
                if name and not metric.endswith("_stderr") and metric != "bypass" and any(there):
                    cases.append(Case(folder, results, task, metric, name, value, all(there)))
    return cases


def _is_of(task: str, file: str, results: str, folder: str) -> bool:
    path = LM_EVAL / folder / results
    return (path.parent / file).exists() and (
        file.startswith(f"samples_{task}_2") or file.endswith(f"_{task}.jsonl")
    )


@pytest.mark.parametrize("case", reported_metrics(), ids=lambda case: "-".join(map(str, case[:5])))
def test_reported_values_are_met(case: Case) -> None:
    options = options_for(
        case.folder,
        tasks=(case.task,),
        metrics=(case.metric,),
        filters=(case.filter,),
        partial=not case.whole,
    )
    (table,) = read_lm_eval([LM_EVAL / case.folder / case.results], options).tables
    assert (table.task, table.metric) == (case.task, case.metric)
    run = next(run for *where, run in RUNS if where == [case.folder, case.results])
    assert table.groups is not None
    counts = [run["n_samples"][t] for t in run["n_samples"] or {} if t in set(table.groups)]
    # 0.4.2 has no counts; its non-finite runs were made with --limit.
    covered = all(c["original"] == c["effective"] for c in counts) and (
        bool(counts) or "nonfinite" not in case.folder
    )
    if case.whole:
        assert table.mean == pytest.approx(case.value, abs=1e-9)
        assert not counts or table.n == sum(c["effective"] for c in counts)
    assert table.score == (case.value if covered else None)
    assert table.complete is (covered and case.whole)


@pytest.mark.parametrize(("folder", "results", "run"), RUNS)
def test_files_hold_the_rows_filters_and_options_that_are_expected(
    folder: str, results: str, run: dict[str, Any]
) -> None:
    for file, told in run["files"].items():
        path = (LM_EVAL / folder / results).parent / file
        if not path.exists():
            continue
        log = read_sample_log(path)
        assert len(log.doc_ids) == told["rows"]
        assert len(np.unique(log.doc_ids)) == told["distinct_doc_ids"]
        assert sorted({str(f) or "(absent)" for f in log.filters}) == told["filters"]
        if log.has_options:
            doubled = 2 if log.n_doubled else 1
            low, high = log.n_options.min() * doubled, log.n_options.max() * doubled
            assert [low, high] == told["options_min_max"]
        else:
            assert told["options_min_max"] == [1, 1]


@pytest.mark.parametrize(("folder", "results", "run"), RUNS)
def test_models_are_named_as_reported(folder: str, results: str, run: dict[str, Any]) -> None:
    (found,) = find_runs([LM_EVAL / folder / results])
    # 0.4.2 has no model_name; what expected.json gives there are the arguments.
    assert found.model == run["model_name"].removeprefix("pretrained=")


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [row for _, row in read_records(path, StreamReport())]


def only(folder: str, task: str, **kwargs: Any) -> ImportedTable:
    (table,) = read_lm_eval([LM_EVAL / folder], ImportOptions(tasks=(task,), **kwargs)).tables
    return table


def test_the_same_weights_give_the_same_import_in_four_versions() -> None:
    """0.4.2 (arrays, floats), 0.4.3 (strings), 0.4.8 (named filters) and 0.4.13 agree."""
    tables = [
        only("v0.4.2_old-b", "loc_mc4", metrics=("acc",)),
        only("v0.4.3_old-b", "loc_mc4", metrics=("acc",)),
        only("v0.4.8_old-b", "loc_mc4", metrics=("acc",)),
    ]
    (newest,) = read_lm_eval([FULL], ImportOptions(tasks=("loc_mc4",), metrics=("acc",))).tables
    for table in tables:
        assert table.ids.tolist() == newest.ids.tolist()
        assert table.hashes is not None
        assert newest.hashes is not None
        assert table.hashes.tolist() == newest.hashes.tolist()  # computed here for 0.4.2
        assert table.labels is not None
        np.testing.assert_array_equal(table.labels, newest.labels)
        assert table.loglikelihoods is not None
        assert newest.loglikelihoods is not None
        np.testing.assert_allclose(table.loglikelihoods, newest.loglikelihoods, atol=1e-4)


def test_unnamed_filters_are_told_by_their_order() -> None:
    for folder in ("v0.4.2_old-b", "v0.4.3_old-b", "v0.4.8_old-b"):
        strict = only(folder, "loc_gen", filters=("strict-match",))
        flexible = only(folder, "loc_gen", filters=("flexible-extract",))
        assert strict.mean == pytest.approx(19 / 24)
        assert flexible.mean == pytest.approx(23 / 24)
        assert strict.ids.tolist() == flexible.ids.tolist()


def test_nan_likelihoods_keep_the_metric_and_lose_the_probabilities() -> None:
    (table,) = read_lm_eval(
        [LM_EVAL / "v0.4.13_nan" / "models__tiny-nan"],
        ImportOptions(tasks=("loc_ragged",), metrics=("acc",)),
    ).tables
    assert table.mean == pytest.approx(11 / 30)  # not 0.7 (NaN as -inf), not 0.6 (Python's max)
    _, values = table.values()
    assert np.isnan(values[:, 0]).sum() == 26
    assert any("26 of 30 rows have NaN log-likelihoods" in note for note in table.notes)


def test_infinite_likelihoods_have_probability_zero() -> None:
    table = only("v0.4.2_nonfinite", "loc_mc4", metrics=("acc",))
    assert table.mean == pytest.approx(7 / 12)
    _, values = table.values()
    assert np.isneginf(values).sum() >= 7
    assert any("7 of 12 rows have infinite log-likelihoods" in note for note in table.notes)


def test_options_doubled_for_mutual_information_are_taken_once() -> None:
    table = only("v0.4.13_extra", "loc_mutual", metrics=("acc_mutual_info",))
    assert table.n_options is not None
    assert set(table.n_options) == {4}
    assert table.mean == pytest.approx(0.4)
    assert any("20 rows hold every option twice" in note for note in table.notes)


def test_shared_continuations_take_their_answer_from_acc() -> None:
    table = only("v0.4.13_extra", "loc_wino")
    assert table.labels is not None
    rows = rows_of(next((LM_EVAL / "v0.4.13_extra").rglob("samples_loc_wino*")))
    assert table.labels.tolist() == [int(row["doc"]["answer"]) - 1 for row in rows]
    assert any("right option inferred from acc" in note for note in table.notes)


def test_a_group_weighed_equally_is_told_from_one_weighed_by_size() -> None:
    macro = only("v0.4.13_macro", "loc_mmlu_macro", partial=True)
    assert macro.score == pytest.approx(0.9833333333)
    assert macro.weights is not None
    # 75 samples in three subtasks: 25 units of weight for the 10 colours, 25 for the 20 things.
    assert macro.weights.tolist() == [2.5] * 10 + [1.25] * 20
    (by_size,) = read_lm_eval([FULL], ImportOptions(tasks=("loc_mmlu",))).tables
    assert by_size.weights is None
    assert by_size.score == pytest.approx(0.96)
    assert by_size.groups is not None
    assert np.unique(by_size.groups).tolist() == [
        "loc_mmlu_colours", "loc_mmlu_sums", "loc_mmlu_things",
    ]  # fmt: skip


def test_predict_only_has_options_but_no_metric() -> None:
    imported = read_lm_eval([LM_EVAL / "v0.4.13_predict_only"])
    (table,) = imported.tables
    assert table.responses is None
    assert table.labels is not None
    assert any(
        "loc_gen has no metric (evaluated with --predict_only?)" in n for n in imported.notes
    )


@pytest.mark.parametrize(("folder", "ids"), [(WRONG_IDS[0], [3, 10, 42]), (WRONG_IDS[1], [3, 10])])
def test_wrong_ids_are_put_right_by_hash(folder: str, ids: list[int]) -> None:
    options = options_for(folder, metrics=("acc",))
    (table,) = read_lm_eval([LM_EVAL / folder], options).tables
    assert table.ids.tolist() == [f"loc_mc4/{i}" for i in ids]
    assert any("put right by hash" in note for note in table.notes)
    (full,) = read_lm_eval([FULL], ImportOptions(tasks=("loc_mc4",), metrics=("acc",))).tables
    assert table.loglikelihoods is not None
    assert full.loglikelihoods is not None
    np.testing.assert_allclose(table.loglikelihoods, full.loglikelihoods[ids], atol=1e-4)


@pytest.mark.parametrize("folder", WRONG_IDS)
def test_wrong_ids_are_refused_without_a_full_run(folder: str) -> None:
    with pytest.raises(InputError, match=r"do not ascend.*add one with --full-run"):
        read_lm_eval([LM_EVAL / folder], ImportOptions(metrics=("acc",)))


def test_a_subset_run_is_no_score_of_the_benchmark() -> None:
    table = only("v0.4.13_samples_sorted", "loc_mc4", metrics=("acc",))
    assert table.ids.tolist() == ["loc_mc4/3", "loc_mc4/10", "loc_mc4/42"]
    assert (table.score, table.complete) == (None, False)


def test_a_random_name_is_pointed_out() -> None:
    imported = read_lm_eval([LM_EVAL / "v0.4.13_dummy_noname"], ImportOptions(metrics=("acc",)))
    assert imported.tables[0].model == "fel3guxn"
    assert any("'fel3guxn' is random" in note for note in imported.notes)
    named = read_lm_eval(
        [LM_EVAL / "v0.4.13_dummy_noname"], ImportOptions(metrics=("acc",), model="dummy")
    )
    assert named.tables[0].model == "dummy"
    assert not any("random" in note for note in named.notes)


def derived(name: str, **kwargs: Any) -> ImportedTable:
    (table,) = read_lm_eval([DERIVED / name], ImportOptions(**kwargs)).tables
    return table


def reference(task: str, **kwargs: Any) -> ImportedTable:
    """Return the whole log that the derived ones were made of."""
    path = LM_EVAL / "v0.4.13_main" / "models__tiny-c"
    (table,) = read_lm_eval([path], ImportOptions(tasks=(task,), **kwargs)).tables
    return table


needs_tiny_c = pytest.mark.skipif(
    not (LM_EVAL / "v0.4.13_main" / "models__tiny-c").is_dir(),
    reason="the log that this one was derived from is not committed",
)


@needs_tiny_c
@pytest.mark.parametrize(
    ("name", "task", "rows"),
    [
        ("rank_strided_world3_mc4.jsonl", "loc_mc4", range(60)),
        ("truncated_last_line.jsonl", "loc_mc4", range(59)),
        ("truncated_on_boundary_40_of_60.jsonl", "loc_mc4", range(40)),
        ("appended_twice.jsonl", "loc_mc4", range(20)),
        ("crlf_bom.jsonl", "loc_mc4", range(20)),
        ("samples_loc_ragged.jsonl.gz", "loc_ragged", range(40)),
    ],
)
def test_derived_logs_hold_what_the_original_holds(name: str, task: str, rows: range) -> None:
    table = derived(name, metrics=("acc",))
    whole = reference(task, metrics=("acc",))
    assert [i.rpartition("/")[2] for i in table.ids] == [str(i) for i in rows]
    assert table.responses is not None
    assert whole.responses is not None
    np.testing.assert_array_equal(table.responses, whole.responses[list(rows)])
    assert table.loglikelihoods is not None
    assert whole.loglikelihoods is not None
    np.testing.assert_array_equal(table.loglikelihoods, whole.loglikelihoods[list(rows)])


@needs_tiny_c
def test_rows_of_several_processes_and_filters() -> None:
    for name in ("strict-match", "flexible-extract"):
        table = derived("rank_strided_world3_gen_two_filters.jsonl", filters=(name,))
        whole = reference("loc_gen", filters=(name,))
        assert table.responses is not None
        assert whole.responses is not None
        np.testing.assert_array_equal(table.responses, whole.responses)


def test_a_cut_off_line_and_repeats_are_told() -> None:
    cut = derived("truncated_last_line.jsonl", metrics=("acc",))
    assert any("line 60 is cut off, left out" in note for note in cut.notes)
    twice = derived("appended_twice.jsonl", metrics=("acc",))
    assert any("20 of 40 rows are exact repeats" in note for note in twice.notes)


def test_line_separators_inside_texts_do_not_cut_rows() -> None:
    (table,) = read_lm_eval([FULL], ImportOptions(tasks=("loc_ragged",), metrics=("acc",))).tables
    assert table.n == 40
    text = next(FULL.glob("samples_loc_ragged*")).read_text("utf-8")
    assert len(text.splitlines()) == 50


def test_the_summary_is_json() -> None:
    told = json.loads(json.dumps(only("v0.4.13_limit", "loc_mc4", metrics=("acc",)).as_dict()))
    assert (told["n_samples"], told["complete"], told["has_options"]) == (7, False, True)
