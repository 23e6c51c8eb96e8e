"""Which files of lm-evaluation-harness belong together: one run's results and its sample files.

From 0.4.3 on, results and samples of a run share the date in their names. Before, there was one
``results.json`` in a folder and sample files named after the model's arguments and the task.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from disco_cli.errors import InputError
from disco_cli.harness.json_stream import read_object, starts_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_DATE = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?"
_SAMPLES = re.compile(rf"samples_(?P<task>.+)_(?P<date>{_DATE})\.jsonl?(?:\.gz)?")
_UNDATED = re.compile(r"samples_(?P<task>.+?)\.jsonl?(?:\.gz)?")
_RESULTS = re.compile(rf"(?P<stem>.+)_(?P<date>{_DATE})\.json(?:\.gz)?")
_OLD_SAMPLES = re.compile(r"(?P<stem>.+)\.jsonl(?:\.gz)?")
_MODEL_KEYS = ("peft", "delta", "pretrained", "model", "path", "engine")
_RANDOM_NAME = re.compile(r"[A-Za-z0-9]{8}")


@dataclass(frozen=True)
class TaskConfig:
    """What a results file says of one task.

    Attributes
    ----------
    output_type : str or None
        ``multiple_choice``, ``generate_until``, …
    delimiter : str
        Stands between question and option.
    custom : bool
        Whether the task scores its rows with code of its own.
    filters : tuple of str
        Names in the order in which blocks of rows are written.
    aggregations : mapping of str to str
        How each metric's rows become the reported value.
    n_shot : int or None
        Number of examples in the prompt.
    original, effective : int or None
        Size of the benchmark, and number of its documents in this run.
    """

    output_type: str | None
    delimiter: str
    custom: bool
    filters: tuple[str, ...]
    aggregations: Mapping[str, str]
    n_shot: int | None
    original: int | None
    effective: int | None


@dataclass(frozen=True)
class Run:
    """One evaluation of one model: its results and where its samples lie.

    Attributes
    ----------
    results_path : Path or None
        ``None`` if there is no results file beside the samples.
    model : str
        The model's name.
    date : str or None
        ISO date and time of the run.
    identity : tuple of str
        Tells two runs under one name apart: model arguments, weights, revision, dtype.
    limit : float or None
        ``--limit``.
    samples : mapping of str to Path
        Sample file of each task that was asked for.
    on_disk : frozenset of str
        Tasks that have a sample file.
    values : mapping of str to mapping of str to float
        ``values[task or group]["acc,none"]`` as reported.
    groups : mapping of str to tuple of str
        Members (tasks or groups) of each group.
    configs : mapping of str to TaskConfig
        By task.
    notes : tuple of str
        What the user should know of this run.
    """

    results_path: Path | None
    model: str
    date: str | None
    identity: tuple[str, ...]
    limit: float | None
    samples: Mapping[str, Path]
    on_disk: frozenset[str]
    values: Mapping[str, Mapping[str, float]]
    groups: Mapping[str, tuple[str, ...]]
    configs: Mapping[str, TaskConfig]
    notes: tuple[str, ...] = ()


def find_runs(paths: Iterable[Path], *, model: str | None = None) -> list[Run]:
    """Find the runs that files and folders hold.

    A folder is searched with all folders below it; a results file stands for all its sample files;
    a sample file stands for itself and is joined to the results file beside it.

    Parameters
    ----------
    paths : iterable of Path
        Files and folders.
    model : str, optional
        Name to use instead of the one in the results file.

    Raises
    ------
    InputError
        If a path is missing, or nothing of lm-evaluation-harness is found in it.
    """
    wanted: dict[Path, set[Path]] = {}  # results file, or the folder of orphans -> sample files
    for path in paths:
        found = _search_folder(path) if path.is_dir() else _search_file(path)
        if not found:
            raise InputError(
                f"{path}: no sample logs of lm-evaluation-harness here; "
                "run it with --log_samples --output_path FOLDER"
            )
        for key, samples in found.items():
            wanted.setdefault(key, set()).update(samples)
    return [
        run
        for key in sorted(wanted)
        for run in (
            _orphans(sorted(wanted[key]), model)
            if key.is_dir()
            else [_run_of_results(key, sorted(wanted[key]), model)]
        )
    ]


def covers_benchmark(run: Run, task: str) -> bool:
    """Whether a run evaluated every document of a task, by its results file."""
    config = run.configs.get(task)
    if config is None or run.limit is not None:
        return False
    # Before 0.4.3 a run without --limit was always a run of everything.
    return config.original is None or config.original == config.effective


def is_sample_log(path: Path) -> bool:
    """Whether a file's name is one that lm-evaluation-harness gives to sample logs."""
    return _UNDATED.fullmatch(path.name) is not None


