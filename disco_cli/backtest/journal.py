"""The rows of a backtest on disk: resumable, and equal byte for byte however often interrupted.

Three files stand side by side:

* ``backtest.jsonl``: one line per finished cell, in cell order. A line is written once all cells
  before it are, so a file cut off anywhere is a prefix of the finished one. A last line that was
  cut off itself is dropped.
* ``backtest.pending.jsonl``: cells that finished before their turn. It is read when the backtest
  is started again and removed at the end.
* ``backtest.seconds.jsonl``: how long each cell took, in the order in which they finished. Times
  differ from run to run, so they stay out of the rows.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, Any

from disco_cli.errors import ArtifactError, OutputError


class Journal:
    """Rows already there, and a place for new ones; use it as a context manager.

    Parameters
    ----------
    path : Path
        ``backtest.jsonl``.
    run_id : str
        What all rows must share.
    force : bool
        Drop rows of another backtest instead of refusing.

    Attributes
    ----------
    rows : dict of str to dict
        Finished rows by the key of their cell.
    """

    def __init__(self, path: Path, run_id: str, *, force: bool = False) -> None:
        self.path = path
        self._run_id = run_id
        self._pending_path = path.with_name(f"{path.stem}.pending.jsonl")
        self._seconds_path = seconds_path(path)
        self.rows: dict[str, dict[str, Any]] = {}
        self._ahead: dict[str, str] = {}
        self._files: list[IO[bytes]] = []
        if force and not self._is_ours():
            for each in (path, self._pending_path, self._seconds_path):
                each.unlink(missing_ok=True)

    def __enter__(self) -> Journal:  # noqa: PYI034  (typing.Self needs Python 3.11)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for row in read_rows(self.path, self._run_id):
                self.rows[_key(row)] = row
            for row in read_rows(self._pending_path, self._run_id):
                if _key(row) not in self.rows:
                    self._ahead[_key(row)] = _line(row)
            _drop_cut_off_line(self._seconds_path)
            paths = (self.path, self._pending_path, self._seconds_path)
            self._files = [path.open("ab") for path in paths]
        except OSError as error:
            raise OutputError(f"{self.path}: cannot write the rows: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    @property
    def done(self) -> set[str]:
        """Keys of the cells that need not run again."""
        return self.rows.keys() | self._ahead.keys()

    def add(self, row: dict[str, Any], seconds: float) -> None:
        """Keep a finished row safe; it goes to its place with the next :meth:`advance`."""
        key, line = _key(row), _line(row)
        self._ahead[key] = line
        _append(self._files[1], line)
        _append(self._files[2], json.dumps({"cell": key, "seconds": round(seconds, 6)}) + "\n")

    def advance(self, keys: list[str], turn: int) -> int:
        """Write the rows whose turn it is; return whose turn it is then.

        Parameters
        ----------
        keys : list of str
            Keys of all cells in their order.
        turn : int
            Number of the first cell that is not known to be written.
        """
        while turn < len(keys):
            key = keys[turn]
            if key in self._ahead:
                line = self._ahead.pop(key)
                _append(self._files[0], line)
                self.rows[key] = json.loads(line)
            elif key not in self.rows:
                break
            turn += 1
        return turn

    def finish(self) -> None:
        """Flush the rows to the disk and remove the file of pending ones, if none is left."""
        os.fsync(self._files[0].fileno())
        if not self._ahead:
            self._files[1].close()
            self._pending_path.unlink(missing_ok=True)

    def _is_ours(self) -> bool:
        try:
            read_rows(self.path, self._run_id)
            read_rows(self._pending_path, self._run_id)
        except (ArtifactError, OSError):
            return False
        return True


def seconds_path(path: Path) -> Path:
    """Return where the times of the rows in ``path`` are."""
    return path.with_name(f"{path.stem}.seconds.jsonl")


def read_rows(path: Path, run_id: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a file; a last line that was cut off is removed from it.

    Parameters
    ----------
    path : Path
        Need not exist.
    run_id : str, optional
        What every row must carry.

    Raises
    ------
    ArtifactError
        If a line is no row, or a row is of another backtest.
    """
    if not path.exists():
        return []
    _drop_cut_off_line(path)
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            row = json.loads(line)
            found = row["run"]
            _key(row)
        except (ValueError, KeyError, TypeError) as error:
            raise ArtifactError(
                f"{path}: line {number} is not a row of a backtest; name another file with -o"
            ) from error
        if run_id is not None and found != run_id:
            raise ArtifactError(
                f"{path}: line {number} is of a backtest on other data, with another split or "
                "level, or of another version; --force starts anew, -o names another file"
            )
        rows.append(row)
    return rows


def read_seconds(path: Path) -> dict[str, float]:
    """Return the seconds of each cell by its key, the last time if it ran more than once."""
    if not path.exists():
        return {}
    lines = path.read_bytes().splitlines()
    return {entry["cell"]: entry["seconds"] for entry in map(json.loads, lines)}


def _key(row: dict[str, Any]) -> str:
    return f"{row['split']}/{row['repeat']}/{row['fold']}/{row['k']}/{row['method']}"


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _append(file: IO[bytes], line: str) -> None:
    # One write and flush per line: a killed process leaves whole lines and at most one part.
    file.write(line.encode())
    file.flush()


def _drop_cut_off_line(path: Path) -> None:
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
