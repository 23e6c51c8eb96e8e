"""A selection, in the form in which another tool takes a list of samples to evaluate."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from disco_cli.errors import UsageError
from disco_cli.selection.subset import Selection

_MOST_NAMED = 10
"""So many tasks are listed in a message."""


class Target(str, Enum):
    """Whom a selection is exported for."""

    LM_EVAL = "lm-eval"
    INSPECT = "inspect"
    IDS = "ids"
    CSV = "csv"
    JSONL = "jsonl"


@dataclass(frozen=True)
class Exported:
    """A selection in another tool's form.

    Attributes
    ----------
    text : str
        What to write to a file or hand over; ends with a line break.
    k : int
        Number of samples in it.
    command : str or None
        How to run the tool on it.
    warnings : tuple of str
        What would make the tool evaluate other samples than these.
    """

    text: str
    k: int
    command: str | None = None
    warnings: tuple[str, ...] = ()


def export_selection(
    selection: Selection, to: Target, *, path: str = "samples.json", task: str | None = None
) -> Exported:
    """Return a selection in the form that ``to`` names.

    Parameters
    ----------
    selection : Selection
        The K samples.
    to : Target
        ``lm-eval``: its ``--samples`` file, ascending distinct numbers for each task. ``inspect``:
        its ``--sample-id`` list. ``ids``: one id a line. ``csv`` and ``jsonl``: one sample a line,
        with position, rank, score, role, inclusion probability, weight and stratum.
    path : str
        Where the text will be written, for the command.
    task : str, optional
        The one task to export of several: the samples whose ids are ``task/id``. For ``lm-eval``
        and ``inspect`` also the task of samples that are known by position only.

    Raises
    ------
    UsageError
        If there is no such task, the samples' ids are not of the form that the tool's importer
        writes, or they cannot be handed to the tool.
    """
    if to is Target.LM_EVAL:
        return _for_lm_eval(_numbers(selection, task), path)
    if to is Target.INSPECT:
        return _for_inspect(_by_task(selection, task, last_slash=False))
    rows = _rows(selection) if task is None else _rows_of_task(selection, task)
    if to is Target.IDS:
        return Exported("".join(f"{row['sample_id']}\n" for row in rows), len(rows))
    if to is Target.JSONL:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        return Exported("".join(lines), len(rows))
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return Exported(text.getvalue(), len(rows))


def _ids(selection: Selection) -> list[str]:
    ids = selection.sample_ids
    return [str(i) for i in (selection.draw.positions if ids is None else ids).tolist()]


def _by_task(selection: Selection, task: str | None, *, last_slash: bool) -> dict[str, list[str]]:
    """Return the tool's own ids of each task, in the order of the selection.

    Only one of task and id may hold a slash: ids of inspect_ai, tasks of lm-evaluation-harness.
    """
    if selection.sample_ids is None:
        if task is None:
            raise UsageError(
                "the selection knows its samples by position only; say with --task which task's "
                "documents these are the numbers of"
            )
        return {task: _ids(selection)}
    tasks: dict[str, list[str]] = {}
    for sample in _ids(selection):
        name, slash, own = sample.rpartition("/") if last_slash else sample.partition("/")
        if not slash or not own:
            raise UsageError(
                f"sample id {sample!r} is not of the form task/id, which `disco import` writes; "
                "export with --to ids, and translate the ids yourself"
            )
        tasks.setdefault(name, []).append(own)
    if task is not None and task not in tasks:
        raise _no_such_task(task, tasks)
    return tasks if task is None else {task: tasks[task]}


def _rows_of_task(selection: Selection, task: str) -> list[dict[str, Any]]:
    """Return the rows of the samples whose ids are ``task/id``."""
    if selection.sample_ids is None:
        raise UsageError(
            f"--task {task}: the selection knows its samples by position only, and not their tasks"
        )
    rows = [row for row in _rows(selection) if row["sample_id"].startswith(f"{task}/")]
    if not rows:
        parts = [one.partition("/") for one in _ids(selection)]
        raise _no_such_task(task, [name for name, slash, _ in parts if slash])
    return rows


def _no_such_task(task: str, known: Iterable[str]) -> UsageError:
    names = sorted(set(known))
    more = f", … ({len(names)})" if len(names) > _MOST_NAMED else ""
    there = ", ".join(names[:_MOST_NAMED]) + more
    return UsageError(
        f"--task {task}: no such task among the selected samples; "
        + (f"there are {there}" if names else "their ids are not of the form task/id")
    )


def _numbers(selection: Selection, task: str | None) -> dict[str, list[int]]:
    """Return document numbers by task: ascending and distinct, or lm-eval mislabels its rows."""
    numbers: dict[str, list[int]] = {}
    for name, ids in sorted(_by_task(selection, task, last_slash=True).items()):
        odd = [one for one in ids if not one.isascii() or not one.isdigit()]
        if odd:
            raise UsageError(
                f"sample id '{name}/{odd[0]}' does not end in a document number, as ids imported "
                "from lm-evaluation-harness do"
            )
        numbers[name] = sorted({int(one) for one in ids})
    return numbers


def _for_lm_eval(numbers: Mapping[str, list[int]], path: str) -> Exported:
    lines = ",\n".join(f" {json.dumps(task)}: {json.dumps(ids)}" for task, ids in numbers.items())
    tasks = ",".join(numbers)
    return Exported(
        text=f"{{\n{lines}\n}}\n",
        k=sum(map(len, numbers.values())),
        command=(
            "lm_eval --model hf --model_args pretrained=MODEL "
            f"--tasks {shlex.quote(tasks)} --samples {shlex.quote(path)} "
            "--log_samples --output_path OUT"
        ),
        warnings=(
            "give --num_fewshot, chat template and all else as in the runs of the reference models",
            (
                "leave out --limit, and leave out --cache_requests: its cache does not know --samples "
                "and would serve the prompts of other documents"
            ),
            "--samples needs lm-evaluation-harness 0.4.9 or later",
        ),
    )


def _for_inspect(tasks: Mapping[str, list[str]]) -> Exported:
    several = len(tasks) > 1
    selectors = [
        f"{task}:{_selector(one)}" if several else _selector(one)
        for task, ids in tasks.items()
        for one in ids
    ]
    text = ",".join(selectors)
    return Exported(
        text=f"{text}\n",
        k=len(selectors),
        command=f"inspect eval {' '.join(f'{t}.py' for t in tasks)} --model MODEL --sample-id "
        f"{shlex.quote(text)}",
        warnings=(
            "give epochs, task arguments and all else as in the runs of the reference models",
            *(
                ("selectors of several tasks need a recent inspect_ai; else run one --task a time",)
                if several
                else ()
            ),
        ),
    )


def _selector(sample: str) -> str:
    """Return an id as ``--sample-id`` takes it: separated by commas, matched as a pattern."""
    if "," in sample or sample != sample.strip():
        raise UsageError(
            f"sample id {sample!r} holds a comma or ends in a space, which --sample-id cannot "
            "express; use --to jsonl and eval(…, sample_id=[…]) in Python"
        )
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in sample)


def _rows(selection: Selection) -> list[dict[str, Any]]:
    draw = selection.draw
    columns: dict[str, Any] = {
        "sample_id": _ids(selection),
        "position": draw.positions.tolist(),
        "rank": draw.ranks.tolist(),
        "score": _nullable(draw.scores),
        "role": list(draw.roles),
        "inclusion_probability": _nullable(draw.inclusion_probabilities),
        "weight": [None] * selection.k if draw.weights is None else _nullable(draw.weights),
        "stratum": [None] * selection.k if draw.strata is None else draw.strata.tolist(),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _nullable(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]
