r"""Read JSON as other tools really write it, one record at a time.

Logs reach gigabytes, hold bare ``NaN`` and ``-Infinity``, start with a byte order mark, end in the
middle of a record, or put one indented array into a file called ``.jsonl``. Lines are split on
``\\n`` alone: question texts hold U+2028 and U+0085, at which ``str.splitlines`` would cut.
"""

from __future__ import annotations

import gzip
import json
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from disco_cli.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHUNK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_WHITESPACE = " \t\r\n"
_NEAR_END = 16
"""A parse error this close to the end of the buffer may be a literal that was cut by the buffer."""


@dataclass
class StreamReport:
    """What reading a file brought to light besides its records.

    Attributes
    ----------
    cut_off : str or None
        Where the file breaks off inside a record, or ``None`` if it is whole.
    encoding : str
        ``utf-8``, or ``cp1252`` for logs written with the encoding of a Windows machine.
    may_be_windows : bool
        Whether the tool at hand has written such logs.
    """

    cut_off: str | None = None
    encoding: str = "utf-8"
    may_be_windows: bool = False
    _seen_utf8: bool = field(default=False, repr=False)

    def decode(self, raw: bytes, where: str) -> str:
        """Turn bytes into text, falling back to Windows-1252 only where UTF-8 never worked."""
        if raw.isascii():
            return raw.decode("ascii")
        try:
            text = raw.decode(self.encoding)
        except UnicodeDecodeError:
            if self._seen_utf8 or self.encoding != "utf-8" or not self.may_be_windows:
                raise InputError(f"{where}: bytes that are not {self.encoding}: damaged") from None
            self.encoding = "cp1252"
            return self.decode(raw, where)
        self._seen_utf8 = self._seen_utf8 or self.encoding == "utf-8"
        return text


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or gzipped file for reading bytes; gzip is told by its content."""
    try:
        plain = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    with plain:
        try:
            zipped = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            if zipped:
                with gzip.GzipFile(fileobj=plain) as unzipped:
                    yield unzipped  # type: ignore[misc]  # GzipFile is an IO[bytes] in all but name
            else:
                yield plain
        except OSError as error:
            if isinstance(error, gzip.BadGzipFile):
                raise InputError(f"{path}: damaged gzip file: {error}") from None
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        except zlib.error as error:
            raise InputError(f"{path}: damaged gzip file: {error}") from None


def starts_with(path: Path) -> str:
    """Return the first character of a JSON file that is not white space ('' for an empty file)."""
    with open_bytes(path) as stream:
        try:
            head = stream.read(4096).removeprefix(_BOM).lstrip()
        except EOFError:
            return ""
    return chr(head[0]) if head else ""


def read_records(path: Path, report: StreamReport) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ``(place, record)`` of a file of JSON lines or of one JSON array of objects.

    A record that the end of the file cuts off is left out and told in ``report.cut_off``; one that
    is damaged anywhere else is an error, since nobody can say what it was.

    Parameters
    ----------
    path : Path
        Plain or gzipped file.
    report : StreamReport
        Filled while reading.

    Raises
    ------
    InputError
        If the file is unreadable, damaged, or holds something other than objects.
    """
    source = _array(path, report) if starts_with(path) == "[" else _lines(path, report)
    for place, record in source:
        if not isinstance(record, dict):
            raise InputError(f"{place}: expected an object, found {type(record).__name__}")
        yield place, record


def _lines(path: Path, report: StreamReport) -> Iterator[tuple[str, Any]]:
    with open_bytes(path) as stream:
        number = 0
        while True:
            number += 1
            place = f"{path}: line {number}"
            try:
                raw = stream.readline()
            except EOFError:  # the compressed stream ends too early
                report.cut_off = place
                return
            if not raw:
                return
            line = raw.removeprefix(_BOM) if number == 1 else raw
            if not line.strip():
                continue
            try:
                record = json.loads(report.decode(line, place))
            except (ValueError, RecursionError, InputError) as error:
                if not line.endswith(b"\n"):
                    report.cut_off = place
                    return
                if isinstance(error, InputError):
                    raise
                raise InputError(f"{place}: not valid JSON: {error}; the file is damaged") from None
            yield place, record


