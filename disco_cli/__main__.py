"""``python -m disco_cli`` is ``disco``."""

from disco_cli.cli import main

if __name__ == "__main__":
    main()
