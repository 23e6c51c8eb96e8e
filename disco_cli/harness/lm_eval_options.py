"""The options of one row of a multiple-choice task of lm-evaluation-harness."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RowOptions:
    """The K options of one document.

    Attributes
    ----------
    loglikelihoods : list of float
        Of each option after the question.
    unconditional : list of float or None
        Of each option without the question, where the task asks for mutual information.
    choices : list of str or None
        Text of each option, ``None`` if the log leaves it out.
    is_shared : bool
        Whether the options differ in the question and share their text.
    repeats_itself : bool
        Whether filtered responses and responses are the same.
    index_label, text_label : int
        The right option by the target read as an index and as an option's text, -1 where neither.
    gold_set : frozenset of int
        Right options, where there are several.
    """

    loglikelihoods: list[float]
    unconditional: list[float] | None
    choices: list[str] | None
    is_shared: bool
    repeats_itself: bool
    index_label: int
    text_label: int
    gold_set: frozenset[int]


def read_options(row: Mapping[str, Any], delimiter: str) -> RowOptions:
    """Read the options of a row.

    Parameters
    ----------
    row : mapping
        As in the log.
    delimiter : str
        Stands before each option's text.

    Raises
    ------
    ValueError, TypeError, KeyError
        If the row is not one of a multiple-choice task.
    """
    resps = row["resps"]
    values = log_likelihoods(resps)
    if not values:
        raise ValueError("resps does not hold the log-likelihoods of options")
    requests = _requests(row.get("arguments"), len(values))
    half = len(values) // 2
    doubled = _is_doubled(row, requests, len(values))
    k = half if doubled else len(values)
    choices = None
    is_shared = False
    if requests is not None:
        texts = [text for _, text in requests[:k]]
        choices = [text.removeprefix(delimiter) for text in texts]
        questions = {question for question, _ in requests[:k]}
        is_shared = k > 1 and len(set(texts)) == 1 and len(questions) > 1
    index, text, gold_set = _labels(row.get("target"), choices, k)
    return RowOptions(
        loglikelihoods=values[:k],
        unconditional=values[half:] if doubled else None,
        choices=choices,
        is_shared=is_shared,
        repeats_itself=_repeats(row.get("filtered_resps"), resps, values),
        index_label=index,
        text_label=text,
        gold_set=gold_set,
    )


def log_likelihoods(resps: Any) -> list[float] | None:
    """Return one log-likelihood per request, or ``None`` if the answers are something else.

    ``resps[i][0]`` is ``[log-likelihood, is greedy]`` for request i; whether greedy decoding would
    emit the option is not whether the option is right.
    """
    found: list[float] = []
    for repeats in resps:
        first = repeats[0] if isinstance(repeats, list) and repeats else None
        if not isinstance(first, list) or len(first) != 2:
            return None
        greedy = first[1]
        if not isinstance(greedy, bool) and greedy not in ("True", "False"):
            return None
        found.append(float(first[0]))
    return found


def _repeats(filtered: Any, resps: list[Any], values: list[float]) -> bool:
    """Whether the filtered responses repeat the responses, as without a filter of the task's own."""
    if not isinstance(filtered, list) or len(filtered) != len(resps):
        return False
    if filtered == [repeats[0] for repeats in resps]:
        return True
    again = log_likelihoods([[one] for one in filtered])
    return again is not None and str(again) == str(values)  # as text, since NaN equals nothing


def _requests(arguments: Any, n: int) -> list[tuple[str, str]] | None:
    """Return (question, continuation) of every request, in the order of the responses."""
    if not arguments:
        return None
    if isinstance(arguments, dict):
        # By number: as text, gen_args_10 comes before gen_args_2.
        ordered = sorted(arguments, key=lambda key: int(key.rpartition("_")[2]))
        pairs = [(arguments[key]["arg_0"], arguments[key]["arg_1"]) for key in ordered]
    else:
        pairs = [(question, continuation) for question, continuation in arguments]
    if len(pairs) != n:
        raise ValueError(f"{len(pairs)} arguments for {n} responses")
    if not all(isinstance(part, str) for pair in pairs for part in pair):
        raise TypeError("arguments of an option are not text")
    return pairs


def _is_doubled(row: Mapping[str, Any], requests: list[tuple[str, str]] | None, n: int) -> bool:
    """Whether the second half of the responses is the options without the question."""
    half = n // 2
    if n % 2 or half == 0:
        return False
    if requests is not None:
        second = requests[half:]
        return (
            all(question == "" for question, _ in second)
            and any(question != "" for question, _ in requests[:half])
            and [text for _, text in second] == [text for _, text in requests[:half]]
        )
    doc = row.get("doc")
    options = doc.get("choices") if isinstance(doc, dict) else None
    return isinstance(options, list) and len(options) == half


def _labels(target: Any, choices: list[str] | None, k: int) -> tuple[int, int, frozenset[int]]:
    """Return the right option read as an index, as text, and as a set of several."""
    if isinstance(target, str) and target.startswith("["):
        with suppress(ValueError):  # an option's own text may start with a bracket
            target = json.loads(target)
    if isinstance(target, list):
        several = frozenset(one for one in target if type(one) is int and 0 <= one < k)
        if len(several) == 1:
            return next(iter(several)), -1, frozenset()
        return -1, -1, several
    index = text = -1
    with suppress(TypeError, ValueError):
        index = int(target)
    if isinstance(target, str) and choices is not None and len(set(choices)) > 1:
        text = choices.index(target) if target in choices else -1
    return index if 0 <= index < k else -1, text, frozenset()
