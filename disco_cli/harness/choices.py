"""What to take of a log; light, since every command makes one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from disco_cli.errors import UsageError


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


@dataclass(frozen=True)
class Missing:
    """One choice that was not made.

    Attributes
    ----------
    path, task : str
        Where.
    what : str
        Name of the option, such as ``metric``.
    available, wanted : tuple of str
        What there is, and what the user asked for.
    """

    path: str
    task: str
    what: str
    available: tuple[str, ...]
    wanted: tuple[str, ...]


class ChoiceError(UsageError):
    """Metrics or filters that have to be chosen, of one task or of many."""

    def __init__(self, missing: Sequence[Missing]) -> None:
        self.missing = tuple(missing)
        super().__init__(_explain(self.missing))


class Choices:
    """Goes on after a missing choice, so that one error can name all of them."""

    def __init__(self) -> None:
        self._missing: list[Missing] = []

    @contextmanager
    def each(self) -> Iterator[None]:
        """Note a missing choice inside the block and end the block."""
        try:
            yield
        except ChoiceError as error:
            self._missing += error.missing

    def check(self) -> None:
        """Refuse to go on if choices are missing.

        Raises
        ------
        ChoiceError
            It names every task that lacks one.
        """
        if self._missing:
            raise ChoiceError(self._missing)


def choose_one(
    available: Sequence[str], wanted: Sequence[str], what: str, path: object, task: str
) -> str:
    """Return the first of ``wanted`` that is available, or the only one there is.

    Parameters
    ----------
    available, wanted : sequence of str
        What there is, and what the user asked for.
    what : str
        Name of the option, such as ``metric``.
    path, task : path and str
        File and task, for the message.

    Raises
    ------
    ChoiceError
        If there are several and none was asked for, or none of those asked for is there.
    """
    for name in wanted:
        if name in available:
            return name
    if len(available) == 1 and not wanted:
        return available[0]
    raise ChoiceError([Missing(str(path), task, what, tuple(available), tuple(wanted))])


def _explain(missing: Sequence[Missing]) -> str:
    """Return one line: tasks of the same choice together, and of a task's files the first."""
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], dict[str, list[str]]] = {}
    for one in missing:
        tasks = alike.setdefault((one.what, one.available, one.wanted), {})
        tasks.setdefault(one.task, []).append(one.path)
    parts = []
    several = {what for what, _, wanted in alike if wanted}
    for (what, available, wanted), tasks in alike.items():
        where = ", ".join(
            f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}: {task}"
            for task, paths in tasks.items()
        )
        verb = "has" if len(tasks) == 1 else "have"
        problem = f"no {what} {' or '.join(wanted)}" if wanted else f"several {what}s"
        parts.append(f"{where} {verb} {problem}: choose with --{what} from {', '.join(available)}")
    kinds = [what for what, _, _ in alike]
    several |= {what for what in kinds if kinds.count(what) > 1}
    hints = [
        f"; give several --{what}, and each task takes the first it has"
        for what in dict.fromkeys(kinds)
        if what in several
    ]
    return "; ".join(parts) + "".join(hints)
