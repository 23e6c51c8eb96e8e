"""How long work tells of its progress; the command line decides whether anybody sees it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receiver of progress; calls may come from several threads."""

    def start(self, total: int, what: str) -> None:
        """Begin a piece of work of ``total`` steps, called ``what``; ends the one before."""

    def advance(self, steps: int = 1) -> None:
        """Report that ``steps`` more of the steps are done."""


class Silent:
    """Progress that nobody watches."""

    def start(self, total: int, what: str) -> None:
        """Do nothing."""

    def advance(self, steps: int = 1) -> None:
        """Do nothing."""


SILENT: Progress = Silent()
