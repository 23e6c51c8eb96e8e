"""Read the pickle of a random forest without running anything that it asks for.

A pickle is a program for a small stack machine. This module interprets it by itself and knows only
the instructions that plain data, numpy arrays and scikit-learn's forests need; what a name or a
call stands for is up to :mod:`disco_cli.estimation.inert`.

Python's own ``pickle.Unpickler`` with a strict ``find_class`` runs nothing either, but it
allocates whatever sizes a damaged file names, a memo of 2³² entries for one, and a file of a few
kilobytes can make it recurse until the interpreter dies.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from disco_cli.errors import ArtifactError
from disco_cli.estimation import inert

MAX_BYTES = 1 << 28
"""Largest file that is read: 256 MiB, a hundred trees of some 30,000 reference models."""

_MAX_INSTRUCTIONS = 2_000_000
"""A forest of 100 trees takes 13,000. One byte of instruction may cost a hundred in memory."""


def read_pickle(data: bytes, source: str) -> Any:
    """Interpret a pickle of plain data, numpy arrays and scikit-learn trees.

    Parameters
    ----------
    data : bytes
        The whole file, in pickle protocol 3, 4 or 5.
    source : str
        Name of the file, for messages.

    Returns
    -------
    Any
        Plain values, and the stand-ins of :mod:`disco_cli.estimation.inert`.

    Raises
    ------
    ArtifactError
        If anything else is in the file, or it is damaged or too large.
    """
    if len(data) > MAX_BYTES:
        raise ArtifactError(f"{source}: {len(data):,} bytes; up to {MAX_BYTES:,} are read")
    machine = _Machine(data)
    try:
        return machine.run()
    except inert.RefusedError as refusal:
        raise ArtifactError(f"{source}: refused, and nothing in it was run: {refusal}") from None
    except (IndexError, KeyError, TypeError, ValueError, struct.error):
        raise ArtifactError(
            f"{source}: damaged near byte {machine.position:,} of {len(data):,}; "
            "build the database again"
        ) from None


class _Machine:
    """The stack machine of one pickle.

    ``stack`` is what lies above the last mark, ``below`` the stacks under each mark.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Carry out the instructions up to the end of the file and return what they made."""
        for _ in range(_MAX_INSTRUCTIONS):
            code = self.data[self.position]
            self.position += 1
            if code == _STOP:
                break
            instruction = _INSTRUCTIONS.get(code)
            if instruction is None:
                where = f"byte {self.position - 1:,}"
                raise inert.RefusedError(
                    f"instruction {code:#04x} at {where} has no place in a forest"
                )
            instruction(self)
        else:
            raise inert.RefusedError(f"more than {_MAX_INSTRUCTIONS:,} instructions")
        if self.position != len(self.data) or len(self.stack) != 1 or self.below:
            raise ValueError
        return self.stack[0]

    def take(self, length: int) -> bytes:
        """Return the next bytes; never allocates more than the file holds."""
        end = self.position + length
        if end > len(self.data):
            raise ValueError
        chunk = self.data[self.position : end]
        self.position = end
        return chunk

    def number(self, layout: struct.Struct) -> Any:
        """Return the next number of a fixed width."""
        (value,) = layout.unpack_from(self.data, self.position)
        self.position += layout.size
        return value

    def line(self) -> str:
        """Return the text up to the next line feed."""
        end = self.data.index(b"\n", self.position)
        text = self.take(end - self.position).decode()
        self.position += 1
        return text

    def pop_to_mark(self) -> list[Any]:
        """Return what lies above the last mark, and drop the mark."""
        items, self.stack = self.stack, self.below.pop()
        return items


_UINT8 = struct.Struct("<B")
_UINT16 = struct.Struct("<H")
_INT32 = struct.Struct("<i")
_UINT32 = struct.Struct("<I")
_UINT64 = struct.Struct("<Q")
_FLOAT64 = struct.Struct(">d")


def _protocol(machine: _Machine) -> None:
    number = machine.number(_UINT8)
    if not 3 <= number <= 5:  # older ones write bytes as a call of a codec
        raise inert.RefusedError(f"pickle protocol {number}; 3, 4 and 5 are read")


def _constant(value: Any) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(value)


def _numeral(layout: struct.Struct) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.number(layout))


def _integer(machine: _Machine) -> None:
    content = machine.take(machine.number(_UINT8))
    machine.stack.append(int.from_bytes(content, "little", signed=True))


def _text(length: struct.Struct) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.take(machine.number(length)).decode())


def _bytes(length: struct.Struct) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.take(machine.number(length)))


def _mark(machine: _Machine) -> None:
    machine.below.append(machine.stack)
    machine.stack = []


def _new_list(machine: _Machine) -> None:
    machine.stack.append([])


def _append(machine: _Machine) -> None:
    _extend_top(machine, [machine.stack.pop()])


def _appends(machine: _Machine) -> None:
    _extend_top(machine, machine.pop_to_mark())


def _extend_top(machine: _Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if type(target) is not list:
        raise ValueError
    target.extend(items)


def _new_dict(machine: _Machine) -> None:
    machine.stack.append({})


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _update_top(machine, [key, value])


def _set_items(machine: _Machine) -> None:
    _update_top(machine, machine.pop_to_mark())


def _update_top(machine: _Machine, items: list[Any]) -> None:
    # Text keys only: hashing a deeply nested tuple would overflow the interpreter's own stack.
    target, keys = machine.stack[-1], items[::2]
    if type(target) is not dict or any(type(key) is not str for key in keys):
        raise ValueError
    target.update(zip(keys, items[1::2], strict=True))


def _tuple_to_mark(machine: _Machine) -> None:
    items = machine.pop_to_mark()
    machine.stack.append(tuple(items))


def _tuple_of(length: int) -> Callable[[_Machine], None]:
    def make(machine: _Machine) -> None:
        if len(machine.stack) < length:
            raise ValueError
        machine.stack[-length:] = [tuple(machine.stack[-length:])]

    return make


def _put(index: struct.Struct) -> Callable[[_Machine], None]:
    def put(machine: _Machine) -> None:
        machine.memo[machine.number(index)] = machine.stack[-1]

    return put


def _get(index: struct.Struct) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.memo[machine.number(index)])


def _memoize(machine: _Machine) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _global(machine: _Machine) -> None:
    module = machine.line()
    machine.stack.append(inert.admit(module, machine.line()))


def _stack_global(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.stack.append(inert.admit(module, name))


def _reduce(machine: _Machine) -> None:
    arguments, function = machine.stack.pop(), machine.stack.pop()
    machine.stack.append(inert.call(function, arguments))


def _new_object(machine: _Machine) -> None:
    arguments, cls = machine.stack.pop(), machine.stack.pop()
    machine.stack.append(inert.instantiate(cls, arguments))


def _build(machine: _Machine) -> None:
    state = machine.stack.pop()
    inert.set_state(machine.stack[-1], state)


_STOP = ord(".")

# Codes as in the pickle format; persistent ids, extension codes, instances of protocol 0, buffers
# out of band, sets and every other instruction are missing on purpose.
_INSTRUCTIONS: dict[int, Callable[[_Machine], None]] = {
    0x80: _protocol,
    0x95: lambda machine: machine.number(_UINT64),  # a frame: nothing to do
    ord("N"): _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    ord("K"): _numeral(_UINT8),
    ord("M"): _numeral(_UINT16),
    ord("J"): _numeral(_INT32),
    0x8A: _integer,
    ord("G"): _numeral(_FLOAT64),
    0x8C: _text(_UINT8),
    ord("X"): _text(_UINT32),
    0x8D: _text(_UINT64),
    ord("C"): _bytes(_UINT8),
    ord("B"): _bytes(_UINT32),
    0x8E: _bytes(_UINT64),
    0x96: _bytes(_UINT64),  # a bytearray
    ord("("): _mark,
    ord("]"): _new_list,
    ord("a"): _append,
    ord("e"): _appends,
    ord("}"): _new_dict,
    ord("s"): _set_item,
    ord("u"): _set_items,
    ord(")"): _constant(()),
    0x85: _tuple_of(1),
    0x86: _tuple_of(2),
    0x87: _tuple_of(3),
    ord("t"): _tuple_to_mark,
    ord("q"): _put(_UINT8),
    ord("r"): _put(_UINT32),
    0x94: _memoize,
    ord("h"): _get(_UINT8),
    ord("j"): _get(_UINT32),
    ord("c"): _global,
    0x93: _stack_global,
    ord("R"): _reduce,
    0x81: _new_object,
    ord("b"): _build,
}
