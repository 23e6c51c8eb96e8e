"""Gates of ``disco predict``: what is refused, and what is told of models that fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from disco_cli.errors import GateError, UsageError
from disco_cli.workflows.estimator import Prediction
from disco_cli.workflows.gates import Gates

GOOD = Prediction(
    model="good",
    estimate=0.8,
    low=0.75,
    high=0.85,
    level=0.9,
    status="in-range",
    predictor="auto",
    n_used=10,
    n_missing=0,
    subset_mean=None,
    subset_biased=False,
    nearest="other",
    distance=0.1,
    warnings=(),
)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match="--fail-under"):
        Gates(fail_under=value)
    with pytest.raises(UsageError, match="--max-width"):
        Gates(max_width=value)


def test_a_negative_width_and_an_unknown_status_are_refused() -> None:
    with pytest.raises(UsageError, match="no interval is that narrow"):
        Gates(max_width=-0.1)
    with pytest.raises(UsageError, match="--fail-on odd: choose among extrapolated, unfamiliar"):
        Gates(fail_on=("odd",))


def test_percentages_are_refused_where_scores_are_shares() -> None:
    unit = (0.0, 1.0)
    with pytest.raises(UsageError, match=r"--fail-under 70: .* between 0 and 1; did you mean 0.7"):
        Gates(fail_under=70).check_unit(unit)
    with pytest.raises(UsageError, match=r"--max-width 6: .* did you mean 0.06"):
        Gates(max_width=6).check_unit(unit)
    with pytest.raises(UsageError, match=r"--fail-under -1: .* between 0 and 1$"):
        Gates(fail_under=-1).check_unit(unit)
    Gates(fail_under=1.0, max_width=0.0).check_unit(unit)
    Gates(fail_under=70, max_width=6).check_unit(None)


def test_each_model_that_fails_has_a_message() -> None:
    models = [GOOD, replace(GOOD, model="a", estimate=0.6), replace(GOOD, model="b", low=None)]
    with pytest.raises(GateError) as caught:
        Gates(fail_under=0.7, max_width=0.2).check(models)
    assert caught.value.messages == (
        "a: estimate 0.6000 is under 0.7",
        "b: no interval to hold against --max-width 0.2",
    )
    Gates(fail_under=0.7, max_width=0.2).check(models[:1])


def test_a_status_can_fail() -> None:
    odd = replace(GOOD, model="odd", status="unfamiliar")
    with pytest.raises(GateError, match=r"^odd: status is unfamiliar$"):
        Gates(fail_on=("extrapolated", "unfamiliar")).check([GOOD, odd])
    Gates(fail_on=("extrapolated",)).check([GOOD, odd])


def test_the_program_refuses_before_it_prints(disco, small, small_artifacts) -> None:
    done = disco("predict", small[0], "--dir", small_artifacts, "--fail-under", "70")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 0.7?" in done.stderr
    done = disco("predict", small[0], "--dir", small_artifacts, "--max-width", "nan")
    assert (done.returncode, done.stdout) == (2, "")


def test_all_reasons_of_a_model_are_told() -> None:
    with pytest.raises(GateError) as caught:
        Gates(fail_under=0.9, max_width=0.05).check([GOOD])
    assert caught.value.messages == (
        "good: estimate 0.8000 is under 0.9",
        "good: the interval is 0.1000 wide, more than 0.05",
    )
