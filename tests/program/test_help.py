"""Help and messages that a first-time user meets."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from disco_cli.cli import app
from disco_cli.errors import UsageError
from disco_cli.harness.choices import choose_one


@pytest.mark.parametrize("words", [["--help"], ["import", "--help"]])
def test_lists_of_commands_cut_no_sentence_off(words: list[str]) -> None:
    shown = CliRunner().invoke(app, words).output
    assert "..." not in shown.split("Commands:")[1]


@pytest.mark.parametrize("name", ["select", "build-db", "predict", "plan", "backtest"])
def test_values_have_names_and_not_types(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"]).output
    assert "range>" not in shown
    assert "<float>" not in shown
    assert "<str>" not in shown


def test_a_metric_that_one_task_lacks_says_that_several_can_be_given() -> None:
    with pytest.raises(UsageError, match="from exact_match; give several --metric, and each task"):
        choose_one(["exact_match"], ["acc"], "metric", "log.jsonl", "gen")
