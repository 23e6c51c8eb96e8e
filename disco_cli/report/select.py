"""Rendering of ``disco select``."""

from __future__ import annotations

import typer

from disco_cli.report.console import print_json, say_all
from disco_cli.workflows.select import SelectResult


def show(result: SelectResult, *, as_json: bool, quiet: bool) -> None:
    """Print the artifact's path, or its content when it was not written; a summary on stderr."""
    say_all([*result.notes, *_summary(result)], quiet=quiet)
    if as_json:
        print_json(result.as_dict())
    elif result.path is not None:
        typer.echo(result.path)
    else:
        typer.echo(result.selection.to_json(), nl=False)


def _summary(result: SelectResult) -> list[str]:
    selection, draw = result.selection, result.selection.draw
    first = draw.positions[draw.ranks.argsort()[:3]]
    names = first if selection.sample_ids is None else _first_ids(result)
    lines = [
        f"{selection.k} of {selection.n_samples} samples by {selection.method}, first "
        + ", ".join(str(name) for name in names)
    ]
    if draw.n_tied_chosen:
        lines.append(
            f"{draw.n_tied_chosen} of them from {draw.n_tied} that tie for the last places: "
            "by JSD, then by id"
        )
    if result.full_score is not None and result.subset_score is not None:
        gap = result.subset_score - result.full_score
        reason = (
            "biased by design: chosen for what they tell, never report the subset's own mean"
            if result.biased
            else "weighted by the design, nearly unbiased: the luck of this draw"
        )
        lines.append(
            f"mean score of the models: {result.subset_score:.4f} on these, "
            f"{result.full_score:.4f} on all ({gap:+.4f}; {reason})"
        )
    if result.path is not None:
        lines.append("next: disco build-db PREDS…")
    return lines


def _first_ids(result: SelectResult) -> list[str]:
    ids = result.selection.sample_ids
    order = result.selection.draw.ranks.argsort()[:3]
    return [] if ids is None else ids[order].tolist()
