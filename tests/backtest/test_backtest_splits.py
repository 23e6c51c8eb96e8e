"""Which models are references and which are targets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disco_cli.backtest.families import families, family_of, read_families
from disco_cli.backtest.splits import (
    SplitKind,
    leave_one_out_splits,
    make_splits,
    newest_split,
    random_split,
    stable_rng,
    strongest_split,
)
from disco_cli.errors import InputError, UsageError

NO_DATES = (None,) * 8


def test_random_split_takes_the_share_and_leaves_the_rest():
    split = random_split(40, 0, test_share=0.25)
    assert len(split.targets) == 10
    assert sorted([*split.targets, *split.references]) == list(range(40))


def test_random_split_depends_on_the_repeat_alone():
    first, again, other = random_split(40, 3), random_split(40, 3), random_split(40, 4)
    np.testing.assert_array_equal(first.targets, again.targets)
    assert not np.array_equal(first.targets, other.targets)


def test_stable_rng_is_the_same_on_every_machine():
    assert stable_rng("split", "random", 0).integers(1000, size=3).tolist() == [
        *stable_rng("split", "random", 0).integers(1000, size=3)
    ]
    # Written down once: a change would silently change every published backtest.
    assert stable_rng("a", 1).integers(10**6) == EXPECTED_DRAW


EXPECTED_DRAW = 152655


@given(st.lists(st.sampled_from("abcdefgh"), min_size=8, max_size=40), st.integers(0, 50))
def test_families_stay_on_one_side_of_a_random_split(names, repeat):
    try:
        split = random_split(len(names), repeat, families=names)
    except UsageError:
        return
    left = {names[m] for m in split.references}
    assert left.isdisjoint({names[m] for m in split.targets})
    assert len(split.references) + len(split.targets) == len(names)


def test_newest_split_never_divides_a_date():
    dates = ["2024-01", "2024-02", "2024-03", "2024-03", "2024-03", "2023-01"]
    split = newest_split(dates, 0, test_share=0.2)
    assert split.targets.tolist() == [2, 3, 4]
    assert split.references.tolist() == [0, 1, 5]


def test_newest_split_takes_a_cutoff():
    dates = ["2024-01-05", "2024-02-01", "2024-03-01", "2023-03-01", "2022-01-01"]
    split = newest_split(dates, 0, cutoff="2024-02-01")
    assert split.targets.tolist() == [1, 2]


def test_newest_split_without_dates_is_refused():
    with pytest.raises(UsageError, match="1 of 4 have none"):
        newest_split(["2024", "2023", None, "2021"], 0)


def test_newest_split_with_a_cutoff_in_the_future_is_refused():
    with pytest.raises(UsageError, match="the newest is of 2024"):
        newest_split(["2024", "2023", "2022", "2021"], 0, cutoff="2030")


def test_strongest_split_takes_the_best():
    split = strongest_split(np.array([0.1, 0.9, 0.5, 0.8, 0.2, 0.3, 0.4, 0.6]), 0)
    assert split.targets.tolist() == [1, 3]


def test_strongest_split_leaves_out_relatives():
    scores = np.array([0.1, 0.9, 0.5, 0.8, 0.2])
    split = strongest_split(scores, 0, test_share=0.2, families=["a", "b", "b", "c", "d"])
    assert split.targets.tolist() == [1]
    assert split.references.tolist() == [0, 3, 4]


def test_leave_one_out_makes_each_model_the_target_once():
    splits = leave_one_out_splits(5, 0)
    assert [split.targets.tolist() for split in splits] == [[0], [1], [2], [3], [4]]
    assert splits[2].references.tolist() == [0, 1, 3, 4]


def test_leave_one_out_by_family_drops_relatives():
    splits = leave_one_out_splits(5, 0, families=["a", "a", "b", "c", "d"])
    assert splits[0].references.tolist() == [2, 3, 4]


def test_too_few_references_are_refused():
    with pytest.raises(UsageError, match="leaves 2 of 4 models as references"):
        random_split(4, 0, test_share=0.5)
    with pytest.raises(UsageError, match="once relatives of the targets are left out"):
        strongest_split(np.arange(4.0), 0, families=["a", "a", "b", "b"])


def test_share_outside_0_and_1_is_refused():
    with pytest.raises(UsageError, match=r"--test-share must lie between 0 and 1, found 1\.5"):
        random_split(10, 0, test_share=1.5)


def test_cutoff_belongs_to_newest():
    with pytest.raises(UsageError, match="--cutoff belongs to --split newest, not to random"):
        make_splits(SplitKind.RANDOM, 1, scores=np.zeros(8), dates=NO_DATES, cutoff="2024-01-01")


@pytest.mark.parametrize(("kind", "folds"), [("random", 1), ("strongest", 1), ("leave-one-out", 8)])
def test_make_splits_repeats_every_fold(kind, folds):
    splits = make_splits(SplitKind(kind), 2, scores=np.arange(8.0), dates=NO_DATES)
    assert [(split.repeat, split.fold) for split in splits] == [
        (repeat, fold) for repeat in range(2) for fold in range(folds)
    ]


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("meta-llama/Llama-3.1-8B", "llama"),
        ("FuseChat-Llama-3.2-1B-Instruct", "llama"),
        ("Llama-2-13b-hf@base_base", "llama"),
        ("01-ai_yi-34b", "yi"),
        ("Qwen2.5-72B", "qwen"),
        ("random-forest-3", "random"),
        ("adaboost-1", "adaboost"),
        ("12", "12"),
    ],
)
def test_family_comes_from_the_name(name, family):
    assert family_of(name) == family


def test_family_table_goes_before_the_rule(tmp_path):
    path = tmp_path / "families.csv"
    path.write_text("model,family\nmodel-7,llama\n\nother,x\n")
    assert families(["model-7", "qwen-2"], read_families(path)) == ["llama", "qwen"]
    path.write_text("model-7\tllama\n")
    assert read_families(path) == {"model-7": "llama"}


def test_family_table_with_a_short_line_is_refused(tmp_path):
    path = tmp_path / "families.csv"
    path.write_text("a,b\nc\n")
    with pytest.raises(InputError, match=r"line 2: expected a model and its family, found \['c'\]"):
        read_families(path)
    with pytest.raises(InputError, match="cannot read the table of families"):
        read_families(tmp_path / "absent.csv")
