"""Each check of an import has a message of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logs import LM_EVAL

from disco_cli.errors import InputError, UsageError
from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.imported import Imported
from disco_cli.harness.lm_eval import read_lm_eval

DATE = "2026-01-02T03-04-05.000006"
Row = dict[str, Any]


def make_rows(n: int = 6, **changes: Any) -> list[Row]:
    """Return rows of a task with three options, the second of which is always right."""
    rows = []
    for i in range(n):
        likelihoods = [-3.0, -1.0 - i, -4.0 - i]
        pairs = [[str(value), "False"] for value in likelihoods]
        rows.append(
            {
                "doc_id": i,
                "doc": {"question": f"question {i}"},
                "target": "1",
                "arguments": {
                    f"gen_args_{k}": {"arg_0": "Q:", "arg_1": f" {letter * (k + 1)}"}
                    for k, letter in enumerate("abc")
                },
                "resps": [[pair] for pair in pairs],
                "filtered_resps": pairs,
                "filter": "none",
                "metrics": ["acc"],
                "acc": float(np.argmax(likelihoods) == 1),
            }
            | changes
        )
    return rows


def write_run(
    folder: Path,
    tasks: dict[str, list[Row]],
    *,
    change: Callable[[dict[str, Any]], None] = lambda _: None,
    date: str = DATE,
    **told: Any,
) -> Path:
    """Write a run as lm-evaluation-harness does; ``change`` edits the results first."""
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {
        "results": {
            task: {"acc,none": float(np.mean([row["acc"] for row in rows]))}
            for task, rows in tasks.items()
        },
        "group_subtasks": {},
        "configs": {
            task: {
                "task": task,
                "output_type": "multiple_choice",
                "metric_list": [{"metric": "acc", "aggregation": "mean"}],
            }
            for task in tasks
        },
        "n-shot": dict.fromkeys(tasks, 0),
        "n-samples": {
            task: {"original": len(rows), "effective": len(rows)} for task, rows in tasks.items()
        },
        "config": {"model_args": {"pretrained": "org/m"}, "limit": None},
        "model_name": "org/m",
        "date": 1.7e9,
    } | told
    change(results)
    (folder / f"results_{date}.json").write_text(json.dumps(results))
    for task, rows in tasks.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"samples_{task}_{date}.jsonl").write_text(text)
    return folder


def read(*paths: Path, **kwargs: Any) -> Imported:
    return read_lm_eval(paths, ImportOptions(**kwargs))


def notes_of(imported: Imported) -> str:
    return "\n".join([*imported.notes, *(n for t in imported.tables for n in t.notes)])


def test_the_plain_run_passes_every_check_in_silence(tmp_path: Path) -> None:
    imported = read(write_run(tmp_path, {"t": make_rows()}))
    (table,) = imported.tables
    assert notes_of(imported) == ""
    assert (table.n, table.complete, table.date) == (6, True, "2023-11-14T22:13:20")
    assert table.score == table.mean


def test_missing_rows(tmp_path: Path) -> None:
    write_run(tmp_path, {"t": make_rows()})
    path = tmp_path / f"samples_t_{DATE}.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    with pytest.raises(InputError, match=r"4 rows \(none 4\), but the results file counts 6"):
        read(tmp_path)
    imported = read(tmp_path, partial=True)
    assert "incomplete, imported as it is" in notes_of(imported)
    assert imported.tables[0].score is not None  # the tool's own value of the whole run
    assert not imported.tables[0].complete


def test_a_cut_off_line_is_part_of_the_story(tmp_path: Path) -> None:
    write_run(tmp_path, {"t": make_rows()})
    path = tmp_path / f"samples_t_{DATE}.jsonl"
    path.write_text(path.read_text()[:-30])
    with pytest.raises(InputError, match=r"5 rows .* line 6 is cut off, left out: the file is inc"):
        read(tmp_path)


def test_rows_of_another_run_mixed_in(tmp_path: Path) -> None:
    rows = make_rows(7)
    write_run(tmp_path, {"t": rows}, change=lambda r: r["n-samples"]["t"].update(effective=6))
    with pytest.raises(InputError, match="rows of other runs are mixed in"):
        read(tmp_path)


def test_two_runs_appended_to_one_file(tmp_path: Path) -> None:
    rows = make_rows() + make_rows(
        1, acc=0.0, resps=[[["-9.0", "False"]]] * 3, filtered_resps=[["-9.0", "False"]] * 3
    )
    write_run(
        tmp_path, {"t": rows}, change=lambda r: r["n-samples"]["t"].update(effective=6, original=6)
    )
    with pytest.raises(InputError, match=r"doc_id 0 .* stands in rows 1 and 7 with different"):
        read(tmp_path)


def test_numbers_that_skip_one(tmp_path: Path) -> None:
    rows = make_rows()
    rows[5]["doc_id"] = 8
    write_run(tmp_path, {"t": rows})
    with pytest.raises(InputError, match=r"none has doc_id 5 \(the last has 8\)"):
        read(tmp_path)


def test_a_mean_that_is_not_the_reported_value(tmp_path: Path) -> None:
    def change(results: dict[str, Any]) -> None:
        results["results"]["t"]["acc,none"] += 2e-9

    write_run(tmp_path, {"t": make_rows()}, change=change)
    with pytest.raises(InputError, match="rows and results are not of one run"):
        read(tmp_path)


def test_a_value_that_is_no_mean_is_told(tmp_path: Path) -> None:
    def change(results: dict[str, Any]) -> None:
        results["results"]["t"]["acc,none"] = 0.123
        results["configs"]["t"]["metric_list"][0]["aggregation"] = "gpirt"

    imported = read(write_run(tmp_path, {"t": make_rows()}, change=change))
    assert "is aggregated by gpirt; what is estimated is the mean" in notes_of(imported)
    assert imported.tables[0].score is None


def test_an_argmax_that_contradicts_acc(tmp_path: Path) -> None:
    rows = make_rows()
    rows[0]["acc"], rows[5]["acc"] = rows[5]["acc"], rows[0]["acc"]  # the mean stays
    write_run(tmp_path, {"t": rows})
    with pytest.raises(InputError, match=r"acc of 2 of 6 rows is not what the options' log-like"):
        read(tmp_path)

    def change(results: dict[str, Any]) -> None:
        results["configs"]["t"]["process_results"] = "!function"

    imported = read(write_run(tmp_path, {"t": rows}, change=change))
    assert "the task scores in its own way" in notes_of(imported)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("filtered_resps", [["-1", "False"]] * 3, "resps and filtered_resps differ in 1 of 6"),
        ("doc_hash", "0" * 64, "doc does not match its doc_hash in 1 of 6"),
        ("target_hash", "0" * 64, "target does not match its target_hash in 1 of 6"),
    ],
)
def test_a_row_that_contradicts_itself(
    tmp_path: Path, field: str, value: Any, message: str
) -> None:
    rows = make_rows()
    rows[2][field] = value
    write_run(tmp_path, {"t": rows})
    with pytest.raises(InputError, match=message):
        read(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("doc_id", "3", "line 3: not a row .* doc_id is '3'"),
        ("doc_id", True, "doc_id is True"),
        ("doc_hash", "xyz", "doc_hash is 'xyz'"),
        ("resps", [], "does not hold the log-likelihoods"),
        ("metrics", ["f"], "no 'f'"),
        ("filter", 3, "filter is 3"),
        ("arguments", {"gen_args_0": {"arg_0": "", "arg_1": ""}}, "1 arguments for 3 responses"),
    ],
)
def test_a_row_that_is_none(tmp_path: Path, field: str, value: Any, message: str) -> None:
    rows = make_rows()
    rows[2][field] = value
    write_run(tmp_path, {"t": rows})
    with pytest.raises(InputError, match=message):
        read(tmp_path)


def test_two_versions_of_a_data_set(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {"t": make_rows()})
    rows = make_rows()
    rows[4]["doc"] = {"question": "another"}
    write_run(tmp_path / "b", {"t": rows}, model_name="org/b")
    with pytest.raises(InputError, match=r"doc_id 4 of t has another content than in .* 1 of 6 ro"):
        read(tmp_path)


def test_different_numbers_of_examples_are_told(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {"t": make_rows()})
    write_run(tmp_path / "b", {"t": make_rows()}, model_name="org/b", **{"n-shot": {"t": 5}})
    assert "t: models were asked with different numbers of examples: org/m 0, org/b 5" in notes_of(
        read(tmp_path)
    )


def test_the_newest_whole_run_is_taken(tmp_path: Path) -> None:
    def part(results: dict[str, Any]) -> None:
        results["n-samples"]["t"]["original"] = 99

    write_run(tmp_path, {"t": make_rows(5)}, date="2026-01-01T00-00-00.1", date_=0)
    write_run(tmp_path, {"t": make_rows(6)}, date="2026-02-01T00-00-00.1", date_=1)
    for number, path in enumerate(sorted(tmp_path.glob("results*"))):
        told = json.loads(path.read_text())
        path.write_text(json.dumps(told | {"date": 1.7e9 + number}))
    write_run(tmp_path, {"t": make_rows(3)}, date="2026-03-01T00-00-00.1", change=part)
    imported = read(tmp_path)
    assert [table.n for table in imported.tables] == [6]
    assert notes_of(imported).count("left out") == 2


def test_two_models_under_one_name_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {"t": make_rows()})
    config = {"model_args": {"pretrained": "org/m", "revision": "step100"}, "limit": None}
    write_run(tmp_path / "b", {"t": make_rows()}, config=config)
    with pytest.raises(InputError, match="both are named 'org/m', but are runs of different"):
        read(tmp_path)
    assert read(tmp_path / "a", model="first").tables[0].model == "first"


def test_a_target_given_as_text(tmp_path: Path) -> None:
    (table,) = read(write_run(tmp_path, {"t": make_rows(target="bb")})).tables
    assert table.labels is not None
    assert set(table.labels.tolist()) == {1}


def test_several_right_options(tmp_path: Path) -> None:
    rows = make_rows(target="[0, 1]")
    for row in rows:
        row["acc"] = 1.0
    (table,) = read(write_run(tmp_path, {"t": rows})).tables
    assert table.labels is not None
    assert set(table.labels.tolist()) == {-1}
    assert table.score == 1.0


def test_arguments_are_ordered_by_number_not_as_text(tmp_path: Path) -> None:
    likelihoods = [-float(12 - i) for i in range(12)]
    pairs = [[str(value), "False"] for value in likelihoods]
    arguments = {f"gen_args_{k}": {"arg_0": "Q:", "arg_1": " " + "x" * (k + 1)} for k in range(12)}
    rows = make_rows(
        resps=[[pair] for pair in pairs],
        filtered_resps=pairs,
        target="11",
        acc=1.0,
        acc_norm=1.0,
        metrics=["acc", "acc_norm"],
        arguments=dict(sorted(arguments.items())),
    )
    imported = read(write_run(tmp_path, {"t": rows}), metrics=("acc_norm",))
    assert notes_of(imported) == ""


def test_groups_of_groups(tmp_path: Path) -> None:
    """Two subgroups weigh the same, and inside each every sample does: 1/2·(6·a+2·b)/8 + 1/2·c."""
    tasks = {"a": make_rows(6), "b": make_rows(2), "c": make_rows(5)}
    values = {task: float(np.mean([row["acc"] for row in rows])) for task, rows in tasks.items()}

    def change(results: dict[str, Any]) -> None:
        results["group_subtasks"] = {"top": ["left", "c"], "left": ["a", "b"]}
        left = (6 * values["a"] + 2 * values["b"]) / 8
        results["results"]["left"] = {"acc,none": left}
        results["results"]["top"] = {"acc,none": (left + values["c"]) / 2}

    imported = read(write_run(tmp_path, tasks, change=change))
    (table,) = imported.tables
    assert (table.task, table.n) == ("top", 13)
    assert table.weights is not None
    np.testing.assert_allclose(table.weights, [0.8125] * 8 + [1.3] * 5)
    assert table.mean == pytest.approx(table.score)
    assert "each subgroup weighs the same, and each sample inside it" in notes_of(imported)
    (left,) = read(tmp_path, tasks=("left",)).tables
    assert (left.weights, left.n) == (None, 8)


def test_a_group_score_that_nothing_explains_is_told(tmp_path: Path) -> None:
    def change(results: dict[str, Any]) -> None:
        results["group_subtasks"] = {"g": ["a", "b"]}
        results["results"]["g"] = {"acc,none": 0.42}

    imported = read(write_run(tmp_path, {"a": make_rows(6), "b": make_rows(2)}, change=change))
    assert imported.tables[0].score is None
    assert "0.42, is no mean of its subtasks" in notes_of(imported)


def test_a_metric_that_is_a_list_cannot_be_estimated(tmp_path: Path) -> None:
    rows = make_rows(metrics=["f1"], f1=[1, 0])
    write_run(tmp_path, {"t": rows})
    with pytest.raises(InputError, match="f1 of t is no number for each sample"):
        read(tmp_path)


def test_metrics_written_as_text(tmp_path: Path) -> None:
    rows = make_rows(metrics=["em"], em="True")
    (table,) = read(write_run(tmp_path, {"t": rows})).tables
    assert table.responses is not None
    assert table.responses.tolist() == [1.0] * 6


def test_two_old_models_in_one_folder_share_a_results_file(tmp_path: Path) -> None:
    """0.4.2 overwrites results.json: the other model's samples are left without results."""
    old = LM_EVAL / "v0.4.2_old-c"
    shutil.copytree(old, tmp_path, dirs_exist_ok=True)
    other = next((LM_EVAL / "v0.4.2_old-b").glob("*loc_mc4.jsonl"))
    shutil.copy(other, tmp_path)
    assert [t.model for t in read(tmp_path, metrics=("acc",)).tables] == ["models/old-c"]
    imported = read(tmp_path / other.name, metrics=("acc",))
    assert "no results file beside it" in notes_of(imported)
    assert imported.tables[0].score is None


