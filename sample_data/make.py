"""Train the classifiers whose outputs are the sample data, and write one prediction file for each.

    python sample_data/make.py            # write sample_data/*.npz and sample_data/new/*.npz
    python sample_data/make.py --check    # train again and compare with the files that are there

Every third digit of scikit-learn's digits data is for training, the rest is the benchmark. There
are sixteen families of seven settings; each model gets its own number of training samples, share of
wrong training labels and set of pixels, so that weak and strong models occur in every family. The
held-out dozen in ``new/`` is every ninth model of a seeded shuffle, fixed before any was trained.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

# One thread: sums in another order would change last digits from machine to machine.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = Path(__file__).parent
MADE_WITH = "1.9.1"
"""Version of scikit-learn that made the committed files."""

SEED = 20251009
N_CLASSES = 10
TRAIN_SIZES = (60, 90, 130, 200, 300, 420, 599)
LABEL_NOISES = (0.0, 0.0, 0.0, 0.05, 0.1, 0.2, 0.35)
PIXEL_COUNTS = (64, 64, 64, 48, 40, 28, 18)

Build = Callable[[], Any]
"""Returns an untrained classifier."""


def calibrated(classifier: Any) -> Any:
    """Give a classifier that only ranks classes probabilities, by Platt scaling in three folds."""
    return CalibratedClassifierCV(classifier, method="sigmoid", cv=3, ensemble=False)


def nystroem(n_components: int, gamma: float) -> Any:
    """Logistic regression on a random approximation of a Gaussian kernel."""
    features = Nystroem(gamma=gamma, n_components=n_components, random_state=SEED)
    return make_pipeline(features, LogisticRegression(max_iter=300))


def discriminant_of_scores(n_components: int) -> Any:
    """Linear discriminant analysis of a few principal components."""
    return make_pipeline(PCA(n_components, svd_solver="full"), LinearDiscriminantAnalysis())


def boosted_trees(n_estimators: int, max_depth: int) -> Any:
    """AdaBoost over small trees."""
    tree = DecisionTreeClassifier(max_depth=max_depth)
    return AdaBoostClassifier(tree, n_estimators=n_estimators, random_state=SEED)


def vary(
    build: Callable[..., Any], names: str, *settings: tuple[Any, ...], **fixed: Any
) -> list[Build]:
    """List one builder per setting of the arguments ``names``; ``fixed`` is common to all."""
    return [
        partial(build, **dict(zip(names.split(), values, strict=True)), **fixed)
        for values in settings
    ]


def vary_calibrated(
    build: Callable[..., Any], names: str, *settings: tuple[Any, ...], **fixed: Any
) -> list[Build]:
    """Do the same for classifiers that need calibration to have probabilities."""
    return [
        partial(lambda inner: calibrated(inner()), inner)
        for inner in vary(build, names, *settings, **fixed)
    ]


def families() -> dict[str, list[Build]]:
    """Name the sixteen families, each with seven settings from (roughly) weak to strong."""
    seeded = {"random_state": SEED}
    shrunk = partial(LinearDiscriminantAnalysis, solver="lsqr")
    return {
        "logistic": vary(
            LogisticRegression, "C", (1e-5,), (1e-4,), (1e-3,), (0.01,), (0.1,), (1.0,), (10.0,),
            max_iter=300,
        ),
        "linear-svm": vary_calibrated(
            LinearSVC, "C", (1e-6,), (1e-5,), (1e-4,), (1e-3,), (0.01,), (0.1,), (1.0,), **seeded
        ),
        "rbf-svm": vary_calibrated(
            SVC, "C gamma",
            (1, 1e-5), (1, 1e-4), (10, 3e-4), (10, 1e-3), (1, 2e-3), (1, 5e-3), (10, 0.01),
        ),
        "poly-svm": vary_calibrated(
            SVC, "degree C", (2, 0.01), (2, 0.1), (2, 1), (3, 0.1), (3, 1), (4, 1), (5, 1),
            kernel="poly",
        ),
        "knn": vary(
            KNeighborsClassifier, "n_neighbors weights", (50, "uniform"), (30, "distance"),
            (15, "uniform"), (8, "distance"), (5, "uniform"), (3, "distance"), (1, "uniform"),
        ),
        "tree": vary(
            DecisionTreeClassifier, "max_depth min_samples_leaf",
            (4, 5), (5, 1), (6, 3), (8, 1), (8, 4), (12, 2), (None, 1), **seeded,
        ),
        "forest": vary(
            RandomForestClassifier, "n_estimators max_depth",
            (5, 4), (10, None), (20, 3), (20, None), (50, 6), (60, None), (100, None), **seeded,
        ),
        "extra-trees": vary(
            ExtraTreesClassifier, "n_estimators max_depth",
            (5, None), (10, 5), (20, 4), (20, None), (50, 8), (60, None), (100, None), **seeded,
        ),
        "bagging": vary(
            BaggingClassifier, "n_estimators max_features",
            (3, 0.5), (5, 1.0), (10, 0.3), (10, 1.0), (20, 0.2), (20, 0.6), (40, 0.5), **seeded,
        ),
        "boosting": vary(
            GradientBoostingClassifier, "n_estimators learning_rate",
            (5, 0.1), (8, 0.3), (15, 0.1), (15, 0.3), (25, 0.2), (40, 0.2), (50, 0.1),
            max_depth=2, subsample=0.7, **seeded,
        ),
        "adaboost": [
            partial(boosted_trees, n_estimators=n, max_depth=depth)
            for n, depth in ((10, 2), (10, 4), (20, 3), (30, 3), (20, 5), (40, 4), (40, 6))
        ],
        "naive-bayes": [
            *vary(GaussianNB, "var_smoothing", (1e-3,), (0.1,)),
            *vary(BernoulliNB, "alpha binarize", (10.0, 12.0), (1.0, 4.0), (0.1, 8.0)),
            *vary(MultinomialNB, "alpha", (100.0,), (1.0,)),
        ],
        "discriminant": [
            *vary(shrunk, "shrinkage", (0.9,), (0.1,), ("auto",)),
            *vary(discriminant_of_scores, "n_components", (3,), (6,), (12,), (18,)),
        ],
        "mlp": vary(
            MLPClassifier, "hidden_layer_sizes max_iter",
            ((8,), 60), ((16,), 40), ((16, 16), 120), ((32,), 60), ((64,), 30), ((64, 32), 80),
            ((128,), 100), **seeded,
        ),
        "linear-other": [
            *vary_calibrated(RidgeClassifier, "alpha", (1e6,), (1e4,), (1.0,)),
            *vary_calibrated(SGDClassifier, "alpha", (0.01,), **seeded),
            *vary(
                SGDClassifier, "loss alpha",
                ("log_loss", 30.0), ("log_loss", 1.0), ("modified_huber", 0.1), **seeded,
            ),
        ],
        "nystroem": vary(
            nystroem, "n_components gamma",
            (10, 3e-4), (20, 1e-3), (30, 5e-4), (40, 1e-3), (60, 5e-4), (60, 2e-3), (60, 1e-3),
        ),
    }  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """How one model is made.

    Attributes
    ----------
    name : str
        Family and number of its setting; the stem of its file.
    build : callable
        Returns the untrained classifier.
    n_train : int
        Training samples it gets to see.
    label_noise : float
        Share of them whose label is replaced by a random one.
    n_pixels : int
        Pixels of the 64 it gets to see, in training and in the benchmark.
    seed : int
        Of its training samples, wrong labels and pixels.
    held_out : bool
        Whether its file goes to ``new/``.
    """

    name: str
    build: Build
    n_train: int
    label_noise: float
    n_pixels: int
    seed: int
    held_out: bool

    @property
    def path(self) -> Path:
        """Where its prediction file lies."""
        return (FOLDER / "new" if self.held_out else FOLDER) / f"{self.name}.npz"


def recipes() -> list[Recipe]:
    """List all 112 models; the seed decides the conditions and the held-out dozen."""
    rng = np.random.default_rng(SEED)
    named = [
        (f"{family}-{number}", build)
        for family, builds in families().items()
        for number, build in enumerate(builds, start=1)
    ]
    held_out = {named[i][0] for i in rng.permutation(len(named))[8::9]}
    return [
        Recipe(
            name=name,
            build=build,
            n_train=int(rng.choice(TRAIN_SIZES)),
            label_noise=float(rng.choice(LABEL_NOISES)),
            n_pixels=int(rng.choice(PIXEL_COUNTS)),
            seed=int(rng.integers(2**31)),
            held_out=name in held_out,
        )
        for name, build in named
    ]


@dataclass(frozen=True)
class Digits:
    """The digits, split: every third, from the first on, is for training.

    Attributes
    ----------
    train_pixels, train_labels : NDArray of shape (599, 64) and (599,)
    pixels, labels, ids : NDArray of shape (1198, 64), (1198,) and (1198,)
        The benchmark; an id is the number of the digit in scikit-learn's order.
    """

    train_pixels: NDArray[np.float64]
    train_labels: NDArray[np.int64]
    pixels: NDArray[np.float64]
    labels: NDArray[np.int64]
    ids: NDArray[np.str_]


@cache
def load() -> Digits:
    """Load and split the digits."""
    pixels, labels = load_digits(return_X_y=True)
    in_training = np.arange(len(labels)) % 3 == 0
    return Digits(
        train_pixels=pixels[in_training],
        train_labels=labels[in_training],
        pixels=pixels[~in_training],
        labels=labels[~in_training],
        ids=np.array([f"digit-{i}" for i in np.flatnonzero(~in_training)]),
    )


def balanced(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Shuffle so that any first n have nearly equally many of each class; calibration needs 3."""
    shuffled = rng.permutation(len(labels))
    nth_of_class = np.zeros(len(labels), dtype=np.int64)
    for label in range(N_CLASSES):
        of_class = labels[shuffled] == label
        nth_of_class[of_class] = np.arange(of_class.sum())
    return shuffled[np.argsort(nth_of_class, kind="stable")]


