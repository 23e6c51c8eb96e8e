"""One ``samples_*.jsonl`` of lm-evaluation-harness, read row by row into compact columns.

The fields changed over 0.4.0 … 0.4.13 (``docs/harnesses.md`` has the table): numbers became strings,
lists became objects, targets became text, filters and hashes were added. Documents and prompts,
which make up nearly all of a log, are dropped as soon as a row has been read.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import InputError
from disco_cli.harness.json_stream import StreamReport, read_records
from disco_cli.harness.lm_eval_options import log_likelihoods, read_options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_FIXED = frozenset(
    [
        "doc_id",
        "doc",
        "target",
        "arguments",
        "resps",
        "filtered_resps",
        "filter",
        "metrics",
        "doc_hash",
        "prompt_hash",
        "target_hash",
    ]
)
UNNAMED = ""
"""Filter of rows that do not say which filter they are of (before 0.4.7)."""
BYPASS = "bypass"
"""Metric that stands for "not scored" under ``--predict_only``."""

_ROW_ERRORS = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)


@dataclass(frozen=True)
class SampleLog:
    """The rows of one sample file, in the order of the file; R rows, C options at most.

    Attributes
    ----------
    path : Path
        The file.
    doc_ids : NDArray of int64, shape (R,)
        As written, which is not always as meant.
    hashes : NDArray of bytes, shape (R,), or None
        SHA-256 of each document in hexadecimal digits, computed here where the log has none.
    filters : NDArray of str, shape (R,)
        Name of the filter, ``UNNAMED`` before 0.4.7.
    metrics : mapping of str to NDArray of float64, shape (R,)
        One number per row, NaN where a row lacks the metric.
    composite : tuple of str
        Metrics whose rows hold lists: no score of a single sample.
    n_options : NDArray of int64, shape (R,)
        Number of options; 0 in tasks without options.
    loglikelihoods : NDArray of float64, shape (R, C)
        Natural logarithm, as logged (NaN, -inf), padded with -inf; C = 0 without options.
    unconditional : NDArray of float64, shape (R, C), or None
        Log-likelihood without the question, where the task asks for mutual information.
    characters, bytes : NDArray of int32, shape (R, C)
        Length of each option's text, -1 where the log leaves it out.
    index_labels, text_labels : NDArray of int64, shape (R,)
        The right option by the target read as an index and as the option's text, -1 where neither.
    gold_sets : mapping of int to frozenset of int
        Rows with several right options.
    n_doubled, n_shared : int
        Rows with a second set of options for mutual information; rows whose options differ in the
        question only.
    report : StreamReport
        Whether the file was cut off, and its encoding.
    """

    path: Path
    doc_ids: NDArray[np.int64]
    hashes: NDArray[np.bytes_] | None
    filters: NDArray[np.str_]
    metrics: Mapping[str, NDArray[np.float64]]
    composite: tuple[str, ...]
    n_options: NDArray[np.int64]
    loglikelihoods: NDArray[np.float64]
    unconditional: NDArray[np.float64] | None
    characters: NDArray[np.int32]
    bytes: NDArray[np.int32]
    index_labels: NDArray[np.int64]
    text_labels: NDArray[np.int64]
    gold_sets: Mapping[int, frozenset[int]]
    n_doubled: int
    n_shared: int
    report: StreamReport

    @property
    def has_options(self) -> bool:
        """Whether the task is multiple choice."""
        return bool(self.loglikelihoods.shape[1] > 0)


@dataclass
class _Columns:
    """Columns that grow row by row; arrays of machine numbers keep them small."""

    doc_ids: array[int] = field(default_factory=lambda: array("q"))
    hashes: bytearray = field(default_factory=bytearray)
    has_hash: bool = True
    filter_names: dict[str, int] = field(default_factory=dict)
    filters: array[int] = field(default_factory=lambda: array("i"))
    metrics: dict[str, array[float]] = field(default_factory=dict)
    composite: set[str] = field(default_factory=set)
    n_options: array[int] = field(default_factory=lambda: array("q"))
    loglikelihoods: array[float] = field(default_factory=lambda: array("d"))
    unconditional: array[float] = field(default_factory=lambda: array("d"))
    characters: array[int] = field(default_factory=lambda: array("i"))
    bytes: array[int] = field(default_factory=lambda: array("i"))
    index_labels: array[int] = field(default_factory=lambda: array("q"))
    text_labels: array[int] = field(default_factory=lambda: array("q"))
    gold_sets: dict[int, frozenset[int]] = field(default_factory=dict)
    n_doubled: int = 0
    n_shared: int = 0
    contradictions: dict[str, list[int]] = field(default_factory=dict)


def read_sample_log(
    path: Path, *, output_type: str | None = None, delimiter: str = " "
) -> SampleLog:
    """Read one sample file.

    Parameters
    ----------
    path : Path
        JSON lines (0.4.3 on) or one JSON array (before), plain or gzipped.
    output_type : str, optional
        ``configs[task].output_type`` of the results file; told from the rows without it.
    delimiter : str
        ``configs[task].target_delimiter``, which precedes each option's text.

    Raises
    ------
    InputError
        If a row is damaged, or not a row of lm-evaluation-harness, or there is none.
    """
    report = StreamReport(may_be_windows=True)  # 0.4.3 wrote with the machine's encoding
    columns = _Columns()
    choice = None if output_type is None else output_type == "multiple_choice"
    place = str(path)
    try:
        for place, row in read_records(path, report):  # noqa: B007  # used in the message below
            if choice is None:
                pairs = log_likelihoods(row["resps"])
                choice = pairs is not None and len(pairs) > 1
            _add_row(columns, row, choice=choice, delimiter=delimiter)
    except _ROW_ERRORS as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{place}: not a row of a lm-evaluation-harness sample log: {what}"
        ) from None
    if not columns.doc_ids:
        cut = " but one that is cut off" if report.cut_off else ""
        raise InputError(f"{path}: holds no rows{cut}")
    _check_contradictions(path, columns)
    return _finish(path, columns, report)


def _check_contradictions(path: Path, columns: _Columns) -> None:
    """Refuse a log in which a few rows, not most, contradict what they say twice.

    Each row holds the hashes of its own document and target, and the likelihoods of its options
    twice. A task may have its reasons to treat them in another way, but then in all of its rows.
    """
    for what, rows in columns.contradictions.items():
        if 2 * len(rows) < len(columns.doc_ids):
            raise InputError(
                f"{path}: {what} in {len(rows)} of {len(columns.doc_ids)} rows (first: doc_id "
                f"{columns.doc_ids[rows[0]]}): the file is damaged"
            )


def _contradiction(columns: _Columns, what: str, number: int) -> None:
    columns.contradictions.setdefault(what, []).append(number)


def _add_row(columns: _Columns, row: dict[str, Any], *, choice: bool, delimiter: str) -> None:
    number = len(columns.doc_ids)
    doc_id = row["doc_id"]
    if type(doc_id) is not int or doc_id < 0:
        raise ValueError(f"doc_id is {doc_id!r}")
    _add_metrics(columns, row, number)
    if choice:
        _add_options(columns, row, number, delimiter)
    else:
        row["resps"]  # every row has the model's answer
        columns.n_options.append(0)
        columns.index_labels.append(-1)
        columns.text_labels.append(-1)
    name = row.get("filter", UNNAMED)
    if not isinstance(name, str):
        raise TypeError(f"filter is {name!r}")
    columns.filters.append(columns.filter_names.setdefault(name, len(columns.filter_names)))
    columns.doc_ids.append(doc_id)
    _add_hash(columns, row, number)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _add_hash(columns: _Columns, row: dict[str, Any], number: int) -> None:
    digest: str | None = row.get("doc_hash")
    if "doc" in row:
        # The tool's own definition, so that logs of 0.4.0 … 0.4.2 can be joined to later ones.
        computed = _sha256(json.dumps(row["doc"], indent=2, ensure_ascii=False))
        if digest is not None and digest != computed:
            _contradiction(columns, "doc does not match its doc_hash", number)
        digest = digest or computed
    if "target_hash" in row and row["target_hash"] != _sha256(str(row.get("target"))):
        _contradiction(columns, "target does not match its target_hash", number)
    if digest is None:
        columns.has_hash = False
        return
    raw = digest.encode("ascii")
    if len(raw) != 64 or not set(raw) <= set(b"0123456789abcdef"):
        raise ValueError(f"doc_hash is {digest!r}")
    columns.hashes += raw


def _add_metrics(columns: _Columns, row: dict[str, Any], number: int) -> None:
    names = row.get("metrics")
    if names is None:
        names = [key for key in row if key not in _FIXED]
    for name in names:
        if name == BYPASS:
            continue
        value = _number(row[name])
        if value is None:
            columns.composite.add(name)
            continue
        column = columns.metrics.setdefault(name, array("d"))
        column.extend([float("nan")] * (number - len(column)))
        column.append(value)


def _number(value: Any) -> float | None:
    """Return a metric as a number; numpy values reach the log as text, sets of values as lists."""
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str):
        if value in ("True", "False"):
            return float(value == "True")
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _add_options(columns: _Columns, row: dict[str, Any], number: int, delimiter: str) -> None:
    options = read_options(row, delimiter)
    k = len(options.loglikelihoods)
    before = len(columns.loglikelihoods)
    columns.n_options.append(k)
    columns.loglikelihoods.extend(options.loglikelihoods)
    if options.unconditional is not None:
        columns.unconditional.extend([float("nan")] * (before - len(columns.unconditional)))
        columns.unconditional.extend(options.unconditional)
        columns.n_doubled += 1
    columns.n_shared += options.is_shared
    texts = options.choices
    columns.characters.extend([-1] * k if texts is None else map(len, texts))
    columns.bytes.extend(
        [-1] * k
        if texts is None
        else [len(text.encode("utf-8", "surrogatepass")) for text in texts]
    )
    columns.index_labels.append(options.index_label)
    columns.text_labels.append(options.text_label)
    if options.gold_set:
        columns.gold_sets[number] = options.gold_set
    if not options.repeats_itself:
        _contradiction(columns, "resps and filtered_resps differ", number)


def _finish(path: Path, columns: _Columns, report: StreamReport) -> SampleLog:
    n_rows = len(columns.doc_ids)
    n_options = np.array(columns.n_options, dtype=np.int64)
    width = int(n_options.max())
    for column in columns.metrics.values():
        column.extend([float("nan")] * (n_rows - len(column)))
    names = np.array(list(columns.filter_names), dtype=np.str_)

    inside = np.arange(width) < n_options[:, None]

    def padded(flat: array[Any], fill: float) -> NDArray[Any]:
        result = np.full((n_rows, width), fill, dtype=np.dtype(flat.typecode))
        result[inside] = flat
        return result

    if columns.n_doubled:
        lacking = len(columns.loglikelihoods) - len(columns.unconditional)
        columns.unconditional.extend([float("nan")] * lacking)
    return SampleLog(
        path=path,
        doc_ids=np.array(columns.doc_ids, dtype=np.int64),
        hashes=np.frombuffer(columns.hashes, dtype="S64") if columns.has_hash else None,
        filters=names[np.array(columns.filters, dtype=np.int64)],
        metrics={name: np.array(column) for name, column in columns.metrics.items()},
        composite=tuple(sorted(columns.composite)),
        n_options=n_options,
        loglikelihoods=padded(columns.loglikelihoods, -np.inf),
        unconditional=padded(columns.unconditional, np.nan) if columns.n_doubled else None,
        characters=padded(columns.characters, -1),
        bytes=padded(columns.bytes, -1),
        index_labels=np.array(columns.index_labels, dtype=np.int64),
        text_labels=np.array(columns.text_labels, dtype=np.int64),
        gold_sets=columns.gold_sets,
        n_doubled=columns.n_doubled,
        n_shared=columns.n_shared,
        report=report,
    )
