"""Logs of inspect_ai -> one table for each model and task; epochs averaged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import InputError, UsageError
from disco_cli.harness.choices import Choices, ImportOptions, choose_one
from disco_cli.harness.imported import (
    Imported,
    ImportedTable,
    check_hashes_agree,
    check_unique_names,
)
from disco_cli.harness.inspect_log import (
    MISSING,
    NO_ANSWER,
    InspectLog,
    InspectSample,
    Reported,
    is_inspect_log,
    read_log,
)

TOLERANCE = 1e-9


def read_inspect(paths: Iterable[str | Path], options: ImportOptions | None = None) -> Imported:
    """Import logs of inspect_ai.

    Parameters
    ----------
    paths : iterable of str or Path
        ``.eval`` and ``.json`` logs, or folders that hold them.
    options : ImportOptions, optional
        ``metrics`` chooses the scorer.

    Raises
    ------
    InputError
        If a log is damaged, incomplete, did not succeed, or contradicts its own results.
    UsageError
        If there are several scorers and none is chosen.
    """
    options = options or ImportOptions()
    notes: list[str] = []
    logs: list[InspectLog] = []
    for path, named in _find_logs([Path(p) for p in paths]):
        log = read_log(path)
        if options.tasks and not {log.task, _short(log.task)} & set(options.tasks):
            continue
        problem = _why_unfinished(log)
        if problem and not options.partial:
            if named:
                raise InputError(problem)
            notes.append(f"left out: {problem}")
        else:
            notes += [problem] if problem else []
            logs.append(log)
    if not logs:
        raise _nothing_left(options, notes)
    tables: list[ImportedTable] = []
    choices = Choices()
    for log in _newest(logs, options, notes):
        with choices.each():
            tables.append(_table(log, options))
    choices.check()
    ordered = tuple(sorted(tables, key=lambda table: (table.task, table.model)))
    check_unique_names(ordered)
    check_hashes_agree(ordered)
    return Imported(ordered, tuple(notes))


def _find_logs(paths: list[Path]) -> list[tuple[Path, bool]]:
    """Return the logs, each with whether it was named itself."""
    found: dict[Path, bool] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if path.is_dir():
            inside = [p for p in sorted(path.rglob("*")) if p.is_file() and is_inspect_log(p)]
            if not inside:
                raise InputError(f"{path}: no logs of inspect_ai (.eval or .json) in this folder")
            for one in inside:
                found.setdefault(one, False)
        else:
            found[path] = True
    return sorted(found.items())


def _nothing_left(options: ImportOptions, notes: list[str]) -> InputError | UsageError:
    if notes:
        return InputError("; ".join(notes))
    return UsageError(f"none of these logs is of the task {' or '.join(options.tasks)}")


def _why_unfinished(log: InspectLog) -> str | None:
    """Return why a log is not a whole evaluation, ``None`` if it is."""
    rows = len(log.samples)
    if log.cut_off is not None:
        return f"{log.cut_off} is cut off: the log holds {rows} whole samples; copy it again"
    if log.status != "success":
        return (
            f"{log.path}: status {log.status!r}, not 'success': {rows} samples are there; finish "
            "it with `inspect eval-retry`, or import what is there with --partial"
        )
    if log.total is not None and rows != log.total:
        return (
            f"{log.path}: {rows} samples, but the results count {log.total}: incomplete; copy it "
            "again, or import what is there with --partial"
        )
    return None


def _newest(logs: list[InspectLog], options: ImportOptions, notes: list[str]) -> list[InspectLog]:
    """Keep one log for each model and task: of the whole data set first, then the newest."""
    best: dict[tuple[str, str], InspectLog] = {}
    for log in logs:
        key = (options.model or log.model, log.task)
        other = best.setdefault(key, log)
        if other is not log:
            keep = max((other, log), key=lambda one: (_is_whole(one), one.created or ""))
            drop = log if keep is other else other
            best[key] = keep
            notes.append(f"{drop.path}: left out, {keep.path} is a newer or fuller run of it")
    return list(best.values())


def _is_whole(log: InspectLog) -> bool:
    return log.dataset_size is not None and log.dataset_size == len(log.asked or ())


def _table(log: InspectLog, options: ImportOptions) -> ImportedTable:
    if not log.samples:
        raise InputError(f"{log.path}: holds no samples (evaluated with log_samples=False?)")
    scorer = _choose_scorer(log, options.metrics)
    by_id = _by_id(log)
    ids = list(by_id)
    values = [[s.values[scorer] for s in by_id[i] if scorer in s.values] for i in ids]
    responses = np.array([np.nan if not v else _mean(v) for v in values])
    if _why_unfinished(log) is None:
        _check_complete(log, scorer, set(ids))
    notes = _counts(log, scorer, responses)
    whole = _is_whole(log) and not np.isnan(responses).any()
    score, found = _check_mean(log, scorer, values, responses)
    has_choices = all(s.n_choices > 1 for s in log.samples)
    firsts = [by_id[i][0] for i in ids]
    task = _short(log.task)
    return ImportedTable(
        source=str(log.path),
        model=options.model or log.model,
        date=log.created,
        task=task,
        metric=scorer,
        ids=np.array([f"{task}/{i}" for i in ids], dtype=np.str_),
        responses=responses,
        hashes=np.array([s.digest for s in firsts], dtype=np.str_),
        labels=np.array([s.label for s in firsts], dtype=np.int64) if has_choices else None,
        n_options=np.array([s.n_choices for s in firsts], dtype=np.int64) if has_choices else None,
        groups=np.full(len(ids), task, dtype=np.str_),
        predicted_labels=_answers([by_id[i] for i in ids], scorer) if has_choices else None,
        score=score if whole else None,
        complete=whole,
        notes=notes + found,
    )


def _short(task: str) -> str:
    """Return a task's name without the package that it comes from; ids begin with it."""
    return task.rpartition("/")[2]


