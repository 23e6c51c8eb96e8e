"""Groups of lm-evaluation-harness tasks: which to import, and how their subtasks are weighted.

The results file says which tasks make up a group but not whether its score weighs them by size
(the default) or equally. Both are compared with the reported score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.errors import InputError, UsageError
from disco_cli.harness.lm_eval_checks import TOLERANCE
from disco_cli.harness.lm_eval_files import Run, covers_benchmark
from disco_cli.harness.lm_eval_task import TaskResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

_SCHEMES = {
    "size": "each sample weighs the same",
    "subtasks": "each subtask weighs the same",
    "subgroups": "each subgroup weighs the same, and each task inside it",
    "subgroups, then size": "each subgroup weighs the same, and each sample inside it",
}


@dataclass(frozen=True)
class Unit:
    """What becomes one table: a task, or a group, of one run.

    Attributes
    ----------
    run : int
        Number of the run.
    name : str
        Task or group.
    tasks : tuple of str
        The tasks whose samples it has, ascending.
    missing : tuple of str
        Tasks of the group without a sample file.
    notes : tuple of str
        What the user should know.
    """

    run: int
    name: str
    tasks: tuple[str, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def leaves(run: Run, name: str) -> list[str]:
    """Return the tasks of a group (through groups of groups), or the task itself; ascending."""
    return sorted(_descend(run, name, ()))


def _descend(run: Run, name: str, above: tuple[str, ...]) -> set[str]:
    if name in above:
        raise InputError(f"{run.results_path}: group {name} contains itself: damaged")
    members = run.groups.get(name)
    if members is None:
        return {name}
    return {task for member in members for task in _descend(run, member, (*above, name))}


def check_wanted(runs: list[Run], wanted: tuple[str, ...]) -> None:
    """Refuse a task or group that no run has.

    Raises
    ------
    UsageError
        Lists what there is.
    """
    available = {name for run in runs for name in _names(run)}
    unknown = [name for name in wanted if name not in available]
    if unknown:
        raise UsageError(
            f"no samples of {', '.join(unknown)} in these logs; there are "
            f"{', '.join(sorted(available))}"
        )


def choose_units(
    runs: list[Run], wanted: tuple[str, ...], *, combine: bool, partial: bool
) -> list[Unit]:
    """Choose what to import of each run: the tasks asked for, or the outermost groups and the rest.

    Raises
    ------
    InputError
        If a group lacks the samples of a subtask and ``partial`` is not set.
    """
    if combine:
        units = [_combined(i, run, wanted) for i, run in enumerate(runs)]
        return [unit for unit in units if unit is not None]
    return [
        _group_unit(i, run, name, partial=partial)
        for i, run in enumerate(runs)
        for name in (_outermost(run) if not wanted else [n for n in wanted if n in _names(run)])
    ]


def _names(run: Run) -> set[str]:
    """Return tasks with samples, and groups all of whose tasks on disk were asked for."""
    groups = {
        group
        for group in run.groups
        if any(task in run.samples for task in leaves(run, group))
        and all(task in run.samples or task not in run.on_disk for task in leaves(run, group))
    }
    return groups | set(run.samples)


def _outermost(run: Run) -> list[str]:
    names = _names(run)
    inside = {
        member
        for group in names & set(run.groups)
        for member in (*run.groups[group], *leaves(run, group))
    }
    return sorted(names - inside)


def _combined(index: int, run: Run, wanted: tuple[str, ...]) -> Unit | None:
    asked = {task for name in wanted for task in leaves(run, name)}
    tasks = tuple(sorted(t for t in run.samples if not wanted or t in asked))
    if not tasks:
        return None
    exact = [group for group in sorted(run.groups) if tuple(leaves(run, group)) == tasks]
    name = exact[-1] if exact else tasks[0] if len(tasks) == 1 else "+".join(tasks)
    return Unit(index, name, tasks)


def _group_unit(index: int, run: Run, name: str, *, partial: bool) -> Unit:
    tasks = leaves(run, name)
    missing = tuple(task for task in tasks if task not in run.samples)
    there = tuple(task for task in tasks if task in run.samples)
    if missing and not partial:
        raise InputError(
            f"{run.results_path}: no sample file for {', '.join(missing)} of group {name}; import "
            "the others one by one with --task, or what there is of the group with --partial"
        )
    notes = (f"{run.results_path}: {name} lacks {', '.join(missing)}",) if missing else ()
    return Unit(index, name, there, missing, notes)


def shared_weighting(
    runs: list[Run], units: list[Unit], results: Mapping[tuple[int, str], TaskResult]
) -> str | None:
    """Return the weighting that explains the group's reported score in every run.

    Returns
    -------
    str or None
        ``"size"`` also where nothing is reported; ``None`` if no weighting explains the scores.

    Raises
    ------
    InputError
        If the runs can only have been weighted differently.
    """
    fits: dict[str, set[str]] = {}
    for unit in units:
        run = runs[unit.run]
        first = results[unit.run, unit.tasks[0]]
        reported = _reported(run, unit, first)
        if reported is None or unit.name not in run.groups:
            continue
        key = f"{first.metric},{first.filter}"
        values = {t: run.values.get(t, {}).get(key) for t in leaves(run, unit.name)}
        counts = _counts(run, unit, [results[unit.run, task] for task in unit.tasks], "effective")
        known = {task: value for task, value in values.items() if value is not None}
        if counts is not None and len(known) == len(values):
            fits[run.model] = {
                scheme
                for scheme in _SCHEMES
                if abs(_mean(known, _shares(run, unit.name, counts, scheme)) - reported)
                <= TOLERANCE
            }
    explained = [schemes for schemes in fits.values() if schemes]
    if not fits:
        return "size"
    if not explained:
        return None
    common = set.intersection(*explained)
    if not common:
        raise InputError(
            f"{units[0].name}: the models' group scores were weighted differently: "
            + "; ".join(f"{model} by {' or '.join(sorted(s))}" for model, s in sorted(fits.items()))
        )
    return next(scheme for scheme in _SCHEMES if scheme in common)


def _mean(values: Mapping[str, float], shares: Mapping[str, float]) -> float:
    return sum(share * values[task] for task, share in shares.items())


def _reported(run: Run, unit: Unit, part: TaskResult) -> float | None:
    return run.values.get(unit.name, {}).get(f"{part.metric},{part.filter}")


def _counts(run: Run, unit: Unit, parts: list[TaskResult], which: str) -> dict[str, int] | None:
    """Return the size of each task of a group, ``None`` if one is unknown."""
    rows = {part.task: len(part.doc_ids) for part in parts}
    counts: dict[str, int] = {}
    for task in leaves(run, unit.name):
        config = run.configs.get(task)
        size = None if config is None else getattr(config, which)
        size = rows.get(task) if size is None else size
        if not size:
            return None
        counts[task] = int(size)
    return counts


def _shares(run: Run, name: str, counts: Mapping[str, int], scheme: str) -> dict[str, float]:
    """Return the share of each task in a group's score, by one scheme."""
    tasks = leaves(run, name)
    total = sum(counts[task] for task in tasks)
    if scheme == "size":
        return {task: counts[task] / total for task in tasks}
    if scheme == "subtasks":
        return {task: 1 / len(tasks) for task in tasks}
    below = "size" if scheme.endswith("size") else scheme
    members = run.groups.get(name, ())
    shares: dict[str, float] = {}
    for member in members:
        for task, share in _inner(run, member, counts, below):
            shares[task] = shares.get(task, 0.0) + share / len(members)
    return shares


