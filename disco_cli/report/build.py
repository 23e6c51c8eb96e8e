"""Rendering of ``disco build-db``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from disco_cli.report.console import put, put_json, say, say_all
from disco_cli.report.hints import Given
from disco_cli.report.tables import print_rows
from disco_cli.selection.choose import Method
from disco_cli.workflows.build import BuildResult


def show(result: BuildResult, given: Given, *, selection: Path, as_json: bool, quiet: bool) -> None:
    """Print the database's path; the cross-validated errors beside the baselines on stderr."""
    manifest = result.database.manifest
    say_all(result.notes, quiet=quiet)
    if not quiet:
        how = f" ({manifest.average_of_truth})" if manifest.average_of_truth else ""
        say(
            f"{manifest.n_models} reference models, {result.database.selection.k} of "
            f"{manifest.n_samples} samples; estimates are {manifest.metric}{how}"
        )
        rows = [
            (error.title, error.mae if error.mae is not None else error.note)
            for error in result.errors
        ]
        print_rows(("left-out reference models", "mean absolute error"), rows, stream=sys.stderr)
        say(_caveat(result))
    if as_json:
        put_json(result.as_dict())
    elif result.path is not None:
        say_all(_next(result.path, given, selection), quiet=quiet)
        put(result.path)


def _next(path: str, given: Given, selection: Path) -> list[str]:
    """Return how to go on; ``predict`` by itself looks for database and selection in the folder."""
    by_itself = selection == given.folder / "selection.json"
    export = given.command("export", *(() if by_itself else (str(selection),)), "--to", "ids")
    if by_itself and path == str(given.folder / "db"):
        predict = given.command("predict", *given.reading)
    else:
        predict = replace(given, folder_words=("--db", path)).command("predict", *given.reading)
    return [
        f"next: run a new model on the samples that are listed by: {export}",
        f"next: with its outputs: {predict} NEW_MODEL",
    ]


def _caveat(result: BuildResult) -> str:
    fixed = Method(result.database.selection.method).by_score
    only_published = {error.name for error in result.errors} <= {"rf", "knn", "mean", "random"}
    others = "these errors" if fixed or only_published else "those of PCA"
    return f"{others}: the samples were not selected anew without the left-out models, which is optimistic"
