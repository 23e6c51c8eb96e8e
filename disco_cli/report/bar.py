"""A progress bar on stderr, for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class Bar:
    """Shows one bar at a time and removes it when its work is done."""

    def __init__(self) -> None:
        self._rich = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task: TaskID | None = None

    def start(self, total: int, what: str) -> None:
        """Begin a bar of ``total`` steps; the one before disappears."""
        if self._task is not None:
            self._rich.remove_task(self._task)
        self._task = self._rich.add_task(what, total=total)
        self._rich.start()

    def advance(self, steps: int = 1) -> None:
        """Move the bar; a finished one gives the terminal back."""
        if self._task is None:
            return
        self._rich.advance(self._task, steps)
        if self._rich.finished:
            self._rich.stop()
