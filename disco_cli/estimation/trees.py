"""The trees of a forest as flat arrays, checked before anything walks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation import inert

LEAF = -1
_UNDEFINED = -2
"""scikit-learn's marks: no child, and the feature of a leaf."""

_SPLIT_FIELDS: dict[str, type] = {
    "left_child": np.int64,
    "right_child": np.int64,
    "feature": np.int64,
    "threshold": np.float64,
}
_OTHER_FIELDS = {"impurity", "n_node_samples", "weighted_n_node_samples", "missing_go_to_left"}
"""Fields of a node, scikit-learn 1.3 to 1.9. One of unknown meaning could change predictions."""

_MAX_DEPTH = 10_000


class BadForestError(Exception):
    """What keeps a stand-in from being a forest."""


@dataclass(frozen=True, eq=False)
class Forest:
    """All trees of a forest in one set of arrays; n nodes, T trees.

    A leaf is its own child on both sides, so every row may take ``depth`` steps down.

    Attributes
    ----------
    n_features : int
        Length of a row.
    depth : int
        Steps from a root to the deepest leaf.
    roots : NDArray of int64 of shape (T,)
        First node of each tree.
    children : NDArray of int64 of shape (2 n,)
        Left child of node i at 2 i, right child at 2 i + 1.
    features : NDArray of int64 of shape (n,)
        Feature that a node looks at; 0 in leaves.
    thresholds : NDArray of float64 of shape (n,)
        Rows with a feature up to the threshold go left.
    values : NDArray of float64 of shape (n,)
        Mean target of a node.
    """

    n_features: int
    depth: int
    roots: NDArray[np.int64]
    children: NDArray[np.int64]
    features: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    values: NDArray[np.float64]

    @property
    def n_trees(self) -> int:
        """Number of trees, T."""
        return len(self.roots)


def plant(top: Any, n_bytes: int) -> Forest:
    """Put the trees of a pickled forest together.

    Parameters
    ----------
    top : Any
        What :func:`disco_cli.estimation.unpickle.read_pickle` returned.
    n_bytes : int
        Size of the file, a bound on what its nodes may take.

    Returns
    -------
    Forest
        Every tree is a tree, and every number that a prediction uses is finite.

    Raises
    ------
    BadForestError
        If it is anything else.
    """
    forest = _instance(top, inert.FOREST, "not a RandomForestRegressor of scikit-learn")
    members = forest.state.get("estimators_")
    if type(members) is not list or not members:
        raise BadForestError("a forest without trees")
    n_features = forest.state.get("n_features_in_")
    if type(n_features) is not int or n_features < 1:
        raise BadForestError("a forest that does not know its number of features")
    if forest.state.get("n_outputs_") != 1:
        raise BadForestError("a forest for several targets at once")

    nodes, values, n_left = [], [], n_bytes
    for member in members:
        tree_nodes, tree_values = _tree_of(member, n_features)
        # One tree may be listed many times; the trees of a real file lie in it one by one.
        n_left -= tree_nodes.nbytes
        if n_left < 0:
            raise BadForestError("more nodes than the file has bytes for")
        nodes.append(tree_nodes)
        values.append(tree_values)
    return _join(nodes, values, n_features)


def _tree_of(member: Any, n_features: int) -> tuple[NDArray[np.void], NDArray[np.float64]]:
    """Return the nodes and values of one tree."""
    complaint = "a member of the forest that is no regression tree"
    regressor = _instance(member, inert.DECISION_TREE, complaint)
    tree = _instance(regressor.state.get("tree_"), inert.TREE, complaint)
    if type(tree.arguments[0]) is not int or tree.arguments[0] != n_features:
        raise BadForestError("a tree with another number of features than the forest")
    nodes, values = (_array_of(tree.state.get(key)) for key in ("nodes", "values"))
    names = set(nodes.dtype.names or ())
    if nodes.ndim != 1 or not len(nodes) or not _SPLIT_FIELDS.keys() <= names:
        raise BadForestError("a tree without nodes")
    unknown = names - _SPLIT_FIELDS.keys() - _OTHER_FIELDS
    if unknown:
        raise BadForestError(f"nodes with a field {min(unknown)[:40]!a}, which is not known here")
    if any(nodes.dtype[name] != dtype for name, dtype in _SPLIT_FIELDS.items()):
        raise BadForestError("nodes whose fields are of another type")
    if values.shape != (len(nodes), 1, 1) or values.dtype != np.float64:
        raise BadForestError("a tree without one value in each node")
    return nodes, values.reshape(-1)


