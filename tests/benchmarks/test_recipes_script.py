"""The benchmark script of the recipes, on the sample data: its shape, not its figures."""

import json
import math
import os
import subprocess
import sys

import pytest
from support import ROOT

SCRIPTS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Import the module that renders; scripts are no package."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        import recipes_table
    finally:
        sys.path.remove(str(SCRIPTS))
    return recipes_table


def run_script(path, *options):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, SCRIPTS / "recipes.py", "--json", path, *options],
        capture_output=True,
        text=True,
        env=environment,
        timeout=240,
        check=False,
    )


def test_sample_data_through_the_command_line(tmp_path, table):
    path = tmp_path / "recipes.json"
    options = ["--sets", "sample_data", "--splits", "alike,newer", "--ks", "20", "--seeds", "1"]
    options += ["--selections", "1"]
    ran = run_script(path, *options, "--recipes", "auto", "--jobs", "1")
    assert ran.returncode == 0, ran.stderr
    assert "sample_data: no dates" in ran.stderr
    assert "mmlu_10k_logits: left out, it has no labels" in ran.stderr
    (row,) = json.loads(path.read_text())["rows"]
    assert (row["set"], row["split"], row["k"], row["recipe"]) == (
        "sample_data",
        "alike",
        20,
        "auto",
    )
    assert (row["references"], row["targets"]) == (75, 25)
    assert len(row["truth"]) == len(row["estimate"]) == len(row["low"]) == 25
    assert sum(row["statuses"].values()) == 25
    errors = [abs(e - t) for e, t in zip(row["estimate"], row["truth"], strict=True)]
    assert row["mae"] == pytest.approx(sum(errors) / 25, rel=1e-3)
    assert 0 < row["random_mae"] < 0.2
    assert "auto" in ran.stdout
    again = run_script(path, "--report", "--markdown")
    assert again.returncode == 0, again.stderr
    assert "| alike | 20 | auto | sample_data |" in again.stdout


def test_an_unknown_set_is_refused(tmp_path):
    ran = run_script(tmp_path / "recipes.json", "--sets", "nothing")
    assert ran.returncode == 2
    assert "--sets nothing: choose of" in ran.stderr


def row(name, mae, *, random_mae=0.04, repeat=0, coverage=0.9):
    return {
        "set": name, "split": "alike", "k": 100, "recipe": "auto", "repeat": repeat, "seed": 0,
        "mae": mae, "random_mae": random_mae, "spearman": 0.9, "coverage": coverage,
        "width": None if coverage is None else 0.1, "random_width": 0.2,
        "with_interval": 0.0 if coverage is None else 1.0,
    }  # fmt: skip


def test_the_error_is_a_ratio_of_means_and_sets_count_alike(table):
    rows = [row("a", 0.01), row("a", 0.03, repeat=1), row("b", 0.045, random_mae=0.045)]
    grouped = table.group_by_set(table.summarise(rows))
    found = table.overall(grouped["auto", "alike", 100])
    assert grouped["auto", "alike", 100]["a"].ratio == pytest.approx(0.5)
    assert found.ratio == pytest.approx(math.sqrt(0.5))
    assert (found.worst, found.worst_set) == (pytest.approx(1.0), "b")
    assert (found.narrower, found.n_sets) == (2, 2)


def test_a_set_without_intervals_leaves_coverage_to_the_others(table):
    rows = [row("a", 0.02), row("b", 0.02, coverage=None)]
    found = table.overall(table.group_by_set(table.summarise(rows))["auto", "alike", 100])
    assert found.coverage == pytest.approx(0.9)
    assert found.width_ratio == pytest.approx(0.5)


def test_goals_say_whether_they_are_met(table):
    rows = [row("a", 0.02), row("b", 0.044)]
    total = table.overall(table.group_by_set(table.summarise(rows))["auto", "alike", 100])
    lines = table.goal_lines("alike", total)
    assert [met for *_, met in lines] == ["no", "no", "yes", "yes"]
