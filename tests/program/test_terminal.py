"""What a person at a terminal of 80 columns sees: wrapped messages, and a bar that leaves no trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from support import ROOT

pty = pytest.importorskip("pty")

SHOW, HIDE = b"\x1b[?25h", b"\x1b[?25l"


class Terminal:
    """A program whose stderr is a terminal of 80 columns."""

    def __init__(self, code: str) -> None:
        self.screen, theirs = pty.openpty()
        hidden = ("COLUMNS", "NO_COLOR", "FORCE_COLOR")
        environment = {k: v for k, v in os.environ.items() if k not in hidden}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment | {"PYTHONPATH": str(ROOT), "TERM": "xterm"},
            stdout=subprocess.DEVNULL,
            stderr=theirs,
        )
        os.close(theirs)
        self.text = b""

    def read_until(self, wanted: bytes | None) -> bytes:
        """Return all that was printed, up to what is wanted, or the end."""
        ends = time.monotonic() + 60
        while (wanted is None or wanted not in self.text) and time.monotonic() < ends:
            try:
                piece = os.read(self.screen, 1000)
            except OSError:  # the last writer has gone
                break
            if not piece:
                break
            self.text += piece
        return self.text

    def end(self) -> tuple[int, bytes]:
        """Return the exit code and all that was printed."""
        self.read_until(None)
        os.close(self.screen)
        return self.process.wait(timeout=60), self.text


WORK = """
import sys, time, typer
from disco_cli import cli
from disco_cli.errors import InputError
from disco_cli.commands.support import watch

def work():
    bar = watch(quiet=False)
    bar.start(100, "working")
    if END == "error":
        raise InputError("one thing", "another thing")
    time.sleep(60)

cli.DiscoGroup.get_command = lambda self, ctx, name: typer.main.get_command(app)
from disco_cli.commands.support import command
app = command(work)
sys.argv = ["disco", "score"]
cli.main()
"""


@pytest.mark.parametrize(
    ("end", "code", "last"),
    [
        ("error", 3, b"error: one thing\r\nerror: another thing\r\n"),
        (signal.SIGINT, 130, b"interrupted\r\n"),
        (signal.SIGTERM, -signal.SIGTERM, b""),
    ],
)
def test_a_bar_is_gone_and_the_cursor_back_before_the_last_words(end, code, last) -> None:
    terminal = Terminal(f"END = {str(end)!r}\n{WORK}")
    if end != "error":
        assert b"working" in terminal.read_until(b"working")
        terminal.process.send_signal(end)
    found, text = terminal.end()
    assert found == code
    assert text.count(HIDE) == text.count(SHOW) == 1
    before, after = text.split(SHOW)
    assert b"\x1b[2K" in before[-8:] + after  # the line of the bar is erased
    assert after.endswith(last)
    assert b"working" not in after


def test_messages_are_wrapped_at_words() -> None:
    message = " ".join(["word"] * 40)
    code = (
        f"from disco_cli.report.console import say\nsay({message!r})\nsay('next: ' + {message!r})"
    )
    _, text = Terminal(code).end()
    lines = text.decode().splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert {word for line in lines[:-1] for word in line.split()} == {"word"}
    assert lines[1].startswith("  word")
    assert lines[-1] == f"next: {message}"  # to be copied
