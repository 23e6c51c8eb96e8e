"""Where words go: data on stdout, everything for the person on stderr."""

from __future__ import annotations

import codecs
import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TextIO

_NEXT = "next: "
_running: list[Callable[[], None]] = []


def say(text: str) -> None:
    """Print a message for the person as one line on stderr, wrapped at words on a terminal.

    A name from a file may hold line breaks or codes that command a terminal; they are replaced.
    Nobody has to read the messages: a command does not fail because stderr is full or closed.
    """
    free_terminal()
    with suppress(OSError):
        sys.stderr.write(_wrapped(printable(text), sys.stderr) + "\n")
        sys.stderr.flush()


def printable(text: str) -> str:
    """Return a text without line breaks, and with control codes and stray bytes spelt out."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else " " if c.isspace() else c.encode("unicode_escape").decode()
        for c in text
    )


def say_all(lines: Iterable[str], *, quiet: bool) -> None:
    """Print messages on stderr unless ``--quiet``."""
    free_terminal()
    if not quiet:
        for line in lines:
            say(line)


def put(text: str, *, end: str = "\n") -> None:
    """Print a line on stdout; what the stream cannot encode is spelt out."""
    sys.stdout.write(f"{text}{end}")


def put_json(data: object) -> None:
    """Print one JSON object on one line of stdout; NaN is refused."""
    put(json_line(data, sys.stdout.encoding))


def json_line(data: object, encoding: str | None = "utf-8") -> str:
    """Return JSON on one line that is valid in whatever is written with this encoding.

    Numbers have all digits, and NaN and infinity, which JSON does not have, become null.
    """
    text = json.dumps(_finite(data), ensure_ascii=False, allow_nan=False)
    return as_valid_json(text, encoding)


def _finite(data: object) -> object:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return data


def as_valid_json(text: str, encoding: str | None = "utf-8") -> str:
    """Return a JSON text with escapes for what may not stand in it as it is.

    In UTF-8 these are the bytes of a name that are no text; elsewhere all that is not ASCII.
    """
    is_unicode = codecs.lookup(encoding or "ascii").name == "utf-8"
    # Such characters stand inside of strings only, where an escape means the same.
    special = r"[\ud800-\udfff]" if is_unicode else r"[^\x00-\x7f]"
    return re.sub(special, lambda found: json.dumps(found[0])[1:-1], text)


def occupy_terminal(release: Callable[[], None]) -> None:
    """Remember how to end what is drawn on the terminal, before anything else is printed there."""
    _running.append(release)


def free_terminal() -> None:
    """End whatever is drawn on the terminal, so that it leaves no trace and the cursor shows."""
    while _running:
        _running.pop()()


def _wrapped(text: str, stream: TextIO) -> str:
    """Break a message for a terminal at words; a command to be copied stays whole."""
    if not stream.isatty() or text.startswith(_NEXT):
        return text
    return textwrap.fill(
        text,
        _width(stream),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _width(stream: TextIO) -> int:
    """Return the columns of the terminal that a stream is, which stdout need not be."""
    with suppress(KeyError, ValueError):
        return max(int(os.environ["COLUMNS"]), 20)
    with suppress(OSError, ValueError):
        return max(os.get_terminal_size(stream.fileno()).columns, 20)
    return 80
