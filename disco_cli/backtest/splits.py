"""Which models serve as references and which are estimated as if they were new.

A *repeat* is one complete measurement; its *folds* are pooled before any figure is computed.
``random``, ``newest`` and ``strongest`` have one fold in each repeat, ``leave-one-out`` has one per
model. Only ``random`` draws other models in other repeats; in the rest a repeat differs by the
methods' own random choices, and their spread says nothing of other models.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from disco_cli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MIN_REFERENCES = 3
"""Fewer reference models than this and nothing can be learned or held out."""

DEFAULT_TEST_SHARE = 0.25


class SplitKind(str, Enum):
    """How targets are chosen."""

    RANDOM = "random"
    NEWEST = "newest"
    STRONGEST = "strongest"
    LEAVE_ONE_OUT = "leave-one-out"


@dataclass(frozen=True)
class Split:
    """Reference models and targets of one fold of one repeat.

    Attributes
    ----------
    kind : SplitKind
        How the targets were chosen.
    repeat, fold : int
        Folds of one repeat are pooled.
    references, targets : NDArray of int64
        Indices of models, ascending, without a common element.
    """

    kind: SplitKind
    repeat: int
    fold: int
    references: NDArray[np.int64]
    targets: NDArray[np.int64]


def stable_rng(*parts: object) -> np.random.Generator:
    """Return a generator seeded by the text of its arguments, equal on every machine and run.

    ``hash()`` is salted per process and scheduling order is not repeatable; a SHA-256 of the
    arguments is both, so a cell's result does not depend on where or when it runs.
    """
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def random_split(
    n_models: int,
    repeat: int,
    *,
    test_share: float = DEFAULT_TEST_SHARE,
    families: Sequence[str] | None = None,
) -> Split:
    """Draw targets at random; with families, whole families until the share is reached.

    Parameters
    ----------
    n_models : int
        M.
    repeat : int
        Number of the repeat; it alone seeds the draw.
    test_share : float
        Share of models that become targets, in (0, 1).
    families : sequence of str, optional
        Family of each model; relatives stay on one side.

    Raises
    ------
    UsageError
        If fewer than three references would be left.
    """
    wanted = _n_targets(n_models, test_share)
    rng = stable_rng("split", SplitKind.RANDOM.value, repeat)
    if families is None:
        targets = rng.permutation(n_models)[:wanted]
    else:
        targets = _whole_families(families, wanted, rng)
    return _split(SplitKind.RANDOM, repeat, 0, n_models, targets)


def newest_split(
    dates: Sequence[str | None],
    repeat: int,
    *,
    test_share: float = DEFAULT_TEST_SHARE,
    cutoff: str | None = None,
    families: Sequence[str] | None = None,
) -> Split:
    """Take the newest models as targets; every reference is strictly older than every target.

    Models of one date are never divided, so the share may come out larger than asked for. Dates are
    compared as text: ISO dates of one form (``2024-05``, ``2024-05-13``) sort in time.

    Parameters
    ----------
    dates : sequence of str or None
        ISO date of each model.
    repeat : int
        Number of the repeat.
    test_share : float
        Share of models that become targets, unless ``cutoff`` is given.
    cutoff : str, optional
        Models of this date or later are the targets.
    families : sequence of str, optional
        Family of each model; references related to a target are left out.

    Raises
    ------
    UsageError
        If a model has no date, no model is as new as the cutoff, or too few references are left.
    """
    missing = sum(not date for date in dates)
    if missing:
        raise UsageError(
            f"--split newest needs a date for every model; {missing} of {len(dates)} have none "
            "(store 'dates' in the prediction files, or use --split random)"
        )
    known = np.array([str(date) for date in dates])
    if cutoff is None:
        cutoff = str(np.sort(known)[len(known) - _n_targets(len(known), test_share)])
    targets = np.flatnonzero(known >= cutoff)
    if not len(targets):
        raise UsageError(
            f"no model is dated {cutoff} or later; the newest is of {max(known.tolist())}"
        )
    return _split(SplitKind.NEWEST, repeat, 0, len(known), targets, families=families)


def strongest_split(
    scores: NDArray[np.float64],
    repeat: int,
    *,
    test_share: float = DEFAULT_TEST_SHARE,
    families: Sequence[str] | None = None,
) -> Split:
    """Take the models with the best full scores as targets: every target is beyond the references.

    Parameters
    ----------
    scores : NDArray of float64, shape (M,)
        Full scores; ties go by the order of the models.
    repeat : int
        Number of the repeat.
    test_share : float
        Share of models that become targets.
    families : sequence of str, optional
        Family of each model; references related to a target are left out.

    Raises
    ------
    UsageError
        If too few references are left.
    """
    order = np.argsort(-scores, kind="stable")
    targets = order[: _n_targets(len(scores), test_share)]
    return _split(SplitKind.STRONGEST, repeat, 0, len(scores), targets, families=families)


def leave_one_out_splits(
    n_models: int, repeat: int, *, families: Sequence[str] | None = None
) -> tuple[Split, ...]:
    """Make each model the only target once; with families, without its relatives as references."""
    return tuple(
        _split(SplitKind.LEAVE_ONE_OUT, repeat, m, n_models, np.array([m]), families=families)
        for m in range(n_models)
    )


def make_splits(
    kind: SplitKind,
    repeats: int,
    *,
    scores: NDArray[np.float64],
    dates: Sequence[str | None],
    test_share: float = DEFAULT_TEST_SHARE,
    cutoff: str | None = None,
    families: Sequence[str] | None = None,
) -> tuple[Split, ...]:
    """Return the folds of all repeats, repeat by repeat.

    Parameters
    ----------
    kind : SplitKind
        How targets are chosen.
    repeats : int
        Number of repeats (seeds).
    scores : NDArray of float64, shape (M,)
        Full scores, used by ``strongest`` alone.
    dates : sequence of str or None
        Dates, used by ``newest`` alone.
    test_share, cutoff, families
        See the functions of each kind.
    """
    n_models = len(scores)
    if cutoff is not None and kind is not SplitKind.NEWEST:
        raise UsageError(f"--cutoff belongs to --split newest, not to {kind.value}")
    splits: list[Split] = []
    for repeat in range(repeats):
        if kind is SplitKind.RANDOM:
            splits.append(random_split(n_models, repeat, test_share=test_share, families=families))
        elif kind is SplitKind.NEWEST:
            splits.append(
                newest_split(dates, repeat, test_share=test_share, cutoff=cutoff, families=families)
            )
        elif kind is SplitKind.STRONGEST:
            splits.append(strongest_split(scores, repeat, test_share=test_share, families=families))
        else:
            splits.extend(leave_one_out_splits(n_models, repeat, families=families))
    return tuple(splits)


def _n_targets(n_models: int, test_share: float) -> int:
    if not 0 < test_share < 1:
        raise UsageError(f"--test-share must lie between 0 and 1, found {test_share:g}")
    return max(1, math.floor(n_models * test_share + 0.5))


def _whole_families(
    families: Sequence[str], wanted: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Add whole families in random order while the targets do not exceed the number wanted.

    A family that would overshoot is passed over, unless nothing has been taken at all.
    """
    kinds, member = np.unique(np.array(families), return_inverse=True)
    sizes = np.bincount(member)
    taken: list[int] = []
    total = 0
    order = rng.permutation(len(kinds))
    for family in order:
        if total + sizes[family] <= wanted:
            taken.append(int(family))
            total += int(sizes[family])
    if not taken:
        taken = [int(order[np.argmin(sizes[order])])]
    return np.flatnonzero(np.isin(member, taken))


def _split(
    kind: SplitKind,
    repeat: int,
    fold: int,
    n_models: int,
    targets: NDArray[np.int64],
    *,
    families: Sequence[str] | None = None,
) -> Split:
    is_reference = np.ones(n_models, dtype=bool)
    is_reference[targets] = False
    note = ""
    if families is not None:
        related = {families[m] for m in targets}
        is_reference &= np.array([family not in related for family in families], dtype=bool)
        note = " once relatives of the targets are left out"
    references = np.flatnonzero(is_reference)
    if len(references) < MIN_REFERENCES:
        raise UsageError(
            f"--split {kind.value} leaves {len(references)} of {n_models} models as references"
            f"{note}; at least {MIN_REFERENCES} are needed"
        )
    return Split(kind, repeat, fold, references, np.sort(targets).astype(np.int64))
