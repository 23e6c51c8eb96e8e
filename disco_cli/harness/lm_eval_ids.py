"""Document numbers of lm-evaluation-harness, checked by content and put right where possible.

With ``--samples '{"task": [42, 3, 10]}'`` the tool evaluates documents 3, 10 and 42, in this order,
and labels them 42, 3 and 10. Only an ascending list of distinct numbers is labelled as meant. The
hash of a document tells which it really is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.errors import InputError
from disco_cli.harness.lm_eval_files import Run, covers_benchmark

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from disco_cli.harness.lm_eval_rows import SampleLog


@dataclass(frozen=True)
class Known:
    """Hash of each document of a task, ascending by number, and the log that told it."""

    doc_ids: NDArray[np.int64]
    hashes: NDArray[np.bytes_]
    path: Path


@dataclass
class References:
    """What the logs read so far tell of the documents of each task."""

    tasks: dict[str, Known] = field(default_factory=dict)

    def learn(self, task: str, log: SampleLog) -> None:
        """Add the documents of a log whose numbers are trusted."""
        if log.hashes is None:
            return
        known = self.tasks.get(task)
        doc_ids, first = np.unique(log.doc_ids, return_index=True)
        hashes = log.hashes[first]
        if known is not None:
            new = ~np.isin(doc_ids, known.doc_ids)
            if not new.any():
                return
            doc_ids = np.concatenate([known.doc_ids, doc_ids[new]])
            hashes = np.concatenate([known.hashes, hashes[new]])
            order = np.argsort(doc_ids)
            doc_ids, hashes = doc_ids[order], hashes[order]
        path = log.path if known is None else known.path
        self.tasks[task] = Known(doc_ids, hashes, path)


def settle_ids(
    log: SampleLog, run: Run, task: str, references: References
) -> tuple[SampleLog, tuple[str, ...]]:
    """Check a log's document numbers by hash, put wrong ones right, and learn from right ones.

    Parameters
    ----------
    log : SampleLog
        Rows in the order of the file, filters named.
    run : Run
        Tells whether the log is of all documents or of some.
    task : str
        The task.
    references : References
        What other logs told; whole runs should come first. Extended here.

    Returns
    -------
    tuple of SampleLog and tuple of str
        The log with the right numbers, and what was done.

    Raises
    ------
    InputError
        If numbers are doubtful and no other log can tell the right ones, or if two logs have
        different contents under one number.
    """
    known = references.tasks.get(task)
    doubtful = _is_doubtful(log, run, task)
    if log.hashes is None or known is None:
        if doubtful:
            raise InputError(
                f"{log.path}: the doc_ids of {task} do not ascend, as after an unsorted --samples "
                "list, whose rows lm-evaluation-harness labels wrongly, and no full run is at hand "
                "to tell the right ones by hash: add one with --full-run, or evaluate again with an "
                "ascending list (disco export writes one)"
            )
        references.learn(task, log)
        return log, ()
    place = np.minimum(np.searchsorted(known.doc_ids, log.doc_ids), len(known.doc_ids) - 1)
    listed = known.doc_ids[place] == log.doc_ids
    differs = listed & (known.hashes[place] != log.hashes)
    if not differs.any() and (listed.all() or not doubtful):
        references.learn(task, log)
        return log, ()
    if covers_benchmark(run, task) or (run.limit is not None):
        row = int(np.flatnonzero(differs)[0])
        raise InputError(
            f"{log.path}: doc_id {log.doc_ids[row]} of {task} has another content than in "
            f"{known.path} (doc_hash {_short(log.hashes[row])} and {_short(known.hashes[place[row]])}; "
            f"{differs.sum()} of {len(differs)} rows differ): another version of the dataset; such "
            "runs cannot be compared"
        )
    return _repaired(log, task, known)


def _is_doubtful(log: SampleLog, run: Run, task: str) -> bool:
    """Whether the order of the rows allows that the numbers are wrong."""
    order = np.argsort(log.filters, kind="stable")
    steps = np.diff(log.doc_ids[order])
    within = log.filters[order][1:] == log.filters[order][:-1]
    if np.all(steps[within] > 0):
        return False
    config = run.configs.get(task)
    if config is not None and config.original is not None and config.effective:
        return config.effective < config.original and run.limit is None
    if config is not None and config.original is None:
        return False  # before 0.4.3 there was no --samples
    # Nothing tells whether these are all documents: several processes write 0, 3, 6, …, 1, 4, 7, …
    ids = np.unique(log.doc_ids)
    return bool(ids[-1] != len(ids) - 1)


def _repaired(log: SampleLog, task: str, known: Known) -> tuple[SampleLog, tuple[str, ...]]:
    assert log.hashes is not None  # noqa: S101  # the caller looked
    places: dict[bytes, list[int]] = {}
    for doc_id, digest in zip(known.doc_ids.tolist(), known.hashes.tolist(), strict=True):
        places.setdefault(digest, []).append(doc_id)
    used: set[tuple[str, int]] = set()
    doc_ids = []
    rows = zip(log.doc_ids.tolist(), log.hashes.tolist(), log.filters.tolist(), strict=True)
    for doc_id, digest, name in rows:
        candidates = places.get(digest)
        if candidates is None:
            raise InputError(
                f"{log.path}: doc_id {doc_id} of {task} is no document of {known.path} (doc_hash "
                f"{_short(digest)}): another version of the dataset, or not a full run"
            )
        free = [one for one in candidates if (name, one) not in used] or candidates
        right = doc_id if doc_id in free else free[0]
        used.add((name, right))
        doc_ids.append(right)
    repaired = np.array(doc_ids, dtype=np.int64)
    changed = int(np.sum(repaired != log.doc_ids))
    note = (
        f"{log.path}: {changed} of {len(repaired)} rows carried the doc_id of another document "
        f"(unsorted --samples); put right by hash after {known.path}"
    )
    return replace(log, doc_ids=repaired), (note,)


def _short(digest: bytes) -> str:
    return f"{digest[:10].decode()}…"
