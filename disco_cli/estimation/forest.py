"""DISCO's regressor: a random forest, fitted by scikit-learn and evaluated without it.

``rf.pkl`` is an ordinary pickle of a scikit-learn ``RandomForestRegressor``, so that users can open
it with scikit-learn. This module reads it through :mod:`disco_cli.estimation.unpickle`, which runs
nothing, checks that its nodes form trees, and walks all trees at once in numpy. Predictions are
those of scikit-learn, and importing scikit-learn would take a hundred times longer than all this.
"""

from __future__ import annotations

import io
import pickle
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disco_cli.errors import ArtifactError, InputError
from disco_cli.estimation import inert
from disco_cli.estimation.trees import LEAF, BadForestError, Forest, plant
from disco_cli.estimation.unpickle import read_pickle

_PICKLE_PROTOCOL = 4
"""Fixed, so that the same forest is the same bytes under every version of Python."""

_ROWS_AT_A_TIME = 1024


@dataclass(frozen=True, eq=False)
class FittedForest:
    """A forest as scikit-learn fitted it.

    Attributes
    ----------
    regressor : sklearn.ensemble.RandomForestRegressor
    out_of_bag : NDArray of float64 of shape (M,)
        Prediction of each reference by the trees that did not see it; NaN where all did.
    """

    regressor: Any
    out_of_bag: NDArray[np.float64]


def fit_forest(
    Z: NDArray[np.float64],
    y: NDArray[np.float64],
    seed: int,
    n_estimators: int = 100,
    n_jobs: int | None = None,
) -> FittedForest:
    """Fit a random forest with scikit-learn.

    Parameters
    ----------
    Z : NDArray of float of shape (M, D)
        One row of features per reference model.
    y : NDArray of float of shape (M,)
        Their full scores.
    seed : int
        Decides bootstrap samples and splits; nothing else does, ``n_jobs`` least of all.
    n_estimators : int
        Number of trees.
    n_jobs : int, optional
        Threads to fit with.

    Returns
    -------
    FittedForest

    Raises
    ------
    InputError
        If D is 0: principal components have no dimension left when all references are alike.
    """
    if not Z.shape[1]:
        raise InputError(
            "the reference models do not differ on the selected samples, so nothing can be learnt "
            "from them; select other samples or add models"
        )
    from sklearn.ensemble import RandomForestRegressor

    regressor = RandomForestRegressor(
        n_estimators, oob_score=True, random_state=seed, n_jobs=n_jobs
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        regressor.fit(Z, y)
    # So that the file does not tell how many threads made it.
    regressor.set_params(n_jobs=None)
    out_of_bag = np.array(regressor.oob_prediction_, dtype=np.float64)
    for warning in caught:
        if "OOB" not in str(warning.message):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
        else:
            # scikit-learn warns that every tree saw some row, and predicts 0 for it.
            out_of_bag[out_of_bag == 0] = np.nan
    return FittedForest(regressor, out_of_bag)


def save_forest(regressor: Any) -> bytes:
    """Pickle a scikit-learn forest; equal forests are equal bytes.

    scikit-learn leaves some bytes of a node as it found them in memory: what pads the record, and
    the direction of missing values in leaves. Nobody reads them; they are written as zeros.

    Parameters
    ----------
    regressor : sklearn.ensemble.RandomForestRegressor

    Returns
    -------
    bytes
        ``pickle.loads`` of it gives the forest back.
    """
    import pickletools

    content = io.BytesIO()
    _ForestPickler(content, _PICKLE_PROTOCOL).dump(regressor)
    return pickletools.optimize(content.getvalue())


class _ForestPickler(pickle.Pickler):
    """A pickler that writes trees without the leftovers of memory."""

    def reducer_override(self, obj: Any) -> Any:
        """Clean the nodes of trees on their way out; other objects as usual."""
        if f"{type(obj).__module__}.{type(obj).__qualname__}" != inert.TREE:
            return NotImplemented
        cls, arguments, state = obj.__reduce__()
        return cls, arguments, {**state, "nodes": _clean(state["nodes"])}


def _clean(nodes: NDArray[np.void]) -> NDArray[np.void]:
    """Copy the fields of the nodes onto zeros."""
    clean = np.zeros(nodes.shape, nodes.dtype)
    for name in nodes.dtype.names or ():
        clean[name] = nodes[name]
    if "missing_go_to_left" in (nodes.dtype.names or ()):
        clean["missing_go_to_left"][nodes["left_child"] == LEAF] = 0
    return clean


def read_forest(data: bytes, source: str = "rf.pkl") -> Forest:
    """Read a pickled scikit-learn forest without scikit-learn, and without running any of it.

    Parameters
    ----------
    data : bytes
        The whole file.
    source : str
        Its name, for messages.

    Returns
    -------
    Forest
        Checked: every tree is a tree, and every number that a prediction uses is finite.

    Raises
    ------
    ArtifactError
        If anything but a forest for one target is in the file.
    """
    top = read_pickle(data, source)
    try:
        return plant(top, len(data))
    except BadForestError as error:
        raise ArtifactError(f"{source}: {error}; build the database again") from None


def predict_forest(forest: Forest, X: ArrayLike) -> NDArray[np.float64]:
    """Evaluate the forest, as scikit-learn does: the mean of the trees, rows taken as float32.

    Parameters
    ----------
    forest : Forest
    X : array of float of shape (B, n_features)
        One row per model. A row's prediction does not depend on the other rows, to the last bit.

    Returns
    -------
    NDArray of float64 of shape (B,)

    Raises
    ------
    ArtifactError
        If rows are of another length than the forest was fitted on.
    InputError
        If a feature is not a finite number in float32.
    """
    given = np.asarray(X)
    if given.ndim != 2 or given.shape[1] != forest.n_features:
        raise ArtifactError(
            f"the forest was fitted on {forest.n_features} features, the rows are of shape "
            f"{given.shape}; build the database again"
        )
    with np.errstate(over="ignore"):
        rows = given.astype(np.float32)
    if not np.isfinite(rows).all():
        first = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise InputError(f"row {first} has a feature that is missing, infinite or beyond float32")
    predictions = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS_AT_A_TIME):
        chunk = slice(start, start + _ROWS_AT_A_TIME)
        predictions[chunk] = _walk(forest, rows[chunk])
    return predictions


def _walk(forest: Forest, rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Send each row down every tree, all of them one step at a time."""
    flat = rows.reshape(-1)
    row_starts = np.arange(len(rows)) * forest.n_features
    nodes = np.repeat(forest.roots[:, np.newaxis], len(rows), axis=1)
    for _ in range(forest.depth):
        seen = flat[row_starts + forest.features[nodes]]
        goes_right = seen > forest.thresholds[nodes]
        nodes = forest.children[2 * nodes + goes_right]
    # Adding tree after tree is scikit-learn's order, and unlike sum() the same for any number of rows.
    total: NDArray[np.float64] = np.cumsum(forest.values[nodes], axis=0)[-1]
    return total / forest.n_trees
