"""``disco info``: what a prediction file, scores, a selection or a database holds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from disco_cli.database import Database, load_database
from disco_cli.disagreement.scores_file import read_scores
from disco_cli.errors import ArtifactError, InputError
from disco_cli.files.align import align
from disco_cli.files.matrix import PredictionFile
from disco_cli.harness.open import Tool, tool_of
from disco_cli.selection.subset import Selection, parse_selection
from disco_cli.workflows.inputs import ReadOptions, open_files, refuse_reading


@dataclass(frozen=True)
class InfoResult:
    """Facts about one path, in the order in which they are shown.

    Attributes
    ----------
    path : str
        The path.
    what : str
        ``prediction file``, ``scores``, ``selection`` or ``database``.
    facts : dict
        Names and values: numbers, texts, truth values, and lists or dicts of these.
    notes : tuple of str
        What was taken for what.
    """

    path: str
    what: str
    facts: dict[str, Any]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {"path": self.path, "what": self.what, **self.facts, "notes": list(self.notes)}


def info(path: Path, *, read: ReadOptions | None = None) -> InfoResult:
    """Say what lies at a path.

    Raises
    ------
    DiscoError
        Nothing lies there, or nothing that disco knows.
    """
    found = _artifact(path)
    if found is not None:
        refuse_reading(read, f"{path}: a {found.what} is no prediction file")
        return found
    files = open_files([path], read or ReadOptions())
    notes = tuple(dict.fromkeys(note for file in files for note in file.notes))
    return InfoResult(str(path), "prediction file", _file_facts(files), notes)


def _artifact(path: Path) -> InfoResult | None:
    """Return what is known of an artifact of disco, ``None`` for any other file."""
    if path.is_dir():
        if (path / "db").is_dir() and not (path / "manifest.json").exists():
            path = path / "db"
        return InfoResult(str(path), "database", _database_facts(load_database(path)))
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if start.lstrip()[:1] == b"{" and not _is_log(path):
        return _json_info(path)
    if start == b"PAR1" and _is_scores(path):
        return InfoResult(str(path), "scores", _scores_facts(path))
    return None


def _is_log(path: Path) -> bool:
    """Whether JSON is a log: any of inspect_ai, and the lines of lm-evaluation-harness."""
    return tool_of(path) is Tool.INSPECT or ".jsonl" in path.suffixes


def _json_info(path: Path) -> InfoResult:
    try:
        text = path.read_text(encoding="utf-8")
        artifact = json.loads(text).get("artifact")
    except (ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: not JSON that disco wrote: {error}") from error
    if artifact == "disco database":
        return InfoResult(str(path.parent), "database", _database_facts(load_database(path.parent)))
    try:
        return InfoResult(str(path), "selection", _selection_facts(parse_selection(text)))
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from error


def _is_scores(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            return b"disco.format" in (pq.read_schema(file).metadata or {})
    except (OSError, pa.ArrowException):
        return False  # the reader of prediction files will say what is wrong


def _file_facts(files: list[PredictionFile]) -> dict[str, Any]:
    """Return the facts of what was opened: a table of scores is opened as a file for each model."""
    file = files[0]
    samples = file.samples if len(files) == 1 else align(files).samples
    models = [model for opened in files for model in opened.models]
    beside = {
        "ids": samples.ids,
        "hashes": samples.hashes,
        "labels": samples.labels,
        "groups": samples.groups,
        "weights": samples.weights,
        "n_options": samples.n_options,
        "class_names": samples.class_names,
        "responses": next((f.read_responses for f in files if f.read_responses), None),
        "dates": next((model.date for model in models if model.date is not None), None),
        "scores": next((model.score for model in models if model.score is not None), None),
    }
    facts: dict[str, Any] = {
        "kind": file.kind.value,
        "n_models": len(models),
        "n_samples": samples.n,
        "n_classes": max((f.n_classes for f in files if f.n_classes is not None), default=None),
        "dtype": str(file.dtype),
        "beside": [name for name, value in beside.items() if value is not None],
        "models": [model.name for model in models],
    }
    if samples.ids is not None:
        facts["sample_ids"] = samples.ids.tolist()
    if samples.groups is not None:
        facts["groups"] = np.unique(samples.groups).tolist()
    return facts


def _selection_facts(selection: Selection) -> dict[str, Any]:
    draw = selection.draw
    ids = selection.sample_ids
    names = {"position": draw.positions} if ids is None else {"sample_ids": ids}
    return {
        "method": selection.method,
        "k": selection.k,
        "n_samples": selection.n_samples,
        "seed": selection.seed,
        "roles": {role: draw.roles.count(role) for role in sorted(set(draw.roles))},
        "benchmark": selection.benchmark,
        **{key: value.tolist() for key, value in names.items()},
    }


def _scores_facts(path: Path) -> dict[str, Any]:
    content = read_scores(path)
    pds = content.scores.pds
    return {
        "n_samples": content.samples.n,
        "n_models": int(content.scores.n_models.max(initial=0)),
        "max_pds": None if np.isnan(pds).all() else float(np.nanmax(pds)),
        "has_error_rate": content.scores.error_rate is not None,
        "has_groups": content.samples.groups is not None,
    }


def _database_facts(database: Database) -> dict[str, Any]:
    manifest = database.manifest
    truth = database.references["truth"]
    return {
        "n_models": manifest.n_models,
        "n_samples": manifest.n_samples,
        "k": database.selection.k,
        "method": database.selection.method,
        "values": manifest.values,
        "n_classes": manifest.n_classes,
        "metric": manifest.metric,
        "average": manifest.average_of_truth,
        "lowest_score": float(truth.min()),
        "highest_score": float(truth.max()),
        "errors": [dict(error) for error in manifest.errors],
        "versions": dict(manifest.versions),
    }
