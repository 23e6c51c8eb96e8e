"""Rendering of ``disco score``."""

from __future__ import annotations

from typing import Any

from disco_cli.disagreement.scores_file import scores_table
from disco_cli.report.console import put, put_json, say_all
from disco_cli.report.hints import Given
from disco_cli.report.tables import print_rows
from disco_cli.workflows.score import ScoreResult

_USUAL_K = 100


def show(result: ScoreResult, given: Given, *, as_json: bool, quiet: bool) -> None:
    """Print the artifact's path, or its content when it was not written; a summary on stderr."""
    say_all([*result.notes, *summary(result), *_next(result, given)], quiet=quiet)
    if as_json:
        put_json(result.as_dict())
    elif result.path is not None:
        put(result.path)
    else:
        table = scores_table(result.content)
        columns = [table.column(name).to_pylist() for name in table.column_names]
        print_rows(table.column_names, list(zip(*columns, strict=True)))


def summary(result: ScoreResult) -> list[str]:
    """Return what the scores say in all, line by line."""
    facts = result.as_dict()
    lines = [f"{facts['n_models']} models, {facts['n_samples']} samples"]
    if facts["mean_pds"] is not None:
        lines.append(
            f"PDS mean {facts['mean_pds']:.3f}, largest {facts['max_pds']:.3f}; "
            f"JSD mean {facts['mean_jsd']:.4f} nats; "
            f"no disagreement at all on {facts['n_unanimous']} samples"
        )
    if facts["mean_error_rate"] is not None:
        lines.append(f"mean error rate {facts['mean_error_rate']:.4f}")
    lines += _health(result, facts["health"])
    if facts["n_missing"]:
        share = facts["n_missing"] / (facts["n_models"] * facts["n_samples"])
        lines.append(f"{facts['n_missing']} answers of models to samples are missing ({share:.2%})")
    if facts["n_unanswered"]:
        lines.append(f"{facts['n_unanswered']} samples were answered by no model")
    return lines


def _next(result: ScoreResult, given: Given) -> list[str]:
    if result.path is None:
        return []
    k = min(_USUAL_K, result.content.samples.n)
    return [f"next: {given.command('select', '--k', str(k), reads=True)}"]


def _health(result: ScoreResult, facts: dict[str, Any] | None) -> list[str]:
    """Return what looks odd about the samples."""
    if facts is None or result.health is None:
        return []
    nobody, everybody = facts["n_unsolved"], facts["n_solved"]
    lines = [
        f"solved by nobody {nobody}, by everybody {everybody}; copies of samples {facts['n_duplicate']}"
    ]
    if facts["n_negative"]:
        lines.append(f"answered worse by stronger models: {facts['n_negative']}")
    named = [
        f"{name} ({result.health.item_rest[i]:.2f})"
        for i, name in zip(result.most_suspicious(), facts["most_suspicious"], strict=True)
    ]
    if named:
        lines.append(f"check their labels, first {', '.join(named)}: correlation with the rest")
    return lines