def _instance(value: Any, name: str, complaint: str) -> inert.Instance:
    """Return what stands in for an object of a class; anything else is a reason to complain."""
    if type(value) is not inert.Instance or value.name != name:
        raise BadForestError(complaint)
    return value


def _array_of(value: Any) -> NDArray[Any]:
    """Return the array that a stand-in became."""
    if type(value) is not inert.Array or value.value is None:
        raise BadForestError("a tree that lacks an array")
    return value.value


def _join(
    nodes: list[NDArray[np.void]], values: list[NDArray[np.float64]], n_features: int
) -> Forest:
    """Check the nodes of all trees at once and number them through."""
    columns = {name: np.concatenate([tree[name] for tree in nodes]) for name in _SPLIT_FIELDS}
    left, right = columns["left_child"], columns["right_child"]
    features, thresholds = columns["feature"], columns["threshold"]
    means = np.concatenate(values)
    is_leaf = left == LEAF
    if not (np.isfinite(thresholds).all() and np.isfinite(means).all()):
        raise BadForestError("a tree with a threshold or value that is not a finite number")
    if (right[is_leaf] != LEAF).any() or (features[is_leaf] != _UNDEFINED).any():
        raise BadForestError("a leaf with a child or a feature")
    if ((features < 0) | (features >= n_features))[~is_leaf].any():
        raise BadForestError("a node that looks at a feature out of range")

    lengths = np.array([len(tree) for tree in nodes])
    roots = np.cumsum(lengths) - lengths
    left, right = (_renumber(child, is_leaf, lengths, roots) for child in (left, right))
    splits = np.flatnonzero(~is_leaf)
    expected = np.ones(len(left), dtype=np.int64)
    expected[roots] = 0
    times_a_child = np.bincount(
        np.concatenate([left[splits], right[splits]]), minlength=len(expected)
    )
    if (times_a_child != expected).any():
        raise BadForestError("a node that is not the child of exactly one other")
    return Forest(
        n_features=n_features,
        depth=_depth(left, right, is_leaf, roots),
        roots=roots,
        children=np.stack([left, right], axis=1).reshape(-1),
        features=np.where(is_leaf, 0, features),
        thresholds=thresholds,
        values=means,
    )


def _renumber(
    child: NDArray[np.int64],
    is_leaf: NDArray[np.bool_],
    lengths: NDArray[np.int64],
    roots: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Count children from the first node of the first tree; make leaves their own children."""
    own = np.arange(len(child))
    root_of, length_of = np.repeat(roots, lengths), np.repeat(lengths, lengths)
    # scikit-learn writes children behind their parents, so nothing can go round in circles.
    if ((child <= own - root_of) | (child >= length_of))[~is_leaf].any():
        raise BadForestError("a node whose child is out of range or not behind it")
    return np.where(is_leaf, own, child + root_of)


def _depth(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    is_leaf: NDArray[np.bool_],
    roots: NDArray[np.int64],
) -> int:
    """Count the steps from a root to the deepest leaf."""
    level = roots[~is_leaf[roots]]
    for depth in range(_MAX_DEPTH):
        if not len(level):
            return depth
        below = np.concatenate([left[level], right[level]])
        level = below[~is_leaf[below]]
    raise BadForestError(f"a tree deeper than {_MAX_DEPTH:,} nodes")
