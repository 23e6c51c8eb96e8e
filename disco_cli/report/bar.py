"""A progress bar on stderr, for a terminal."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from disco_cli.report.console import occupy_terminal

_ERASE_LINE_AND_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"


class Bar:
    """Shows one bar at a time and removes it when its work is done, or the program ends."""

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
        self._closed = False
        occupy_terminal(self.close)
        _leave_no_trace_when_terminated()

    def start(self, total: int, what: str) -> None:
        """Begin a bar of ``total`` steps; the one before disappears."""
        if self._closed:
            return
        if self._task is not None:
            self._rich.remove_task(self._task)
        self._task = self._rich.add_task(what, total=total)
        self._rich.start()

    def advance(self, steps: int = 1) -> None:
        """Move the bar; a finished one gives the terminal back."""
        if self._task is None or self._closed:
            return
        self._rich.advance(self._task, steps)
        if self._rich.finished:
            self._rich.stop()

    def close(self) -> None:
        """Give the terminal back for good: threads that still work draw nothing any more."""
        self._closed = True
        self._rich.stop()


def _leave_no_trace_when_terminated() -> None:
    """Let SIGTERM end the program as ever, but not with the cursor hidden.

    The bar's own lock may be held at that moment, so the terminal is told directly.
    """
    process = os.getpid()

    def end(number: int, _frame: Any) -> None:
        if os.getpid() == process:  # a forked worker draws nothing
            with suppress(OSError, ValueError):
                os.write(sys.__stderr__.fileno(), _ERASE_LINE_AND_SHOW_CURSOR)  # type: ignore[union-attr]
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    # Whoever handles the signal already, or runs the program in a thread, is left alone.
    with suppress(ValueError):
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, end)
