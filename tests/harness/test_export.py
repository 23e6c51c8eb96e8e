"""A selection reaches another tool in exactly the form that it takes."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from disco_cli.errors import UsageError
from disco_cli.harness.export import Target, export_selection
from disco_cli.selection.draw import Draw
from disco_cli.selection.subset import Selection


def selection(ids: list[str] | None, k: int = 3) -> Selection:
    n = k if ids is None else len(ids)
    draw = Draw(
        positions=np.arange(n) * 2,
        ranks=np.arange(n, 0, -1),
        scores=np.array([np.nan, *range(n - 1)], dtype=float),
        roles=("random",) * n,
        inclusion_probabilities=np.full(n, 0.5),
        weights=np.full(n, 1 / n),
    )
    names = None if ids is None else np.array(ids)
    return Selection("random", 0, 100, "fingerprint", names, draw, {})


def test_lm_eval_gets_ascending_distinct_numbers_for_each_task() -> None:
    chosen = selection(["mmlu_b/10", "mmlu_b/9", "mmlu_a/100", "mmlu_b/10", "mmlu_a/7"])
    exported = export_selection(chosen, Target.LM_EVAL, path="my samples.json")
    assert json.loads(exported.text) == {"mmlu_a": [7, 100], "mmlu_b": [9, 10]}
    assert exported.command == (
        "lm_eval --model hf --model_args pretrained=MODEL --tasks mmlu_a,mmlu_b "
        "--samples 'my samples.json' --log_samples --output_path OUT"
    )
    assert any("--cache_requests" in warning for warning in exported.warnings)


def test_lm_eval_needs_document_numbers() -> None:
    with pytest.raises(UsageError, match="'arc/q1' does not end in a document number"):
        export_selection(selection(["arc/q1"]), Target.LM_EVAL)
    with pytest.raises(UsageError, match="'q1' is not of the form task/id"):
        export_selection(selection(["q1"]), Target.LM_EVAL)


def test_samples_known_by_position_need_a_task() -> None:
    with pytest.raises(UsageError, match="by position only; say with --task"):
        export_selection(selection(None), Target.LM_EVAL)
    exported = export_selection(selection(None), Target.LM_EVAL, task="arc")
    assert json.loads(exported.text) == {"arc": [0, 2, 4]}


def test_one_task_of_several() -> None:
    chosen = selection(["a/1", "b/2"])
    assert json.loads(export_selection(chosen, Target.LM_EVAL, task="b").text) == {"b": [2]}
    ids = export_selection(chosen, Target.IDS, task="b")
    assert (ids.text, ids.k) == ("b/2\n", 1)
    assert export_selection(chosen, Target.CSV, task="a").text.splitlines()[1].startswith("a/1,0,2")
    row = json.loads(export_selection(chosen, Target.JSONL, task="b").text)
    assert (row["sample_id"], row["position"]) == ("b/2", 2)
    with pytest.raises(
        UsageError, match="--task c: no such task among the selected samples; there are a, b"
    ):
        export_selection(chosen, Target.LM_EVAL, task="c")


def test_inspect_gets_a_list_of_ids() -> None:
    exported = export_selection(selection(["ids/q/1", "ids/q 2", "ids/café"]), Target.INSPECT)
    assert exported.text == "q/1,q 2,café\n"
    assert exported.command == ("inspect eval ids.py --model MODEL --sample-id 'q/1,q 2,café'")


def test_inspect_ids_are_patterns_and_tasks_are_prefixes() -> None:
    exported = export_selection(selection(["a/is it?", "b/[1]"]), Target.INSPECT)
    assert exported.text == "a:is it[?],b:[[]1]\n"
    assert any("several" in warning for warning in exported.warnings)


def test_inspect_cannot_take_commas() -> None:
    with pytest.raises(UsageError, match="holds a comma"):
        export_selection(selection(["a/1,2"]), Target.INSPECT)


def test_plain_ids() -> None:
    assert export_selection(selection(["a/1", "a/2"]), Target.IDS).text == "a/1\na/2\n"
    assert export_selection(selection(None), Target.IDS).text == "0\n2\n4\n"


def test_csv_and_jsonl_hold_the_same() -> None:
    chosen = selection(["a/1", 'say "x", y', "a/3"])
    rows = list(csv.DictReader(export_selection(chosen, Target.CSV).text.splitlines()))
    lines = [json.loads(x) for x in export_selection(chosen, Target.JSONL).text.splitlines()]
    assert [row["sample_id"] for row in rows] == [line["sample_id"] for line in lines]
    assert rows[1]["sample_id"] == 'say "x", y'
    assert lines[0] == {
        "sample_id": "a/1", "position": 0, "rank": 3, "score": None, "role": "random",
        "inclusion_probability": 0.5, "weight": 1 / 3, "stratum": None,
    }  # fmt: skip
    assert rows[0]["score"] == ""


def test_rows_have_the_keys_of_a_selection() -> None:
    chosen = selection(["a/1", "a/2", "a/3"])
    chosen = replace(chosen, draw=replace(chosen.draw, strata=np.array([4, 4, 7])))
    rows = list(csv.DictReader(export_selection(chosen, Target.CSV).text.splitlines()))
    assert [row["stratum"] for row in rows] == ["4", "4", "7"]
    columns = {k for k, v in json.loads(chosen.to_json()).items() if isinstance(v, list)}
    assert rows[0].keys() - {"sample_id"} == columns - {"sample_ids"}


@pytest.mark.parametrize("to", [Target.IDS, Target.CSV, Target.JSONL])
def test_a_task_that_nothing_belongs_to_is_refused(to: Target) -> None:
    with pytest.raises(UsageError, match=r"--task c: no such task .*; there are a, b$"):
        export_selection(selection(["a/1", "b/2"]), to, task="c")
    with pytest.raises(UsageError, match=r"--task c: no such task .* not of the form task/id"):
        export_selection(selection(["c1", "c2"]), to, task="c")
    with pytest.raises(UsageError, match=r"--task c: .* by position only"):
        export_selection(selection(None), to, task="c")
