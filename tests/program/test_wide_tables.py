"""Tables on terminals: nothing is squeezed, wide ones come in parts."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from disco_cli.report.tables import print_rows


class Terminal(io.StringIO):
    """Text that somebody watches."""

    def isatty(self) -> bool:
        return True


def shown(columns: tuple[str, ...], rows: list[tuple[Any, ...]], n_keys: int = 1) -> list[str]:
    """Return the lines of a table on a narrow terminal."""
    terminal = Terminal()
    print_rows(columns, rows, stream=terminal, n_keys=n_keys)
    return [line.rstrip() for line in re.sub(r"\x1b\[\d*m", "", terminal.getvalue()).splitlines()]


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")


def test_a_table_that_fits_is_whole() -> None:
    assert shown(("model", "estimate"), [("a", 0.5), ("b", None)]) == [
        "model  estimate",
        "a        0.5000",
        "b             -",
    ]


def test_a_wide_table_comes_in_parts_led_by_the_keys() -> None:
    rows = [(30, 3, 0.5, 0.25, 1.0)]
    assert shown(("k", "m", "error", "width", "worst"), rows, n_keys=2) == [
        " k  m   error",
        "30  3  0.5000",
        "",
        " k  m   width",
        "30  3  0.2500",
        "",
        " k  m   worst",
        "30  3  1.0000",
    ]


def test_later_parts_hold_the_rows_that_have_values_there() -> None:
    rows = [("m", "(all)", 0.5, 9, None), ("m", "easy", 0.75, None, None)]
    assert shown(("model", "group", "error", "used", "x"), rows, n_keys=2) == [
        "model  group   error",
        "m      (all)  0.5000",
        "m      easy   0.7500",
        "",
        "model  group  used",
        "m      (all)     9",
    ]


def test_long_text_folds_and_mixed_values_stand_left() -> None:
    assert shown(("model", "x"), [("ids", "abcdefghijklmnopqrstuvwxyz"), ("n", 3)]) == [
        "model  x",
        "ids    abcdefghijklm",
        "       nopqrstuvwxyz",
        "n      3",
    ]


def test_truth_values_are_words() -> None:
    assert shown(("scores", "s"), [("groups", True), ("ties", False)])[1:] == [
        "groups  yes",
        "ties    no",
    ]
