"""``disco predict``: estimate new models from their outputs on the K samples alone.

For an NPZ file this imports numpy and nothing heavier, and it executes nothing from an artifact.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from disco_cli.database import Database, load_database
from disco_cli.errors import ArtifactError, InputError
from disco_cli.files.align import gather_notes
from disco_cli.files.location import local_path
from disco_cli.selection.subset import read_selection
from disco_cli.workflows.estimator import Estimator, IncompleteTargetError, Prediction
from disco_cli.workflows.gates import Gates
from disco_cli.workflows.inputs import ReadOptions, open_files
from disco_cli.workflows.level import check_level
from disco_cli.workflows.target import read_targets

OPEN = Gates()
"""Gates that everything passes."""


@dataclass(frozen=True)
class PredictResult:
    """Estimates in the order in which the models were given.

    Attributes
    ----------
    predictions : tuple of Prediction
        One per model, at least one.
    refused : tuple of str
        A line for every model that lacks too many of the samples to be estimated.
    metric : str
        What the estimates are in.
    notes : tuple of str
        What the person should know about the input.
    """

    predictions: tuple[Prediction, ...]
    refused: tuple[str, ...]
    metric: str
    notes: tuple[str, ...]

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return what ``--json`` prints, an object per line."""
        return [asdict(prediction) for prediction in self.predictions]

    def check(self, gates: Gates = OPEN) -> None:
        """Hold the result against what was asked for: every model, and quality gates.

        Raises
        ------
        InputError
            Some models lack too many samples to be estimated.
        GateError
            Some estimates do not pass the gates.
        """
        if self.refused:
            raise InputError(*self.refused)
        gates.check(self.predictions)


def predict(
    paths: Sequence[str | Path],
    *,
    database: Database | Path,
    selection: Path | None = None,
    predictor: str | None = None,
    level: float = 0.9,
    by_group: bool = False,
    gates: Gates = OPEN,
    read: ReadOptions | None = None,
) -> PredictResult:
    """Estimate the full score of every model in the files.

    Parameters
    ----------
    paths : sequence of paths
        Prediction files with all N samples or only the K selected ones, in any order.
    database : Database or Path
        What ``build_db`` made.
    selection : Path, optional
        ``selection.json`` beside the database; refused when the database is of another one.
    predictor : str, optional
        One of ``lacking.PREDICTORS``; the database's own by default.
    level : float
        Coverage of the interval, above 0 and below 1.
    by_group : bool
        Estimate every group of samples, too.
    gates : Gates, optional
        What the result will be held against; refused here where it cannot be meant.
    read : ReadOptions, optional
        How to understand the files.

    Raises
    ------
    DiscoError
        A file is bad or does not fit the database, or an artifact is damaged.
    """
    check_level(level)
    _refuse_repeats(paths)
    files = open_files(paths, read or ReadOptions())
    opened = database if isinstance(database, Database) else load_database(database)
    if selection is not None and selection.exists():
        _check_selection(opened, selection)
    estimator = Estimator(opened, predictor)
    gates.check_unit(estimator.bounds)
    predictions: list[Prediction] = []
    refused: list[str] = []
    for file in files:
        for target in read_targets(file, opened):
            try:
                predictions.append(estimator.predict(target, level, by_group=by_group))
            except IncompleteTargetError as error:  # noqa: PERF203 - the others still count
                refused.append(str(error))
    if not predictions:
        raise InputError(*refused)
    return PredictResult(
        predictions=tuple(predictions),
        refused=tuple(refused),
        metric=opened.manifest.metric,
        notes=gather_notes(files),
    )


def _refuse_repeats(paths: Sequence[str | Path]) -> None:
    """Refuse a path that is given twice, as every command does: two equal rows help nobody."""
    seen: dict[str, str] = {}
    for given in paths:
        path = os.fspath(given)
        local = local_path(path)
        place = path if local is None else os.path.realpath(local)
        if place in seen:
            same = "" if seen[place] == path else f", as {seen[place]}"
            raise InputError(f"{path}: is given twice{same}; name it once")
        seen[place] = path


def _check_selection(database: Database, path: Path) -> None:
    found = read_selection(path)
    if found.sha256 != database.selection.sha256:
        message = (
            f"{path}: selects other samples ({found.method}, k = {found.k}) than the database was "
            f"built from ({database.selection.method}, k = {database.selection.k}); "
            "run `disco build-db` again, or `disco predict --db` with the database you mean"
        )
        raise ArtifactError(message)
