"""``disco predict``: estimate new models from their outputs on the K samples alone.

For an NPZ file this imports numpy and nothing heavier, and it executes nothing from an artifact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from disco_cli.database import Database, load_database
from disco_cli.errors import ArtifactError, GateError, InputError, UsageError
from disco_cli.files.align import gather_notes
from disco_cli.selection.subset import read_selection
from disco_cli.workflows.estimator import Estimator, IncompleteTargetError, Prediction
from disco_cli.workflows.inputs import ReadOptions, open_files
from disco_cli.workflows.target import read_targets


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

    def check(self, *, fail_under: float | None, max_width: float | None) -> None:
        """Hold the result against what was asked for: every model, and a quality gate.

        Raises
        ------
        InputError
            Some models lack too many samples to be estimated.
        GateError
            An estimate is lower than ``fail_under``, or an interval wider than ``max_width`` or
            not available.
        """
        if self.refused:
            raise InputError(_summary(self.refused))
        failed = [_failure(found, fail_under, max_width) for found in self.predictions]
        messages = [message for message in failed if message is not None]
        if messages:
            raise GateError("; ".join(messages))


def _failure(
    prediction: Prediction, fail_under: float | None, max_width: float | None
) -> str | None:
    """Return why a model does not pass the gates, ``None`` if it does."""
    name = prediction.model
    if fail_under is not None and not prediction.estimate >= fail_under:
        return f"{name}: estimate {prediction.estimate:.4f} is under {fail_under:g}"
    if max_width is None:
        return None
    if prediction.low is None or prediction.high is None:
        return f"{name}: no interval to hold against --max-width {max_width:g}"
    width = prediction.high - prediction.low
    if not width <= max_width:
        return f"{name}: the interval is {width:.4f} wide, more than {max_width:g}"
    return None


def predict(
    paths: Sequence[str | Path],
    *,
    database: Database | Path,
    selection: Path | None = None,
    predictor: str | None = None,
    level: float = 0.9,
    by_group: bool = False,
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
    read : ReadOptions, optional
        How to understand the files.

    Raises
    ------
    DiscoError
        A file is bad or does not fit the database, or an artifact is damaged.
    """
    if not 0 < level < 1:
        raise UsageError(f"--level {level:g}: choose a level between 0 and 1, such as 0.9")
    opened = database if isinstance(database, Database) else load_database(database)
    if selection is not None and selection.exists():
        _check_selection(opened, selection)
    files = open_files(paths, read or ReadOptions())
    estimator = Estimator(opened, predictor)
    predictions: list[Prediction] = []
    refused: list[str] = []
    for file in files:
        for target in read_targets(file, opened):
            try:
                predictions.append(estimator.predict(target, level, by_group=by_group))
            except IncompleteTargetError as error:  # noqa: PERF203 - the others still count
                refused.append(str(error))
    if not predictions:
        raise InputError(_summary(refused))
    return PredictResult(
        predictions=tuple(predictions),
        refused=tuple(refused),
        metric=opened.manifest.metric,
        notes=gather_notes(files),
    )


def _summary(refused: Sequence[str]) -> str:
    more = f" (and {len(refused) - 1} more models)" if len(refused) > 1 else ""
    return f"{refused[0]}{more}"


def _check_selection(database: Database, path: Path) -> None:
    found = read_selection(path)
    if found.sha256 != database.selection.sha256:
        message = (
            f"{path}: selects other samples ({found.method}, k = {found.k}) than the database was "
            f"built from ({database.selection.method}, k = {database.selection.k}); "
            "run `disco build-db` again, or `disco predict --db` with the database you mean"
        )
        raise ArtifactError(message)
