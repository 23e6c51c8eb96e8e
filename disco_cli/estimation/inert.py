"""What a pickled forest may name, and the harmless things that stand in for it.

Nothing is looked up: a name on the list becomes a :class:`Global`, an object of a scikit-learn
class an :class:`Instance`, and numpy's own reconstruction functions are replaced by functions here
that make an array from bytes whose length, shape and dtype fit each other. Arrays of objects do
not exist. Functions here raise ``ValueError`` for what is damaged, :class:`RefusedError` for what is
whole but has no place in a forest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOREST = "sklearn.ensemble._forest.RandomForestRegressor"
DECISION_TREE = "sklearn.tree._classes.DecisionTreeRegressor"
TREE = "sklearn.tree._tree.Tree"

_NDARRAY = "numpy.ndarray"
_DTYPE = "numpy.dtype"
# numpy 2 renamed numpy.core to numpy._core; both names are in files that people have.
_RECONSTRUCT = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
_SCALAR = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")
_FROM_BUFFER = ("numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer")
_ALLOWED = frozenset(
    (FOREST, DECISION_TREE, TREE, _NDARRAY, _DTYPE, *_RECONSTRUCT, *_SCALAR, *_FROM_BUFFER)
)

_MAX_LENGTH = 1 << 29
_MAX_DIMENSIONS = 4
_MAX_FIELDS = 32
_SIMPLE_DTYPE = re.compile(r"(?:b1|[iu][1248]|f[248])\Z")
_RECORD_DTYPE = re.compile(r"V[1-9][0-9]{0,2}\Z")


class RefusedError(Exception):
    """What is in the file that no forest has; the name of the file is added further up."""


@dataclass(frozen=True)
class Global:
    """The name of a class or function on the list; never the thing itself."""

    name: str


@dataclass(eq=False)
class Instance:
    """What would have been an object of a scikit-learn class.

    Attributes
    ----------
    name : str
        Full name of its class.
    arguments : tuple
        What the class would have been called with.
    state : dict
        Its attributes, empty until the pickle sets them.
    """

    name: str
    arguments: tuple[Any, ...]
    state: dict[str, Any]


@dataclass(eq=False)
class Dtype:
    """A numpy dtype: a letter and size first, then byte order or fields, then complete."""

    code: str
    value: np.dtype[Any] | None = None


@dataclass(eq=False)
class Array:
    """A numpy array; ``None`` until the pickle has told its content."""

    value: NDArray[Any] | None = None


def admit(module: Any, name: Any) -> Global:
    """Return the stand-in of a name on the list.

    Raises
    ------
    RefusedError
        For any other name, which it tells.
    """
    is_text = type(module) is str and type(name) is str
    full = f"{module}.{name}" if is_text else "(not a name)"
    # A dotted name would be an attribute of an attribute, which pickle looks up since protocol 4.
    if full not in _ALLOWED or "." in name:
        raise RefusedError(f"it asks for {full[:120]!a}, which is no part of a random forest")
    return Global(full)


def call(function: Any, arguments: Any) -> Any:
    """Do what stands in for calling a function on the list."""
    if type(function) is not Global or type(arguments) is not tuple:
        raise ValueError
    maker = _MAKERS.get(function.name)
    if maker is None:
        raise RefusedError(f"it calls {function.name}, which a random forest never does")
    return maker(arguments)


def instantiate(cls: Any, arguments: Any) -> Instance:
    """Stand in for making an object of one of the two scikit-learn estimators."""
    if type(cls) is not Global or cls.name not in (FOREST, DECISION_TREE) or arguments != ():
        raise ValueError
    return Instance(cls.name, (), {})


def set_state(target: Any, state: Any) -> None:
    """Give a stand-in its content, once."""
    if type(target) is Instance and type(state) is dict and not target.state:
        target.state = state
    elif type(target) is Array and target.value is None:
        target.value = _array_of_state(state)
    elif type(target) is Dtype and target.value is None:
        target.value = _dtype_of_state(target.code, state)
    else:
        raise ValueError


def _make_dtype(arguments: tuple[Any, ...]) -> Dtype:
    """Stand in for ``numpy.dtype(code, align, copy)``: numbers, truth values and records."""
    code = arguments[0]
    if type(code) is not str or not (_SIMPLE_DTYPE.match(code) or _RECORD_DTYPE.match(code)):
        kind = ascii(code[:20]) if type(code) is str else type(code).__name__
        raise RefusedError(f"an array of dtype {kind}; a forest holds numbers only")
    return Dtype(code)


def _dtype_of_state(code: str, state: Any) -> np.dtype[Any]:
    """Give a dtype its byte order, or its fields if it is a record."""
    if type(state) is not tuple or len(state) != 8 or state[2] is not None:
        raise ValueError
    _, order, _, names, fields, size, _, _ = state
    if code[0] == "V":
        if type(names) is not tuple or type(fields) is not dict or size != int(code[1:]):
            raise ValueError
        return _record_dtype(names, fields, size)
    if names is not None or fields is not None or type(order) is not str:
        raise ValueError
    if order not in ("<", ">", "|", "="):
        raise ValueError
    return np.dtype(order + code)


def _record_dtype(names: tuple[Any, ...], fields: dict[str, Any], size: int) -> np.dtype[Any]:
    """Make the dtype of a record of ``size`` bytes whose fields are single numbers."""
    if not 1 <= len(names) <= _MAX_FIELDS or any(type(name) is not str for name in names):
        raise ValueError
    formats, offsets, end = [], [], 0
    for name in names:
        dtype, offset = fields[name]
        number = _finished(dtype)
        if number.names or not _is_length(offset) or offset < end:  # fields never overlap
            raise ValueError
        formats.append(number)
        offsets.append(offset)
        end = offset + number.itemsize
    if end > size:
        raise ValueError
    return np.dtype(
        {"names": list(names), "formats": formats, "offsets": offsets, "itemsize": size}
    )


def _finished(dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype that a stand-in became."""
    if type(dtype) is not Dtype or dtype.value is None:
        raise ValueError
    return dtype.value