def _search_folder(folder: Path) -> dict[Path, set[Path]]:
    found: dict[Path, set[Path]] = {}
    claimed: set[Path] = set()
    for path in sorted(folder.rglob("*.json")) + sorted(folder.rglob("*.json.gz")):
        if _looks_like_results(path):
            samples = set(_samples_of_results(path))
            claimed |= samples
            found[path] = samples
    for path in sorted(folder.rglob("samples_*")):
        if path not in claimed and path.is_file() and is_sample_log(path):
            found.setdefault(path.parent, set()).add(path)
    return {key: samples for key, samples in found.items() if samples}


def _search_file(path: Path) -> dict[Path, set[Path]]:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    name = path.name.removesuffix(".gz")
    if name.endswith(".json") and not is_sample_log(path) and starts_with(path) == "{":
        if not _is_results(read_object(path)):
            raise InputError(f"{path}: not a results file of lm-evaluation-harness")
        samples = set(_samples_of_results(path))
        return {path: samples} if samples else {}
    dated = _SAMPLES.fullmatch(path.name)
    for candidate in sorted(path.parent.glob("*.json")) + sorted(path.parent.glob("*.json.gz")):
        match = _RESULTS.fullmatch(candidate.name)
        same_run = dated and match and match["date"] == dated["date"]
        if (
            (same_run or not dated)
            and _looks_like_results(candidate)
            and path in _samples_of_results(candidate)
        ):
            return {candidate: {path}}
    return {path.parent: {path}}


def _looks_like_results(path: Path) -> bool:
    """Whether to take a ``.json`` file for results: by its name, or by old sample files beside it."""
    if path.name.startswith("samples_") or starts_with(path) != "{":
        return False
    if _RESULTS.fullmatch(path.name) or path.name.startswith("results"):
        return True
    old = (p for p in path.parent.glob("*.jsonl*") if not p.name.startswith("samples_"))
    return next(old, None) is not None and _is_results(read_object(path))


def _is_results(found: Mapping[str, Any]) -> bool:
    return isinstance(found.get("results"), dict) and isinstance(found.get("configs"), dict)


def _samples_of_results(path: Path) -> dict[Path, str]:
    """Return the sample files that belong to a results file, each with its task."""
    dated = _RESULTS.fullmatch(path.name)
    if dated:
        matches = ((p, _SAMPLES.fullmatch(p.name)) for p in sorted(path.parent.iterdir()))
        return {p: m["task"] for p, m in matches if m and m["date"] == dated["date"]}
    found = read_object(path)
    if not _is_results(found):
        return {}
    arguments = found.get("config", {}).get("model_args")
    prefix = re.sub(r"[/=]", "__", arguments) if isinstance(arguments, str) else ""
    names = {f"{prefix}_{task}": task for task in found["configs"]}
    matches = ((p, _OLD_SAMPLES.fullmatch(p.name)) for p in sorted(path.parent.iterdir()))
    return {p: names[m["stem"]] for p, m in matches if m and m["stem"] in names}


def _run_of_results(path: Path, samples: list[Path], model: str | None) -> Run:
    found = read_object(path)
    try:
        return _parse_results(found, path, samples, model)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: not a results file of lm-evaluation-harness 0.4: {error!r}"
        ) from None


