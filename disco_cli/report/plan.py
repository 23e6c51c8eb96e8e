"""Rendering of ``disco plan``."""

from __future__ import annotations

import sys

from disco_cli.report.console import put_json, say_all
from disco_cli.report.tables import print_rows
from disco_cli.workflows.plan import PlanResult

TERMINAL = {
    "k": "k",
    "models": "models",
    "error": "error",
    "error_strongest": "strongest",
    "width": "interval",
    "difference": "tells",
    "random_error": "random: error",
    "random_width": "interval",
    "random_difference": "tells",
}
"""Columns on a terminal and their headings; pipes get all of them by their names."""

_BOUNDS = {"exact": "about ", "at-most": "at most ", "more-than": "more than "}


def show(result: PlanResult, *, as_json: bool, quiet: bool) -> None:
    """Print the plan; what it means in words goes to stderr."""
    say_all([*result.notes, *_summary(result)], quiet=quiet)
    if as_json:
        put_json(result.as_dict())
        return
    lines = [row.as_dict() for row in result.rows]
    if sys.stdout.isatty():
        rows = [[line[name] for name in TERMINAL] for line in lines]
        print_rows(tuple(TERMINAL.values()), rows, n_keys=2)
    else:
        names = tuple(lines[0])
        print_rows(names, [[line[name] for name in names] for line in lines])


def _summary(result: PlanResult) -> list[str]:
    percent = f"{100 * result.level:g} %"
    most = result.rows[-1].point
    chance = f"{100 - 100 * result.level:g} %"
    lines = [
        f"{result.n_models} models, {result.n_samples} samples",
        "error: mean absolute error of left-out models; strongest: of the strongest quarter alone",
        f"interval: mean width at {percent}; random: of a plain random sample of k",
        f"tells: difference between two models that chance alone exceeds in {chance} of pairs",
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
            f"error {result.target_error:g}: {bound}{result.smallest.k} samples; as a plain random "
            f"sample {result.random_smallest}"
        )
    return lines
