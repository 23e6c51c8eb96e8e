"""Run the program: the command ``disco``, and ``python -m disco_cli``."""

import _thread
import atexit
import gc
import sys
import time


def main() -> None:
    """Import and run the command line; Ctrl-C ends the import of it as quietly as its work."""
    _collect_seldom()
    sys.unraisablehook = _repeat_interruption
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


def _repeat_interruption(unraisable: "sys.UnraisableHookArgs") -> None:
    """Interrupt once more where Ctrl-C fell into a callback of the interpreter, which drops it."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt_soon, ())  # now it would be dropped once more
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt_soon() -> None:
    time.sleep(0.01)
    _thread.interrupt_main()


if __name__ == "__main__":
    main()