def train_and_predict(recipe: Recipe) -> NDArray[np.float16]:
    """Train one model and return its probabilities on the benchmark.

    Returns
    -------
    NDArray of float16, shape (1198, 10)
    """
    digits = load()
    rng = np.random.default_rng(recipe.seed)
    chosen = balanced(digits.train_labels, rng)[: recipe.n_train]
    shown = np.sort(rng.permutation(digits.pixels.shape[1])[: recipe.n_pixels])
    labels = digits.train_labels[chosen].copy()
    wrong = rng.random(len(labels)) < recipe.label_noise
    labels[wrong] = rng.integers(N_CLASSES, size=int(wrong.sum()))

    model = recipe.build()
    with warnings.catch_warnings():
        # Some are stopped early on purpose; that is what makes them weak.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(digits.train_pixels[np.ix_(chosen, shown)], labels)
    probabilities = np.zeros((len(digits.labels), N_CLASSES))
    probabilities[:, model.classes_] = model.predict_proba(digits.pixels[:, shown])
    return probabilities.astype(np.float16)


def accuracy(predictions: NDArray[np.float16]) -> float:
    """Return the share of the benchmark that is right."""
    return float((predictions.argmax(axis=1) == load().labels).mean())


def write(recipe: Recipe, predictions: NDArray[np.float16]) -> None:
    """Write one prediction file; numpy stamps its parts 1980, so equal arrays are equal bytes."""
    recipe.path.parent.mkdir(exist_ok=True)
    digits = load()
    labels = digits.labels.astype(np.int8)
    np.savez_compressed(recipe.path, predictions=predictions, labels=labels, sample_ids=digits.ids)


