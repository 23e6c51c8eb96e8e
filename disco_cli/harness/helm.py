"""Runs of HELM (crfm-helm) -> one table for each model and scenario.

A run is a folder with ``run_spec.json``, ``per_instance_stats.json`` and, beside others,
``stats.json`` and ``scenario_state.json``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import InputError
from disco_cli.harness.choices import Choices, ImportOptions, choose_one
from disco_cli.harness.imported import (
    Imported,
    ImportedTable,
    check_hashes_agree,
    check_unique_names,
)
from disco_cli.harness.json_stream import (
    StreamReport,
    open_bytes,
    read_members,
    read_object,
    read_records,
)

TOLERANCE = 1e-9
_SHAPE_ERRORS = (KeyError, TypeError, ValueError, IndexError, AttributeError)
_CORRECTNESS = re.compile(r"(quasi_)?(prefix_)?exact_match(@\d+)?|.*accuracy.*|f1_score|pass")


@dataclass
class _Instances:
    """Statistics of the unperturbed instances: ``values[split][metric][instance] -> trials``."""

    values: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)
    n_perturbed: int = 0
    cut_off: str | None = None


@dataclass(frozen=True)
class _Questions:
    """What the scenario state tells of each instance: content, options, right one, answer."""

    digests: Mapping[str, str]
    n_options: Mapping[str, int]
    labels: Mapping[str, int]
    answers: Mapping[str, int]
    date: str | None


def read_helm(paths: Iterable[str | Path], options: ImportOptions | None = None) -> Imported:
    """Import runs of HELM.

    Parameters
    ----------
    paths : iterable of str or Path
        Run folders, or folders that hold them.
    options : ImportOptions, optional
        ``metrics`` chooses the statistic, ``filters`` the split (``test``, ``valid``).

    Raises
    ------
    InputError
        If a run is damaged or contradicts its own ``stats.json``.
    UsageError
        If there are several metrics or splits and none is chosen.
    """
    options = options or ImportOptions()
    folders = [folder for path in paths for folder in _runs_in(Path(path))]
    tables: list[ImportedTable] = []
    choices = Choices()
    for folder in dict.fromkeys(folders):
        with choices.each():
            tables.append(_read_run(folder, options))
    choices.check()
    if options.tasks:
        tables = [table for table in tables if table.task in options.tasks]
    if not tables:
        raise InputError(f"none of these runs is of {' or '.join(options.tasks)}")
    ordered = tuple(sorted(tables, key=lambda table: (table.task, table.model)))
    check_unique_names(ordered)
    check_hashes_agree(ordered)
    return Imported(ordered, ())


def _runs_in(path: Path) -> list[Path]:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    folder = path if path.is_dir() else path.parent
    found = sorted(one.parent for one in folder.rglob("per_instance_stats.json"))
    if not found:
        raise InputError(f"{path}: no run of HELM here (no per_instance_stats.json)")
    return found


def _read_run(folder: Path, options: ImportOptions) -> ImportedTable:
    spec = read_object(folder / "run_spec.json")
    try:
        adapter = spec["adapter_spec"]
        model = options.model or str(adapter["model"])
        task = _task_name(str(spec["name"]))
    except _SHAPE_ERRORS as error:
        raise InputError(f"{folder / 'run_spec.json'}: not a run of HELM: no {error}") from None
    path = folder / "per_instance_stats.json"
    instances = _read_instances(path)
    if instances.cut_off is not None and not options.partial:
        raise InputError(
            f"{instances.cut_off} is cut off: copy the file again, or import what is there with "
            "--partial"
        )
    split = choose_one(sorted(instances.values), options.filters, "filter", path, task)
    metrics = instances.values[split]
    metric = choose_one(_usable(metrics), options.metrics, "metric", path, f"{task} ({split})")
    trials = metrics[metric]
    ids = sorted(trials, key=lambda one: (len(one), one))
    responses = np.array([np.mean(trials[i]) if trials[i] else math.nan for i in ids])
    notes = _notes(path, instances, split, trials)
    score = _check_mean(folder, metric, split, responses, whole=instances.cut_off is None)
    questions = _read_questions(folder)
    return ImportedTable(
        source=str(folder),
        model=model,
        date=questions.date,
        task=task,
        metric=metric,
        ids=np.array([f"{task}/{i}" for i in ids], dtype=np.str_),
        responses=responses,
        hashes=_text(ids, questions.digests),
        labels=_whole(ids, questions.labels),
        n_options=_whole(ids, questions.n_options),
        groups=np.full(len(ids), task, dtype=np.str_),
        predicted_labels=_whole(ids, questions.answers),
        score=score,
        complete=instances.cut_off is None and not np.isnan(responses).any(),
        notes=notes,
    )


def _task_name(run: str) -> str:
    """Return a run's name without its model, in characters that a sample id can begin with."""
    scenario, _, arguments = run.partition(":")
    kept = [
        one for one in arguments.split(",") if not one.startswith(("model=", "model_deployment="))
    ]
    return ":".join([scenario, ",".join(kept)]).rstrip(":,").replace("/", "_")


def _read_instances(path: Path) -> _Instances:
    found = _Instances()
    report = StreamReport()
    seen: set[tuple[Any, ...]] = set()
    place = str(path)
    try:
        for place, entry in read_records(path, report):  # noqa: B007  # for the message below
            _add_instance(found, entry, seen)
    except _SHAPE_ERRORS as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{place}: not what HELM writes: {what}") from None
    found.cut_off = report.cut_off
    if not found.values:
        raise InputError(f"{path}: holds no instances")
    return found


