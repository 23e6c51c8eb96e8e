"""The coverage that intervals are asked for; apart, so that ``predict`` loads no selection method."""

from __future__ import annotations

from disco_cli.errors import UsageError


def check_level(level: float) -> None:
    """Refuse a level that no interval can have.

    Raises
    ------
    UsageError
        It is not between 0 and 1.
    """
    if not 0 < level < 1:
        advice = f"did you mean {level / 100:g}?" if 1 < level < 100 else "such as 0.9"
        raise UsageError(f"--level {level:g}: choose a level above 0 and below 1; {advice}")