def largest_difference(recipe: Recipe, predictions: NDArray[np.float16]) -> float:
    """Compare with the file that is there; infinite if it is missing or about other samples."""
    if not recipe.path.exists():
        return float("inf")
    with np.load(recipe.path, allow_pickle=False) as there:
        same_labels = np.array_equal(there["labels"], load().labels)
        if not same_labels or not np.array_equal(there["sample_ids"], load().ids):
            return float("inf")
        difference = there["predictions"].astype(np.float64) - predictions.astype(np.float64)
    return float(np.abs(difference).max())


def main() -> int:
    """Write or check the files; 1 if a check fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    worst = 0.0
    for recipe in recipes():
        predictions = train_and_predict(recipe)
        outcome = "held out" if recipe.held_out else ""
        if check:
            difference = largest_difference(recipe, predictions)
            worst = max(worst, difference)
            outcome = f"differs by {difference:g}" if difference else "same"
        else:
            write(recipe, predictions)
        print(f"{recipe.name:<16}{accuracy(predictions):.3f} {outcome}".rstrip(), flush=True)
    if not check:
        return 0
    print(
        f"largest difference of a probability: {worst:g}, "
        f"with scikit-learn {sklearn.__version__}; the files were made with {MADE_WITH}"
    )
    return int(worst > 0 if sklearn.__version__ == MADE_WITH else not np.isfinite(worst))


if __name__ == "__main__":
    sys.exit(main())
