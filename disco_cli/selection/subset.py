"""The selection artifact, ``selection.json``: which K samples, and how they came to be chosen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from disco_cli.errors import ArtifactError, InputError
from disco_cli.files.fingerprint import hash_ids
from disco_cli.files.strict_json import parse_json
from disco_cli.selection.draw import Draw

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

ARTIFACT = "disco selection"
FORMAT = 1
"""Format number of ``selection.json``; a change that an older reader would misread raises it.

1: first format.
"""


@dataclass(frozen=True)
class Selection:
    """K selected samples of one benchmark.

    Attributes
    ----------
    method : str
        Name of the selection method.
    seed : int
        Seed of the draw.
    n_samples : int
        N, size of the benchmark.
    benchmark : str
        Fingerprint of the benchmark's samples.
    sample_ids : NDArray of str of shape (K,), or None
        Ids in the benchmark's order; ``None`` when samples are known by position only.
    draw : Draw
        Positions, ranks, scores, roles, chances and weights.
    parameters : dict
        Whatever else the method was given.
    """

    method: str
    seed: int
    n_samples: int
    benchmark: str
    sample_ids: NDArray[np.str_] | None
    draw: Draw
    parameters: dict[str, Any]

    @property
    def k(self) -> int:
        """Number of selected samples, K."""
        return len(self.draw.positions)

    @property
    def sha256(self) -> str:
        """Hash of the selected samples in their order; tells one selection from another."""
        if self.sample_ids is not None:
            return hash_ids(self.sample_ids)
        return hash_ids(self.draw.positions.astype(str))

    def to_json(self) -> str:
        """Return the artifact's text: deterministic, one list entry per line."""
        draw = self.draw
        head = {
            "artifact": ARTIFACT,
            "format": FORMAT,
            "method": self.method,
            "seed": self.seed,
            "k": self.k,
            "n_samples": self.n_samples,
            "benchmark": self.benchmark,
            "sha256": self.sha256,
            "parameters": self.parameters,
            "n_tied": draw.n_tied,
            "n_tied_chosen": draw.n_tied_chosen,
        }
        columns = {
            "sample_ids": None if self.sample_ids is None else self.sample_ids.tolist(),
            "position": draw.positions.tolist(),
            "rank": draw.ranks.tolist(),
            "score": _nullable(draw.scores),
            "role": list(draw.roles),
            "inclusion_probability": _nullable(draw.inclusion_probabilities),
            "weight": None if draw.weights is None else _nullable(draw.weights),
            "stratum": None if draw.strata is None else draw.strata.tolist(),
        }
        return json.dumps({**head, **columns}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _nullable(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def read_selection(path: Path) -> Selection:
    """Read and check ``selection.json``.

    Parameters
    ----------
    path : Path
        The artifact.

    Raises
    ------
    InputError
        There is no such file.
    ArtifactError
        It is not a selection, or its parts contradict each other.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"{path}: no selection there; run `disco select --k 100 PREDS…` first"
        raise InputError(message) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a selection: {error}") from error
    try:
        return parse_selection(text)
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}; run `disco select` again") from error


def parse_selection(text: str) -> Selection:
    """Return the selection that ``Selection.to_json`` wrote.

    Raises
    ------
    ArtifactError
        The text is not a selection of a known format, or its parts contradict each other.
    """
    try:
        data = parse_json(text)
        if data["artifact"] != ARTIFACT or data["format"] != FORMAT:
            message = f"selection format {data['format']!r}, this disco reads {FORMAT}"
            raise ArtifactError(message)
        selection = _from_dict(data)
    except ArtifactError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ArtifactError(f"not a selection ({type(error).__name__}: {error})") from error
    _check(selection, data)
    return selection


def _from_dict(data: dict[str, Any]) -> Selection:
    def floats(name: str) -> NDArray[np.float64]:
        return np.array(data[name], dtype=np.float64)  # null becomes NaN

    ids = data["sample_ids"]
    return Selection(
        method=str(data["method"]),
        seed=int(data["seed"]),
        n_samples=int(data["n_samples"]),
        benchmark=str(data["benchmark"]),
        sample_ids=None if ids is None else np.array([str(entry) for entry in ids], dtype=np.str_),
        draw=Draw(
            positions=np.array(data["position"], dtype=np.int64),
            ranks=np.array(data["rank"], dtype=np.int64),
            scores=floats("score"),
            roles=tuple(str(role) for role in data["role"]),
            inclusion_probabilities=floats("inclusion_probability"),
            weights=None if data["weight"] is None else floats("weight"),
            strata=None if data["stratum"] is None else np.array(data["stratum"], dtype=np.int64),
            n_tied=int(data["n_tied"]),
            n_tied_chosen=int(data["n_tied_chosen"]),
        ),
        parameters=dict(data["parameters"]),
    )


def _check(selection: Selection, data: dict[str, Any]) -> None:
    """Refuse a selection whose lists differ in length, order or hash."""
    draw, k = selection.draw, selection.k
    columns = {
        "sample_ids": selection.sample_ids,
        "rank": draw.ranks,
        "score": draw.scores,
        "role": draw.roles,
        "inclusion_probability": draw.inclusion_probabilities,
        "weight": draw.weights,
        "stratum": draw.strata,
    }
    for name, column in columns.items():
        if column is not None and len(column) != k:
            raise ArtifactError(f"{len(column)} entries of `{name}` for {k} of `position`")
    positions = draw.positions
    if k == 0 or positions[0] < 0 or positions[-1] >= selection.n_samples:
        raise ArtifactError(f"positions must lie in 0 … {selection.n_samples - 1}")
    if np.any(np.diff(positions) <= 0):
        raise ArtifactError("positions must ascend without repetition")
    if data.get("sha256") != selection.sha256:
        raise ArtifactError("the list of samples does not match its sha256: edited by hand?")
