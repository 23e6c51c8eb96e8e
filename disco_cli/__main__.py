"""Run the program: the command ``disco``, and ``python -m disco_cli``."""

import sys


def main() -> None:
    """Import and run the command line; Ctrl-C ends the import of it as quietly as its work."""
    try:
        from disco_cli.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