def _add_instance(found: _Instances, entry: Mapping[str, Any], seen: set[tuple[Any, ...]]) -> None:
    if entry.get("perturbation") is not None:
        found.n_perturbed += 1
        return
    instance = str(entry["instance_id"])
    trial = int(entry["train_trial_index"])
    for stat in entry["stats"]:
        name = stat["name"]
        if name.get("perturbation") is not None:
            continue
        split, metric = str(name.get("split")), str(name["name"])
        key = (split, metric, instance, trial)
        if key in seen:
            raise ValueError(f"{metric} of {instance} (trial {trial}) stands twice")
        seen.add(key)
        values = found.values.setdefault(split, {}).setdefault(metric, {}).setdefault(instance, [])
        if stat["count"]:  # without counts there is no mean
            values.append(float(stat["mean"]))


def _usable(metrics: Mapping[str, Any]) -> list[str]:
    """Return the statistics that say how right an answer is; all, if none is known to."""
    known = [name for name in metrics if _CORRECTNESS.fullmatch(name)]
    return sorted(known or metrics)


def _notes(
    path: Path, instances: _Instances, split: str, trials: Mapping[str, list[float]]
) -> tuple[str, ...]:
    notes = []
    others = sorted(set(instances.values) - {split})
    if others:
        notes.append(f"{path}: split {split} taken, {', '.join(others)} left out")
    if instances.n_perturbed:
        notes.append(f"{path}: {instances.n_perturbed} perturbed instances left out")
    most = max(len(values) for values in trials.values())
    if most > 1:
        notes.append(f"{path}: each response is the mean over {most} trials")
    unscored = sum(not values for values in trials.values())
    if unscored:
        notes.append(f"{path}: {unscored} instances were not scored: missing")
    if instances.cut_off:
        notes.append(f"{instances.cut_off} is cut off, left out")
    return tuple(notes)


def _check_mean(
    folder: Path, metric: str, split: str, responses: NDArray[np.float64], *, whole: bool
) -> float | None:
    """Compare with ``stats.json`` and return the score that it reports."""
    path = folder / "stats.json"
    if not path.exists() or not whole:
        return None
    report = StreamReport()
    for place, stat in read_records(path, report):
        try:
            name = stat["name"]
            if (
                name["name"] != metric
                or name.get("split") != split
                or name.get("perturbation") is not None
                or not stat["count"]
            ):
                continue
            reported = float(stat["mean"])
        except _SHAPE_ERRORS as error:
            raise InputError(f"{place}: not what HELM writes: {error!r}") from None
        mean = float(np.nanmean(responses))
        if abs(mean - reported) > TOLERANCE:
            raise InputError(
                f"{folder}: the mean {metric} ({split}) of {len(responses)} instances is "
                f"{mean:.10g}, but {path.name} reports {reported:.10g}: damaged, or not of one run"
            )
        return reported
    if report.cut_off is not None:
        raise InputError(f"{report.cut_off} is cut off: copy the file again")
    return None


def _read_questions(folder: Path) -> _Questions:
    path = folder / "scenario_state.json"
    digests: dict[str, str] = {}
    n_options: dict[str, int] = {}
    labels: dict[str, int] = {}
    answers: dict[str, int] = {}
    moments: list[int] = []
    if not path.exists():
        return _Questions(digests, n_options, labels, answers, None)
    report = StreamReport()
    place = str(path)
    try:
        with open_bytes(path) as stream:
            members = read_members(stream, path, report, streamed=frozenset({"request_states"}))
            for key, place, state in members:  # noqa: B007  # for the message below
                if key != "request_states" or state["instance"].get("perturbation") is not None:
                    continue
                instance = state["instance"]
                name = str(instance["id"])
                texts = sorted(str(ref["output"]["text"]) for ref in instance["references"])
                digests[name] = _digest(instance, texts)
                if len(texts) > 1 and state.get("output_mapping"):
                    n_options[name] = len(texts)
                    labels[name] = _right(instance, texts)
                    answers.setdefault(name, _answer(state, texts))
                moment = (state.get("result") or {}).get("request_datetime")
                if isinstance(moment, int):
                    moments.append(moment)
    except _SHAPE_ERRORS as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{place}: not what HELM writes: {what}") from None
    if report.cut_off is not None:
        raise InputError(f"{report.cut_off} is cut off: copy the file again")
    date = None
    if moments:
        date = datetime.fromtimestamp(max(moments), tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return _Questions(digests, n_options, labels, answers, date)


def _digest(instance: Mapping[str, Any], texts: list[str]) -> str:
    right = sorted(
        str(ref["output"]["text"]) for ref in instance["references"] if "correct" in ref["tags"]
    )
    content = json.dumps([instance["input"], texts, right], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _right(instance: Mapping[str, Any], texts: list[str]) -> int:
    """Return the right option, numbered in the order of the options' texts; -1 for several."""
    right = {
        str(ref["output"]["text"]) for ref in instance["references"] if "correct" in ref["tags"]
    }
    return texts.index(right.pop()) if len(right) == 1 else -1


def _answer(state: Mapping[str, Any], texts: list[str]) -> int:
    """Return the option whose letter the model gave, -1 for none."""
    completions = (state.get("result") or {}).get("completions") or []
    letter = str(completions[0]["text"]).strip() if completions else ""
    text = state["output_mapping"].get(letter)
    return texts.index(str(text)) if str(text) in texts else -1


def _text(ids: list[str], known: Mapping[str, str]) -> NDArray[np.str_] | None:
    return np.array([known[i] for i in ids], dtype=np.str_) if set(ids) <= set(known) else None


def _whole(ids: list[str], known: Mapping[str, int]) -> NDArray[np.int64] | None:
    return np.array([known[i] for i in ids], dtype=np.int64) if set(ids) <= set(known) else None
