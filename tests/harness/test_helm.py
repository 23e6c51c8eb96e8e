"""Runs of HELM import to what their own ``stats.json`` reports."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logs import SHARED

from disco_cli.errors import DiscoError, InputError, UsageError
from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.helm import read_helm
from disco_cli.harness.imported import ImportedTable

REAL = SHARED / "third_party" / "helm"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="real runs of HELM are not committed")


def stat(name: str, value: float | None, split: str = "test", **extra: Any) -> dict[str, Any]:
    count = {"count": 0} if value is None else {"count": 1, "mean": value}
    return {"name": {"name": name, "split": split, **extra}, **count}


def make_run(folder: Path, values: dict[str, list[float | None]], answer: str = " B") -> Path:
    """Write a run with one instance for each key and one trial for each value."""
    folder.mkdir(parents=True)
    spec = {"name": "mmlu:subject=x,model=org_m", "adapter_spec": {"model": "org/m"}}
    (folder / "run_spec.json").write_text(json.dumps(spec))
    entries: list[dict[str, Any]] = [
        {
            "instance_id": instance,
            "train_trial_index": trial,
            "stats": [stat("exact_match", value), stat("num_tokens", 3.0)],
        }
        for instance, trials in values.items()
        for trial, value in enumerate(trials)
    ]
    entries.append({**entries[0], "perturbation": {"name": "typos"}})
    random.Random(1).shuffle(entries)
    (folder / "per_instance_stats.json").write_text(json.dumps(entries, indent=1))
    means = [np.mean([v for v in trials if v is not None]) for trials in values.values()]
    stats = [
        stat("exact_match", 9.0, perturbation={"name": "robustness"}),
        stat("exact_match", float(np.nanmean(means))),
    ]
    (folder / "stats.json").write_text(json.dumps(stats))
    states = [
        {
            "instance": {
                "id": instance,
                "input": {"text": f"question {instance}"},
                "references": [
                    {"output": {"text": "right"}, "tags": ["correct"]},
                    {"output": {"text": "wrong"}, "tags": []},
                ],
            },
            "output_mapping": {"A": "wrong", "B": "right"},
            "result": {"completions": [{"text": answer}], "request_datetime": 1762354922},
        }
        for instance in values
    ]
    state = {"adapter_spec": {}, "request_states": states}
    (folder / "scenario_state.json").write_text(json.dumps(state))
    return folder


def one(path: Path, **kwargs: Any) -> ImportedTable:
    (table,) = read_helm([path], ImportOptions(**kwargs)).tables
    return table


def test_a_run(tmp_path: Path) -> None:
    table = one(make_run(tmp_path / "run", {"id10": [1.0], "id9": [0.0], "id11": [1.0]}))
    assert (table.model, table.task, table.metric) == ("org/m", "mmlu:subject=x", "exact_match")
    assert [i.rpartition("/")[2] for i in table.ids] == ["id9", "id10", "id11"]
    assert table.responses is not None
    assert table.responses.tolist() == [0, 1, 1]
    assert table.score == pytest.approx(2 / 3)
    assert table.labels is not None
    assert table.labels.tolist() == [0, 0, 0]  # options in the order of their texts
    assert table.predicted_labels is not None
    assert table.predicted_labels.tolist() == [0, 0, 0]
    assert any("1 perturbed instances left out" in note for note in table.notes)


def test_trials_are_averaged_and_missing_scores_told(tmp_path: Path) -> None:
    table = one(make_run(tmp_path / "run", {"id1": [1.0, 0.0], "id2": [1.0, None]}))
    assert table.responses is not None
    assert table.responses.tolist() == [0.5, 1.0]
    assert any("mean over 2 trials" in note for note in table.notes)


def test_an_answer_that_is_no_option(tmp_path: Path) -> None:
    table = one(make_run(tmp_path / "run", {"id1": [0.0]}, answer=" Paris"))
    assert table.predicted_labels is not None
    assert table.predicted_labels.tolist() == [-1]


def test_a_contradiction_with_the_report_is_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"id1": [1.0], "id2": [0.0]})
    path = folder / "stats.json"
    path.write_text(path.read_text().replace("0.5", "0.75"))
    with pytest.raises(InputError, match=r"is 0\.5, but stats\.json reports 0\.75"):
        read_helm([folder])


def test_a_cut_off_file(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {f"id{i}": [float(i % 2)] for i in range(9)})
    path = folder / "per_instance_stats.json"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="is cut off: copy the file again"):
        read_helm([folder])
    table = one(folder, partial=True)
    assert table.n < 9
    assert (table.complete, table.score) == (False, None)


def test_damage_never_ends_in_another_error(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {f"id{i}": [float(i % 2)] for i in range(3)})
    dice = random.Random(2)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for at in range(0, len(content), 7):
            for changed in (
                content[:at],
                content[:at] + bytes([content[at] ^ 1 << dice.randrange(8)]) + content[at + 1 :],
            ):
                path.write_bytes(changed)
                try:
                    table = one(folder)
                except DiscoError:
                    continue
                assert table.n == 3, (path.name, at)
        path.write_bytes(content)


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run of HELM here"):
        read_helm([tmp_path])


@needs_real
def test_real_runs_meet_their_reports() -> None:
    options = {"metrics": ("exact_match",)}
    philosophy = next(REAL.glob("mmlu*"))
    with pytest.raises(UsageError, match="has several filters: choose with --filter from test, va"):
        read_helm([philosophy], ImportOptions(**options))
    test = one(philosophy, filters=("test",), **options)
    assert (test.n, test.score) == (9, pytest.approx(0.1111111111111111, abs=1e-9))
    valid = one(philosophy, filters=("valid",), **options)
    assert (valid.n, valid.score) == (1, 0.0)
    assert any("test left out" in note for note in valid.notes)
    hellaswag = one(next(REAL.glob("commonsense*")), **options)
    assert (hellaswag.n, hellaswag.score) == (10, pytest.approx(0.3))
    assert hellaswag.labels is not None
    assert hellaswag.predicted_labels is not None
    right = hellaswag.labels == hellaswag.predicted_labels
    np.testing.assert_array_equal(right, hellaswag.responses)


@needs_real
def test_real_runs_damaged(tmp_path: Path) -> None:
    for real in REAL.iterdir():
        folder = Path(shutil.copytree(real, tmp_path / real.name))
        options = {"metrics": ("exact_match",), "filters": ("test", "valid")}
        n = one(folder, **options).n
        for path in sorted(folder.iterdir()):
            content = path.read_bytes()
            for at in range(0, len(content), 1000 * 7):
                path.write_bytes(content[:at])
                try:
                    table = one(folder, **options)
                except DiscoError:
                    continue
                assert table.n == n, (path.name, at)
            path.write_bytes(content)
