"""Rendering of ``disco predict``: a table on a terminal, tab-separated in a pipe, JSON lines."""

from __future__ import annotations

import sys
from pathlib import Path

from disco_cli.report.console import json_line, put, say_all
from disco_cli.report.tables import print_rows, tab_separated
from disco_cli.workflows.estimator import Prediction
from disco_cli.workflows.predict import PredictResult

COLUMNS = (
    "model",
    "estimate",
    "low",
    "high",
    "status",
    "n_used",
    "n_missing",
    "subset_mean",
    "nearest",
    "distance",
)


def show(
    result: PredictResult, *, as_json: bool, quiet: bool, output: Path | None, force: bool
) -> None:
    """Print the estimates, or write them to a file and print its path; warnings on stderr."""
    say_all(result.notes, quiet=quiet)
    say_all(
        (f"{p.model}: {warning}" for p in result.predictions for warning in p.warnings),
        quiet=quiet,
    )
    if any(p.subset_biased and p.subset_mean is not None for p in result.predictions):
        note = (
            "subset_mean is a plain mean over samples that were not drawn with equal chances: "
            "biased, not an estimate"
        )
        say_all([note], quiet=quiet)
    encoding = sys.stdout.encoding if output is None else "utf-8"
    lines = [json_line(entry, encoding) for entry in result.as_dicts()]
    has_groups = any(prediction.groups for prediction in result.predictions)
    columns = ("model", "group", *COLUMNS[1:]) if has_groups else COLUMNS
    rows = [row for p in result.predictions for row in _rows(p, has_groups=has_groups)]
    if output is not None:
        from disco_cli.files.output import write_output

        table = lines if as_json else tab_separated(columns, rows)
        write_output(output, ("\n".join(table) + "\n").encode(), force=force)
        put(str(output))
    elif as_json:
        put("\n".join(lines))
    else:
        print_rows(columns, rows, n_keys=2 if has_groups else 1)


def _rows(prediction: Prediction, *, has_groups: bool) -> list[tuple[object, ...]]:
    """Return the row of a model, and one per group behind it, where groups were asked for."""
    whole = tuple(getattr(prediction, name) for name in COLUMNS)
    if not has_groups:
        return [whole]
    blank = (None,) * (len(COLUMNS) - 4)
    return [
        (whole[0], "(all)", *whole[1:]),
        *(
            (whole[0], part.group, part.estimate, part.low, part.high, *blank)
            for part in prediction.groups or ()
        ),
    ]
