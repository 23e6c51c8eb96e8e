"""Run the program: the command ``disco``, and ``python -m disco_cli``."""

import atexit
import gc
import sys


def main() -> None:
    """Import and run the command line; Ctrl-C ends the import of it as quietly as its work."""
    _collect_seldom()
    try:
        from disco_cli.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


def _collect_seldom() -> None:
    """Look for garbage less often, and not at the end, when the system takes it all.

    What a command imports stays, and to look through it again and again, and at exit once more, took
    an eighth of the time of a short command.
    """
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)


if __name__ == "__main__":
    main()
