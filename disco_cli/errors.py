"""One small tree of errors; each knows the exit code of the command it ends.

The library raises these and never exits the process. ``cli.main`` prints the message as one line
on stderr and exits with ``exit_code``. Messages name the file, row or key, say what was found, and
say what would help.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_BUG = 1
EXIT_USAGE = 2
EXIT_BAD_INPUT = 3
EXIT_INCOMPATIBLE = 4
EXIT_GATE = 5
EXIT_INTERRUPTED = 130


class DiscoError(Exception):
    """Base class of every error that a user can cause or mend.

    Parameters
    ----------
    *messages : str
        What is wrong, a message for each thing that is; each becomes a line of its own.
    """

    exit_code = EXIT_BUG

    def __init__(self, *messages: str) -> None:
        super().__init__(*messages)
        self.messages = messages

    def __str__(self) -> str:
        return "; ".join(self.messages)


class UsageError(DiscoError):
    """Options that cannot be carried out together or at all."""

    exit_code = EXIT_USAGE


class InputError(DiscoError):
    """A file that cannot be read, or that holds something unusable."""

    exit_code = EXIT_BAD_INPUT


class OutputError(DiscoError):
    """A result that cannot be written: read-only folder, full disk, a foreign file in the way."""

    exit_code = EXIT_BAD_INPUT


class ClusterError(DiscoError):
    """A Dask cluster that cannot be reached, was lost, or runs other versions."""

    exit_code = EXIT_BAD_INPUT


class ArtifactError(DiscoError):
    """An artifact that is damaged, or artifacts that do not fit together."""

    exit_code = EXIT_INCOMPATIBLE


class GateError(DiscoError):
    """A quality gate (``--fail-under``, ``--max-width``, ``--fail-on``) that was not met."""

    exit_code = EXIT_GATE