def test_windows_encoding_of_0_4_3(tmp_path: Path) -> None:
    rows = make_rows(doc={"question": "café"})
    write_run(tmp_path, {"t": rows})
    path = tmp_path / f"samples_t_{DATE}.jsonl"
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(text.encode("cp1252"))
    assert "not UTF-8, read as cp1252" in notes_of(read(tmp_path))


def test_there_is_nothing_of_the_tool(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sample logs of lm-evaluation-harness here"):
        read(tmp_path)
    with pytest.raises(InputError, match="no such file or folder"):
        read(tmp_path / "none")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(InputError, match="not a results file"):
        read(tmp_path / "x.json")


def test_a_full_run_is_asked_for_and_must_be_one(tmp_path: Path) -> None:
    part = LM_EVAL / "v0.4.13_samples_sorted"
    with pytest.raises(UsageError, match="--full-run needs a run of the whole of loc_mc4"):
        read(LM_EVAL / "v0.4.13_samples_unsorted", metrics=("acc",), full_runs=(str(part),))


@pytest.mark.slow
def test_a_large_log_needs_little_memory(tmp_path: Path) -> None:
    padding = "x" * 2000
    rows = make_rows(1)
    path = tmp_path / f"samples_t_{DATE}.jsonl"
    with path.open("w") as file:
        for i in range(40_000):
            row = rows[0] | {"doc_id": i, "doc": {"question": i}}
            row["arguments"] = {
                key: {"arg_0": padding, "arg_1": one["arg_1"]}
                for key, one in rows[0]["arguments"].items()
            }
            file.write(json.dumps(row) + "\n")
    assert path.stat().st_size > 240e6
    code = (
        "import resource, sys; from disco_cli.harness.lm_eval import read_lm_eval; "
        "n = read_lm_eval([sys.argv[1]]).tables[0].n; "
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    n, megabytes = map(int, done.stdout.split())
    assert n == 40_000
    assert megabytes < 130
