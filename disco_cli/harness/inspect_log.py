"""One log of inspect_ai, ``.eval`` or ``.json``, read sample by sample into what is needed of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disco_cli.errors import InputError
from disco_cli.harness.json_stream import StreamReport, open_bytes, read_members
from disco_cli.harness.zip_members import open_archive, read_member

NO_ANSWER = -1
MISSING = -2

_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_SHAPE_ERRORS = (KeyError, TypeError, ValueError, IndexError, AttributeError)


@dataclass(frozen=True)
class Reported:
    """One score of the results: its name, scorer, reducer, number of scores, and metrics."""

    name: str
    scorer: str
    reducer: str | None
    scored: int | None
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class InspectSample:
    """One sample in one epoch.

    Attributes
    ----------
    id : str
        The tool's own id.
    epoch : int
        From 1.
    digest : str
        SHA-256 of question, choices and target, whatever the order of the choices.
    n_choices : int
        0 without choices.
    label : int
        Right choice, -1 if unknown or several. Choices are numbered in the order of their texts,
        since logs may show them to each model in another order.
    values : mapping of str to float
        Value of each scorer, NaN where it could not score.
    answers : mapping of str to int
        Choice that each scorer read from the answer, ``NO_ANSWER`` if none or several.
    failed : bool
        Whether the sample broke off with an error.
    """

    id: str
    epoch: int
    digest: str
    n_choices: int
    label: int
    values: Mapping[str, float]
    answers: Mapping[str, int]
    failed: bool


@dataclass(frozen=True)
class InspectLog:
    """One evaluation of one model on one task.

    Attributes
    ----------
    path : Path
        The log.
    model, task : str
        By the log.
    created : str or None
        ISO date and time.
    status : str
        ``success``, ``error``, ``cancelled`` or ``started``.
    version : str
        Version of inspect_ai.
    dataset_size : int or None
        Number of samples of the whole data set.
    asked : frozenset of str or None
        Ids of the samples of this evaluation.
    epochs : int
        How often each sample was evaluated.
    total : int or None
        Number of samples × epochs by the results.
    reported : tuple of Reported
        The scores.
    samples : tuple of InspectSample
        In the order of the log.
    cut_off : str or None
        Where the log breaks off.
    """

    path: Path
    model: str
    task: str
    created: str | None
    status: str
    version: str
    dataset_size: int | None
    asked: frozenset[str] | None
    epochs: int
    total: int | None
    reported: tuple[Reported, ...]
    samples: tuple[InspectSample, ...]
    cut_off: str | None


def is_inspect_log(path: Path) -> bool:
    """Whether a file looks like a log of inspect_ai: by its name, and its first key."""
    if path.name.endswith(".eval"):
        return True
    if not path.name.endswith((".json", ".json.gz")):
        return False
    with open_bytes(path) as stream:
        try:
            head = stream.read(400).decode("utf-8", "replace")
        except EOFError:
            return False
    return '"version"' in head and '"status"' in head and '"eval"' in head


def read_log(path: Path) -> InspectLog:
    """Read one log.

    Raises
    ------
    InputError
        If the file is damaged, or no log of inspect_ai.
    """
    header: dict[str, Any] = {}
    samples: list[InspectSample] = []
    report = StreamReport()
    source = _members_of_archive(path) if _is_archive(path) else _members_of_json(path, report)
    for key, place, value in source:
        if key == "samples":
            samples.append(_checked(_sample, value, place))
        elif key in ("status", "eval", "results"):
            header[key] = value
    if "eval" not in header:
        where = report.cut_off or "it has no 'eval'"
        raise InputError(f"{path}: not a log of inspect_ai, or cut off too early: {where}")
    log: InspectLog = _checked(
        lambda parts: _log(path, parts, samples, report.cut_off), header, str(path)
    )
    return log


def _is_archive(path: Path) -> bool:
    with open_bytes(path) as stream:
        try:
            return stream.read(2) == b"PK" or path.name.endswith(".eval")
        except EOFError:
            return False


def _members_of_archive(path: Path) -> Iterator[tuple[str, str, Any]]:
    with open_archive(path) as archive:
        names = archive.namelist()
        for name in ["header.json", *names]:
            if name != "header.json" and not name.startswith("samples/"):
                continue
            if name == "header.json" and name not in names:
                raise InputError(
                    f"{path}: has no header.json: the evaluation did not finish, or the file is cut"
                )
            place = f"{path}: {name}"
            content = _parsed(read_member(archive, name, path), place)
            if name != "header.json":
                yield "samples", place, content
            elif isinstance(content, dict) and content is not None:
                for key, value in content.items():
                    yield key, place, value
            else:
                raise InputError(f"{place}: expected an object, found {type(content).__name__}")


def _parsed(raw: bytes, place: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not valid JSON: {error}; damaged") from None


def _members_of_json(path: Path, report: StreamReport) -> Iterator[tuple[str, str, Any]]:
    with open_bytes(path) as stream:
        yield from read_members(stream, path, report, streamed=frozenset({"samples"}))


def _checked(make: Any, value: Any, place: str) -> Any:
    try:
        return make(value)
    except _SHAPE_ERRORS as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{place}: not what inspect_ai writes: {what}") from None


def _log(
    path: Path, header: dict[str, Any], samples: list[InspectSample], cut_off: str | None
) -> InspectLog:
    spec = header["eval"]
    results = header.get("results") or {}
    dataset = spec.get("dataset") or {}
    ids = dataset.get("sample_ids")
    total = results.get("total_samples")
    size = dataset.get("samples")
    return InspectLog(
        path=path,
        model=str(spec["model"]),
        task=str(spec["task"]),
        created=None if spec.get("created") is None else str(spec["created"]),
        status=str(header.get("status", "unknown")),
        version=str((spec.get("packages") or {}).get("inspect_ai", "unknown")),
        dataset_size=None if size is None else int(size),
        asked=None if ids is None else frozenset(str(one) for one in ids),
        epochs=int((spec.get("config") or {}).get("epochs") or 1),
        total=None if total is None else int(total),
        reported=tuple(_reported(score) for score in results.get("scores") or []),
        samples=tuple(samples),
        cut_off=cut_off,
    )


def _reported(score: Mapping[str, Any]) -> Reported:
    reducer = score.get("reducer")
    scored = score.get("scored_samples")
    return Reported(
        name=str(score["name"]),
        scorer=str(score.get("scorer", score["name"])),
        reducer=None if reducer is None else str(reducer),
        scored=None if scored is None else int(scored),
        metrics={
            str(name): float(metric["value"])
            for name, metric in score["metrics"].items()
            if isinstance(metric.get("value"), int | float)
        },
    )


def _sample(sample: Mapping[str, Any]) -> InspectSample:
    epoch = sample["epoch"]
    if type(epoch) is not int or epoch < 1:
        raise ValueError(f"epoch is {epoch!r}")
    if not isinstance(sample["id"], str | int) or isinstance(sample["id"], bool):
        raise TypeError(f"id is {sample['id']!r}")
    choices = sample.get("choices") or []
    order = {position: rank for rank, position in enumerate(_by_text(choices))}
    target = sample.get("target")
    values: dict[str, float] = {}
    answers: dict[str, int] = {}
    for scorer, score in (sample.get("scores") or {}).items():
        for name, value in _flat(scorer, score["value"]):
            values[name] = value
            answers[name] = _choice(score.get("answer"), order, NO_ANSWER)
    return InspectSample(
        id=str(sample["id"]),
        epoch=epoch,
        digest=_digest(sample.get("input"), choices, target),
        n_choices=len(choices),
        label=_choice(target, order, -1),
        values=values,
        answers=answers,
        failed=sample.get("error") is not None,
    )


def _by_text(choices: list[Any]) -> list[int]:
    return sorted(range(len(choices)), key=lambda position: (str(choices[position]), position))


def _choice(letters: Any, order: Mapping[int, int], otherwise: int) -> int:
    """Return the number of the choice that a single letter names."""
    if isinstance(letters, list) and len(letters) == 1:
        letters = letters[0]
    if not isinstance(letters, str) or len(letters.strip()) != 1:
        return otherwise
    return order.get(ord(letters.strip().upper()) - ord("A"), otherwise)


def _flat(scorer: str, value: Any) -> Iterator[tuple[str, float]]:
    """Yield the value of a scorer, or of each part of one that gives several."""
    if isinstance(value, dict):
        for part, inner in value.items():
            yield f"{scorer}/{part}", _as_number(inner)
    elif isinstance(value, list):
        for part, inner in enumerate(value):
            yield f"{scorer}/{part}", _as_number(inner)
    else:
        yield scorer, _as_number(value)


def _as_number(value: Any) -> float:
    """Return a score as inspect_ai's metrics count it: "C" is correct, not the letter C."""
    if value is None:
        return math.nan
    if isinstance(value, bool | int | float):
        return float(value)
    text = str(value).strip()
    if text in _GRADES:
        return _GRADES[text]
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return float(text)


def _digest(question: Any, choices: list[Any], target: Any) -> str:
    """Return a hash of a sample's content that the order of its choices does not change."""
    if isinstance(question, list):  # messages, whose ids are drawn anew in every run
        question = [[message.get("role"), message.get("content")] for message in question]
    letters = target if isinstance(target, list) else [target]
    right = [
        str(choices[ord(letter) - ord("A")])
        if isinstance(letter, str) and len(letter) == 1 and 0 <= ord(letter) - 65 < len(choices)
        else letter
        for letter in letters
    ]
    content = [question, sorted(str(choice) for choice in choices), right]
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