def _parse_results(
    found: dict[str, Any], path: Path, samples: list[Path], model: str | None
) -> Run:
    config = found["config"]
    tasks = _samples_of_results(path)
    notes = []
    name = found.get("model_name") or _name_of_arguments(config.get("model_args"))
    if model is None and _name_is_random(name, config.get("model_args")):
        notes.append(
            f"{path}: the model's name {name!r} is random, made up by lm-evaluation-harness; "
            "give the real one with --model"
        )
    n_samples = found.get("n-samples", {})
    limit = config.get("limit")
    return Run(
        results_path=path,
        model=model or name or path.parent.name,
        date=_iso_date(found.get("date"), path),
        identity=tuple(
            str(config.get(key))
            for key in ("model_args", "model_sha", "model_revision", "model_dtype")
        ),
        limit=None if limit is None else float(limit),
        samples={tasks[sample]: sample for sample in samples},
        on_disk=frozenset(tasks.values()),
        values={task: _reported(values) for task, values in found["results"].items()},
        groups={g: tuple(m) for g, m in found.get("group_subtasks", {}).items() if m},
        configs={
            task: _task_config(entry, n_samples.get(task, {}), found.get("n-shot", {}).get(task))
            for task, entry in found["configs"].items()
        },
        notes=tuple(notes),
    )


def _task_config(entry: Mapping[str, Any], n_samples: Mapping[str, Any], n_shot: Any) -> TaskConfig:
    def count(key: str) -> int | None:
        value = n_samples.get(key)
        return None if value is None else int(value)

    metrics = entry.get("metric_list") or []
    return TaskConfig(
        output_type=entry.get("output_type"),
        delimiter=str(entry.get("target_delimiter", " ")),
        custom=entry.get("process_results") is not None,
        filters=tuple(str(one["name"]) for one in entry.get("filter_list") or []) or ("none",),
        aggregations={str(one["metric"]): str(one.get("aggregation", "mean")) for one in metrics},
        n_shot=n_shot if isinstance(n_shot, int) else None,
        original=count("original"),
        effective=count("effective"),
    )


def _reported(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the reported metrics, ``"metric,filter"`` -> value; standard errors left out."""
    return {
        key: float(value)
        for key, value in values.items()
        if "," in key
        and not key.partition(",")[0].endswith("_stderr")
        and isinstance(value, int | float)
    }


def _name_of_arguments(arguments: Any) -> str | None:
    if isinstance(arguments, str):
        pairs = (one.partition("=") for one in arguments.split(","))
        arguments = {key.strip(): value.strip() for key, _, value in pairs}
    if not isinstance(arguments, dict):
        return None
    for key in _MODEL_KEYS:
        if arguments.get(key):
            return str(arguments[key])
    return None


def _name_is_random(name: Any, arguments: Any) -> bool:
    return (
        isinstance(name, str)
        and _RANDOM_NAME.fullmatch(name) is not None
        and _name_of_arguments(arguments) is None
    )


def _iso_date(seconds: Any, path: Path) -> str | None:
    if isinstance(seconds, int | float):
        try:
            moment = datetime.fromtimestamp(seconds, tz=timezone.utc)
        except (OverflowError, OSError, ValueError):
            return None
        return moment.strftime("%Y-%m-%dT%H:%M:%S")
    dated = _RESULTS.fullmatch(path.name)
    return None if dated is None else _date_of_name(dated["date"])


def _date_of_name(date: str) -> str:
    day, _, clock = date.partition("T")
    return f"{day}T{clock.partition('.')[0].replace('-', ':')}"


def _orphans(samples: list[Path], model: str | None) -> list[Run]:
    """Make runs of sample files without results: one for each date, old ones for each model."""
    runs: dict[tuple[str, str | None], dict[str, Path]] = {}
    for path in samples:
        dated = _SAMPLES.fullmatch(path.name)
        undated = _UNDATED.fullmatch(path.name)
        date = dated["date"] if dated else None
        if dated or undated:
            task = (dated or undated)["task"]  # type: ignore[index]  # one of them matched
            name = path.parent.resolve().name
        else:
            task = name = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
        runs.setdefault((name, date), {})[task] = path
    return [
        Run(
            results_path=None,
            model=model or name,
            date=None if date is None else _date_of_name(date),
            identity=(),
            limit=None,
            samples=tasks,
            on_disk=frozenset(tasks),
            values={},
            groups={},
            configs={},
            notes=(
                (
                    f"{min(tasks.values())}: no results file beside it: the number of rows and the "
                    f"mean cannot be checked, and the model is named {model or name!r}"
                ),
            ),
        )
        for (name, date), tasks in sorted(runs.items(), key=lambda item: str(item[0]))
    ]
