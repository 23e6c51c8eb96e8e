"""A database ready to estimate: the parts that one predictor needs, read once for all targets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.database import ACCURACY, Database
from disco_cli.errors import ArtifactError, InputError, UsageError
from disco_cli.estimation.combine import Combined
from disco_cli.estimation.fitted import FittedRecipe
from disco_cli.estimation.intervals import half_width, models_needed
from disco_cli.estimation.neighbours import nearest, predict_neighbours
from disco_cli.estimation.pca import Pca
from disco_cli.estimation.regressors import LinearEstimator
from disco_cli.estimation.signature import add_label_columns, fill_missing, flatten, project
from disco_cli.estimation.truth import weighted_mean
from disco_cli.workflows.lacking import LINEAR, why_no_groups, why_no_predictor
from disco_cli.workflows.target import Target

MIN_SHARE = 0.5
"""A target must have answered at least this share of the K samples."""
EXTRAPOLATED = "extrapolated"
UNFAMILIAR = "unfamiliar"
IN_RANGE = "in-range"


class IncompleteTargetError(InputError):
    """A model that lacks too many of the K samples to be estimated."""


@dataclass(frozen=True)
class GroupEstimate:
    """The estimate of one group of samples; ``None`` where too few were drawn for an interval."""

    group: str
    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Prediction:
    """The estimate of one model; the fields are the keys of a ``--json`` line.

    Attributes
    ----------
    model : str
        Its name.
    estimate : float
        Full score in the metric's units.
    low, high : float or None
        Its interval; ``None`` where there is none, and a warning says why.
    level : float
        Coverage the interval is made for.
    status : str
        ``in-range``, ``extrapolated`` (beyond the reference models) or ``unfamiliar`` (it answers
        as none of them does).
    predictor : str
        Who made the estimate.
    n_used, n_missing : int
        Of the K samples, how many the model answered and how many it lacks.
    subset_mean : float or None
        Its plain mean on the K samples.
    subset_biased : bool
        Whether that mean is no estimate of the full score, because the samples were chosen for
        what they tell or with unequal chances.
    nearest : str
        The most similar reference model.
    distance : float
        Cosine distance to it, 0 … 2.
    warnings : tuple of str
        What to know before the estimate is trusted.
    components : dict of str to float, or None
        The estimates that ``auto`` combines: ``model``, ``design`` and ``ridge``.
    groups : tuple of GroupEstimate, or None
        Estimates of each group, where they were asked for.
    """

    model: str
    estimate: float
    low: float | None
    high: float | None
    level: float
    status: str
    predictor: str
    n_used: int
    n_missing: int
    subset_mean: float | None
    subset_biased: bool
    nearest: str
    distance: float
    warnings: tuple[str, ...]
    components: dict[str, float] | None = None
    groups: tuple[GroupEstimate, ...] | None = None


class Estimator:
    """What estimates targets of one database with one predictor.

    Parameters
    ----------
    database : Database
        The opened database.
    predictor : str or None
        One of ``lacking.PREDICTORS``; ``None`` for the database's own.

    Raises
    ------
    UsageError
        The database has no such predictor.
    ArtifactError
        A part of the database cannot be used.
    """

    def __init__(self, database: Database, predictor: str | None) -> None:
        parameters = database.manifest.parameters
        self.name = predictor or str(parameters["predictor"])
        self._database = database
        self._known = database.references
        self._has_labels = bool(parameters["is_label_aware"])
        reason = why_no_predictor(database, self.name)
        if reason is not None:
            raise UsageError(f"--predictor {self.name}: {reason}")
        pca = database.arrays("pca.npz")
        self._pca = Pca(
            pca["mean"], pca["components"], pca["variance"], float(pca["total_variance"])
        )
        self._recipe = self._read_recipe()
        self._linear = self._read_linear() if self.name in LINEAR else None
        self._forest: Any = None
        if self.name == "rf":
            from disco_cli.estimation.forest import read_forest

            self._forest = read_forest(database.parts["rf.pkl"])

    def _read_recipe(self) -> FittedRecipe | None:
        """Return our own recipe, which also tells how familiar a target is."""
        if "recipe.npz" not in self._database.parts:
            return None
        try:
            return FittedRecipe.from_arrays(self._database.arrays("recipe.npz"))
        except ValueError as error:
            message = f"recipe.npz: cannot be used ({error}); run `disco build-db` again"
            raise ArtifactError(message) from error

    def _read_linear(self) -> LinearEstimator:
        arrays = self._database.arrays("linear.npz")
        try:
            return LinearEstimator.from_arrays(arrays, self.name)
        except KeyError as error:
            message = f"linear.npz: {error.args[0]} is missing; run `disco build-db` again"
            raise ArtifactError(message) from None

    def predict(self, target: Target, level: float, *, by_group: bool) -> Prediction:
        """Return the estimate of one target with all that is said about it.

        Raises
        ------
        IncompleteTargetError
            The target lacks too many of the K samples, or too many of its answers have no response.
        InputError
            It answered without being scored.
        ArtifactError
            Arrays of the database lead to no number.
        """
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                return self._predict(target, level, by_group=by_group)
        except (FloatingPointError, np.linalg.LinAlgError) as error:
            message = (
                f"model {target.name!r}: no number comes out ({error}): the database or the "
                "responses hold numbers of unlike sizes; run `disco build-db` again"
            )
            raise ArtifactError(message) from error

    def _predict(self, target: Target, level: float, *, by_group: bool) -> Prediction:
        n_missing = int(target.missing.sum())
        warnings = [*target.warnings, *self._check_share(target, n_missing)]
        warnings += self._check_scored(target)
        scores = self._scores_of(target)
        index, distance = nearest(self._known["scores"], scores)
        combined = self._combined(target, level)
        if self.name == "auto" and combined is not None:
            estimate, low, high = combined.estimate, combined.low, combined.high
            warnings += self._auto_warnings(combined)
        else:
            estimate = self._within_bounds(self._estimate(target, scores))
            low, high = self._interval(estimate, level, warnings)
        status = self._status(target, combined, distance)
        warnings += self._status_warnings(status)
        return Prediction(
            model=target.name,
            estimate=estimate,
            low=low,
            high=high,
            level=level,
            status=status,
            predictor=self.name,
            n_used=len(target.outputs) - n_missing,
            n_missing=n_missing,
            subset_mean=None
            if target.responses is None
            else weighted_mean(target.responses, self._known["weights"]),
            subset_biased=self._database.selection.draw.is_biased,
            nearest=str(self._known["names"][index]),
            distance=distance,
            warnings=tuple(warnings),
            components=self._components(combined),
            groups=self._groups(target, level) if by_group else None,
        )

    def _check_share(self, target: Target, n_missing: int) -> list[str]:
        k = len(target.outputs)
        if k - n_missing < MIN_SHARE * k:
            message = (
                f"model {target.name!r}: has {k - n_missing} of the {k} selected samples, at least "
                f"{math.ceil(MIN_SHARE * k)} are needed; run it on the samples of selection.json"
            )
            raise IncompleteTargetError(message)
        if n_missing == 0:
            return []
        return [f"{n_missing} of {k} samples missing, estimated from the others"]

    def _check_scored(self, target: Target) -> list[str]:
        """Hold the share of answers that have a response to the same measure as the answers.

        Nobody can have a response where no reference model has one, as with an unknown label.
        """
        if not (self._has_labels or self.name == "auto" or self.name in LINEAR):
            return []
        responses, known = self._responses(target), self._known.get("responses")
        if known is None:
            raise ArtifactError("references.npz: responses is missing; run `disco build-db` again")
        possible = ~np.isnan(known).all(axis=0)
        n_possible, n_missing = int(possible.sum()), int(target.missing[possible].sum())
        n_scored = int((~np.isnan(responses) & possible).sum())
        if n_scored < max(MIN_SHARE * n_possible, 1):
            message = (
                f"model {target.name!r}: {n_scored} of the {len(possible)} selected samples have a "
                f"response, at least {max(math.ceil(MIN_SHARE * n_possible), 1)} are needed by "
                f"--predictor {self.name}; give responses, or labels, for the others too"
            )
            raise IncompleteTargetError(message)
        unscored = n_possible - n_missing - n_scored
        return [f"{unscored} of {len(possible)} samples answered, not scored"] if unscored else []

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The range that scores can have, where that is known."""
        if self._database.manifest.metric == ACCURACY:
            return (0.0, 1.0)
        return None if self._recipe is None else self._recipe.calibration.bounds

    def _within_bounds(self, estimate: float) -> float:
        """Return an estimate inside the range that scores can have, where that is known."""
        if self.bounds is None:
            return estimate
        return min(max(estimate, self.bounds[0]), self.bounds[1])

    def _scores_of(self, target: Target) -> NDArray[np.float64]:
        """Return the principal scores (q,) of the target's signature."""
        outputs = target.outputs[np.newaxis]
        if self._has_labels:
            outputs = add_label_columns(
                outputs, self._known["labels"], self._responses(target)[np.newaxis]
            )
        filled = fill_missing(outputs, self._known["fill"])
        return np.asarray(project(self._pca, flatten(filled))[0])

    def _responses(self, target: Target) -> NDArray[np.float64]:
        if target.responses is None:
            advice = "" if self._has_labels else "; --predictor rf and knn do without"
            message = (
                f"model {target.name!r}: --predictor {self.name} needs responses or labels, and "
                f"neither the file nor the database has them{advice}"
            )
            raise InputError(message)
        return target.responses

    def _combined(self, target: Target, level: float) -> Combined | None:
        if self._recipe is None or target.responses is None or np.isnan(target.responses).all():
            return None
        return self._recipe.estimate(target.responses, level)

    def _estimate(self, target: Target, scores: NDArray[np.float64]) -> float:
        """Return the full score according to forest, neighbours or a linear regressor."""
        if self._linear is not None:
            y = self._responses(target)
            known = self._known["responses"]
            present = ~np.isnan(known)
            means = np.where(present, known, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
            return float(self._linear.predict(np.where(np.isnan(y), means, y)[np.newaxis])[0])
        if self._forest is not None:
            from disco_cli.estimation.forest import predict_forest

            return float(predict_forest(self._forest, scores[np.newaxis])[0])
        neighbours = int(self._database.manifest.parameters["n_neighbours"])
        return predict_neighbours(self._known["scores"], self._known["truth"], scores, neighbours)

    def _interval(
        self, estimate: float, level: float, warnings: list[str]
    ) -> tuple[float | None, float | None]:
        """Return the interval from the residuals of left-out reference models."""
        residuals = (
            self._linear.residuals
            if self._linear is not None
            else self._known[f"residuals_{self.name}"]
        )
        width = half_width(residuals, level)
        if width is None:
            warnings.append(
                f"no interval: level {level:g} needs {models_needed(level)} reference models, "
                f"the database has {np.count_nonzero(~np.isnan(residuals))}"
            )
            return None, None
        return self._within_bounds(estimate - width), self._within_bounds(estimate + width)

    def _auto_warnings(self, combined: Combined) -> list[str]:
        found = [] if combined.reason is None else [f"no interval: {combined.reason}"]
        parts = combined.parts
        gap = abs(parts.model - parts.design)
        if gap > 2 * parts.standard_error > 0:
            found.append(
                f"the component estimates disagree: {parts.model:.4f} from the reference models, "
                f"{parts.design:.4f} from the design"
            )
        return found

    def _components(self, combined: Combined | None) -> dict[str, float] | None:
        if self.name != "auto" or combined is None:
            return None
        parts = combined.parts
        ridge = {} if parts.ridge is None else {"ridge": parts.ridge}
        return {
            "model": parts.model,
            "design": parts.design,
            **ridge,
            "standard_error": parts.standard_error,
        }

    def _status(self, target: Target, combined: Combined | None, distance: float) -> str:
        if combined is not None:
            return combined.status.value
        known = self._known.get("responses")
        if known is not None and target.responses is not None:
            weights = self._known["weights"]
            own = weighted_mean(target.responses, weights)
            means = [weighted_mean(row, weights) for row in known]
            present = [mean for mean in means if mean is not None]
            if own is not None and not min(present) <= own <= max(present):
                return EXTRAPOLATED
        return UNFAMILIAR if distance > self._known["gaps"].max() else IN_RANGE

    def _status_warnings(self, status: str) -> list[str]:
        if status == UNFAMILIAR:
            return [
                "unfamiliar: answers as no reference model does; the interval may be too narrow"
            ]
        if status != EXTRAPOLATED:
            return []
        if self.name in ("rf", "knn"):
            advice = "this predictor cannot follow, nor its interval"
        elif self.name in LINEAR:
            advice = "the interval may be too narrow"
        elif self._recipe is not None and self._recipe.estimator.has_design:
            advice = (
                "the estimate leans on the samples drawn by chance, the interval on their spread"
            )
        else:
            advice = "no model like it was learned from, the interval may be too narrow"
        return [f"extrapolated: beyond the reference models; {advice}"]

    def _groups(self, target: Target, level: float) -> tuple[GroupEstimate, ...]:
        reason = why_no_groups(self._database, self.name)
        if reason is not None or self._recipe is None:
            raise UsageError(f"--groups: {reason}")
        y = self._responses(target)
        found = []
        for code, name in enumerate(self._known["group_names"].tolist()):
            part = self._recipe.estimate(y, level, np.array([code]))
            found.append(GroupEstimate(str(name), part.estimate, part.low, part.high))
        return tuple(found)
