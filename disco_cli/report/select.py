"""Rendering of ``disco select``."""

from __future__ import annotations

import sys

from disco_cli.report.console import as_valid_json, put, put_json, say_all
from disco_cli.report.hints import Given
from disco_cli.workflows.learn import MIN_MODELS
from disco_cli.workflows.select import SelectResult


def show(result: SelectResult, given: Given, *, as_json: bool, quiet: bool) -> None:
    """Print the artifact's path, or its content when it was not written; a summary on stderr."""
    say_all([*result.notes, *_summary(result), *_next(result, given)], quiet=quiet)
    if as_json:
        put_json(result.as_dict())
    elif result.path is not None:
        put(result.path)
    else:
        put(as_valid_json(result.selection.to_json(), sys.stdout.encoding), end="")


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
    return lines


def _next(result: SelectResult, given: Given) -> list[str]:
    if result.path is None:
        return []
    if result.n_models < MIN_MODELS:
        had = f"{result.n_models} model{'' if result.n_models == 1 else 's'}"
        return [f"next: more reference models: disco build-db needs {MIN_MODELS}, this was {had}"]
    elsewhere = result.path != str(given.folder / "selection.json")
    words = ("--selection", result.path) if elsewhere else ()
    lines = [f"next: {given.command('build-db', *words, reads=True)}"]
    if result.full_score is None:
        lines.append(
            "it needs known full scores, as nobody knows what is right: `scores` in the files, or "
            "--truth SCORES.csv"
        )
    return lines


def _first_ids(result: SelectResult) -> list[str]:
    ids = result.selection.sample_ids
    order = result.selection.draw.ranks.argsort()[:3]
    return [] if ids is None else ids[order].tolist()
