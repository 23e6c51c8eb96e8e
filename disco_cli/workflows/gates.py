"""Gates for CI: what every estimate must come up to, or the command fails."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from disco_cli.errors import GateError, UsageError
from disco_cli.workflows.estimator import EXTRAPOLATED, IN_RANGE, UNFAMILIAR, Prediction

STATUSES = (EXTRAPOLATED, UNFAMILIAR, IN_RANGE)


@dataclass(frozen=True)
class Gates:
    """What is asked of every estimate; all numbers in the unit of the score.

    Attributes
    ----------
    fail_under : float, optional
        The least estimate that passes.
    max_width : float, optional
        The widest interval that passes; none at all does not.
    fail_on : tuple of str
        Statuses that do not pass.

    Raises
    ------
    UsageError
        A number that nothing, or everything, would pass; a status that there is not.
    """

    fail_under: float | None = None
    max_width: float | None = None
    fail_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for option, value in self._numbers():
            if not math.isfinite(value):
                raise UsageError(f"{option} {value:g}: give a number, such as 0.7")
        if self.max_width is not None and self.max_width < 0:
            raise UsageError(f"--max-width {self.max_width:g}: no interval is that narrow")
        for status in self.fail_on:
            if status not in STATUSES:
                known = ", ".join(STATUSES)
                raise UsageError(f"--fail-on {status}: choose among {known}")

    def _numbers(self) -> list[tuple[str, float]]:
        given = (("--fail-under", self.fail_under), ("--max-width", self.max_width))
        return [(option, value) for option, value in given if value is not None]

    def check_unit(self, bounds: tuple[float, float] | None) -> None:
        """Refuse numbers that are out of the range of scores, where that is known.

        Raises
        ------
        UsageError
            A percentage, most likely.
        """
        if bounds is None:
            return
        low, high = bounds
        for option, value in self._numbers():
            least, greatest = (low, high) if option == "--fail-under" else (0.0, high - low)
            if least <= value <= greatest:
                continue
            per_cent = least <= value / 100 <= greatest and value > greatest
            advice = f"; did you mean {value / 100:g}?" if per_cent else ""
            message = (
                f"{option} {value:g}: scores of this database lie between {low:g} and {high:g}"
                f"{advice}"
            )
            raise UsageError(message)

    def check(self, predictions: Iterable[Prediction]) -> None:
        """Hold estimates against the gates.

        Raises
        ------
        GateError
            With a message for each reason for which a model does not pass.
        """
        messages = [why for prediction in predictions for why in self._failures(prediction)]
        if messages:
            raise GateError(*messages)

    def _failures(self, prediction: Prediction) -> Iterator[str]:
        """Yield each reason for which a model does not pass."""
        name = prediction.model
        if self.fail_under is not None and not prediction.estimate >= self.fail_under:
            yield f"{name}: estimate {prediction.estimate:.4f} is under {self.fail_under:g}"
        if prediction.status in self.fail_on:
            yield f"{name}: status is {prediction.status}"
        if self.max_width is None:
            return
        if prediction.low is None or prediction.high is None:
            yield f"{name}: no interval to hold against --max-width {self.max_width:g}"
            return
        width = prediction.high - prediction.low
        if not width <= self.max_width:
            yield f"{name}: the interval is {width:.4f} wide, more than {self.max_width:g}"