def _choose_scorer(log: InspectLog, wanted: tuple[str, ...]) -> str:
    available = list(dict.fromkeys(name for s in log.samples for name in s.values))
    if not available:
        raise InputError(f"{log.path}: no sample of {log.task} has a score")
    return choose_one(available, wanted, "metric", log.path, log.task)


def _by_id(log: InspectLog) -> dict[str, list[InspectSample]]:
    """Return the epochs of each sample, samples in the order of the log."""
    by_id: dict[str, list[InspectSample]] = {}
    for sample in log.samples:
        epochs = by_id.setdefault(sample.id, [])
        if any(other.epoch == sample.epoch for other in epochs):
            raise InputError(
                f"{log.path}: sample {sample.id!r} has epoch {sample.epoch} twice: two runs in "
                "one log, or damaged"
            )
        if epochs and epochs[0].digest != sample.digest:
            raise InputError(
                f"{log.path}: sample {sample.id!r} has another content in epoch {sample.epoch} "
                f"than in epoch {epochs[0].epoch}"
            )
        epochs.append(sample)
    for epochs in by_id.values():
        epochs.sort(key=lambda one: one.epoch)
    return by_id


def _mean(values: list[float]) -> float:
    """Return the mean over epochs; those that could not be scored are left out."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def _answers(samples: list[list[InspectSample]], scorer: str) -> NDArray[np.int64]:
    """Return the answer of each sample, of several epochs the commonest (of equals the earliest)."""
    answers = []
    for epochs in samples:
        given = [s.answers[scorer] for s in epochs if scorer in s.answers]
        chosen = [one for one in given if one >= 0]
        if chosen:
            answers.append(max(chosen, key=chosen.count))
        else:
            answers.append(NO_ANSWER if given else MISSING)
    return np.array(answers, dtype=np.int64)


def _check_complete(log: InspectLog, scorer: str, ids: set[str]) -> None:
    """Refuse a log of a whole evaluation in which samples or scores are missing without a word."""
    if log.asked is not None and log.asked != ids:
        odd = min(log.asked ^ ids)
        where = "asked for, but not there" if odd in log.asked else "there, but not asked for"
        raise InputError(f"{log.path}: sample {odd!r} is {where}: damaged")
    lacking = [s.id for s in log.samples if not s.failed and scorer not in s.values]
    entry = _reported_entry(log, scorer)
    known = sum(1 for s in log.samples if not math.isnan(s.values.get(scorer, math.nan)))
    told = None if entry is None else entry.scored
    if lacking and (told is None or told != known):
        raise InputError(
            f"{log.path}: sample {lacking[0]!r} has no score by {scorer}, nor have "
            f"{len(lacking) - 1} others that did not fail: damaged"
        )


def _counts(log: InspectLog, scorer: str, responses: NDArray[np.float64]) -> tuple[str, ...]:
    failed = sum(s.failed for s in log.samples)
    unscored = sum(not s.failed and scorer not in s.values for s in log.samples)
    nan = int(np.isnan(responses).sum())
    notes = []
    if failed:
        notes.append(
            f"{log.path}: {failed} of {len(log.samples)} samples broke off with an error; they are "
            "missing here, and inspect_ai leaves them out of its score"
        )
    if unscored:
        notes.append(f"{log.path}: {unscored} samples were not scored by {scorer}: missing")
    if nan and not failed and not unscored:
        notes.append(f"{log.path}: {nan} samples have no number as their score: missing")
    if log.epochs > 1:
        notes.append(f"{log.path}: each response is the mean over {log.epochs} epochs")
    return tuple(notes)


def _check_mean(
    log: InspectLog, scorer: str, values: list[list[float]], responses: NDArray[np.float64]
) -> tuple[float | None, tuple[str, ...]]:
    """Compare with the reported score; return it, and what to tell."""
    entry = _reported_entry(log, scorer)
    if entry is None or _why_unfinished(log) is not None:
        return None, ()
    name = next((one for one in ("accuracy", "mean") if one in entry.metrics), None)
    if name is None or entry.reducer not in (None, "mean", "avg"):
        how = f"reducer {entry.reducer}" if name else "metrics of its own"
        return None, (
            f"{log.path}: {scorer} is aggregated by {how}; what is estimated is the mean",
        )
    reported = entry.metrics[name]
    scored = responses[~np.isnan(responses)]
    if np.isnan(reported):
        if any(np.isnan(v).any() for v in values):
            note = f"{log.path}: reported {name} of {scorer} is NaN, since a sample's score is NaN"
            return None, (note,)
    elif len(scored) and abs(float(scored.mean()) - reported) <= TOLERANCE:
        return reported, ()
    raise InputError(
        f"{log.path}: the mean of {scorer} over {len(scored)} samples is "
        f"{float(scored.mean()) if len(scored) else float('nan'):.10g}, but the log reports "
        f"{name} {reported:.10g}: damaged, or scored again without its results"
    )


def _reported_entry(log: InspectLog, scorer: str) -> Reported | None:
    base, _, part = scorer.partition("/")
    for entry in log.reported:
        if entry.scorer == base and entry.name == (part or base):
            return entry
    return next((entry for entry in log.reported if entry.name == scorer), None)