class JsonText:
    """A window on the text of one JSON document that grows as the parser asks for more."""

    def __init__(self, stream: IO[bytes], path: Path, report: StreamReport) -> None:
        self._stream = stream
        self._path = path
        self._report = report
        self._decoder = json.JSONDecoder()
        self._buffer = ""
        self._position = 0
        self._ended = False
        self._undecoded = b""
        self._first = True

    def peek(self) -> str:
        """Return the next character that is not white space, '' at the end."""
        while True:
            while self._position < len(self._buffer):
                character = self._buffer[self._position]
                if character not in _WHITESPACE:
                    return character
                self._position += 1
            if not self._fill(_CHUNK):
                return ""

    def take(self, expected: str, where: str) -> bool:
        """Consume ``expected``; ``False`` at the end of the file, an error on anything else."""
        found = self.peek()
        if found == "":
            return False
        if found != expected:
            raise InputError(f"{where}: expected {expected!r}, found {found!r}; damaged JSON")
        self._position += 1
        return True

    def value(self, where: str) -> tuple[bool, Any]:
        """Parse one value; ``(False, None)`` if the file ends inside it."""
        if self.peek() == "":
            return False, None
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._position)
            except json.JSONDecodeError as error:
                if not self._may_be_incomplete(error):
                    raise InputError(f"{where}: not valid JSON: {error}; damaged") from None
                # Doubling the window keeps repeated attempts at a large value linear in its size.
                if not self._fill(max(_CHUNK, len(self._buffer) - self._position)):
                    return False, None
                continue
            except RecursionError:
                raise InputError(f"{where}: nested too deeply to be a log") from None
            if end == len(self._buffer) and self._fill(_CHUNK):
                continue  # a number may go on in the next chunk
            self._position = end
            return True, value

    def _may_be_incomplete(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated") or error.pos >= len(self._buffer) - _NEAR_END

    def _fill(self, size: int) -> bool:
        """Drop what was parsed and read about ``size`` more bytes; ``False`` at the end."""
        if self._ended:
            return False
        try:
            raw = self._stream.read(size)
        except EOFError:
            raw = b""
        if self._first:
            raw = raw.removeprefix(_BOM)
            self._first = False
        self._ended = not raw
        raw = self._undecoded + raw
        # Never decode half a character: hold back an unfinished UTF-8 sequence.
        keep = 0 if self._ended else _unfinished(raw)
        self._undecoded = raw[len(raw) - keep :]
        text = self._report.decode(raw[: len(raw) - keep], str(self._path))
        self._buffer = self._buffer[self._position :] + text
        self._position = 0
        return bool(text) or not self._ended


def _unfinished(raw: bytes) -> int:
    """Return how many bytes at the end of ``raw`` begin a UTF-8 character without ending it."""
    for back in range(1, min(4, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if length > back else 0
        if byte < 0x80:
            return 0
    return 0


def _elements(text: JsonText, where: str, report: StreamReport) -> Iterator[tuple[str, Any]]:
    """Yield the elements of the array that starts here."""
    text.take("[", where)
    number = 0
    if text.peek() == "]":
        text.take("]", where)
        return
    while True:
        number += 1
        place = f"{where}: entry {number}"
        whole, value = text.value(place)
        if not whole:
            report.cut_off = place
            return
        yield place, value
        following = text.peek()
        if following == "]":
            text.take("]", place)
            return
        if not text.take(",", place):
            report.cut_off = f"{where}: after entry {number}"
            return


def _array(path: Path, report: StreamReport) -> Iterator[tuple[str, Any]]:
    with open_bytes(path) as stream:
        text = JsonText(stream, path, report)
        yield from _elements(text, str(path), report)
        if report.cut_off is None and text.peek():
            raise InputError(f"{path}: something follows the end of the JSON array; damaged")


def read_members(
    stream: IO[bytes], path: Path, report: StreamReport, *, streamed: frozenset[str]
) -> Iterator[tuple[str, str, Any]]:
    """Yield ``(key, place, value)`` of one JSON object; arrays under ``streamed`` element by element.

    Parameters
    ----------
    stream : binary stream
        The document's bytes.
    path : Path
        For messages.
    report : StreamReport
        ``cut_off`` is set if the document breaks off.
    streamed : frozenset of str
        Keys whose arrays are yielded one element at a time under the same key.
    """
    text = JsonText(stream, path, report)
    if not text.take("{", str(path)):
        raise InputError(f"{path}: the file is empty")
    if text.peek() == "}":
        return
    while True:
        whole, key = text.value(str(path))
        if not whole or not text.take(":", str(path)):
            report.cut_off = report.cut_off or f"{path}: inside the object"
            return
        if not isinstance(key, str):
            raise InputError(f"{path}: expected a key, found {key!r}; damaged JSON")
        place = f"{path}: {key!r}"
        if key in streamed and text.peek() == "[":
            for where, element in _elements(text, place, report):
                yield key, where, element
            if report.cut_off is not None:
                return
        else:
            whole, value = text.value(place)
            if not whole:
                report.cut_off = place
                return
            yield key, place, value
        if text.peek() == "}":
            return
        if not text.take(",", place):
            report.cut_off = f"{path}: after {key!r}"
            return


def read_object(path: Path) -> dict[str, Any]:
    """Read a whole small JSON file that holds one object (``NaN`` tolerated).

    Raises
    ------
    InputError
        If the file is unreadable, damaged or holds something else.
    """
    report = StreamReport(may_be_windows=True)
    with open_bytes(path) as stream:
        try:
            raw = stream.read()
        except EOFError:
            raise InputError(f"{path}: damaged gzip file: it ends too early") from None
    try:
        found = json.loads(report.decode(raw.removeprefix(_BOM), str(path)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected an object, found {type(found).__name__}")
    return found
