"""What the arrays of a database must look like before anything is computed with them.

A hash tells that a part is the one that was written, not that it is a good one: a database comes
from anywhere. So every array is held against its kind, its shape in the letters of the project
(M models, K samples, F outputs per sample, D = K · F features, q components, d factors, G groups)
and its range. What passes can make a wrong estimate, but no other harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import ArtifactError
from disco_cli.files.values import LARGEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Form:
    """What one array must be.

    Attributes
    ----------
    axes : tuple of str
        A letter per axis; the same letter has the same length wherever it stands. ``*`` is any.
    kinds : str
        Kinds of dtype, as in ``numpy.dtype.kind``.
    low, high : float
        Bounds of the values; a length is meant by a letter in ``below``.
    below : str
        Letter whose length the values must stay below, for values that are used as an index.
    may_be_nan : bool
        Whether NaN (missing) is allowed. Infinity never is where ``high`` is finite.
    is_optional : bool
        Whether the part may lack it.
    """

    axes: tuple[str, ...]
    kinds: str = "f"
    low: float = -np.inf
    high: float = np.inf
    below: str = ""
    may_be_nan: bool = False
    is_optional: bool = False


def _floats(*axes: str, low: float = -LARGEST, **changes: Any) -> Form:
    return Form(axes, "f", low, LARGEST, **changes)


def _optional(*axes: str, **changes: Any) -> Form:
    return _floats(*axes, is_optional=True, **changes)


REFERENCES: Mapping[str, Form] = {
    "names": Form(("M",), "U"),
    "truth": _floats("M"),
    "scores": _floats("M", "q"),
    "gaps": _floats("*"),
    "fill": _floats("K", "F"),
    "weights": _floats("K", low=0.0),
    "labels": Form(("K",), "i", -1, below="C", is_optional=True),
    "n_options": Form(("K",), "i", 1, is_optional=True),
    "responses": _optional("M", "K", may_be_nan=True),
    "group_names": Form(("G",), "U", is_optional=True),
    "residuals_rf": _floats("*", may_be_nan=True),
    "residuals_knn": _floats("*", may_be_nan=True),
}
PCA: Mapping[str, Form] = {
    "mean": _floats("D"),
    "components": _floats("q", "D"),
    "variance": _floats("q"),
    "total_variance": _floats(),
}
LINEAR: Mapping[str, Form] = {
    f"{name}/{field}": form
    for name in ("ridge", "anchored-ridge", "offset-ridge", "blend")
    for field, form in (
        ("intercept", _optional()),
        ("coefficients", _optional("K")),
        ("residuals", _optional("*", may_be_nan=True)),
    )
}
RECIPE: Mapping[str, Form] = {
    **{name: _floats("K") for name in ("means", "weights")},
    **{name: _floats("K", low=0.0) for name in ("noise", "shares", "chances")},
    "loadings": _floats("K", "d"),
    "drawn": Form(("K",), "b"),
    "group_shares": _floats("H", low=0.0),
    "groups": Form(("K",), "i", 0, below="H"),
    "group_means": _floats("H"),
    "group_loadings": _floats("H", "d"),
    "ridge_slopes": _optional("K"),
    "ridge_intercept": _optional(),
    "calibration_low": _floats(),
    "calibration_high": _floats(),
    "calibration_bounds": _floats("*"),
    "calibration_design_share": Form((), "f", 0.0, 1.0),
    "calibration_ridge_share": Form((), "f", 0.0, 1.0, is_optional=True),
    "calibration_scale": _floats(low=0.0),
    "calibration_near": _floats("*", may_be_nan=True),
    "calibration_far": _floats("*", may_be_nan=True),
    "calibration_strongest": _floats("*", may_be_nan=True),
    "calibration_n_models": Form((), "i", 0, 1e9),
    "calibration_misfit_limit": Form((), "f", 0.0, may_be_nan=True),
}
"""H groups in the estimator: G, or 1 where groups are unknown."""


def check_arrays(
    part: str,
    arrays: Mapping[str, NDArray[Any]],
    forms: Mapping[str, Form],
    lengths: dict[str, int],
) -> None:
    """Hold the arrays of a part of a database against their forms.

    Parameters
    ----------
    part : str
        Name of the part, for messages.
    arrays : mapping of str to NDArray
        What it holds; arrays without a form are not looked at.
    forms : mapping of str to Form
        What it must hold.
    lengths : dict of str to int
        Length of each letter that is known so far; letters met for the first time are added.

    Raises
    ------
    ArtifactError
        An array is missing, or is not of its form.
    """
    for name, form in forms.items():
        if name in arrays:
            array = arrays[name]
            fault = _shape_fault(array, form, lengths) or _value_fault(array, form, lengths)
        else:
            fault = None if form.is_optional else "is missing"
        if fault is not None:
            raise ArtifactError(f"{part}: {name} {fault}; run `disco build-db` again")


def _shape_fault(array: NDArray[Any], form: Form, lengths: dict[str, int]) -> str | None:
    """Return what is wrong with the type or shape of an array, ``None`` if nothing is."""
    if array.dtype.kind not in form.kinds:
        return f"holds {array.dtype}"
    fits = array.ndim == len(form.axes) and all(
        letter == "*" or lengths.setdefault(letter, length) == length
        for letter, length in zip(form.axes, array.shape, strict=True)
    )
    if fits:
        return None
    wanted = ", ".join(str(lengths.get(letter, letter)) for letter in form.axes)
    return f"has shape {array.shape} instead of ({wanted})"


def _value_fault(array: NDArray[Any], form: Form, lengths: dict[str, int]) -> str | None:
    """Return which value of an array is out of range, ``None`` if none is."""
    if array.dtype.kind not in "fiu":
        return None
    if not form.may_be_nan and np.isnan(array).any():
        return "holds NaN"
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    high = lengths[form.below] - 1 if form.below in lengths else form.high
    outside = (array < form.low) | (array > high)
    if outside.any():
        return f"holds {array[outside].flat[0]:.6g}, outside {form.low:g} … {high:g}"
    return None
