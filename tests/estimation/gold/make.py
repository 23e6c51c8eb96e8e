"""Pickle a small forest with the scikit-learn that is installed, for the readers of later versions.

    python tests/estimation/gold/make.py

writes, per pickle protocol, ``forest-<scikit-learn>-numpy-<numpy>-p<protocol>.pkl`` beside this
script, and what scikit-learn predicted in the ``.json`` of the same name. Add a pair when a new
version of scikit-learn or numpy comes out; never rewrite one that is there.
"""

import json
import pickle
from pathlib import Path

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestRegressor

FOLDER = Path(__file__).parent


def rows(n, start):
    """Make n rows of 4 features out of sines."""
    return np.sin(np.arange(start, start + 4 * n).reshape(n, 4) ** 1.3)


def main():
    """Write the pickles and their predictions."""
    Z, X = rows(12, 0), rows(6, 100)
    forest = RandomForestRegressor(3, random_state=1).fit(Z, Z[:, 0] + Z[:, 2] ** 2)
    for protocol in (3, 4, 5):
        stem = f"forest-{sklearn.__version__}-numpy-{np.__version__}-p{protocol}"
        (FOLDER / f"{stem}.pkl").write_bytes(pickle.dumps(forest, protocol=protocol))
        truth = {"X": X.tolist(), "predictions": forest.predict(X).tolist()}
        (FOLDER / f"{stem}.json").write_text(json.dumps(truth) + "\n")


if __name__ == "__main__":
    main()
