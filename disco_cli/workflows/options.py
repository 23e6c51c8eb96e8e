"""Choices that several workflows share."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from disco_cli.errors import UsageError
from disco_cli.selection.choose import Method

E = TypeVar("E", bound=Enum)


MAX_SEED = (1 << 32) - 1
"""The largest seed that scikit-learn takes."""


class Recipe(str, Enum):
    """How samples are chosen and scores estimated, as a whole."""

    AUTO = "auto"
    DISCO = "disco"

    @property
    def method(self) -> Method:
        """The selection method of the recipe."""
        return Method.AUTO if self is Recipe.AUTO else Method.PDS


def member(kind: type[E], value: object, option: str) -> E | None:
    """Return the member of this value, so that texts serve as well as members; ``None`` stays.

    Raises
    ------
    UsageError
        There is no such member.
    """
    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(str(entry.value) for entry in kind)
        raise UsageError(f"{option} {value}: choose one of {known}") from None


def check_seed(seed: int) -> None:
    """Refuse a seed that not every part can use.

    Raises
    ------
    UsageError
        It is negative or too large.
    """
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"--seed {seed}: choose 0 to {MAX_SEED}")
