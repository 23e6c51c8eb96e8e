from typing import Any

from numpy.typing import NDArray

def figures(p: NDArray[Any], n_classes: int, out: NDArray[Any], /) -> None: ...
def are_probabilities(x: NDArray[Any], n_classes: int, tolerance: float, /) -> bool: ...
def add(
    p: NDArray[Any],
    n_models: int,
    sums: NDArray[Any],
    maximum: NDArray[Any],
    first: bool,
    /,
) -> None: ...
def add_files(
    handles: NDArray[Any],
    offsets: NDArray[Any],
    item_bytes: int,
    n: int,
    n_classes: int,
    tolerance: float,
    sums: NDArray[Any],
    maximum: NDArray[Any],
    first: bool,
    entropy: NDArray[Any],
    confidence: NDArray[Any],
    answers: NDArray[Any] | None,
    /,
) -> int: ...
def add_units(sums: NDArray[Any], total: NDArray[Any], /) -> None: ...
def widen(halves: NDArray[Any], singles: NDArray[Any], /) -> None: ...
def source() -> int: ...
