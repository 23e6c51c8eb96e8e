"""What to take of a log; light, since every command makes one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ImportOptions:
    """What to take of a log; empty means "there must be no choice to make".

    Attributes
    ----------
    tasks : tuple of str
        Tasks or groups to import; all without it.
    metrics, filters : tuple of str
        The first of these that a task has is taken.
    model : str, optional
        Name to use instead of the one in the log.
    partial : bool
        Import logs that lack samples, and say so, instead of refusing them.
    full_runs : tuple of str
        Logs that tell which hash belongs to which document, used to put wrong ids right; they are
        not imported themselves.
    """

    tasks: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    model: str | None = None
    partial: bool = False
    full_runs: tuple[str, ...] = ()
