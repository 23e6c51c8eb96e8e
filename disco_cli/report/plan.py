"""Rendering of ``disco plan``."""

from __future__ import annotations

from disco_cli.report.console import put_json, say_all
from disco_cli.report.tables import print_rows
from disco_cli.workflows.plan import PlanResult

_BOUNDS = {"exact": "about ", "at-most": "at most ", "more-than": "more than "}


def show(result: PlanResult, *, as_json: bool, quiet: bool) -> None:
    """Print the plan; what it means in words goes to stderr."""
    say_all([*result.notes, *_summary(result)], quiet=quiet)
    if as_json:
        put_json(result.as_dict())
        return
    lines = [row.as_dict() for row in result.rows]
    print_rows(tuple(lines[0]), [tuple(line.values()) for line in lines], n_keys=2)


def _summary(result: PlanResult) -> list[str]:
    percent = f"{100 * result.level:g} %"
    most = result.rows[-1].point
    chance = f"{100 - 100 * result.level:g} %"
    lines = [
        f"{result.n_models} models, {result.n_samples} samples",
        (
            "column error is the mean absolute error of left-out models, error_strongest that of the "
            "strongest quarter, learned from the rest"
        ),
        (
            f"column width is the mean width of intervals at {percent}, difference the one that chance "
            f"alone exceeds in {chance} of pairs of models"
        ),
        "columns random_… are the same of a plain random sample of k",
    ]
    if most.n_models > most.n_learned:
        lines.append(
            f"the rows of {most.n_models} models learned from {most.n_learned}, because the others "
            "were left out: a little pessimistic"
        )
    if any(row.point.width is None for row in result.rows):
        lines.append(f"no interval where models are too few for a level of {percent}")
    if result.smallest is not None:
        bound = _BOUNDS[result.smallest.bound]
        lines.append(
            f"an error of {result.target_error:g} takes {bound}{result.smallest.k} samples, or "
            f"{result.random_smallest} drawn plainly at random"
        )
    return lines