def _inner(
    run: Run, member: str, counts: Mapping[str, int], scheme: str
) -> Iterator[tuple[str, float]]:
    if member not in run.groups:
        yield member, 1.0
        return
    yield from _shares(run, member, counts, scheme).items()


def group_weights(
    run: Run, unit: Unit, parts: list[TaskResult], weighting: str | None
) -> tuple[NDArray[np.float64] | None, float | None, tuple[str, ...]]:
    """Return weights, full score and notes of a unit.

    Parameters
    ----------
    run : Run
        The run.
    unit : Unit
        Task or group.
    parts : list of TaskResult
        One for each of the unit's tasks, in its order.
    weighting : str or None
        By :func:`shared_weighting`.

    Returns
    -------
    tuple
        Weights (n,) with mean 1 over the whole benchmark, or ``None`` if all are equal; the score
        on the whole benchmark, or ``None`` if this run does not tell it; notes.
    """
    whole = all(covers_benchmark(run, task) for task in (*unit.tasks, *unit.missing))
    reported = _reported(run, unit, parts[0])
    if unit.name not in run.groups:
        single = len(parts) == 1 and parts[0].task == unit.name and _is_mean(run, parts[0])
        return None, reported if whole and single else None, ()
    metric = parts[0].metric
    counts = _counts(run, unit, parts, "original")
    if reported is None or weighting is None or counts is None:
        note = (
            f"{run.results_path}: no {metric} reported for {unit.name}; its samples weigh the same"
            if reported is None
            else f"{run.results_path}: the reported {metric} of {unit.name}, {reported:.10g}, is no "
            "mean of its subtasks; what is estimated is the mean of the samples"
        )
        return None, None, (note,) if metric is not None else ()
    score = reported if whole else None
    if weighting == "size":
        return None, score, ()
    shares = _shares(run, unit.name, counts, weighting)
    total = sum(counts.values())
    weights = [
        np.full(len(part.doc_ids), shares[part.task] * total / counts[part.task]) for part in parts
    ]
    note = f"{run.results_path}: in the score of {unit.name} {_SCHEMES[weighting]}"
    return np.concatenate(weights), score, (note,)


def _is_mean(run: Run, part: TaskResult) -> bool:
    """Whether a task's reported value is the mean of its rows."""
    config = run.configs.get(part.task)
    if config is not None and config.aggregations.get(part.metric or "") == "mean":
        return True
    return (
        part.responses is not None
        and part.reported is not None
        and part.complete
        and abs(float(np.mean(part.responses)) - part.reported) <= TOLERANCE
    )
