"""Choices that were not made: one error names all of them."""

import pytest

from disco_cli.errors import UsageError
from disco_cli.harness.choices import Choices, choose_one


def test_one_choice():
    assert choose_one(["acc"], [], "metric", "a.jsonl", "arc") == "acc"
    assert choose_one(["acc", "f1"], ["em", "f1"], "metric", "a.jsonl", "arc") == "f1"
    with pytest.raises(UsageError) as caught:
        choose_one(["acc", "f1"], ["em"], "metric", "a.jsonl", "arc")
    assert str(caught.value) == (
        "a.jsonl: arc has no metric em: choose with --metric from acc, f1; give several --metric, "
        "and each task takes the first it has"
    )


def test_all_tasks_that_need_a_choice_are_in_one_line():
    choices = Choices()
    done = []
    for path, task, metrics in [
        ("m1/arc", "arc", ["acc", "acc_norm"]),
        ("m1/gsm", "gsm", ["em"]),
        ("m2/arc", "arc", ["acc", "acc_norm"]),
        ("m1/piqa", "piqa", ["acc", "acc_norm"]),
        ("m1/drop", "drop", ["em", "f1"]),
    ]:
        with choices.each():
            done.append(choose_one(metrics, [], "metric", path, task))
    with choices.each():
        choose_one(["none", "strict"], [], "filter", "m1/gsm", "gsm")
    assert done == ["em"]
    with pytest.raises(UsageError) as caught:
        choices.check()
    assert str(caught.value) == (
        "m1/arc and 1 more: arc, m1/piqa: piqa have several metrics: choose with --metric from "
        "acc, acc_norm; m1/drop: drop has several metrics: choose with --metric from em, f1; "
        "m1/gsm: gsm has several filters: choose with --filter from none, strict; give several "
        "--metric, and each task takes the first it has"
    )


def test_nothing_is_missing():
    Choices().check()