def _is_length(value: Any) -> bool:
    """Whether this is a whole number that may be a size."""
    return type(value) is int and 0 <= value <= _MAX_LENGTH


def _make_blank_array(arguments: tuple[Any, ...]) -> Array:
    """Stand in for ``_reconstruct(ndarray, (0,), b"b")``, whose arguments never differ."""
    cls, shape, code = arguments
    if type(cls) is not Global or cls.name != _NDARRAY or type(code) is not bytes or code != b"b":
        raise ValueError
    if type(shape) is not tuple or len(shape) != 1 or type(shape[0]) is not int or shape[0] != 0:
        raise ValueError
    return Array()


def _array_of_state(state: Any) -> NDArray[Any]:
    """Make the array of (version, shape, dtype, whether in Fortran order, content)."""
    if type(state) is not tuple or len(state) != 5:
        raise ValueError
    _, shape, dtype, is_fortran, content = state
    return _array(content, dtype, shape, "F" if is_fortran is True else "C")


def _make_array(arguments: tuple[Any, ...]) -> Array:
    """Stand in for ``_frombuffer(content, dtype, shape, order)``, which protocol 5 calls."""
    content, dtype, shape, order = arguments
    return Array(_array(content, dtype, shape, order))


def _make_scalar(arguments: tuple[Any, ...]) -> Any:
    """Stand in for ``scalar(dtype, content)``: the Python number of it."""
    dtype, content = arguments
    return _array(content, dtype, (), "C").item()


def _array(content: Any, dtype: Any, shape: Any, order: Any) -> NDArray[Any]:
    """Make a read-only array that is a view of bytes of just the right length."""
    if type(content) is not bytes or type(shape) is not tuple or type(order) is not str:
        raise ValueError
    if len(shape) > _MAX_DIMENSIONS or not all(map(_is_length, shape)):
        raise ValueError
    number = _finished(dtype)
    if math.prod(shape) * number.itemsize != len(content) or order not in ("C", "F"):
        raise ValueError
    made: NDArray[Any] = np.ndarray(shape, number, content, order="F" if order == "F" else "C")
    return made


def _make_tree(arguments: tuple[Any, ...]) -> Instance:
    """Stand in for ``Tree(n_features, n_classes, n_outputs)``."""
    _, _, _ = arguments
    return Instance(TREE, arguments, {})


_MAKERS: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    TREE: _make_tree,
    _DTYPE: _make_dtype,
    **dict.fromkeys(_RECONSTRUCT, _make_blank_array),
    **dict.fromkeys(_SCALAR, _make_scalar),
    **dict.fromkeys(_FROM_BUFFER, _make_array),
}
